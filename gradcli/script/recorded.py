"""From what a script has recorded to a graph: the system behind a call of `backward`, in the script's names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.construct import broadcast, index, stack
from gradcli.graph.graph import Graph
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node, const, leaf
from gradcli.pytorch.autograd.function import FunctionStep, OutputStep
from gradcli.pytorch.calls import exact
from gradcli.pytorch.record import Edge, Leaf, Line, Step, edge_of
from gradcli.pytorch.tensor import Tensor
from gradcli.script.instances import given_already, instance
from gradcli.script.naming import Names, fresh
from gradcli.script.written import CallOf, gives, node_of, operands_at, spans_of_calls

if TYPE_CHECKING:
    from gradcli.pytorch.backward import Call

Array = np.ndarray[Any, Any]

MAX_STEPS = 20_000  # of a system that is looked through
_WHOLE = 2**53  # below, a float that is a whole number is exact
_LONG = 12  # operations of an expression that is not taken apart
_SMALL = 16  # elements of an array without a name that is written out


@dataclass
class Use:
    """A call of a script's own function: its arguments, and the names of its outputs, by their places."""

    step: FunctionStep
    written: list[Any]
    outputs: dict[int, str] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[int, Node]:
        """The arguments that gradients flow to, by their places."""
        return {i: self.written[i] for i, edge in enumerate(self.step.edges) if edge is not None}


@dataclass
class Recorded:
    """A system as it was recorded: its graph, the values of its inputs, its cotangents, and which inputs are leaves."""

    graph: Graph = field(init=False)
    wrt: list[str] = field(init=False)
    asked: list[str] = field(default_factory=list)  # intermediates that are asked for, beside what they came from
    at: dict[str, Array] = field(default_factory=dict)
    v: dict[str, Array] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)  # what the call flowed from, one by one
    steps: dict[Edge, str] = field(default_factory=dict)  # the names of leaves and of named results
    functions: dict[Step, Use] = field(default_factory=dict)  # of the script's own
    made_by: dict[Node, Step] = field(default_factory=dict)
    targets: dict[int, str] = field(default_factory=dict)  # what is assigned at each line

    @property
    def retained(self) -> tuple[str, ...]:
        """The names of the intermediates that keep their gradients, or whose gradients are asked for."""
        own = [n for n, x in self._retaining() if n not in self.graph.inputs and n not in self.graph.outputs]
        return (*own, *(n for n in self.asked if n not in own))

    def kept_gradients(self) -> dict[str, Tensor]:
        """Return the gradients that intermediates keep, by name."""
        return {n: x._grad for n, x in self._retaining() if x._grad is not None}

    def _retaining(self) -> Iterator[tuple[str, Tensor]]:
        for e, n in self.steps.items():
            x = e.retained() if isinstance(e, Step) and e.retained is not None else None
            if x is not None:
                yield n, x

    def target(self, node: Node) -> str | None:
        """Return what is assigned at the line of a node."""
        return self.targets.get(self.made_by[node].line) if node in self.made_by else None

    def name(self, x: Tensor) -> str:
        """Return what a tensor whose gradient was taken is called."""
        return self.steps.get(edge_of(x), "x")


class _Maker(Recorded):
    """Makes the graph, step by step."""

    def __init__(self, names: Names, source: str) -> None:
        super().__init__(targets=_targets(source))
        self.names = names
        self.source = source
        self.nodes: dict[Any, Node] = {}
        self.inputs: dict[str, Node] = {}
        self.computed: dict[str, Node] = {}
        self.calls: dict[Node, CallOf] = {}  # what each step is recorded of
        self.parts: dict[Any, dict[int, Node]] = {}  # of vectors that are being assembled: their elements so far

    def fresh(self, wanted: str) -> str:
        """Return a name that no input has."""
        return fresh(wanted, {*self.inputs, *self.computed})

    def name_of(self, edge: Edge) -> str:
        """Return the name of a result, which has one from now on."""
        if edge not in self.steps:
            self.steps[edge] = name = self.fresh("h")
            self.computed[name] = self.nodes[edge]
        return self.steps[edge]

    def input(self, name: str, array: Array) -> Node:
        """Add an input."""
        name = self.fresh(name)
        node = leaf(array.shape[:-1])
        self.inputs[name] = node
        self.at[name] = decimal(array[..., 0])
        return node

    def enter(self, edge: Edge, wanted: str, array: Array) -> str:
        """Let what an edge stands for be an input, and return its name."""
        self.steps[edge] = name = self.fresh(wanted)
        self.nodes[edge] = self.input(name, array)
        return name

    def leaf(self, edge: Leaf) -> Node:
        """Return the node of a leaf."""
        if edge not in self.nodes:
            x = edge.variable
            self.enter(edge, self.names.get(id(x)) or x._called or "x", x._a)
        return self.nodes[edge]

    def cut(self, step: Step, x: Tensor) -> None:
        """Let an intermediate be an input: a gradient is asked for by it, and by nothing that it came from."""
        self.enter(step, self.names.get(id(x)) or x._called or self.names.get(id(step)) or "h", x._a)

    def fixed(self, x: Any, line: Line) -> Any:
        """Return the node of an operand that nothing is recorded of: a number, a tensor, or something else."""
        if not isinstance(x, np.ndarray | Tensor):
            return str(x) if isinstance(x, int | float | str) else "…"
        if isinstance(x, np.ndarray):
            return const(exact(_shortest(x.reshape(-1)[0])))
        if id(x) not in self.nodes:
            name = self.names.get(id(x)) or self.alias(x)
            if name is None and (node := self.written(x, line)) is not None:
                self.nodes[id(x)] = node
                return node
            labels = x._a.dtype.kind == "i" and x._a.ndim > 1  # nothing flows to whole numbers: they are constants
            if (labels or (name is None and x._a.size <= _SMALL)) and x._a.size:
                values = tuple(exact(_shortest(v)) for v in x._a.reshape(-1))
                same = values[0] if len(set(values)) == 1 else values
                self.nodes[id(x)] = node = const(same, x._a.shape[:-1], "bool" if x._a.dtype == bool else "float64")
                if name is not None:
                    self.computed[self.fresh(name)] = node
            else:
                self.nodes[id(x)] = self.input(name or "data", x._a)
        return self.nodes[id(x)]

    def alias(self, x: Tensor) -> str | None:
        """Return the name of a tensor that has the same numbers: that of h, for h.detach()."""
        named = self.names.tensors.items() if x._detached is not None else ()
        return next((n for n, y in named if y._memory is x._memory and y._a.shape == x._a.shape), None)

    def written(self, x: Tensor, line: Line) -> Node | None:
        """Return what the script writes for an operand without a name, where that still gives the operand's numbers."""
        for expression in operands_at(line, self.source):
            before = {*self.inputs}
            node = node_of(expression, lambda name: self.named(name, line))
            if node is not None and node.args and gives(node, self.inputs, self.at, decimal(x._a[..., 0])):
                return node
            for name in {*self.inputs} - before:
                self.forget(name)
        return None

    def named(self, name: str, line: Line) -> Node | None:
        """Return the node of a tensor that has a name, unless it is computed from a leaf."""
        x = self.names.tensors.get(name)
        return None if x is None or x.requires_grad else self.fixed(x, line)

    def forget(self, name: str) -> None:
        """Take an input back."""
        node = self.inputs.pop(name)
        del self.at[name]
        self.nodes = {k: n for k, n in self.nodes.items() if n is not node}

    def step(self, step: Step) -> None:
        """Make the node of a step whose operands have nodes."""
        if isinstance(step, OutputStep):
            self.output_of(step, self.functions[step.whole], step.number)
            return
        operands = step.operands or (None,) * len(step.edges)
        own = [
            self.nodes[e] if isinstance(e, Step) else self.leaf(e) if isinstance(e, Leaf) else self.fixed(x, step.line)
            for e, x in zip(step.edges, operands, strict=True)
        ]
        if isinstance(step, FunctionStep):
            self.functions[step] = use = Use(step, own)
            if len(step.outputs) == 1:
                self.output_of(step, use, 0)
            return
        recipe = step.recipe
        name = self.names.get(id(step)) or self.names.get(id(step.module))
        new: dict[Node, Node] = dict(zip(recipe.inputs, own, strict=True))
        node = self.assembled(step, own) or instance(recipe.output, new)
        if name is None and (known := given_already(node)) is not None:
            self.nodes[step] = known
            return
        self.nodes[step] = node
        for made in new.values():
            self.made_by.setdefault(made, step)
        self.made_by[node] = step
        self.calls[node] = CallOf(recipe.op, recipe.settings, own)
        if name is not None and name not in self.inputs and name not in self.computed:
            self.computed[name] = node
            self.steps[step] = name

    def output_of(self, step: Step, use: Use, number: int) -> None:
        """Let an output of a script's own function be an input."""
        wanted = self.names.get(id(step)) or self.targets.get(step.line) or use.step.cls.__name__.lower()
        use.outputs[number] = self.enter(step, wanted, use.step.made[number])

    def give_up_name(self, step: Step) -> None:
        """Let the output of the call have the name of what a function gave, if nothing else is computed from that."""
        old, node = self.steps[step], self.nodes[step]
        use = next((u for u in self.functions.values() if old in u.outputs.values()), None)
        if use is None or any(node in n.args for n in self.nodes.values()):
            return
        new = self.fresh(f"{old}_")
        self.inputs = {new if name == old else name: n for name, n in self.inputs.items()}
        self.at[new] = self.at.pop(old)
        use.outputs = {i: new if name == old else name for i, name in use.outputs.items()}

    def assembled(self, step: Step, own: Sequence[Node]) -> Node | None:
        """Return a vector whose elements were assigned one by one as a list, once the last of them is there."""
        if step.recipe.op != "assign" or len(step.shape) != 1:
            return None
        places, shape = step.recipe.settings
        value = own[1] if own[1].shape == shape else broadcast(own[1], shape)
        flat = [value] if not shape else [index(value, key) for key in product(*map(range, shape))]
        before = self.parts.get(step.edges[0], {}) if step.edges[0] is not None else {}
        if not before and own[0].args and step.shape[0] <= _SMALL:
            before = {i: index(own[0], (i,)) for i in range(step.shape[0])}
        parts = {**before, **dict(zip(places.numbers.reshape(-1).tolist(), flat, strict=True))}
        self.parts[step] = parts
        return stack([parts[i] for i in range(step.shape[0])]) if len(parts) == step.shape[0] else None

    def finish(self, call: Call, arguments: Sequence[Node]) -> None:
        """Make the graph of all steps; the arguments of own functions have names in it."""
        outputs = self.outputs(call)
        for n in arguments:
            if n.args and n not in self.computed.values() and n not in outputs.values():
                self.computed[self.fresh("t")] = n
        given = {**{name: node for name, node in self.computed.items() if name not in outputs}, **outputs}
        place = {name: i for i, name in enumerate(self.names.values())}  # as the script defines them
        inputs = dict(sorted(self.inputs.items(), key=lambda own: place.get(own[0], len(place))))
        self.graph = Graph.of(inputs, outputs, arguments, names=given)
        self.graph = replace(self.graph, names=self.with_parts(given))
        self.graph = replace(self.graph, spans=spans_of_calls(self.graph, self.calls))

    def outputs(self, call: Call) -> dict[str, Node]:
        """Return what a call flowed from, by name; take down its v, and the names in the order of the call."""
        outputs: dict[str, Node] = {}
        for y, v in call.roots:
            edge = edge_of(y)
            node = self.leaf(edge) if isinstance(edge, Leaf) else self.nodes[edge]
            if node.op == "input":
                if isinstance(edge, Step):
                    self.give_up_name(edge)
                node = Node("identity", (node,), node.shape)
            name = self.names.get(id(edge)) or self.names.get(id(y)) or ""
            if not name or name in self.inputs or outputs.get(name, node) is not node:
                name = self.fresh(_nameless((*self.names.values(), *outputs, *self.targets.values())))
            outputs[name] = node
            self.roots.append(name)
            own = decimal(v._a[..., 0])
            self.v[name] = self.v[name] + own if name in self.v else own
        return outputs

    def with_parts(self, given: Mapping[str, Node]) -> dict[str, Node]:
        """Return the names with more of them, so that no expression is written out twice, and none is too long."""
        readers = Counter(a for n in self.graph.nodes for a in n.args)
        known = {n: name for name, n in given.items()}
        sizes: dict[Node, int] = {}
        found: dict[str, Node] = {}
        last = list(self.graph.outputs.values())
        for node in self.graph.nodes:
            if not node.args:
                continue
            sizes[node] = 1 + sum(0 if a in known else sizes.get(a, 0) for a in node.args)
            shared = readers[node] > 1 and sizes[node] > 1
            pooled = node in self.calls and self.calls[node].is_pool
            if node in known:
                found[known[node]] = node
            elif (shared or pooled or sizes[node] > _LONG) and node.dtype != "bool" and node not in last:
                stem = self.target(node) or "t"
                stem += "_" * stem[-1].isdigit()
                name = next(fresh_names({*self.graph.inputs, *given, *found}, stem))
                known[node], found[name] = name, node
        return {**found, **{name: node for name, node in given.items() if name not in found}}


def _targets(source: str) -> dict[int, str]:
    """Return the name that is assigned at each line of a script."""
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        match = re.match(r"\s*(?:self\.)?([A-Za-z_]\w*)\s*(?:[-+*/@]|\*\*|//)?=[^=]", line)
        if match:
            found[number] = match[1]
    return found


def _shortest(value: Any) -> Any:
    """Return a number in the fewest digits that tell it from its neighbours, as it was typed."""
    found = float(str(value)) if isinstance(value, np.float32) else value.item()
    whole = isinstance(found, float) and found.is_integer() and abs(found) < _WHOLE
    return int(found) if whole else found


def decimal(array: Array) -> Array:
    """Return float32 numbers as the decimals that they were typed as, in float64.

    >>> decimal(np.array([0.1], np.float32))
    array([0.1])
    """
    if array.dtype == np.float32:
        return np.array([float(str(v)) for v in array.reshape(-1)]).reshape(array.shape)
    return array.astype(float)


def reachable(roots: Iterable[Edge], cut: Iterable[Edge] = ()) -> list[Step]:
    """Return the steps that lead to roots, in the order in which they were recorded; none beyond those in `cut`."""
    ends = set(cut)
    found: dict[Edge, None] = dict.fromkeys(roots)
    stack_ = [e for e in found if e not in ends]
    while stack_:
        edge = stack_.pop()
        for other in edge.edges if isinstance(edge, Step) else ():
            if other is not None and other not in found:
                found[other] = None
                if other not in ends:
                    stack_.append(other)
    return sorted((e for e in found if isinstance(e, Step) and e not in ends), key=lambda s: s.seq)


def recorded(call: Call, names: Names, source: str = "") -> Recorded:
    """Return the system behind a call of `backward` or `grad`, before it runs.

    Errors: `InputError` for one that is too large to be looked through.
    """
    maker = _Maker(names, source)
    wanted = {edge_of(x): x for x in call.inputs or ()}
    ends = {e for e in wanted if isinstance(e, Step) and not _leads_to(wanted, e)}
    steps = reachable((edge_of(y) for y, _ in call.roots), ends)
    if len(steps) > MAX_STEPS:
        raise InputError(f"{len(steps):,} operations were recorded, too many to show each")
    for edge in wanted:
        if isinstance(edge, Step) and edge in ends:
            maker.cut(edge, wanted[edge])
    for step in steps:
        maker.step(step)
    maker.asked = [maker.name_of(e) for e in wanted if isinstance(e, Step) and e not in ends and e in maker.nodes]
    maker.finish(call, [n for use in maker.functions.values() for n in use.arguments.values()])
    asked_by = {n for e, n in maker.steps.items() if (e in wanted if wanted else isinstance(e, Leaf))}
    maker.wrt = [n for n in maker.graph.inputs if n in asked_by]
    return maker


def _leads_to(wanted: Iterable[Edge], step: Step) -> bool:
    """Tell whether a step came from another edge whose gradient is asked for."""
    before = {e for s in reachable([step]) for e in (s, *s.edges)} - {step}
    return any(e in before for e in wanted)


def _nameless(taken: Iterable[str]) -> str:
    """Return a name for what the script gives none: one that it uses for nothing else."""
    taken = {*taken}
    return next(name for name in ("y", "z", "out", "loss", "result", "\u2113") if name not in taken or name == "\u2113")
