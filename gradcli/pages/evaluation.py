"""The one evaluation of a command: all that a result is to show is a node, and the engine computes them together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import numpy as np

from gradcli.engine.evaluate import at_block, at_points
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, leaf
from gradcli.graph.rewrite import common_subexpressions, substituted

_SHARED = 5_000  # nodes: in a larger graph, the search for equal ones takes longer than it saves

Values = Mapping[Node, Array]
NOTHING: Values = MappingProxyType({})


def evaluated(
    inputs: Mapping[str, Node],
    points: Sequence[Named],
    wanted: Iterable[Node],
    same: Collection[str] = (),
    block: bool = False,
    known: Values = NOTHING,
) -> Iterator[Values]:
    """Yield the values of the wanted nodes at each point, in their own shapes, as float64.

    Points hold seeds too (`y.v`, `x.u`), where the wanted nodes read some.  Equal operations on equal arguments are
    computed once, unless there are very many.  The numbers of a point depend neither on what else is wanted nor on the
    other points.  `same` names the inputs that do not vary.  With `block`, each of `points` is a block of points, along
    the last axis of its arrays, and so are its values.  What is `known`, of a single point, is not computed.

    >>> import numpy as np
    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> y, z = 3 * x, (3 * x) ** 2
    >>> [values[z].item() for values in evaluated({"x": x}, [{"x": np.array(2.0)}], [y, z])]
    [36.0]
    """
    wanted = list(dict.fromkeys(wanted))
    if not block and {*known, *inputs.values()}.issuperset(wanted):  # nothing is to be computed
        for at in points:
            given = {x: np.asarray(at[name], float) for name, x in inputs.items() if name in at} | {**known}
            yield {n: given[n] for n in wanted}
        return
    if known:
        yield from _with_known(inputs, points, wanted, known)
        return
    nodes = scheduled(wanted, inputs.values())
    computed, distinct, graph = {n: n for n in wanted}, wanted, Graph(nodes, inputs, {})
    if len(nodes) <= _SHARED:
        computed = common_subexpressions(nodes)
        distinct = list(dict.fromkeys(computed[n] for n in wanted))
        graph = Graph.of(inputs, {}, distinct)
    blocks = (at_block(graph, some, distinct, same) for some in points)
    for values in blocks if block else at_points(graph, points, distinct, same):
        yield {n: values[computed[n]] for n in wanted}


def _with_known(
    inputs: Mapping[str, Node], points: Sequence[Named], wanted: Sequence[Node], known: Values
) -> Iterator[Values]:
    """Yield the values of the wanted nodes at each point, computed from nodes whose values are known: these are leaves.

    >>> import numpy as np
    >>> x = leaf()
    >>> y = 3 * x
    >>> [values[z].item() for z in [y**2] for values in evaluated({}, [{}], [z], known={y: np.array(2.0)})]
    [4.0]
    """
    leaves = {n: leaf(n.shape, n.dtype) for n in known}
    names = {f"\0{k}": n for k, n in enumerate(known)}
    replaced = dict(zip(wanted, substituted(wanted, leaves), strict=True))
    more = {name: known[n] for name, n in names.items()}
    whole = {**inputs, **{name: leaves[n] for name, n in names.items()}}
    for values in evaluated(whole, [{**at, **more} for at in points], replaced.values()):
        yield {n: values[r] for n, r in replaced.items()}


def evaluated_runs(
    inputs: Mapping[str, Node],
    points: Sequence[Named],
    runs: Sequence[Sequence[Named]],
    wanted: Iterable[Node],
    same: Collection[str] = (),
    block: bool = False,
    known: Values = NOTHING,
) -> Iterator[list[Values]]:
    """Yield the values at each point once for each of its runs, `runs[p]` being their seeds."""
    columns = [at | run for at, of_point in zip(points, runs, strict=True) for run in of_point]
    several = runs and len(runs[0]) > 1
    same = {*same} - {*runs[0][0]} if several else same
    values = evaluated(inputs, columns, wanted, same, block, known)
    for of_point in runs:
        yield list(islice(values, len(of_point)))


def seeded(suffix: str, seeds: Named) -> Named:
    """Return cotangents (suffix `v`) or tangents (`u`) under the names that they have as inputs of a graph."""
    return {f"{name}.{suffix}": value for name, value in seeds.items()}


def sweep_inputs(at: Named, calls: Sequence[Named]) -> Named:
    """Return the inputs of a reverse sweep at a point: the leaves, and the cotangents of calls along the last axis."""
    return {name: value[..., None] for name, value in at.items()} | cotangents(calls)


def cotangents(calls: Sequence[Named]) -> Named:
    """Return the cotangents of calls as inputs of a sweep, along the last axis."""
    return {f"{name}.v": np.stack([call[name] for call in calls], axis=-1) for name in calls[0]}
