"""The order in which an engine computes a graph, and what of it does not depend on the point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain

import numpy as np

from gradcli.engine.evaluate import evaluate
from gradcli.engine.lowering import lower
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph, computed_from, depending, scheduled
from gradcli.graph.node import Node, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import optimise
from gradcli.graph.shapes import Shape

_CALL = 2**14  # elements at least of a call that is worth a thread


@dataclass(frozen=True)
class Schedule:
    """A lowered graph: the nodes that depend on the point, and the values of those that do not.

    `inputs`, `steps` and `outputs` vary, and the steps are in the order of computation.  `same` holds the
    values of the other nodes that steps read, `constants` those of the other outputs, of shape `(*shape, 1)`.
    """

    inputs: Mapping[str, Node]
    steps: tuple[Node, ...]
    same: Mapping[Node, Array]
    outputs: Mapping[str, Node]
    constants: Mapping[str, Array]

    @classmethod
    def of(cls, graph: Graph, same: Mapping[str, Array]) -> Schedule:
        """Return the schedule of a graph: its lowered steps, those that depend on `same` alone computed already.

        `same` holds the inputs that have one value at all points, with a last axis of length 1.

        >>> import numpy as np
        >>> from gradcli.graph.node import leaf
        >>> x, w = leaf(), leaf()
        >>> schedule = Schedule.of(Graph.of({"x": x, "w": w}, {"y": x * (3 * w)}), {"w": np.array([3.0])})
        >>> schedule.steps, list(schedule.same.values())
        ((mul(input, mul), shape (),), [array([9.])])
        """
        simpler = lower(scheduled(graph.outputs.values()))
        small = optimise(Graph.of(graph.inputs, {name: simpler[y] for name, y in graph.outputs.items()}))
        result = {name: _named(y) for name, y in small.outputs.items()}
        nodes = scheduled(result.values())
        varying = depending(nodes, (n for name, n in small.inputs.items() if name not in same))
        steps = ordered([n for n in nodes if n.args and n in varying], result.values())
        read = {str(i): n for i, n in enumerate(dict.fromkeys(a for s in steps for a in s.args if a not in varying))}
        constant = {name: n for name, n in result.items() if n not in varying}
        values, constants = (_of_one(Graph.of(small.inputs, nodes), same) for nodes in (read, constant))
        needed = varying.intersection(nodes)
        inputs = {name: n for name, n in small.inputs.items() if n in needed}
        outputs = {name: n for name, n in result.items() if n in varying}
        return cls(inputs, steps, {n: values[i] for i, n in read.items()}, outputs, constants)

    def renewed(self, new: Mapping[Node, Node]) -> Schedule:
        """Return the schedule in which steps are those nodes, of the same values."""
        outputs = {name: new.get(n, n) for name, n in self.outputs.items()}
        inputs = {*self.inputs.values(), *self.same}
        steps = ordered(computed_from(inputs, outputs.values()), outputs.values())
        return replace(self, steps=steps, outputs=outputs)

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each output that varies."""
        return {name: n.shape for name, n in self.outputs.items()}

    @property
    def fewest(self) -> int:
        """The least number of points for which several threads are faster than one."""
        return max(1, _CALL * len(self.steps) // max(1, sum(n.size for n in self.steps)))


def is_view(node: Node) -> bool:
    """Return whether the result is a view of the argument: it takes no time and no memory."""
    return bool(node.args) and OPERATIONS[node.op].kind == "view"


def alias_roots(steps: Iterable[Node]) -> dict[Node, Node]:
    """Return the alias root of each step: the step itself, or the root of what it is a view of."""
    result: dict[Node, Node] = {}
    for node in steps:
        result[node] = result.get(node.args[0], node.args[0]) if is_view(node) else node
    return result


def last_uses(groups: Sequence[Sequence[Node]], outputs: Iterable[Node]) -> list[list[Node]]:
    """Return the alias roots whose last use is in each group of steps; outputs live on."""
    root = alias_roots(chain.from_iterable(groups))
    last = {root.get(a, a): i for i, group in enumerate(groups) for node in group for a in node.args}
    kept = {root.get(n, n) for n in outputs}
    result: list[list[Node]] = [[] for _ in groups]
    for node, i in last.items():
        if node not in kept:
            result[i].append(node)
    return result


def dependents(steps: Sequence[Node]) -> tuple[dict[Node, int], dict[Node, list[Node]]]:
    """Return for each step the number of steps that it depends on, and those that depend on it."""
    waiting = dict.fromkeys(steps, 0)
    after: dict[Node, list[Node]] = {step: [] for step in steps}
    for step in steps:
        for a in {a for a in step.args if a in after}:
            waiting[step] += 1
            after[a].append(step)
    return waiting, after


def ordered(steps: Sequence[Node], outputs: Iterable[Node]) -> tuple[Node, ...]:
    """Return the steps in an order with few live values: a step that frees as much memory as it allocates runs first.

    Values that stay in the processor's cache are read several times as fast as those that do not.
    """
    number, kept = {step: i for i, step in enumerate(steps)}, set(outputs)
    root = alias_roots(steps)
    sources = {step: {root[a] for a in step.args if a in root} for step in steps}
    readers: dict[Node, set[Node]] = {held: set() for held in root.values()}
    for step in steps:
        for source in sources[step]:
            readers[source].add(step)
    waiting, after = dependents(steps)
    ready: list[tuple[bool, int]] = []

    def is_ready(step: Node) -> None:
        taken = step.size if root[step] is step and step not in kept else 0
        freed = sum(s.size for s in sources[step] if len(readers[s]) == 1 and s not in kept)
        heappush(ready, (taken > freed, number[step]))

    for step in steps:
        if not waiting[step]:
            is_ready(step)
    order: dict[Node, None] = {}
    while ready:
        step = steps[heappop(ready)[1]]
        if step in order:  # it became ready once more, when it was left as the last reader
            continue
        order[step] = None
        for follower in after[step]:
            waiting[follower] -= 1
            if not waiting[follower]:
                is_ready(follower)
        for source in sources[step]:
            readers[source].remove(step)
            if len(readers[source]) == 1 and not waiting[last := next(iter(readers[source]))]:
                is_ready(last)
    return tuple(order)


def _of_one(graph: Graph, same: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of inputs that have one value, with the numbers that they have among many points."""
    result = evaluate(graph, {name: np.repeat(a, 2, axis=-1) for name, a in same.items()})
    return {name: a[..., :1] for name, a in result.items()}


def _named(output: Node) -> Node:
    """Return the node that an output is another name of."""
    while (inner := operand(output, "identity")) is not None:
        output = inner
    return output
