"""The system behind a call of `backward`: the steps that a script has recorded, as a graph in the script's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node
from gradcli.pytorch.autograd.function import FunctionStep, OutputStep
from gradcli.pytorch.nn.module import Parameter
from gradcli.pytorch.record import Edge, Leaf, Line, Step, edge_of
from gradcli.pytorch.tensor import Tensor
from gradcli.script.assembled import Assembly
from gradcli.script.instances import existing_result, instance
from gradcli.script.naming import Names
from gradcli.script.operands import Local, Operands, unnamed
from gradcli.script.system import Array, Recorded, Use, reachable
from gradcli.script.written import CallOf, decimal, spans_of_calls

if TYPE_CHECKING:
    from gradcli.pytorch.backward import Call

MAX_STEPS = 20_000  # of a system that is looked through
_OUTPUTS = ("y", "z", "out", "loss", "result", "\u2113")  # names for one to which the script gives none
_LONG = 12  # operations of an expression that is not taken apart


class _Maker(Operands, Recorded):
    """Makes the graph, step by step."""

    def __init__(self, names: Names, sources: Mapping[str, str]) -> None:
        Recorded.__init__(self)
        Operands.__init__(self, names, sources)
        self.calls: dict[Node, CallOf] = {}  # what each step is recorded of
        self.later: dict[Any, str] = {}  # the names that results have, by where they come from
        self.assembly = Assembly()
        self.passes: Counter[int] = Counter()  # outputs of each module, by its identity

    def name_of(self, edge: Edge) -> str:
        """Return the name of a result, after naming one without a name."""
        if edge not in self.steps:
            self.steps[edge] = name = self.fresh("h")
            self.computed[name] = self.nodes[edge]
        return self.steps[edge]

    def enter(self, edge: Edge, name: str, array: Array, x: Tensor | None = None) -> str:
        """Make the tensor of an edge an input, and return its name."""
        self.steps[edge] = name = self.fresh(name)
        self.nodes[edge] = self.input(name, array, x)
        return name

    def leaf(self, edge: Leaf, local: Local = unnamed) -> Node:
        """Return the node of a leaf; `local` returns what it was called where it was read, of one that is gone."""
        if edge not in self.nodes:
            x = edge.variable
            known = self.names.of(x) or x._called or self.alias(x)[0] or local()
            other = "parameter" if isinstance(x, Parameter) else self.unused("x", "leaf")
            self.enter(edge, known or other, x._a, x)
        return self.nodes[edge]

    def cut(self, step: Edge, x: Tensor) -> None:
        """Make an intermediate an input: its gradient is requested, and that of none of its ancestors."""
        self.enter(step, self.names.of(x) or x._called or self.names.of(step) or "h", x._a)

    def all_of(self, steps: Sequence[Step]) -> None:
        """Make the nodes of all steps."""
        self.passes = Counter(id(s.module) for s in steps)
        self.assigned = {s: e for s in steps if (e := self.expressions.of(s.line)) is not None and e.targets}
        named = [s for s in steps if self.names.of(s) and not isinstance(s, FunctionStep)]
        self.later = {_origin(s): self.names.of(s) for s in named}
        self.has_packed = any(step.packed for step in steps)
        for step in steps:
            self.step(step)

    def step(self, step: Step) -> None:
        """Make the node of a step whose operands have nodes."""
        if isinstance(step, OutputStep):
            self.output_of(step, self.functions[step.whole], step.number)
            return
        operands = step.operands or (None,) * len(step.edges)
        arguments = [self.operand(e, x, step, i) for i, (e, x) in enumerate(zip(step.edges, operands, strict=True))]
        if isinstance(step, FunctionStep):
            self.functions[step] = use = Use(step, arguments)
            if len(step.outputs) == 1:
                self.output_of(step, use, 0)
            return
        if step.name() == "BackwardHookFunctionBackward":  # the same numbers, where a hook looks on
            self.nodes[step] = arguments[0]
        else:
            self.operation(step, arguments)

    def operand(self, edge: Edge | None, x: Any, step: Step, i: int) -> Node:
        """Return the node of the operand of a step at a position: the result of another step, a leaf, or numbers."""
        if isinstance(edge, Step):
            return self.nodes[edge]
        local: Local = partial(self.local, step, i)
        if not isinstance(edge, Leaf):
            if frozen := self.names.of(getattr(x, "_module", None)):  # a module of which nothing requires a gradient
                local = partial(self.fresh_of, frozen)
            return self.fixed(x, step.line, local)  # type: ignore[no-any-return]
        if step.line.inside and isinstance(edge.variable, Parameter):  # the line calls its module, and names the input
            return self.leaf(edge)
        is_new = edge not in self.nodes
        result = self.leaf(edge, local)
        name, before = self.steps[edge], self.expressions.operand_name(step, i)
        if is_new and before and before != name and before in self.names.tensors and not self.names.of(edge.variable):
            self.earlier[name] = before
        return result

    def fresh_of(self, module: str, _: bool = False) -> str:
        """Return a name for the output of a frozen module, which no step made."""
        return self.fresh(module)

    def operation(self, step: Step, operands: list[Node]) -> None:
        """Make and name the node of an operation, unless an equal one exists."""
        recipe = step.recipe
        if any(n.shape != i.shape for n, i in zip(operands, recipe.inputs, strict=True)):
            raise InputError("the shape of a leaf was changed in place after it was used")
        name = self.names.of(step) or self.again(step)
        new: dict[Node, Node] = dict(zip(recipe.inputs, operands, strict=True))
        node = self.assembly.whole(step, operands) or instance(recipe.output, new)
        known = existing_result(node)
        if known is not None and (name is None or (known.args and known not in self.computed.values())):
            node = known
        self.nodes[step] = node
        if node is known and name is None:
            return
        for argument in new.values():
            self.producer.setdefault(argument, step)
        self.producer[node] = step
        self.results.setdefault(node, step)
        self.copies[step] = new
        arrays = [a for i in range(len(step.edges)) if (a := _numbers(step, i)) is not None]
        if len(arrays) == len(step.edges):
            self.read[step] = arrays
        if (value := step.value) is not None and value.shape[:-1] == node.shape:
            self.values.setdefault(node, value)
        self.calls[node] = CallOf(recipe.op, recipe.settings, operands)
        if name is not None and name not in self.inputs and name not in self.computed:
            self.computed[name] = node
            self.steps[step] = name

    def again(self, step: Step) -> str | None:
        """Return a name for a result whose variable now holds a later one of its line, h1, or for a module's output."""
        if later := self.later.get(_origin(step)):
            return next(fresh_names({*self.inputs, *self.computed, *self.names.in_order()}, _stem(later)))
        return self.module_output(step) if self.names.of(step.module) else None

    def module_output(self, step: Step) -> str:
        """Return a name for a module's output: the variable's, or the module's; of several calls, D(fake).0 of D.0."""
        module = self.names.of(step.module)
        assignment = self.assigned.get(step)
        is_assigned = assignment is not None and assignment.whole and self.expressions.is_call_of(step.line, module)
        if assignment is not None and is_assigned and self.is_only_target(assignment.target, step.line):
            return self.fresh(assignment.target)
        if self.passes[id(step.module)] == 1:
            return self.fresh(module)
        return self.fresh(self.expressions.call_name(step.line, module))

    def output_of(self, step: Step, use: Use, number: int) -> None:
        """Make an output of a custom function an input."""
        assignment = self.expressions.of(use.step.line)
        assigned = assignment.targets[number : number + 1] if assignment is not None and assignment.whole else ()
        name = self.names.of(step) or next(iter(assigned), "") or use.step.cls.__name__.lower()
        use.outputs[number] = self.enter(step, name, use.step.results[number])

    def give_up_name(self, step: Step) -> None:
        """Give the name of a custom function's output to the output of the call, if nothing else reads the former."""
        old, node = self.steps[step], self.nodes[step]
        use = next((u for u in self.functions.values() if old in u.outputs.values()), None)
        if use is None or any(node in n.args for n in self.nodes.values()):
            return
        new = self.fresh(f"{old}_")
        self.inputs = {new if name == old else name: n for name, n in self.inputs.items()}
        self.at[new] = self.at.pop(old)
        use.outputs = {i: new if name == old else name for i, name in use.outputs.items()}

    def names_of(self, edges: Iterable[Edge]) -> list[str]:
        """Return the names of the inputs of these edges, in the order of the call."""
        return [name for e in edges if (name := self.steps.get(e, "")) in self.at]

    def names_of_leaves(self) -> list[str]:
        """Return the names of the inputs that are leaves, in the order of the system."""
        leaves = {n for e, n in self.steps.items() if isinstance(e, Leaf)}
        return [name for name in self.at if name in leaves]

    def finish(self, call: Call) -> None:
        """Make the graph of all steps, with names for the arguments of custom functions."""
        outputs = self.outputs(call)
        arguments = self.named_arguments(outputs)
        shown = [n for use in self.functions.values() for n in use.written if isinstance(n, Node)]
        read = set(scheduled([*shown, *outputs.values()]))
        inner = read.difference(outputs.values())
        named = {n: node for n, node in self.computed.items() if n not in outputs and node in inner} | outputs
        positions = {name: i for i, name in enumerate(self.names.in_order())}  # as the script defines them
        used = sorted(
            (n for n in self.inputs if self.inputs[n] in read), key=lambda n: positions.get(n, len(positions))
        )
        self.at = {name: self.at[name] for name in used}
        self.graph = Graph.of({name: self.inputs[name] for name in used}, outputs, arguments, names=named)
        self.graph = replace(self.graph, names=self.with_parts(named))
        self.graph = replace(self.graph, spans=spans_of_calls(self.graph, self.calls))

    def named_arguments(self, outputs: Mapping[str, Node]) -> list[Node]:
        """Return the arguments of custom functions, after naming those without a name."""
        result = [n for use in self.functions.values() for n in use.arguments.values()]
        for n in result:
            if n.args and n not in self.computed.values() and n not in outputs.values():
                self.computed[self.fresh("t")] = n
        return result

    def outputs(self, call: Call) -> dict[str, Node]:
        """Return the outputs that a call starts from, by name; keep its v, and their names in the order of the call."""
        outputs: dict[str, Node] = {}
        for y, v in call.roots:
            edge = edge_of(y)
            node = self.leaf(edge) if isinstance(edge, Leaf) else self.nodes[edge]
            if node.is_leaf:
                if isinstance(edge, Step):
                    self.give_up_name(edge)
                node = Node("identity", (node,), node.shape)
            name = self.names.of(edge) or self.names.of(y)
            if not name or name in self.inputs or outputs.get(name, node) is not node:
                name = self.fresh(self.unused(*(n for n in _OUTPUTS if n not in outputs)))
            outputs[name] = node
            self.roots.append(name)
            weights = decimal(v._a[..., 0])
            self.v[name] = self.v[name] + weights if name in self.v else weights
        return outputs

    def with_parts(self, named_nodes: dict[str, Node]) -> dict[str, Node]:
        """Return the names with those of further nodes: no expression is then written twice, and none is too long."""
        readers = Counter(a for n in self.graph.nodes for a in n.args)
        known = {n: name for name, n in named_nodes.items()}
        sizes: dict[Node, int] = {}  # in operations, down to what has a name
        result: dict[str, Node] = {}
        for node in [n for n in self.graph.nodes if n.args]:
            sizes[node] = 1 + sum(sizes[a] for a in node.args if a.args)
            if node not in known and self.needs_name(node, sizes[node], readers[node]):
                known[node] = self.name_for(node, {*self.graph.inputs, *named_nodes, *result})
            if node in known:
                result[known[node]] = node
                sizes[node] = 0
        return result | named_nodes

    def name_for(self, node: Node, taken: set[str]) -> str:
        """Return a name for a part: the variable that held nothing else, or the statement's target with a number."""
        name = self.target(node) or "t"
        assignment = self.assigned.get(self.producer[node]) if node in self.producer else None
        if assignment is not None and assignment.whole and self.is_only_target(name) and name not in taken:
            return name
        return next(fresh_names(taken, _stem(name)))

    def is_only_target(self, name: str, call: Line | None = None) -> bool:
        """Return whether one step alone was assigned to a variable, which is gone, and no other value has its name.

        A module takes several steps: of those in its `call` only the one of its output counts.
        """
        steps = [s for s, e in self.assigned.items() if e.whole and e.target == name]
        times = sum(call is None or s.module is not None or s.line.call != call.call for s in steps)
        return bool(name) and times == 1 and name not in self.names.in_order()

    def needs_name(self, node: Node, size: int, readers: int) -> bool:
        """Return whether a node of so many operations and readers gets a line with a name."""
        if node.dtype == "bool" or node in self.graph.outputs.values():
            return False
        return size > _LONG or (readers > 1 and size > 1) or (node in self.calls and self.calls[node].is_pool)


def recorded(call: Call, names: Names, sources: Mapping[str, str] = MappingProxyType({})) -> Recorded:
    """Return the system behind a call of `backward` or `grad`, before it runs.

    `sources` is the text of the script's files that is not to be read from disk, by their names.

    Errors: `InputError` for one that is too large to be looked through.
    """
    asked = {edge_of(x): x for x in call.inputs or ()}
    cut = {e: x for e, x in asked.items() if isinstance(e, Step) and not _leads_to(asked, e)}
    steps = reachable((edge_of(y) for y, _ in call.roots), cut)
    if len(steps) > MAX_STEPS:
        raise InputError(f"{len(steps):,} operations are too many to show")
    maker = _Maker(names, sources)
    for edge, x in cut.items():
        maker.cut(edge, x)
    maker.all_of(steps)
    maker.requested = [maker.name_of(e) for e in asked if isinstance(e, Step) and e not in cut and e in maker.nodes]
    maker.finish(call)
    maker.wrt = maker.names_of(asked) if asked else maker.names_of_leaves()
    return maker


def _leads_to(edges: Iterable[Edge], step: Step) -> bool:
    """Return whether a step came from another edge whose gradient is asked for."""
    before = {e for s in reachable([step]) for e in (s, *s.edges)} - {step}
    return any(e in before for e in edges)


def _numbers(step: Step, i: int) -> Array | None:
    """Return the numbers of a step's operand at a position; None where they are not recorded."""
    edge = step.edges[i]
    if isinstance(edge, Step):
        return edge.value
    x = edge.variable if isinstance(edge, Leaf) else step.operands[i] if step.operands else None
    return x if x is None or isinstance(x, np.ndarray) else x._a


def _stem(name: str) -> str:
    """Return the stem of numbered names like a name: h of h1, h1_ of h1_2."""
    return name + "_" * name[-1].isdigit()


def _origin(step: Step) -> tuple[Any, ...]:
    """Return a key that is equal for all results of one operation of a script."""
    return step.line.code, step.line.call[1], step.name(), step.shape
