"""The record of one backward of PyTorch: its calls, their operands and results, and what is sent between them."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from gradcli.graph.construct import broadcast, index, transpose
from gradcli.graph.node import Node, leaf
from gradcli.graph.rewrite import substituted
from gradcli.process.platform import return_free_memory
from gradcli.pytorch.operations.random import MASK
from gradcli.pytorch.recording import ALIAS, VIEW, WRITTEN, plain
from gradcli.realtorch.binding import Bound, Source, bound_node
from gradcli.realtorch.mode import KEY, Recording, edges_of
from gradcli.realtorch.nodes import computing, saved_tensor
from gradcli.realtorch.sweep import Hooked, Sweep, is_leaf
from gradcli.realtorch.values import (
    PLAIN,
    Call,
    Edge,
    Lost,
    Value,
    dtype_name,
    is_broadcast,
    numbers_of,
    part_of,
    summary_of,
)
from gradcli.record.definition import Definition
from gradcli.record.naming import Names
from gradcli.record.numbers import Numbers
from gradcli.record.record import (
    FORMULAS,
    NOWHERE,
    OPERATIONS,
    CallSite,
    Contribution,
    Cut,
    Hook,
    Operation,
    Record,
    Recorder,
)

GraphNode = Any  # torch.autograd.graph.Node
_ROUNDING = 8.0  # units of the last digit a term: a gradient that differs by more was changed by a hook


@dataclass
class Request:
    """A backward: its roots, v, the call in the program, and the names that hold there.

    `names` are those of its tensors and modules.
    """

    roots: Sequence[torch.Tensor]
    v: Sequence[torch.Tensor]
    site: CallSite = NOWHERE
    function: str = "backward"
    inputs: Sequence[torch.Tensor] | None = None
    implicit: bool = False
    create_graph: bool = False
    freed: bool = True
    names: Names = field(default_factory=Names)
    retaining: Sequence[tuple[torch.Tensor, torch.Tensor | None]] = ()  # what keeps its gradient, and that before
    returned: Sequence[Any] = ()  # by `grad`
    hooked: Sequence[Hooked] = ()  # what hooks of tensors with names have changed
    scale: float = 1.0  # by which a `GradScaler` has multiplied all roots


@dataclass(eq=False)
class _Part:
    """A call that a backward goes through: its nodes of PyTorch's graph, and where gradients leave these.

    `ends` are the node, the position among what it sends, and the edge to which that goes.
    """

    call: Call
    nodes: dict[GraphNode, None] = field(default_factory=dict)
    ends: list[tuple[GraphNode, int, Edge]] = field(default_factory=list)
    operands: list[Source] = field(default_factory=list)
    numbers: int = 0  # how many of the last operands are indices, positions and factors
    definitions: list[Definition] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)  # of the operand at each end
    number: int = -1


class Writer:
    """Writes the record of one backward: `prepare` before it runs, as it frees what nodes save, and `record` behind."""

    def __init__(self, recording: Recording, sweep: Sweep, request: Request, keeps_all: bool = False) -> None:
        self.recording, self.sweep, self.request, self.keeps_all = recording, sweep, request, keeps_all
        self.recorder = Recorder()
        self.ids: dict[Value, int] = {}
        self.storages: dict[int, int] = {}
        self.written: dict[int, int] = {}  # the operations of what was written without a step, by the quantity
        self.by_edge: dict[Edge, Value] = {}
        self.places: dict[Edge, tuple[GraphNode, int]] = {}
        self.leaf_edges: dict[GraphNode, Edge] = {}
        self.names: list[tuple[str, Value]] = []  # in the order of definition
        self.data: dict[Value, list[str]] = {}  # the name of data, which it has when it is read
        self.bases: dict[int, list[Value]] = {}  # data with a name, by its storage
        self.retaining: set[Value] = set()
        self.whole: set[Value] = set()  # what is not summarised
        self.frames: dict[int, int] = {}
        self.outputs: set[Call] = set()  # those that end what a module calls
        self.parts: list[_Part] = []

    def prepare(self) -> None:
        """Find the calls that the backward goes through, and read what those save that were not recorded."""
        with PLAIN():
            self._read_names()
            self.retaining = {self.recording.value(x) for x, _ in self.request.retaining}
            self.whole = {self.recording.value(x) for x in self.request.roots} | self.retaining
            self.parts = self._parts()
            for part in self.parts:
                if not part.call.path:
                    self._read_node(part)
            if not self.keeps_all and (len(self.sweep.leaves) > FORMULAS or len(self.parts) > OPERATIONS):
                self.sweep.summarises = True
                for value in (v for part in self.parts for v in part.call.results if v not in self.whole):
                    value.as_numbers(summary_of)
                return_free_memory()  # in whose gaps the gradients of large weights have no room

    def record(self) -> Record:
        """Return the record."""
        with PLAIN():
            self._operations()
            self._backward(self.parts)
        return self.recorder.record()

    def known(self) -> dict[int, int]:
        """Return the quantity of each tensor with a name, by its identity."""
        tensors = self.request.names.tensors
        return {id(tensors[name]): self.ids[value] for name, value in self.names if value in self.ids}

    def _operations(self) -> None:
        """Write the calls, in an order in which what each reads is there."""
        for part in self.parts:
            self._bind(part)
        calls = (p.call for p in self.parts if p.call.clock and p.call.path != "BackwardHookFunction")
        ran = sorted(calls, key=lambda c: c.clock)
        pairs = zip(ran, [*ran[1:], None], strict=False)  # none where no call was recorded
        where = attrgetter("frame", "site", "modules")
        self.outputs = {a for a, b in pairs if b is None or where(a) != where(b)}
        for part in _in_order(self.parts):
            self._operation(part)

    def _write_names(self) -> None:
        for name, value in self.names:
            if (made := _made(value)) in self.ids:
                self.recorder.tick()
                self.recorder.name(self.ids[made], name)

    def _read_names(self) -> None:
        for name, x in self.request.names.named():
            value = self.recording.value(x)
            self.names.append((name, value))
            if x.layout == torch.strided:
                value.layout = x.storage_offset(), x.stride()
                self.bases.setdefault(value.storage, []).append(value)
            if value.edge is not None:
                self.by_edge.setdefault(value.edge, value)
            else:
                self.data.setdefault(value, [name])

    # The nodes of each call

    def _parts(self) -> list[_Part]:
        """Return the calls that the backward goes through."""
        starts: dict[GraphNode, Call] = {}
        for root in self.request.roots:
            value = self.recording.value(root)
            assert value.edge is not None
            self.by_edge[value.edge] = value
        for node in self.sweep.nodes:
            for edge in () if is_leaf(node) else node.metadata.get(KEY, {}).values():
                for read in () if edge.call is None else (*edge.call.results, *edge.call.operands):
                    if read.edge is not None:
                        self.by_edge.setdefault(read.edge, read)
        for node in self.sweep.nodes:
            if is_leaf(node):
                value = self.recording.value(node.variable)
                assert value.edge is not None
                self.leaf_edges[node] = value.edge
                self.by_edge[value.edge] = value
                continue
            known: dict[int, Edge] = node.metadata.get(KEY, {})
            for output, edge in known.items():
                self.places[edge] = node, output
            if known:
                calls = [e.call for e in known.values() if e.call is not None]
                starts[node] = calls[0] if calls else self._call_of(node)
        owners = self._owners(starts)
        parts = {call: _Part(call) for call in starts.values()}
        for node in self.sweep.nodes:
            if not is_leaf(node):
                parts[starts.get(node) or owners[node]].nodes[node] = None
        for part in parts.values():
            for node in part.nodes:
                for k, (target, output) in enumerate(node.next_functions):
                    if target is not None and (is_leaf(target) or starts.get(target) not in (None, part.call)):
                        part.ends.append((node, k, self._edge(target, output, starts)))
        return [*parts.values()]

    def _owners(self, starts: dict[GraphNode, Call]) -> dict[GraphNode, Call]:
        """Return the call of each node that is within one; a node of two calls becomes a call of its own."""
        while True:
            owners: dict[GraphNode, Call] = {}
            shared: dict[GraphNode, None] = {}
            waiting = [*starts]
            while waiting:
                call = starts[start := waiting.pop()]
                stack = [start]
                while stack:
                    for node, _ in stack.pop().next_functions:
                        if node is None or is_leaf(node) or node in starts:
                            continue
                        if not call.path:  # of a call that was not recorded, each node is one
                            starts[node] = self._call_of(node)
                            waiting.append(node)
                        elif node not in owners:
                            owners[node] = call
                            stack.append(node)
                        elif owners[node] is not call:
                            shared[node] = None
            if not shared:
                return owners
            starts.update((node, self._call_of(node)) for node in shared)

    def _read_node(self, part: _Part) -> None:
        """Bind a call of one node, by what it saves; saved numbers are those of its operands and of its result."""
        node, call = next(iter(part.nodes)), part.call
        if len(part.nodes) > 1 or len(call.results) != 1:
            return
        (result,) = call.results
        known = computing(node, result.shape, result.dtype)
        _keep(result, saved_tensor(node, "result"))
        if known is None:
            return
        edges = {k: edge for n, k, edge in part.ends if n is node}
        sources: list[Source | None] = []
        for k in range(len(node.next_functions)):
            saved = saved_tensor(node, known[0][k]) if k < len(known[0]) else None
            if k in edges:
                value = self.by_edge[edges[k]]
                _keep(value, saved)
                sources.append(value)
                call.operands.append(value)
            else:
                sources.append(None if saved is None else numbers_of(saved))
        call.bound = bound_node(call, known[1], sources)

    def _call_of(self, node: GraphNode) -> Call:
        """Return a call for a node that no recorded call is known to have made."""
        name = re.sub(r"Backward\d*$", "", node.name().rpartition("::")[2])
        result = Call(name, "", ((), {}), [], [], 0, NOWHERE)
        for edge in edges_of(node).values():
            edge.call, edge.result = result, len(result.results)
            value = self.by_edge.get(edge) or self._without_numbers(node, self.places[edge][1], edge)
            self.by_edge[edge] = value
            result.results.append(value)
        return result

    def _edge(self, node: GraphNode, output: int, starts: Mapping[GraphNode, Call]) -> Edge:
        """Return the edge at an output of a leaf, or of the first node of a call."""
        if node in self.leaf_edges:
            return self.leaf_edges[node]
        edges = edges_of(node)
        if output not in edges:
            call = starts[node]
            edges[output] = edge = Edge(call, len(call.results))
            self.places[edge] = node, output
            self.by_edge[edge] = self._without_numbers(node, output, edge)
            call.results.append(self.by_edge[edge])
        return edges[output]

    def _without_numbers(self, node: GraphNode, output: int, edge: Edge) -> Value:
        """Return a value of which only shape and dtype are known."""
        known = getattr(node, "_input_metadata", ())
        shape, kind = (), "float32"
        if output < len(known) and known[output] is not None:
            shape, kind = tuple(known[output].shape), dtype_name(known[output].dtype)
        return Value(shape, kind, 0, -1 - id(edge), True, edge, "result", Numbers(None, shape, kind), None)

    # Operands

    def _bind(self, part: _Part) -> None:
        """Find the operands and the definitions of a call, and the operand at each end of it."""
        call = part.call
        bound = call.bound.results if call.bound is not None else []
        if (
            bound
            and len(bound) == len(call.results)
            and not any(s == MASK and call.mask is None for s in _sources(bound))
        ):
            self._define(part, bound)
        else:
            part.operands = [*call.operands] if call.origin == "torch" else [*_arguments(call)]
        used: set[int] = set()
        for _, _, edge in part.ends:
            at = self._position(part, edge, used)
            used.add(at)
            part.positions.append(at)

    def _define(self, part: _Part, bound: Sequence[Bound]) -> None:
        """Set the operands of a call to those of its rows, and say what each result is of them."""
        nodes: list[Node] = []
        placed: list[dict[Node, Node]] = [{} for _ in bound]
        for each, new in zip(bound, placed, strict=True):
            free = dict(enumerate(part.operands))
            for node, source in each.inputs[: len(each.inputs) - each.numbers]:
                at = next((k for k, s in free.items() if s is source), None)
                if at is None:
                    at = len(part.operands)
                    part.operands.append(part.call.mask if source == MASK and part.call.mask is not None else source)
                    nodes.append(leaf(node.shape, node.dtype))
                elif not each.is_composed:
                    del free[at]
                if each.is_composed:  # of several recipes, each tensor is one operand
                    free[at] = source
                new[node] = nodes[at]
        for each, new in zip(bound, placed, strict=True):
            for node, source in each.inputs[len(each.inputs) - each.numbers :]:
                part.operands.append(source)
                nodes.append(new.setdefault(node, leaf(node.shape, node.dtype)))
                part.numbers += 1
        for each, new in zip(bound, placed, strict=True):
            part.definitions.append(Definition.of(nodes, substituted([each.output], new)[0]))

    def _position(self, part: _Part, edge: Edge, used: set[int]) -> int:
        """Return the position of the operand to which an edge of a call leads."""
        places = [k for k, s in enumerate(part.operands) if isinstance(s, Value) and s.edge is edge]
        if not places:  # an operand that was cast once for several calls, or one that is not an argument
            behind = self._behind(edge)
            known = [k for k, s in enumerate(part.operands) if isinstance(s, Value) and s.edge is behind]
            if behind is not None and known:
                part.operands[known[0]] = value = self.by_edge[edge]
                if any(d.shapes[known[0]] != value.shape for d in part.definitions):  # of a weight, its transpose
                    part.definitions = self._of_transposed(part.definitions, known[0], self.places[edge][0])
                return known[0]
            part.operands.append(self.by_edge[edge])
            part.definitions = []
            return len(part.operands) - 1
        return next((k for k in places if k not in used), places[-1])

    def _of_transposed(self, definitions: Sequence[Definition], k: int, node: GraphNode) -> list[Definition]:
        """Return definitions in terms of an operand's transpose, which a node computes; none of another node."""
        result = []
        for d in definitions if node.name() in ("TBackward0", "TransposeBackward0") else ():
            if len(d.shapes[k]) != 2:
                return []
            leaves = [leaf(s[::-1] if i == k else s) for i, s in enumerate(d.shapes)]
            back = [transpose(n, (1, 0)) if i == k else n for i, n in enumerate(leaves)]
            result.append(Definition.of(leaves, d.node(back)))
        return result

    def _behind(self, edge: Edge) -> Edge | None:
        """Return the only edge to which a call that was not recorded leads, as a cast does."""
        if edge.call is None or edge.call.path or edge not in self.places:
            return None
        targets = [t for t in self.places[edge][0].next_functions if t[0] is not None]
        if len(targets) != 1:
            return None
        node, output = targets[0]
        return self.leaf_edges.get(node) or (None if is_leaf(node) else edges_of(node).get(output))

    # The record

    def _quantity(self, value: Value) -> int:
        """Return the id of a value in the record, after writing it there the first time."""
        if value not in self.ids:
            made = _made(value)
            if made in self.ids and value.as_numbers() == made.as_numbers():
                return self.ids[made]
            numbers = value.as_numbers()
            storage = self.storages.get(value.storage)
            is_reached = value.role != "result" or value.edge in self.places  # no view that was changed in place since
            why = "" if value.requires and is_reached else value.why_not or "data"
            self.ids[value] = new = self.recorder.quantity(
                numbers, value.role, requires=not why, why_not=why, site=value.site, storage=storage,
                version=value.version, changed=value.changed, retains=value in self.retaining,
                module=self._module(value.modules), names=self.data.get(value, ()),
            )  # fmt: skip
            self.storages.setdefault(value.storage, new)
            self._note_part(value, new)
            if value.lost is not None:
                self._cut(value.lost, result=new)
            if made in self.ids and made is not value:
                known = self.recording.changes.get(value.storage)
                site = known[-1][1] if known else NOWHERE
                self.written[new] = self.recorder.operation(WRITTEN, (), (self.ids[made],), (new,), site=site)
        return self.ids[value]

    def _note_part(self, value: Value, quantity: int) -> None:
        """Write of which tensor with a name data has the numbers, or of which data with a name it is a part."""
        for base in self.bases.get(value.storage, ()) if value.edge is None else ():
            whole = leaf(base.shape)
            definition: Definition | None = None
            is_alias = value is not base and value.shape == base.shape and value.layout == base.layout
            if is_alias and value.version == base.version:
                definition = Definition.of([whole], whole)
            elif base.edge is None and is_broadcast(value, base):
                definition = Definition.of([whole], broadcast(whole, value.shape))
            elif base.edge is None and math.prod(base.shape) > math.prod(value.shape):
                key = part_of(value, base)
                definition = None if key is None else Definition.of([whole], index(whole, key))
            if definition is not None:
                row = VIEW if definition.steps else ALIAS
                self.recorder.operation(row, (), (self._quantity(base),), (quantity,), definitions=[definition])
                return

    def _module(self, modules: Sequence[Any]) -> str:
        """Return the name of the innermost of modules that has one."""
        return next(filter(None, map(self.request.names.of, modules[::-1])), "")

    def _frame(self, call: Call) -> int:
        """Return a number for the run of a function in which a call is made."""
        return self.frames.setdefault(call.frame, len(self.frames))

    def _operation(self, part: _Part) -> None:
        call = part.call
        operands = [self._quantity(s) if isinstance(s, Value) else s for s in part.operands if not isinstance(s, str)]
        results = [self._quantity(v) for v in call.results]
        rows = call.bound.results if part.definitions else []
        single = rows[0] if len(rows) == 1 else None
        part.number = self.recorder.operation(
            single.row if single is not None else call.name,
            (call.origin,) if not part.definitions else plain(single.settings) if single is not None else (),
            operands,
            results,
            site=replace(call.site, frame=self._frame(call), is_module=bool(call.modules)),
            module=self._module(call.modules if call in self.outputs else ()),
            definitions=part.definitions,
            numbers=part.numbers if part.definitions else 0,
            clock=call.clock or None,
            grad_fn=next(iter(part.nodes)).name() if part.nodes else "",
        )

    def _backward(self, parts: Sequence[_Part]) -> None:
        request, sweep = self.request, self.sweep
        roots = [self._quantity(self.recording.value(y)) for y in request.roots]
        terms: dict[int, list[Numbers]] = {}
        v = [numbers_of(x) for x in request.v]
        for root, numbers in zip(roots, v, strict=True):
            terms.setdefault(root, []).append(numbers)
        sent: dict[tuple[int, int], Numbers] = {}
        pieces: dict[tuple[int, int], list[Numbers]] = {}
        received: dict[tuple[int, int], Numbers] = {}
        for part in parts:
            for (node, k, _), at in zip(part.ends, part.positions, strict=True):
                grads = sweep.sent.get(node, ())
                if k < len(grads) and (g := grads[k]) is not None:
                    key = part.number, at
                    sent[key] = _added(sent[key], g) if key in sent else g
                    pieces.setdefault(key, []).append(g)
            for k, value in enumerate(part.call.results):
                node, output = self.places.get(value.edge, (None, 0)) if value.edge is not None else (None, 0)
                grads = sweep.received.get(node, ())
                if output < len(grads) and (g := grads[output]) is not None:
                    received[part.number, k] = g
        record = self.recorder.record()
        composed = {p.number for p in parts if p.definitions and any(b.is_composed for b in p.call.bound.results)}
        last: dict[int, tuple[int, ...]] = {}  # which operation sends a gradient last, and its operand
        for o, i in sorted(sent, reverse=True):
            operation = record.operations[o]
            q = operation.operands[i]
            assert isinstance(q, int)
            terms.setdefault(q, []).extend(pieces[o, i])  # whose sum may be smaller than the rounding of each
            of_weight = operation.row == "transpose" and not operation.site.line  # which linear maps read
            place = (-o, -_first_step(operation, i) if o in composed else 0, i)
            last[q] = last.get(operation.results[0], place) if of_weight else place
        for q, o in reversed(self.written.items()):
            if q in terms:
                received[o, 0] = sent[o, 0] = reduce(_added, terms[q])
                terms.setdefault(record.operations[o].operands[0], []).append(sent[o, 0])  # type: ignore[arg-type]
        if request.function == "backward":  # PyTorch's own order within an operation is that of its formula
            known = {n: self._quantity(self.recording.value(leaf.tensor)) for n, leaf in sweep.leaves.items()}
            sweep.leaves = {n: sweep.leaves[n] for n in sorted(known, key=lambda n: last.get(known[n], ()))}
        leaves = [*self._leaves()]
        of_modules = [h for part in parts for h in self._hooks_of_module(part, received)]
        arrived = {record.operations[o].results[k]: g for (o, k), g in received.items()}
        arrived |= {c.quantity: c.added for c in leaves if c.after is not None}
        hooks = [*self._hooks(), *of_modules]
        seen = {h.quantity for h in hooks}
        hooks += [h for q, g in arrived.items() if q not in seen and (h := self._hook(q, terms.get(q, []), g))]
        reached = {c.quantity for c in leaves}
        for _, x in request.names.named():  # which parameters there are, for what is not reached
            if x.is_leaf and (x.requires_grad or isinstance(x, torch.nn.Parameter)):
                q, site = self._quantity(self.recording.value(x)), self.recording.uses.get(x)
                is_wanted = request.inputs is None or any(x is of for of in request.inputs)
                if q not in reached and x.requires_grad and is_wanted and site is not None:
                    self.recorder.event(Cut(kind="not_read", code=site.code, source=q, site=site))
        self._cuts(self.recording.swept)
        self._write_names()
        inputs = None if request.inputs is None else [self._quantity(self.recording.value(x)) for x in request.inputs]
        options = {"function": request.function, "implicit": request.implicit, "create_graph": request.create_graph}
        wanted = None if inputs is None else tuple(inputs)
        b = self.recorder.begin_backward(roots, v, site=request.site, inputs=wanted, scale=request.scale, **options)
        self.recorder.end_backward(b, received, sent, hooks, leaves, [*self._retained(arrived)], request.freed)

    def _cuts(self, since: int = 0) -> None:
        """Write the lines that have cut numbers off from the graph, and the leaves that these came from."""
        named = {id(x) for _, x in self.request.names.named()}
        for lost in [lost for lost in self.recording.lost.values() if lost.clock > since]:
            known = (self.recording.value(x) for x in lost.leaves)
            leaves = [v for x, v in zip(lost.leaves, known, strict=True) if id(x) in named or v in self.ids]
            self._cut(lost, tuple(map(self._quantity, leaves)))

    def _cut(self, lost: Lost, leaves: tuple[int, ...] = (), result: int | None = None) -> None:
        """Write the ways in which a line cuts numbers off from the graph."""
        for how in lost.hows:
            kind, code, call = how.kind.name, how.code, how.call
            self.recorder.event(Cut(site=lost.site, kind=kind, code=code, call=call, result=result, leaves=leaves))

    def _leaves(self) -> Iterator[Contribution]:
        if self.request.function == "grad":
            reached = {id(leaf.tensor) for leaf in self.sweep.leaves.values()}
            for x, g in zip(self.request.inputs or (), self.request.returned, strict=False):
                if isinstance(g, torch.Tensor) and (id(x) in reached or x.grad_fn in self.sweep.nodes):
                    yield Contribution(self._quantity(self.recording.value(x)), None, numbers_of(g), None)
            return
        for each in self.sweep.leaves.values():
            if each.added is not None and each.after is not None:
                before = None if each.before is None else numbers_of(each.before)
                q = self._quantity(self.recording.value(each.tensor))
                origin = self.recording.origin(each.tensor, each.before)
                yield Contribution(q, before, numbers_of(each.added), numbers_of(each.after), origin)

    def _retained(self, arrived: Mapping[int, Numbers]) -> Iterator[Contribution]:
        for x, before in self.request.retaining:
            q = self.ids.get(self.recording.value(x))
            if q is not None and q in arrived and x.grad is not None:
                old = None if before is None else numbers_of(before)
                yield Contribution(q, old, arrived[q], numbers_of(x.grad))

    def _hooks(self) -> Iterator[Hook]:
        """Yield what the hooks of tensors with names have changed."""
        for x, hook, before, after in self.request.hooked:
            q = self.ids.get(self.recording.value(x))
            if q is not None:
                name, site = _function_of(hook)
                yield Hook(q, name, numbers_of(before), numbers_of(after), site)

    def _hooks_of_module(self, part: _Part, received: dict[tuple[int, int], Numbers]) -> Iterator[Hook]:
        """Yield what the hooks of a module change, and note what then goes on.

        PyTorch calls them in a function of its own, whose results are its operands.
        """
        modules: Sequence[Any] = part.call.modules if part.call.path == "BackwardHookFunction" else ()
        hooks = [h for m in modules[-1:] for h in (*m._backward_pre_hooks.values(), *m._backward_hooks.values())]
        for k, value in enumerate(part.call.results if hooks else ()):
            node, output = self.places[value.edge] if value.edge is not None else (None, 0)
            before, grads = received.get((part.number, k)), self.sweep.sent.get(node, ())
            after = grads[output] if output < len(grads) else None
            if before is not None and after is not None and before != after:
                received[part.number, k] = after
                name, site = _function_of(hooks[-1])
                module = self.request.names.of(modules[-1]) or type(modules[-1]).__name__
                yield Hook(self.ids[value], name, before, after, site, module=module)

    def _hook(self, q: int, terms: Sequence[Numbers], after: Numbers) -> Hook | None:
        """Return how a hook has changed a gradient; None where it is the sum of what was sent."""
        arrays = [t.whole for t in terms]
        if len(terms) == 1 and terms[0].known is not None:
            a, b = terms[0].summary, after.summary
            same = a[1:] == b[1:] and math.isclose(a.norm or 0, b.norm or 0, rel_tol=1e-6)
            return None if same or not after.is_finite else Hook(q, "", terms[0], after)
        if not arrays or after.whole is None or any(a is None or a.shape != after.shape for a in arrays):
            return None
        wide = [np.asarray(a, complex if a.dtype.kind == "c" else float) for a in arrays if a is not None]
        if len(wide) == 1 and np.array_equal(wide[0], after.whole, equal_nan=True):
            return None
        total, size = sum(wide[1:], wide[0]), sum(map(abs, wide))
        eps = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(after.dtype, 2.0**-23)
        with np.errstate(invalid="ignore"):
            near = np.abs(total - after.whole) <= _ROUNDING * len(wide) * eps * size
        if np.all(near | ~np.isfinite(total)):
            return None
        before = Numbers(total.astype(after.whole.dtype), after.shape, after.dtype)
        return Hook(q, "", before, after)


def _function_of(hook: Any) -> tuple[str, CallSite]:
    """Return the name of a hook, and where it is defined."""
    code = getattr(hook, "__code__", None) or getattr(type(hook).__call__, "__code__", None)
    site = NOWHERE if code is None else CallSite(code.co_filename, code.co_firstlineno)
    return getattr(hook, "__name__", "<lambda>"), site


def _first_step(operation: Operation, i: int) -> int:
    """Return which step of an operation reads an operand first: gradients reach those of later steps before."""
    steps = (k for d in operation.definitions for k, step in enumerate(d.steps) if i in step.args)
    return min(steps, default=0)


def _made(value: Value) -> Value:
    """Return the value that a call has made, where a value is what was written there later without a step."""
    edge = value.edge
    return value if edge is None or edge.call is None else edge.call.results[edge.result]


def _keep(value: Value, saved: torch.Tensor | None) -> None:
    """Keep the numbers of a value that were not recorded, where a node has saved them."""
    is_unknown = value.kept is None and value.numbers is not None and value.numbers.whole is None
    if saved is not None and is_unknown and tuple(saved.shape) == value.shape:
        value.numbers = numbers_of(saved)


def _arguments(call: Call) -> Iterator[Source]:
    """Yield the arguments of a custom function: tensors, and numbers as constants."""
    seen = []
    for x in (*call.arguments[0], *call.arguments[1].values()):
        if isinstance(x, Value):
            seen.append(x)
            yield x
        elif isinstance(x, int | float) and not isinstance(x, bool):
            yield Numbers.of(np.asarray(x))
    yield from (x for x in call.operands if x not in seen)


def _sources(bound: Iterable[Bound]) -> list[Source]:
    return [s for b in bound for _, s in b.inputs]


def _added(a: Numbers, b: Numbers) -> Numbers:
    whole = None if a.whole is None or b.whole is None else a.whole + b.whole
    return Numbers(whole, a.shape, a.dtype)


def _in_order(parts: Sequence[_Part]) -> Iterator[_Part]:
    """Yield calls behind those whose results they read, else in the order in which PyTorch made their nodes."""
    by_call = {part.call: part for part in parts}
    waits: dict[_Part, set[_Part]] = {}
    readers: dict[_Part, list[_Part]] = {}
    for part in parts:
        read = [s.edge.call for s in part.operands if isinstance(s, Value) and s.edge is not None and s.edge.call]
        waits[part] = {by_call[c] for c in read if c in by_call and c is not part.call}
        for other in waits[part]:
            readers.setdefault(other, []).append(part)
    positions = {part: k for k, part in enumerate(parts)}
    order = {part: max(node._sequence_nr() for node in part.nodes) for part in parts}
    ready = [(order[p], positions[p], p) for p in parts if not waits[p]]
    heapq.heapify(ready)
    while ready:
        part = heapq.heappop(ready)[-1]
        yield part
        for reader in readers.get(part, ()):
            waits[reader].discard(part)
            if not waits[reader]:
                heapq.heappush(ready, (order[reader], positions[reader], reader))
