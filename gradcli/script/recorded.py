"""The system behind a call of `backward`, read from its record: a graph in the script's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from gradcli.errors import InputError
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.record.naming import FreshNames
from gradcli.record.numbers import Numbers, decimal
from gradcli.record.record import NOWHERE, Backward, CallSite, Changed, Operation, Quantity, Record
from gradcli.script.instances import Assembly, existing_result, instance
from gradcli.script.operands import Local, Operands, exact, literal, number_node, unnamed
from gradcli.script.system import WRITTEN, Recorded, Use

MAX_STEPS = 20_000  # of a system that is looked through
_OUTPUTS = ("y", "z", "out", "loss", "result", "\u2113")  # names for one to which the script gives none
_LONG = 12  # operations of an expression that is not taken apart


class _Maker(Operands, Recorded):
    """Makes the graph, operation by operation."""

    def __init__(self, record: Record, call: Backward, sources: Mapping[str, str]) -> None:
        Recorded.__init__(self, record, call)
        Operands.__init__(self, record, sources)
        self.later: dict[Any, str] = {}  # the names that results have, by where they come from
        self.assembly = Assembly()
        self.targets: dict[str, list[Operation]] = {}  # the operations whose results are assigned to each name
        self.passes: Counter[str] = Counter()  # outputs of each module
        self.used: set[int] = set()  # the quantities that are read
        self.changed: dict[int, dict[int, CallSite]] = {}  # where backwards read other numbers, by operation
        for e in record.events:
            for operation, i in e.operations if isinstance(e, Changed) else ():
                self.changed.setdefault(operation, {})[i] = e.site

    def quantity(self, q: int) -> Quantity:
        """Return a quantity of the record."""
        return self.record.quantities[q]

    def name_of(self, q: int) -> str:
        """Return the name of a result, after naming one without a name."""
        if q not in self.names:
            self.names[q] = name = self.fresh("h")
            self.computed[name] = self.nodes[q]
        return self.names[q]

    def enter(self, q: int, name: str, is_value: bool = False) -> str:
        """Make a quantity an input, and return its name."""
        self.names[q] = name = self.fresh(name)
        self.nodes[q] = self.input(name, self.quantity(q).numbers.array, None if is_value else self.quantity(q))
        return name

    def leaf(self, q: int, local: Local = unnamed, site: CallSite = NOWHERE) -> Node:
        """Return the node of a leaf; `local` returns what it was called where it was read, of one that is gone."""
        if q not in self.nodes:
            x = self.quantity(q)
            other = "parameter" if x.role == "parameter" else self.unused("x", "leaf")
            self.enter(q, x.name or local() or other)
            self.note_since(self.names[q], x, site)
        return self.nodes[q]

    def cut(self, q: int) -> None:
        """Make an intermediate an input: its gradient is requested, and that of none of its ancestors."""
        self.enter(q, self.quantity(q).name or "h")

    def add_operations(self, operations: Sequence[Operation]) -> None:
        """Make the nodes of all operations."""
        self.passes = Counter(o.module for o in operations)
        self.assigned = {o.id: e for o in operations if (e := self.expressions.of(o.site)) is not None and e.targets}
        for o in operations:
            if (e := self.assigned.get(o.id)) is not None and e.whole:
                self.targets.setdefault(e.target, []).append(o)
        results = [(o, k, q) for o in operations if not o.is_opaque for k, q in enumerate(o.results)]
        self.later = {self.origin(o, k): self.quantity(q).name for o, k, q in results if self.quantity(q).name}
        self.used = {*self.call.roots, *(x for o in operations for x in o.operands if isinstance(x, int))}
        for operation in operations:
            self.add_operation(operation)

    def add_operation(self, o: Operation) -> None:
        """Make the nodes of the results of an operation whose operands have nodes."""
        if o.row == WRITTEN and o.is_opaque:
            self.enter_change(o)
            return
        arguments = [self.as_used(x, self.operand(x, o, i), o, i) for i, x in enumerate(o.operands)]
        if o.is_opaque:
            self.functions[o.id] = use = Use(o, arguments, differentiable=self.differentiable(o))
            for k in self.used_of(o):
                self.enter_result(o, use, k)
            return
        if changed := self.changed.get(o.id):
            formula, differentiable = self.copies_of(o, arguments)[0][-1], self.differentiable(o)
            kept = arguments[: self.operands_of(o)]
            use = self.functions[o.id] = Use(o, kept, {}, formula, changed, differentiable)
            for k in self.used_of(o):
                name = self.quantity(o.results[k]).name or self.fallback_name(o, k) or "h"
                use.outputs[k] = self.enter(o.results[k], name, is_value=True)
            return
        if o.grad_fn == "BackwardHookFunctionBackward":  # the same numbers, where a hook looks on
            self.nodes[o.results[0]] = arguments[0]
        else:
            self.add_results(o, arguments)

    def enter_change(self, o: Operation) -> None:
        """Make what was written where no operation is recorded an input, whose gradient passes to what it was."""
        (source,), (q,) = o.operands, o.results
        assert isinstance(source, int)
        if source not in self.record.producers:
            self.leaf(source)
        self.functions[o.id] = use = Use(o, [self.nodes[source]], differentiable=frozenset((0,)))
        use.outputs[0] = name = self.fresh(self.name_of(source))
        self.nodes[q] = self.input(name, self.quantity(q).numbers.array)

    def differentiable(self, o: Operation) -> frozenset[int]:
        """Return the positions of operands that gradients flow to."""
        return frozenset(i for i, x in enumerate(o.operands) if isinstance(x, int) and self.quantity(x).requires)

    def operand(self, x: int | Numbers, o: Operation, i: int) -> Any:
        """Return the node of an operand: the result of another operation, a leaf, data, or numbers; or a text."""
        if isinstance(x, Numbers):
            if x.whole is None:
                return x.text
            if i >= self.operands_of(o):
                return number_node(x)
            is_number = x.whole.size == 1
            shape = x.whole.shape  # a mask of one element has axes
            return const(exact(x.whole.reshape(-1)[0]), shape) if is_number else self.constant(None, None, a=x.whole)
        if x in self.nodes:
            return self.nodes[x]
        local: Local = partial(self.local, o, i)
        q = self.quantity(x)
        if not q.requires:
            if q.module:  # one of which nothing requires a gradient
                local = lambda _=False: self.fresh(q.module)  # noqa: E731
            return self.fixed(q, o.site, local)
        if o.site.is_module and q.role == "parameter":  # the line calls its module, and names the input
            return self.leaf(x, site=o.site)
        result = self.leaf(x, local, o.site)
        name, before = self.names[x], self.expressions.operand_name(o, i)
        if before and before != name and before in self.named and not q.name:
            self.earlier[name] = before
        return result

    def as_used(self, x: int | Numbers, node: Any, o: Operation, i: int) -> Any:
        """Return an operand as a condition where it is one: a mask of attention, which may also be numbers."""
        may_be = o.row in OPERATIONS and i in OPERATIONS[o.row].conditions
        return node > 0 if may_be and isinstance(x, int) and "bool" in self.quantity(x).dtype else node

    def operands_of(self, o: Operation) -> int:
        """Return how many operands an operation has before its indices, positions and factors."""
        return len(o.operands) - o.numbers

    def used_of(self, o: Operation) -> list[int]:
        """Return the positions of an operation's results that are read."""
        return [k for k, q in enumerate(o.results) if q in self.used]

    def copies_of(self, o: Operation, operands: Sequence[Node]) -> list[list[Node]]:
        """Return the operands, the node of each step of the definition, and that of the result, of each result."""
        numbers = operands[self.operands_of(o) if o.site.line else 0 :]  # PyTorch's own arithmetic is folded
        shared: dict[tuple[Any, ...], Node] | None = {} if len(o.results) > 1 else None
        return [instance(definition, operands, numbers, shared) for definition in o.definitions]

    def add_results(self, o: Operation, operands: list[Node]) -> None:
        """Make and name the nodes of an operation's results, unless equal ones exist."""
        if any(n.shape != shape for n, shape in zip(operands, o.definitions[0].shapes, strict=True)):
            raise InputError("the shape of a leaf was changed in place after it was used")
        copies = self.copies_of(o, operands)
        for k in self.used_of(o):
            is_assignment = o.row == "assign"
            whole_array = self.assembly.whole(o, operands, self.start(o, operands)) if is_assignment else None
            self.add_result(o, k, whole_array or copies[k][-1], copies[k])

    def start(self, o: Operation, operands: Sequence[Node]) -> Node:
        """Return the first operand of an operation; of data, its numbers."""
        x = o.operands[0]
        is_data = isinstance(x, int) and not self.quantity(x).requires and not operands[0].args
        return literal(self.quantity(x).numbers.array) if is_data and isinstance(x, int) else operands[0]

    def add_result(self, o: Operation, k: int, node: Node, copies: list[Node]) -> None:
        """Name the node of a result, unless an equal one exists."""
        q = o.results[k]
        name = self.quantity(q).name or self.fallback_name(o, k)
        known = existing_result(node)
        if known is not None and (name is None or (known.args and known not in self.computed.values())):
            node = known
        self.nodes[q] = node
        if node is known and name is None:
            return
        for argument in copies[:-1]:
            self.producer.setdefault(argument, o)
        self.producer[node] = o
        self.results.setdefault(node, q)
        self.copies[q] = copies
        if name is not None and name not in self.inputs and name not in self.computed:
            for other in [n for n, c in self.computed.items() if c is node] if node in copies[:-1] else ():
                if other not in self.every:  # a name that the script does not have
                    del self.computed[other]
            self.computed[name] = node
            self.names[q] = name

    def fallback_name(self, o: Operation, k: int) -> str | None:
        """Return a name for a result that has none: h1, where its variable h now holds a later one, or its module's."""
        if later := self.later.get(self.origin(o, k)):
            return self.free_beside_all.numbered(_stem(later))
        return self.module_output(o) if o.module else None

    def module_output(self, o: Operation) -> str:
        """Return a name for a module's output: the variable's, or the module's; of several calls, D(fake).0 of D.0."""
        assignment = self.assigned.get(o.id)
        is_assigned = assignment is not None and assignment.whole and self.expressions.is_call_of(o.site, o.module)
        if assignment is not None and is_assigned and self.is_only_target(assignment.target, o.site):
            return self.fresh(assignment.target)
        if self.passes[o.module] == 1:
            return self.fresh(o.module)
        return self.fresh(self.expressions.call_name(o.site, o.module))

    def origin(self, o: Operation, k: int) -> tuple[Any, ...]:
        """Return a key that is equal for all results of one operation of a script."""
        site, shape = o.site, self.quantity(o.results[k]).shape
        return site.file, site.function, site.span, site.instruction, o.grad_fn, k, shape

    def enter_result(self, o: Operation, use: Use, number: int) -> None:
        """Make a result of an opaque operation, such as a custom function, an input: no formula leads to it."""
        q, assignment = o.results[number], self.expressions.of(o.site)
        targets = assignment.targets[number : number + 1] if assignment is not None and assignment.whole else ()
        name = self.quantity(q).name or next(iter(targets), "") or o.row.lower()
        use.outputs[number] = self.enter(q, name, is_value=True)

    def give_up_name(self, q: int) -> None:
        """Give the name of a custom function's output to the output of the call, if nothing else reads the former."""
        old, node = self.names[q], self.nodes[q]
        use = next((u for u in self.functions.values() if old in u.outputs.values()), None)
        if use is None or any(node in n.args for n in self.nodes.values()):
            return
        new = self.fresh(f"{old}_")
        renamed = {new if name == old else name: n for name, n in self.inputs.items()}
        self.inputs.clear()
        self.inputs.update(renamed)
        self.at[new] = self.at.pop(old)
        use.outputs = {i: new if name == old else name for i, name in use.outputs.items()}

    def finish(self) -> None:
        """Make the graph of all operations, with names for the arguments of custom functions."""
        outputs = self.outputs()
        arguments = self.named_arguments(outputs)
        shown = [n for use in self.functions.values() for n in use.written if isinstance(n, Node)]
        read = set(scheduled([*shown, *outputs.values()]))
        inner = read.difference(outputs.values())
        named = {n: node for n, node in self.computed.items() if n not in outputs and node in inner} | outputs
        positions = {name: i for i, name in enumerate(self.named)}  # as the script defines them
        used = sorted(
            (n for n in self.inputs if self.inputs[n] in read), key=lambda n: positions.get(n, len(positions))
        )
        self.at = {name: self.at[name] for name in used}
        first = [*named.values(), *arguments]  # in the order of the script
        self.graph = Graph.of({name: self.inputs[name] for name in used}, outputs, first, names=named)
        self.graph = replace(self.graph, names=self.with_parts(named))

    def named_arguments(self, outputs: Mapping[str, Node]) -> list[Node]:
        """Return the arguments of custom functions, after naming those without a name."""
        result = [n for use in self.functions.values() for n in use.arguments.values()]
        for n in result:
            if n.args and n not in self.computed.values() and n not in outputs.values():
                self.computed[self.fresh("t")] = n
        return result

    def outputs(self) -> dict[str, Node]:
        """Return the outputs that a call starts from, by name; keep its v, and their names in the order of the call."""
        outputs: dict[str, Node] = {}
        for q, v in zip(self.call.roots, self.call.v, strict=True):
            is_result = q in self.record.producers
            node = self.nodes[q] if is_result else self.leaf(q)
            if node.is_leaf:
                if is_result:
                    self.give_up_name(q)
                node = Node("identity", (node,), node.shape)
            name = self.quantity(q).name
            if not name or name in self.inputs or outputs.get(name, node) is not node:
                name = self.fresh(self.unused(*(n for n in _OUTPUTS if n not in outputs)))
            outputs[name] = node
            self.roots.append(name)
            weights = decimal(v.array)
            self.v[name] = self.v[name] + weights if name in self.v else weights
        return outputs

    def with_parts(self, named_nodes: dict[str, Node]) -> dict[str, Node]:
        """Return the names with those of further nodes: no expression is then written twice, and none is too long."""
        readers = Counter(a for n in self.graph.nodes for a in n.args)
        known = {n: name for name, n in named_nodes.items()}
        sizes: dict[Node, int] = {}  # in operations, down to what has a name
        result: dict[str, Node] = {}
        free = FreshNames(self.graph.inputs, named_nodes, result)
        for node in [n for n in self.graph.nodes if n.args]:
            sizes[node] = 1 + sum(sizes[a] for a in node.args if a.args)
            if node not in known and self.needs_name(node, sizes[node], readers[node]):
                known[node] = self.name_for(node, free)
            if node in known:
                result[known[node]] = node
                sizes[node] = 0
        return result | named_nodes

    def name_for(self, node: Node, free: FreshNames) -> str:
        """Return a name for a part: the variable that held nothing else, or the statement's target with a number."""
        operation = self.producer.get(node)
        # A variable has the result of a line, not what a module called there computes inside.
        assignment = None if operation is None or operation.site.is_module else self.assigned.get(operation.id)
        name = (assignment is not None and assignment.target) or "t"
        is_only = assignment is not None and assignment.whole and self.is_only_target(name)
        return name if is_only and free.like(name) == name else free.numbered(_stem(name))

    def is_only_target(self, name: str, call: CallSite | None = None) -> bool:
        """Return whether one result alone was assigned to a variable, which is gone, and no other value has its name.

        A module takes several operations: of those in its `call` only the one of its output counts.
        """
        operations = self.targets.get(name, ())
        own = call and (call.frame, call.instruction)
        times = sum(bool(o.module) or (o.site.frame, o.site.instruction) != own for o in operations)
        return bool(name) and times == 1 and name not in self.every

    def needs_name(self, node: Node, size: int, readers: int) -> bool:
        """Return whether a node of so many operations and readers gets a line with a name."""
        if node.dtype == "bool" or node in self.graph.outputs.values():
            return False
        if size > _LONG or (readers > 1 and size > 1):
            return True
        if OPERATIONS[node.op].kind != "call" or node not in self.results:
            return False
        operation = self.producer[node]
        assignment = self.assigned.get(operation.id)
        is_assigned = assignment is not None and assignment.whole
        return is_assigned or "pool" in operation.row  # ties are told by it


def check_size(operations: int) -> None:
    """Check that a system is not too large to be looked through.

    Errors: `InputError`.
    """
    if operations > MAX_STEPS:
        raise InputError(f"{operations:,} operations are too many to show")


def root_names(record: Record, call: Backward, sources: Mapping[str, str]) -> list[str]:
    """Return the names that the outputs of a call have on its page, where the system behind it is not read."""
    maker, names = _Maker(record, call, sources), list[str]()
    maker.expressions.of(call.site)
    for q in call.roots:
        names.append(record.quantities[q].name or maker.unused(*(n for n in _OUTPUTS if n not in names)))
    return names


def recorded(record: Record, call: Backward, sources: Mapping[str, str] = MappingProxyType({})) -> Recorded:
    """Return the system behind a call of `backward` or `grad`.

    `sources` is the text of the script's files that is not to be read from disk, by their names.

    Errors: `InputError` for one that is too large to be looked through.
    """
    maker = _Maker(record, call, sources)
    asked = dict.fromkeys(call.inputs or ())
    inner = {q for q in asked if q in record.producers and record.quantities[q].requires}
    before = {q: {x for o in record.behind([q]) for x in (*o.operands, *o.results)} - {q} for q in inner}
    cut = {q for q in inner if before[q].isdisjoint(asked)}  # what comes from none that is asked for
    operations = record.behind(call.roots, cut)
    check_size(len(operations))
    for q in asked:
        if q in cut:
            maker.cut(q)
    maker.add_operations(operations)
    maker.requested = [maker.name_of(q) for q in asked if q in inner and q not in cut and q in maker.nodes]
    maker.finish()
    known = asked if asked else [q for q in maker.names if q not in record.producers]
    maker.wrt = [name for q in known if (name := maker.names.get(q, "")) in maker.at]
    if not asked:
        maker.wrt = [name for name in maker.at if name in maker.wrt]
    return maker


def _stem(name: str) -> str:
    """Return the stem of numbered names like a name: h of h1, h1_ of h1_2."""
    return name + "_" * name[-1].isdigit()
