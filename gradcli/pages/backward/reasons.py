"""Why gradients are what they are, where a rule surprises: a maximum, softmax, a bias, a vector; or None in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradcli.graph.calls import opened
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.names import adjoint_name
from gradcli.graph.node import Node, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.graph.vjp import Pass, Sweep, active_nodes, differentiated, sweep
from gradcli.notation.nodes import short_text
from gradcli.pages.backward.loss import uniform
from gradcli.pages.evaluation import evaluated
from gradcli.pages.forms.rules import scaled_array
from gradcli.text.wrapping import in_words

if TYPE_CHECKING:
    from gradcli.pages.sections import Text
    from gradcli.pages.trace import Trace

_SHORT = 30  # characters of an expression in a sentence: more take the reader out of it
_LISTED = 3  # names in a sentence: more are better counted
_NODES = 2_000  # of a system that is looked through: more would take longer than the rest of the page
_EXTREMA = {"max": "below the maximum", "min": "above the minimum"}
_MATRIX = 2  # axes of an array that has rows
_CLOSE = 1e-5  # of sums, relatively: float32 rounds probabilities and 1/n, which add up to 1 up to that
_UNNAMED = "g"  # the adjoint of a product without a name


def reasons(
    graph: Graph, swept: Sweep, wrt: Sequence[str], loss: str, trace: Trace | None = None
) -> Iterator[str | Text]:
    """Yield a sentence for each rule that surprises; with the trace of a call, also facts of its numbers.

    `loss` is what adjoints are derivatives of.

    >>> from gradcli.graph.construct import reduce
    >>> from gradcli.graph.node import leaf
    >>> from gradcli.graph.vjp import sweep
    >>> x = leaf((3,))
    >>> graph = Graph.of({"x": x}, {"y": reduce("max", x, (0,), "first")})
    >>> print(*reasons(graph, sweep(graph), ["x"], "y"))
    max: a small change of an element below the maximum does not change y, so its slope is 0.
    """
    if len(graph.nodes) > _NODES:
        return
    whole, graph = graph, opened(graph)  # the definitions of calls have these operations
    swept = swept if graph is whole else sweep(graph, wrt)
    yield from _extrema(graph, swept)
    yield from _softmax(graph, swept, trace)
    yield from _vectors(graph, swept.incoming, wrt, loss)
    yield from _added_up(graph, swept.incoming, wrt)


def _extrema(graph: Graph, swept: Sweep) -> Iterator[str]:
    """Yield a sentence for `max` and `min`: elements that are not the extremum have slope 0."""
    extrema: dict[str, set[Node]] = {op: set() for op in _EXTREMA}
    for p in swept.passes:
        if p.argument.size > p.node.size:
            extrema.get(p.node.op, set()).add(p.node)
    for op, nodes in extrema.items():
        if nodes:
            result = graph.labels.get(next(iter(nodes)), "the result") if len(nodes) == 1 else "the results"
            yield f"{op}: a small change of an element {_EXTREMA[op]} does not change {result}, so its slope is 0."


def _softmax(graph: Graph, swept: Sweep, trace: Trace | None) -> Iterator[str]:
    """Yield the derivative of log(softmax(z)) by z, for the first such pair in the system."""
    passes = swept.incoming
    for node in graph.nodes:
        scores = _scores(node)
        if scores is None or scores not in passes:
            continue
        z, text = graph.labels.get(scores, "z"), _text(scores, graph.labels)
        whose = "" if scores in graph.labels else f" of the scores z{f' = `{text}`' if text else ''}"
        yield (
            f"The logarithm and the softmax cancel: for `p = softmax({z})`{whose}, the derivative of `log(p[i])` by "
            f"`{z}[j]` is `1 - p[j]` where i = j, else `-p[j]`. No division by p is left."
        )
        softmax = operand(node, "log") or node
        if trace is not None and len(passes[scores]) == 1 and (softmax is node or len(passes[softmax]) == 1):
            yield from _minus_target(graph, node, swept, z, trace)
        return


def has_softmax(graph: Graph) -> bool:
    """Return whether a system has the logarithm of a softmax, about which `reasons` says more with a trace."""
    return len(graph.nodes) <= _NODES and any(_scores(n) is not None for n in opened(graph).nodes)


def _scores(node: Node) -> Node | None:
    """Return z where a node is log(softmax(z)); None for another node."""
    if (scores := operand(node, "log_softmax")) is not None:
        return scores
    inner = operand(node, "log")
    return None if inner is None else operand(inner, "softmax")


def _minus_target(graph: Graph, node: Node, swept: Sweep, z: str, trace: Trace) -> Iterator[str]:
    """Yield that the gradient of the scores is p - t, where the adjoint of log(p) is -t and each row of t sums to 1."""
    roots = trace.graph.outputs
    seeds = {v: trace.calls[0].seeds[roots[name]] for name, v in swept.cotangents.items()}
    known = {v: weight for v, seed in seeds.items() if (weight := uniform(seed)) is not None}
    adjoint = scaled_array(swept.adjoints[node], graph.labels, known) if len(known) == len(seeds) else None
    if adjoint is None or not float(adjoint[0]) < 0:
        return
    number, target = float(adjoint[0]), adjoint[1]
    at = {name: trace.values[x] for name, x in graph.inputs.items()}
    traced = {n: trace.values[n] for n in trace.graph.nodes if n.args}
    (computed,) = evaluated(graph.inputs, [at], [target], known=traced)
    values = computed[target]
    (axis,) = (operand(node, "log") or node).settings[:1]
    sums = np.sum(values, axis=axis)
    if not sums.size or not np.allclose(sums, 1, rtol=_CLOSE):
        return
    name = graph.labels.get(target) or _text(target, graph.labels)
    t, who = (
        (name, name) if name else ("t", "The one-hot target t" if np.isin(values, (0, 1)).all() else "The target t")
    )
    rows = round(-1 / number)
    difference = f"p - {t}" if number == -1 else f"(p - {t})/{rows}"
    if abs(rows * number + 1) > _CLOSE:
        difference = f"{-number:.6g}*(p - {t})"
    each = " in each row" if sums.size > 1 else ""
    yield f"{who} sums to 1{each}, so the gradient of {z} is `{difference}`."


def _vectors(graph: Graph, passes: Mapping[Node, Sequence[Pass]], wrt: Sequence[str], loss: str) -> Iterator[Text]:
    """Yield the two ways to write the gradient of a vector in a matrix product, for the first such leaf."""
    for name in wrt:
        for p in passes.get(graph.inputs[name], ()):
            ranks = sorted(len(a.shape) for a in operands(p.node, "matmul"))
            if ranks != [1, _MATRIX] or len(p.argument.shape) != 1:
                continue
            matrix = p.node.args[1 - p.position]
            m = _text(matrix, graph.labels)
            if not m or not (m.isidentifier() or matrix in graph.labels):
                continue
            v = _adjoint(graph, p.node, loss)
            left, right = (f"{m} @ {v}", f"{v} @ {m}.T") if p.position == 0 else (f"{m}.T @ {v}", f"{v} @ {m}")
            from gradcli.pages.sections import Equal, Name, Partial, Text  # data without it start sooner

            what = "the adjoint of the product" if v == _UNNAMED else Partial(loss, graph.labels[p.node])
            meaning = () if v == "v" else (", with ", Equal((Name(v), what)))
            said = f" has one axis, so `{left}` equals `{right}`"
            yield Text((Name(name), said, *meaning, "."))
            return


def _adjoint(graph: Graph, node: Node, loss: str) -> str:
    """Return the name of the adjoint of a product: v, a name with a bar, or `_UNNAMED`."""
    if list(graph.outputs.values()) == [node] and "v" not in {*graph.inputs, *graph.names}:
        return "v"
    name = graph.labels.get(node)
    adjoint = adjoint_name(name, loss) if name else None
    return adjoint if adjoint is not None and adjoint.barred else _UNNAMED


def _added_up(graph: Graph, passes: Mapping[Node, Sequence[Pass]], wrt: Sequence[str]) -> Iterator[str]:
    """Yield which leaves broadcast to several rows, columns or elements, whose gradients add up: a bias, a factor."""
    names_of: dict[str, list[str]] = {"row": [], "column": [], "element": [], "": []}
    for name in wrt:
        argument = graph.inputs[name]
        for p in passes.get(argument, ()):
            if OPERATIONS[p.node.op].broadcasts and p.node.size > argument.size:
                names_of[_repeated(argument.shape, p.node.shape)].append(name)
                break
    for each, names in names_of.items():
        if names:
            shown = names if len(names) <= _LISTED else [*names[: _LISTED - 1], f"{len(names) - _LISTED + 1} more"]
            verb = "is" if len(names) == 1 else "are"
            where, what = (f"in each {each}", f"{each}s") if each else ("several times", "gradients of all uses")
            yield f"{in_words(shown)} {verb} used {where}, so the {what} add up."


def _repeated(shape: Shape, whole: Shape) -> str:
    """Return what of a larger array a smaller one is broadcast to: each row, column or element, or "" for another.

    >>> _repeated((3,), (2, 3)), _repeated((2, 1), (2, 3)), _repeated((1,), (4, 2, 3)), _repeated((3,), (4, 2, 3))
    ('row', 'column', 'element', '')
    """
    is_matrix = len(whole) == _MATRIX
    if is_matrix and shape in (whole[1:], (1, *whole[1:])):
        return "row"
    if math.prod(shape) == 1:
        return "element"
    return "column" if is_matrix and shape == (whole[0], 1) else ""


def _text(node: Node, labels: Mapping[Node, str]) -> str:
    """Return a node as a formula, if it is short."""
    return short_text(node, labels, _SHORT)


def leaves_without(graph: Graph, wrt: Sequence[str]) -> Iterator[Text]:
    """Yield why PyTorch leaves the `.grad` of a leaf None, for each leaf that no gradient arrives at.

    >>> from gradcli.graph.construct import call
    >>> from gradcli.graph.node import leaf
    >>> x, y = leaf(), leaf()
    >>> [text] = leaves_without(Graph.of({"x": x, "y": y}, {"z": call("detach", x) * y}), ["x", "y"])
    >>> text.parts
    (Grad(name='x', key=()), ' is None in PyTorch: x is only used behind detach.')
    """
    reached = differentiated(graph, wrt) if wrt else set()
    for name in wrt:
        if graph.inputs[name] not in reached:
            from gradcli.pages.sections import Grad, Text  # data that need no sentence start sooner without it

            yield Text((Grad(name), f" is None in PyTorch: {_why(graph, name)}."))


def _why(graph: Graph, name: str) -> str:
    """Return the operation that cuts a leaf from the outputs, in words."""
    nodes = scheduled(graph.outputs.values())
    active = active_nodes(graph, [graph.inputs[name]])
    cuts = [n for n in nodes if n not in active and not active.isdisjoint(n.args)]
    if not cuts:
        return f"no output depends on {name}"
    return f"{name} is only used {in_words(list(dict.fromkeys(map(_cut, cuts))))}"


def _cut(node: Node) -> str:
    return "in conditions" if OPERATIONS[node.op].kind == "condition" else f"behind {node.op}"
