"""The page of a backward through custom Functions, whose gradients are those that their `backward` returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import adjoint_name
from gradcli.graph.node import Node, operand
from gradcli.pages.backward.gradients import introduced
from gradcli.pages.backward.loss import cotangent, loss_name, weights_section
from gradcli.pages.backward.question import Gradients
from gradcli.pages.forms.gradients import forms
from gradcli.pages.mentions import page_of
from gradcli.pages.question import Result
from gradcli.pages.results import Named, Wanted
from gradcli.pages.sections import (
    Equations,
    Line,
    Math,
    Name,
    Page,
    Section,
    Text,
    Typed,
    Value,
    Words,
    gradient,
    quantity,
)
from gradcli.pages.system import point_parts
from gradcli.script.known import line_at
from gradcli.script.measured import measured
from gradcli.script.pages.quantities import quantities
from gradcli.script.scene import CallScene
from gradcli.script.system import Recorded, Use


def functions_page(scene: CallScene) -> Page:
    """Return the system with calls of custom Functions, v, and the gradients in terms of their `backward`."""
    recorded, notes = scene.recorded, scene.notes
    roots_of = _roots(recorded)
    graph, v, called = _open(recorded, roots_of)
    outputs = [name for use in reversed(recorded.functions.values()) for name in use.outputs.values()]
    how = Wanted(page=True, implicit=recorded.call.implicit, warn=False)
    question = Gradients(graph, [*outputs, *recorded.wrt], how, [[v]], measured=measured(recorded))
    result = question.result([recorded.at], notes)
    weights = weights_section(
        recorded.graph, {name: v[name] for name in recorded.graph.outputs}, recorded.call.implicit
    )
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


def _open(recorded: Recorded, roots: Mapping[str, str]) -> tuple[Graph, Named, dict[str, str]]:
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
        for i, node in use.arguments.items():
            sent = recorded.call.sent.get((use.operation.id, i))
            name = f"\0{k}.{i}"
            outputs[name] = node
            v[name] = np.zeros(node.shape) if sent is None else sent.array.astype(float)
            called[name] = use.backward(i, [weights[output] for output in use.outputs.values()])
    return Graph.of(recorded.graph.inputs, outputs, names={**recorded.graph.names, **outputs}), v, called


def _system(scene: CallScene, result: Result, roots: Mapping[str, str]) -> Section:
    """Return the section of the system: statements and calls of custom Functions, in the order of the script."""
    (point,), recorded = result.points, scene.recorded
    graph, values = recorded.graph, {**point.named, **point.outputs}
    outputs = {name for use in recorded.functions.values() for name in use.outputs.values()}
    known = {name: recorded.at[name] for name in appearance(result.graph) if name not in outputs}
    lines = [
        (recorded.producer[n].id if n in recorded.producer else -1, _statement(graph, name, n, values))
        for name, n in graph.names.items()
        if name not in roots.values()
    ]
    lines += [(use.operation.id, _called(scene, use, roots)) for use in recorded.functions.values()]
    shown = Equations(tuple(line for _, line in sorted(lines, key=lambda pair: pair[0])))
    return Section("system", (*(quantities(scene, known) or [Text(point_parts(known))]), shown))


def _statement(graph: Graph, name: str, node: Node, values: Named) -> Line:
    names = {n: label for n, label in graph.labels.items() if n is not node or label != name}
    return Line((Name(name), quantity(node, names), *([Value(values[name])] if name in values else [])))


def _called(scene: CallScene, use: Use, roots: Mapping[str, str]) -> Line:
    """Return a call of a custom Function: y = Square(x) = 4; or what was written: y_2 = y, as line 4 left it."""
    graph, at = scene.recorded.graph, scene.recorded.at
    arguments = [x if isinstance(x, str) else quantity(x, graph.labels) for x in use.written]
    outputs = [Name(roots.get(name, name)) for name in use.outputs.values()]
    values = [Value(at[name]) for name in use.outputs.values()]
    left, right = (parts[0] if len(parts) == 1 else Words(_listed(parts)) for parts in (outputs, values))
    if use.is_change:
        site = use.operation.site
        by = f", as {scene.where(line_at(site))} left it" if site.line else ", as it was changed since"
        return Line((left, Words((*arguments, by)), right))
    if use.formula is not None:
        return Line((left, quantity(use.formula, graph.labels), right))
    return Line((left, Words((f"{use.operation.row}(", *_listed(arguments), ")")), right))


def _listed(parts: Sequence[Math]) -> tuple[Math, ...]:
    return tuple(m for k, part in enumerate(parts) for m in ([", "] * bool(k) + [part]))


def _gradients(
    recorded: Recorded, result: Result, v: Named, called: Mapping[str, str], roots: Mapping[str, str]
) -> Section:
    """Return the adjoints of the functions' outputs, then the gradients, in terms of each `backward`."""
    written = forms(result, v, called)
    (point,) = result.points
    loss = loss_name(recorded.graph, recorded.v)
    lines = [Line((Name(name), formula)) for name, formula in written.adjoints.items()]
    names = [name for name in result.wrt if name not in roots]  # of a root, v is the adjoint
    for name in names:
        own_name = gradient(name, (), loss, recorded.call.returns)
        left = own_name if name in recorded.wrt else Name(adjoint_name(name, loss))
        sides = [written.gradients[name]] if name in written.gradients else []
        lines.append(Line((left, *sides, Value(point.grad[name])), (), name in recorded.wrt))
    own_uses = (use for use in recorded.functions.values() if use.formula is None and not use.is_change)
    modules = {use.operation.row: use.operation.settings[0] for use in own_uses}
    again = [name for name, module in modules.items() if module == "torch.utils.checkpoint"]
    pytorch = [name for name, module in modules.items() if module.startswith("torch.") and name not in again]
    own = [name for name, module in modules.items() if module.partition(".")[0] != "torch"]
    said = []
    if again:
        backward = "its backward calls the function again, and goes back through it in a backward of its own."
        said.append(Text((f"{', '.join(again)} is PyTorch's: {backward}",)))
    if pytorch:
        said.append(Text((f"{', '.join(pytorch)} is PyTorch's: the page takes what its backward returns.",)))
    if own:
        taken = f"{', '.join(own)} is the script's own Function: the page takes what its backward returns; "
        said.append(Text((taken, Typed("--check"), " checks that.")))
    shown = [*written.adjoints, *(adjoint_name(name, loss) for name in names if name not in recorded.wrt)]
    scene = [introduced(shown)] if shown else []
    return Section("grad", (*scene, Equations(tuple(lines)), *said))
