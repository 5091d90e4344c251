"""The page of a backward through custom Functions, whose gradients are those that their `backward` returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.explain.backward.accumulation import backward
from gradcli.explain.backward.gradients import introduced
from gradcli.explain.backward.loss import cotangent, loss_name
from gradcli.explain.backward.record import BackwardResult
from gradcli.explain.backward.record import Call as Shown
from gradcli.explain.backward.weights import weights_section
from gradcli.explain.forms.gradients import forms
from gradcli.explain.mentions import page_of
from gradcli.explain.results import Named, Wanted
from gradcli.explain.sections import (
    Equations,
    Grad,
    Line,
    Math,
    Name,
    Page,
    Section,
    Text,
    Typed,
    Value,
    Words,
    quantity,
)
from gradcli.explain.system import point_parts
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import adjoint_name
from gradcli.graph.node import Node, operand
from gradcli.pytorch.backward import Call
from gradcli.script.measured import measured
from gradcli.script.pages.quantities import quantities
from gradcli.script.scene import CallScene
from gradcli.script.system import Recorded, Use


def functions_page(call: Call, scene: CallScene) -> Page:
    """Return the system with calls of custom Functions, v, and the gradients in terms of their `backward`."""
    recorded, notes = scene.recorded, scene.notes
    roots_of = _roots(recorded)
    graph, v, called = _open(call, recorded, roots_of)
    outputs = [name for use in reversed(recorded.functions.values()) for name in use.outputs.values()]
    how = Wanted(page=True, implicit=call.implicit, warn=False)
    result = backward(graph, [*outputs, *recorded.wrt], [recorded.at], [[v]], how, notes, measured(call, recorded))
    roots = replace(result, graph=recorded.graph, wrt=tuple(recorded.wrt))
    weights = weights_section(roots, [Shown({name: v[name] for name in recorded.graph.outputs}, {}, {})])
    sections = (_system(scene, result, roots_of), weights, _gradients(recorded, result, v, called, roots_of))
    return page_of(result, sections)


def _roots(recorded: Recorded) -> dict[str, str]:
    """Return the outputs of custom Functions that are outputs of the system, with their names there."""
    names = {recorded.graph.inputs[n]: n for use in recorded.functions.values() for n in use.outputs.values()}
    readers = Counter(a for n in recorded.graph.nodes for a in n.args)
    outputs = recorded.graph.outputs.items()
    return {
        names[result]: name
        for name, n in outputs
        if (result := operand(n, "identity")) in names and readers[result] == 1
    }


def _open(call: Call, recorded: Recorded, roots: Mapping[str, str]) -> tuple[Graph, Named, dict[str, str]]:
    """Return the graph with the arguments of custom Functions as outputs, whose v are the results of `backward`."""
    outputs: dict[str, Node] = dict(recorded.graph.outputs)
    v: Named = dict(recorded.v)
    called: dict[str, str] = {}
    loss = loss_name(recorded.graph, recorded.v)
    only = cotangent(recorded.graph, loss) if len(recorded.v) == 1 else ""
    weights: dict[str, str] = {}
    for use in recorded.functions.values():
        weights |= {name: adjoint_name(name, loss) for name in use.outputs.values()}
    weights |= {output: only or f"v_{name}" for output, name in roots.items()}
    for k, use in enumerate(recorded.functions.values()):
        pulled = call.pulled_steps.get(use.step)
        returned = [] if pulled is None else pulled.grad_inputs
        for i, node in use.arguments.items():
            grad_input = returned[i] if i < len(returned) else None
            name = f"\0{k}.{i}"
            outputs[name] = node
            v[name] = np.zeros(node.shape) if grad_input is None else grad_input._a[..., 0].astype(float)
            called[name] = _backward(use, i, weights)
    return Graph.of(recorded.graph.inputs, outputs, names={**recorded.graph.names, **outputs}), v, called


def _backward(use: Use, i: int, weights: Mapping[str, str]) -> str:
    """Return the result of the script's `backward` for an argument as text: Square.backward(ȳ).

    `weights` are what the cotangents of outputs are called.
    """
    cotangents = [weights[name] for name in use.outputs.values()]
    result = f"{use.step.cls.__name__}.backward({', '.join(cotangents)})"
    return result if len(use.written) == 1 else f"{result}[{i}]"


def _system(scene: CallScene, result: BackwardResult, roots: Mapping[str, str]) -> Section:
    (point,), recorded = result.points, scene.recorded
    graph, values = recorded.graph, {**point.intermediates, **point.value}
    outputs = {name for use in recorded.functions.values() for name in use.outputs.values()}
    known = {name: recorded.at[name] for name in appearance(result.graph) if name not in outputs}
    lines = [
        (recorded.producer[n].seq if n in recorded.producer else -1, _statement(graph, name, n, values))
        for name, n in graph.names.items()
        if name not in roots.values()
    ]
    lines += [(step.seq, _called(graph, use, recorded.at, roots)) for step, use in recorded.functions.items()]
    shown = Equations(tuple(line for _, line in sorted(lines, key=lambda pair: pair[0])))
    return Section("system", (*(quantities(scene, known) or [Text(point_parts(known))]), shown))


def _statement(graph: Graph, name: str, node: Node, values: Named) -> Line:
    names = {n: label for n, label in graph.labels.items() if n is not node or label != name}
    return Line((Name(name), quantity(node, names), *([Value(values[name])] if name in values else [])))


def _called(graph: Graph, use: Use, at: Mapping[str, Any], roots: Mapping[str, str]) -> Line:
    """Return a call of a custom Function: y = Square(x) = 4."""
    arguments = [x if isinstance(x, str) else quantity(x, graph.labels) for x in use.written]
    outputs = [Name(roots.get(name, name)) for name in use.outputs.values()]
    values = [Value(at[name]) for name in use.outputs.values()]
    left, right = (parts[0] if len(parts) == 1 else Words(_listed(parts)) for parts in (outputs, values))
    return Line((left, Words((f"{use.step.cls.__name__}(", *_listed(arguments), ")")), right))


def _listed(parts: Sequence[Math]) -> tuple[Math, ...]:
    return tuple(m for k, part in enumerate(parts) for m in ([", "] * bool(k) + [part]))


def _gradients(
    recorded: Recorded, result: BackwardResult, v: Named, called: Mapping[str, str], roots: Mapping[str, str]
) -> Section:
    """Return the adjoints of the functions' outputs, then the gradients, in terms of each `backward`."""
    written = forms(result, v, called)
    (point,) = result.points
    loss = loss_name(recorded.graph, recorded.v)
    lines = [Line((Name(name), formula)) for name, formula in written.adjoints.items()]
    names = [name for name in result.wrt if name not in roots]  # of a root, v is the adjoint
    for name in names:
        left = Grad(name) if name in recorded.wrt else Name(adjoint_name(name, loss))
        sides = [written.gradients[name]] if name in written.gradients else []
        lines.append(Line((left, *sides, Value(point.grad[name])), (), name in recorded.wrt))
    classes = ", ".join(dict.fromkeys(use.step.cls.__name__ for use in recorded.functions.values()))
    said = f"{classes} is the script's own Function: the page takes what its backward returns; "
    shown = [*written.adjoints, *(adjoint_name(name, loss) for name in names if name not in recorded.wrt)]
    scene = [introduced(shown)] if shown else []
    return Section("grad", (*scene, Equations(tuple(lines)), Text((said, Typed("--check"), " checks that."))))
