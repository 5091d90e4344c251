"""The section `pytorch`: the line of PyTorch that does the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node
from gradcli.notation.numbers import array_text, number_text
from gradcli.pages.question import Call
from gradcli.pages.results import Array, Named
from gradcli.pages.sections import Code, Section

Outputs = Mapping[str, Node]

_CALLS = 6  # lines of code, one a call: the next ones look the same
_WEIGHTS = 12  # terms of a weighted sum: more are longer than two lines
_STACKED = 6  # scalars in one tensor: more are longer than two lines
_ELEMENTS = 12  # numbers of a tensor that is written out: more are longer than a line


def pytorch_section(graph: Graph, calls: Sequence[Call], retained: Sequence[str] = ()) -> Section:
    """Return the lines of PyTorch: `retain_grad` for intermediates, then each call of `backward`."""
    lines = [call_line(graph.outputs, call.v, k < len(calls) - 1) for k, call in enumerate(calls)]
    if len(lines) == 1 and (stacked := _stacked(graph.outputs, calls[0].v)):
        lines.append(f"# or: {stacked}")
    if len(lines) > _CALLS:
        lines = [*lines[: _CALLS - 2], f"# … and {len(lines) - _CALLS + 1} calls more", lines[-1]]
    taken = {*graph.inputs, *graph.names}
    each = "t" if "t" not in taken else next(fresh_names(taken))
    several = f"for {each} in ({', '.join(retained)}): {each}.retain_grad()"
    keeping = [several] if len(retained) > 1 else [f"{name}.retain_grad()" for name in retained]
    return Section("pytorch", (Code((*keeping, *lines), "in PyTorch"),))


def _stacked(outputs: Outputs, v: Named) -> str:
    """Return the call with all v as one argument, for outputs that are a few scalars; "" for others."""
    if any(weights.dtype == object for weights in v.values()):
        return ""
    if not 1 < len(outputs) <= _STACKED or any(y.shape for y in outputs.values()):
        return ""
    weights = np.array([v[name] for name in outputs])
    return f"torch.stack(({', '.join(outputs)})).backward({_tensor(weights, whole=True)})"


def call_line(outputs: Outputs, v: Named, again: bool, whole: bool = False) -> str:
    """Return one call; `again` keeps the graph for another one, `whole` writes out a v of any length."""
    keep = "retain_graph=True" if again else ""
    if len(outputs) > 1:
        terms = [_term(v[name], name, whole) for name in outputs if v[name].any()] or ["0*" + next(iter(outputs))]
        shown = terms if len(terms) <= _WEIGHTS or whole else [*terms[: _WEIGHTS - 1], "…", terms[-1]]
        return f"({' + '.join(shown)}).backward({keep})"
    (name,) = outputs
    weight = v[name]
    if not weight.shape and weight == 1:
        return f"{name}.backward({keep})"
    return f"{name}.backward({', '.join(filter(None, (_tensor(weight, whole), keep)))})"


def _term(v: Array, name: str, whole: bool) -> str:
    if v.shape:
        return f"({name} * {_tensor(v, whole)}).sum()"
    if v.dtype == object:
        return f"v_{name}*{name}"
    text = number_text(float(v))
    return f"({text})*{name}" if text.startswith("-") else f"{text}*{name}"


def _tensor(v: Array, whole: bool) -> str:
    if v.dtype == object or (v.size > _ELEMENTS and not whole):
        return "v"
    return f"torch.tensor({array_text(v, _floating)})"


def _floating(value: float) -> str:
    """Return a number with a point, so that torch.tensor makes it floating."""
    text = number_text(value)
    if text.lstrip("-") in ("inf", "nan"):
        return f"float('{text}')"
    return f"{text}." if text.lstrip("-").isdigit() else text
