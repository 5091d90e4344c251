"""A gradient that is a Python function, as claims: `gradcli check -F file.py:loss --gradient file.py:dloss`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.cli.subsystems import check_branches
from gradcli.errors import InputError
from gradcli.explain.check.claim import Case, derivative
from gradcli.explain.check.magnitudes import usual_powers
from gradcli.explain.check.verdicts import CheckResult, Settings, check
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import Shape
from gradcli.graph.subsystem import Subsystem
from gradcli.lang.system import System, read_system
from gradcli.pyfunc.system import FunctionSystem


def gradient_cases(system: System, gradient: Subsystem, graph: Graph, points: Sequence[Named]) -> list[Case]:
    """Return the claims of a gradient function about the derivatives of the system's only output.

    A result is about the parameter at the same position, or about the one that its key names: `w`, `dw` or `grad_w`.

    Errors: `InputError` for results that fit no input, in number, name or shape.
    """
    if len(system.outputs) != 1:
        raise InputError(
            f"--gradient is that of one output, and there are {len(system.outputs)}", options=("--gradient",)
        )
    name = system.outputs[0]
    order = list(dict.fromkeys([p for part in system.subsystems for p in part.parameters] + list(graph.inputs)))
    parameters = list(gradient.parameters)
    meant = parameters if set(parameters) <= graph.inputs.keys() else order[: len(parameters)]
    if len(meant) < len(parameters):
        raise InputError(
            f"`{gradient.label}` has {len(parameters)} parameters, and the function has {len(order)}",
            text=gradient.label,
        )
    nodes = gradient.build({p: graph.inputs[n] for p, n in zip(parameters, meant, strict=True)}, {})
    check_branches([gradient], graph, points)
    outputs = list(gradient.outputs)
    single = len(outputs) == 1
    about = [_about(key, k, order, graph, gradient.label) for k, key in enumerate(outputs)]
    called = f"{gradient.label.rpartition(':')[2]}({', '.join(parameters)})"
    return [
        _case(graph, name, x, nodes[key], called + ("" if single else f"[{k}]"))
        for k, (key, x) in enumerate(zip(outputs, about, strict=True))
    ]


def _about(key: str, k: int, order: Sequence[str], graph: Graph, label: str) -> str:
    """Return the input by which a result is the derivative."""
    for name in (key, key.removeprefix("d"), key.removeprefix("grad_"), key.removeprefix("d_")):
        if name in graph.inputs:
            return name
    if k >= len(order):
        raise InputError(
            f"`{label}` returns more results than there are inputs",
            hint=f"the inputs are {', '.join(order)}",
            text=label,
        )
    return order[k]


def _case(graph: Graph, y: str, x: str, yours: Node, said: str) -> Case:
    base, by = graph.outputs.get(y) or graph.names[y], graph.inputs[x]
    truth = derivative(graph, base, by)
    if yours.shape != truth.shape and yours.is_constant and not yours.shape and yours.value is not None:
        yours = const(yours.value, truth.shape)
    if yours.shape != truth.shape:
        raise InputError(
            f"d{y}/d{x} has shape {truth.shape}, and what `{said}` returns has shape {yours.shape}",
            hint="is it transposed?" if yours.shape == truth.shape[::-1] else "a gradient has the shape of its input",
        )
    keys = (*(slice(None),) * len(base.shape),)
    return Case(
        f"d{y}/d{x}", said, Graph.of(graph.inputs, {"": truth}, names=graph.names), base, by, keys, truth, yours
    )


def needs_point(parts: Sequence[Subsystem]) -> None:
    """Check that no function branches on values, which has no random points: the user gives the points.

    Errors: `InputError`.
    """
    if any(getattr(part, "conditions", ()) for part in parts):
        raise InputError(
            "the function branches on values, and is checked at points that you give", hint="give one or more: --at x=1"
        )


def checked_functions(
    function: Callable[..., Any], gradient: Callable[..., Any], inputs: Mapping[str, Any], settings: Settings
) -> CheckResult:
    """Return the verdicts on a gradient of a function; `inputs` has values of parameters, or shapes as tuples.

    Errors: `InputError` for what cannot be traced, and for results that fit no input.
    """
    known: dict[str, Array | Shape] = {
        n: x if isinstance(x, tuple) else np.asarray(x, float) for n, x in inputs.items()
    }
    parts = [FunctionSystem(f, getattr(f, "__name__", "f"), known) for f in (function, gradient)]
    system = read_system([], parts[:1])
    defaults = {n: p.default for n, p in parts[0].parameters.items() if p.default is not None}
    values = {n: x for n, x in known.items() if not isinstance(x, tuple)}
    graph = system.graph({})
    is_point = bool(values) and graph.inputs.keys() <= defaults.keys() | values.keys()
    points = [{n: {**defaults, **values}[n] for n in graph.inputs}] if is_point else []
    cases = gradient_cases(system, parts[1], graph, points)
    if not points:
        needs_point(parts)
    return check(graph, cases, replace(settings, points=points, usual=usual_powers(defaults)))
