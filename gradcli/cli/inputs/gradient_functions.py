"""A gradient that is a Python function, as claims: `gradcli check -F file.py:loss --gradient file.py:dloss`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from gradcli.cli.inputs.system import check_branches
from gradcli.errors import InputError, option_error
from gradcli.graph.array import Array, Named
from gradcli.graph.construct import concatenate, index, reshape, stack
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import Shape
from gradcli.graph.subsystem import Subsystem
from gradcli.lang.system import System, read_system
from gradcli.pages.check.claim import Case, derivative
from gradcli.pages.check.magnitudes import usual_powers
from gradcli.pages.check.verdicts import CheckResult, Settings, check
from gradcli.pyfunc.system import FunctionSystem


def gradient_cases(system: System, gradient: Subsystem, graph: Graph, points: Sequence[Named]) -> list[Case]:
    """Return the claims of a gradient function about the derivatives of the system's only output.

    A result is about the parameter at the same position, or about the one that its key names: `w`, `dw` or `grad_w`.

    Errors: `InputError` for results that fit no input, in number, name or shape.
    """
    name, base = _differentiated(system, graph)
    order = list(dict.fromkeys([p for part in system.subsystems for p in part.parameters] + list(graph.inputs)))
    parameters = list(gradient.parameters)
    meant = parameters if set(parameters) <= graph.inputs.keys() else order[: len(parameters)]
    if len(meant) < len(parameters):
        message = f"`{gradient.label}` has {len(parameters)} parameters, and the function has {len(order)}"
        raise InputError(message, text=gradient.label)
    nodes = gradient.build({p: graph.inputs[n] for p, n in zip(parameters, meant, strict=True)}, {})
    check_branches([gradient], graph, points)
    called = f"{gradient.label.rpartition(':')[2]}({', '.join(parameters)})"
    results = {key: nodes[key] for key in gradient.outputs}
    listed = _listed(results, getattr(gradient, "name", gradient.label), order, graph, base)
    about = listed or _keyed(results, order, graph, base, gradient.label)
    return [
        _case(graph, name, base, x, node, called + (f"[{k}]" if len(about) > 1 else ""))
        for k, (x, node) in enumerate(about)
    ]


def _listed(
    results: Mapping[str, Node], name: str, order: Sequence[str], graph: Graph, base: Node
) -> list[tuple[str, Node]]:
    """Return the derivatives by the first inputs, or by all, whose elements a list has one by one; else nothing."""
    shapes = [(*base.shape, *graph.inputs[x].shape) for x in order]
    if not _are_listed(results, name) or [r.shape for r in results.values()] == shapes[: len(results)]:
        return []
    flat = concatenate([reshape(r, (r.size,)) for r in results.values()], 0)
    ends = list(accumulate(map(math.prod, shapes)))
    count = ends.index(flat.size) + 1 if flat.size in ends else 0
    if count > 1 and base.shape:
        return []
    if count == 1 and (nested := _nested(results, name)) and len(nested) == len(shapes[0]):
        shapes = [nested]  # which may be transposed
    starts = [0, *ends]
    return [
        (x, reshape(index(flat, (range(start, end),)), shape))
        for x, start, end, shape in zip(order[:count], starts, ends, shapes, strict=False)
    ]


def _nested(results: Mapping[str, Node], name: str) -> Shape:
    """Return the shape of nested lists of numbers; () where they have none."""
    if not all(key[len(name) :] and not node.shape for key, node in results.items()):
        return ()
    keys = [tuple(map(int, key[len(name) :].split("_"))) for key in results]
    shape = tuple(max(k) + 1 for k in zip(*keys, strict=False))
    return shape if len({*map(len, keys)}) == 1 and math.prod(shape) == len(keys) else ()


def _keyed(
    results: Mapping[str, Node], order: Sequence[str], graph: Graph, base: Node, label: str
) -> list[tuple[str, Node]]:
    """Return the inputs with the results about them: those that the keys of results name, or those at their positions.

    A list under a key has several results.
    """
    about: dict[str, list[Node]] = {}
    for k, (key, node) in enumerate(results.items()):
        about.setdefault(_about(key, k, order, graph, base, results, label), []).append(node)
    whole = []
    for x, parts in about.items():
        shape = (*base.shape, *graph.inputs[x].shape)
        several = len(parts) > 1 and sum(p.size for p in parts) == math.prod(shape)
        flat = [reshape(p, (p.size,)) for p in parts]
        whole.append((x, reshape(concatenate(flat, 0), shape) if several else parts[0]))
    return whole


def _are_listed(keys: Iterable[str], name: str) -> bool:
    """Return whether results of a function are those of a list, which have numbers behind the function's name."""
    return all(re.fullmatch(rf"{re.escape(name)}[0-9_]+", key) for key in keys)


def _differentiated(system: System, graph: Graph) -> tuple[str, Node]:
    """Return the only output, or the list that a function returns, with its name.

    Errors: `InputError` where there are several outputs.
    """
    nodes = [graph.outputs.get(name) or graph.names[name] for name in system.outputs]
    if len(nodes) == 1:
        return system.outputs[0], nodes[0]
    for part in system.subsystems:
        name = getattr(part, "name", part.label)
        if _are_listed(system.outputs, name) and len({n.shape for n in nodes}) == 1:
            return name, stack(nodes)
    raise option_error("--gradient", f"--gradient is that of one output, and there are {len(nodes)}")


def _about(
    key: str, k: int, order: Sequence[str], graph: Graph, base: Node, results: Mapping[str, Node], label: str
) -> str:
    """Return the input by which a result is the derivative, or one of the elements of a list."""
    for part in (key, re.sub(r"(_[0-9]+)+$", "", key)):
        for name in (part, part.removeprefix("d"), part.removeprefix("grad_"), part.removeprefix("d_")):
            if name in graph.inputs:
                return name
    if len(results) > len(order):
        elements = sum(r.size for r in results.values())
        inputs = ", ".join(f"{x} of shape {graph.inputs[x].shape}" for x in order)
        some = f"`{label}` returns {len(results)} results, of {elements} elements together"
        hint = f"the inputs are {inputs}" + f", and what is differentiated has shape {base.shape}" * bool(base.shape)
        raise InputError(f"{some}, which are not the derivatives by the inputs", hint=hint, text=label)
    return order[k]


def _case(graph: Graph, y: str, base: Node, x: str, yours: Node, said: str) -> Case:
    by = graph.inputs[x]
    truth = derivative(graph, base, by)
    if yours.shape != truth.shape and yours.is_constant and not yours.shape and yours.value is not None:
        yours = const(yours.value, truth.shape)
    if yours.shape != truth.shape:
        hint = f"the shape of `{y}` is followed by that of `{x}`" if base.shape else "a gradient has that of its input"
        message = f"d{y}/d{x} has shape {truth.shape}, and what `{said}` returns has shape {yours.shape}"
        raise InputError(message, hint="is it transposed?" if yours.shape == truth.shape[::-1] else hint)
    truths = Graph.of(graph.inputs, {"": truth}, names=graph.names)
    return Case(f"d{y}/d{x}", said, truths, base, by, truth, yours)


def needs_point(parts: Sequence[Subsystem]) -> None:
    """Check that no function branches on values, which has no random points: the user gives the points.

    Errors: `InputError`.
    """
    if any(getattr(part, "conditions", ()) for part in parts):
        message = "the function branches on values, and is checked at points that you give"
        raise InputError(message, hint="give one or more: --at x=1")


def checked_functions(
    function: Callable[..., Any], gradient: Callable[..., Any] | None, inputs: Mapping[str, Any], settings: Settings
) -> CheckResult:
    """Return the verdicts on a gradient of a function; `inputs` has values of parameters, or shapes as tuples.

    Errors: `InputError` for what cannot be traced, and for results that fit no input.
    """
    if gradient is None:
        raise InputError("there is no gradient to check", hint="check(f, my_gradient)")
    known: dict[str, Array | Shape] = {
        n: x if isinstance(x, tuple) else np.asarray(x, float) for n, x in inputs.items()
    }
    called = {"f": function, "gradient": gradient}
    names = [name if (name := getattr(f, "__name__", "")).isidentifier() else other for other, f in called.items()]
    parts = [FunctionSystem(f, name, known) for name, f in zip(names, called.values(), strict=True)]
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
