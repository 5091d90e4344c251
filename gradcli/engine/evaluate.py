"""Run a graph in NumPy, each node in its own dtype, at many points at once.

The batch axis is last: a scalar at N points is `(N,)`, a vector `(n, N)`.  NumPy aligns shapes from the right, so its
broadcasting keeps its meaning, and each quantity lies contiguous in memory across the points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from gradcli.engine.lowering import lower
from gradcli.engine.numpy_target import forward
from gradcli.graph.array import Array, Weights
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.graph import Graph, last_readers, scheduled
from gradcli.graph.node import Constant, Node
from gradcli.graph.operations import OPERATIONS

_NUMBERS = 2**20  # of all nodes, at all points that are computed at once
_NAMED = {"pi": math.pi, "e": math.e}


def evaluate(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values of the outputs at all points.

    `values` holds for each input an array of its shape with the points as an added last axis, of length N or 1.
    Results have the same layout.  Nothing is raised for 1/0 or log(0): the result is inf or nan.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> evaluate(Graph.of({"x": x}, {"y": 3 * x**2}), {"x": np.array([1.0, 2.0])})
    {'y': array([ 3., 12.])}
    """
    result = values_of(graph, values, graph.outputs.values())
    return {name: result[node] for name, node in graph.outputs.items()}


def values_of(
    graph: Graph,
    values: Mapping[str, Array],
    wanted: Iterable[Node],
    rounded: Callable[[Node, Array], Array] | None = None,
) -> dict[Node, Array]:
    """Return the values of the wanted nodes of a graph, in the layout of `evaluate`.

    `rounded` maps each node that is computed, and its value, to the value that the nodes behind it read.
    Complex `values` are kept, for a complex step: of operations that are not analytic their results mean nothing.
    """
    return evaluator(graph, wanted)(values, rounded)


# Returns the values of nodes, from those of the inputs of their graph and from `rounded` of `values_of`.
Evaluator = Callable[..., dict[Node, Array]]


def evaluator(graph: Graph, wanted: Iterable[Node]) -> Evaluator:
    """Return `values_of` for these nodes, which are lowered once for many calls."""
    wanted = list(wanted)
    nodes = graph.order(wanted)
    simpler = lower(nodes)
    kept = [simpler[n] for n in wanted]
    if tuple(map(simpler.__getitem__, nodes)) != nodes:
        nodes = scheduled(kept)
    last = last_readers(nodes, kept)
    names = {node: name for name, node in graph.inputs.items()}

    @np.errstate(all="ignore")
    def evaluated(
        values: Mapping[str, Array], rounded: Callable[[Node, Array], Array] | None = None
    ) -> dict[Node, Array]:
        inputs = {node: values[name] for node, name in names.items() if name in values}
        results = {n: v if np.iscomplexobj(v) else np.asarray(v, dtype=n.dtype) for n, v in inputs.items()}
        for node in nodes:
            if not node.is_leaf:
                value = constant(node) if node.is_constant else forward(node)(*map(results.__getitem__, node.args))
                results[node] = value if rounded is None else rounded(node, value)
            for done in last.get(node, ()):
                del results[done]
        return {n: results[simpler[n]] for n in wanted}

    return evaluated


def at_point(
    graph: Graph, at: Mapping[str, Array], wanted: Iterable[Node], same: Collection[str] = ()
) -> dict[Node, Array]:
    """Return the values of the wanted nodes at one point, as float64; here and in `at` each has its own shape.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> y = 3 * x
    >>> at_point(Graph.of({"x": x}, {"y": y}), {"x": np.array([1.0, 2.0])}, [y])[y]
    array([3., 6.])
    """
    return next(at_points(graph, [at], list(wanted), same))


def at_points(
    graph: Graph, points: Sequence[Mapping[str, Array]], wanted: Sequence[Node], same: Collection[str] = ()
) -> Iterator[dict[Node, Array]]:
    """Yield what `at_point` returns for each point; as many as memory has room for are computed at once.

    The numbers of a point do not depend on how many others there are.  `same` names the inputs that have the first
    point's value at all points.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> y = x**2
    >>> points = [{"x": np.array(2.0)}, {"x": np.array(3.0)}]
    >>> [values[y].item() for values in at_points(Graph.of({"x": x}, {"y": y}), points, [y])]
    [4.0, 9.0]
    """
    step = _step(graph)
    for start in range(0, len(points), step):
        some = points[start : start + step]
        stacked = {
            name: some[0][name][..., None] if name in same else np.stack([p[name] for p in some], axis=-1)
            for name in some[0]
        }
        result = at_block(graph, stacked, wanted, same)
        for k in range(len(some)):
            yield {n: value[..., min(k, value.shape[-1] - 1)] for n, value in result.items()}


def at_block(
    graph: Graph, block: Mapping[str, Array], wanted: Sequence[Node], same: Collection[str] = ()
) -> dict[Node, Array]:
    """Return the values of the wanted nodes at a block of points, as float64, in the layout of `evaluate`.

    They are the numbers of `at_points`.  An input of the block may have a last axis of 1, those in `same` must.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> y = x**2
    >>> at_block(Graph.of({"x": x}, {"y": y}), {"x": np.array([2.0, 3.0])}, [y])[y]
    array([4., 9.])
    """
    step, fewest = _step(graph), 2 if depends_on_count(graph.nodes) else 1
    count = max((value.shape[-1] for value in block.values()), default=1)
    parts = []
    for start in range(0, count, step):
        number = min(step, count - start)
        some = {
            name: value if name in same else _columns(value, count, start, max(number, fewest))
            for name, value in block.items()
        }
        result = values_of(graph, some, wanted)
        parts.append({n: value[..., :number].astype(float) for n, value in result.items()})
    if len(parts) == 1:
        return parts[0]
    return {n: v if v.shape[-1] == 1 else np.concatenate([p[n] for p in parts], axis=-1) for n, v in parts[0].items()}


def _step(graph: Graph) -> int:
    """Return how many points are computed at once."""
    return max(2, _NUMBERS // max(1, sum(node.size for node in graph.nodes)))


def _columns(value: Array, count: int, start: int, number: int) -> Array:
    """Return a number of columns from `start` on, of `count` columns; the last one is repeated where they end."""
    if value.shape[-1] != count:
        value = np.broadcast_to(value, (*value.shape[:-1], count))
    part = value[..., start : start + number]
    return part if part.shape[-1] == number else np.repeat(part, number, axis=-1)


def depends_on_count(nodes: Iterable[Node]) -> bool:
    """Return whether NumPy rounds some of the nodes in another way at a single point than at several.

    It adds the terms of one sum in pairs, and those of several sums one after the other.
    """
    rows = [OPERATIONS[op] for op in {n.op for n in nodes if n.args}]
    return any(not row.broadcasts and row.move is None for row in rows)


def constant(node: Node) -> Array:
    """Return the value of a constant, the same at all points, in its dtype."""
    if isinstance(node.settings[0], Weights):
        return np.asarray(node.settings[0].array, dtype=node.dtype).reshape(*node.shape, 1)
    read = number if node.dtype in FLOATING else int
    numbers = np.array([read(v) for v in node.values], dtype=node.dtype)
    return np.full((*node.shape, 1), numbers[0]) if len(numbers) == 1 else numbers.reshape(*node.shape, 1)


def number(value: Constant) -> float:
    """Return a constant as float64."""
    if isinstance(value, str):
        return _NAMED[value]
    try:
        return float(value)
    except OverflowError:  # a slope such as 1/1e-320
        return math.inf if value > 0 else -math.inf
