"""Writes the record of a call of `backward` or `grad` from the emulation's steps, which are its working memory.

What the steps have read is held before the call frees it, and written once the call is done, with what it has sent.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gradcli.graph.node import Node, const, leaf
from gradcli.pytorch.autograd.function import FunctionStep
from gradcli.pytorch.backward import Call, Contribution
from gradcli.pytorch.cuts import CUTS, Cut
from gradcli.pytorch.moments import Moment, moment
from gradcli.pytorch.nn.module import Parameter
from gradcli.pytorch.operations.random import MASK
from gradcli.pytorch.record import Edge, Leaf, Line, Step, dependencies, edge_made, edge_of
from gradcli.pytorch.tensor import Tensor
from gradcli.record import record as records
from gradcli.record.definition import Definition
from gradcli.record.numbers import Array, Numbers, Summary
from gradcli.record.record import NOWHERE, CallSite, Hook, Operand, Recorder, Span

if TYPE_CHECKING:
    from gradcli.record.record import Record

# Operations that are no calls: a change that no step is recorded of, and what shows a tensor with a name.
WRITTEN, ALIAS, VIEW = "written", "alias", "view"
_COPIED = 4096  # numbers of an array that is copied; of more, the record has the array until its page is written


class Named(Protocol):
    """The names of a program's tensors and modules."""

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors by their names, in the order in which the program defines them."""

    def of(self, x: Any) -> str:
        """Return the name of a tensor or a module; "" where it has none."""


class Names:
    """The names of tensors alone."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors
        self._names = {id(x): name for name, x in tensors.items()}

    def of(self, x: Any) -> str:
        """Return the name of a tensor; "" where it has none."""
        return self._names.get(id(x), "")


class _Held(NamedTuple):
    """What a step has read and made, and which of it its backward reads changed, by position, with the line."""

    read: Sequence[Moment]
    made: Sequence[Moment]
    changed: Mapping[int, tuple[Line | None, Moment]]


class Tape:
    """The steps behind a call, held while it runs; `record` writes what happened, once it is done."""

    def __init__(self, call: Call, names: Named) -> None:
        self.call, self.names = call, names
        known = dependencies(edge_of(y)[0] for y, _ in call.roots)
        self.steps = sorted((fn for fn in known if isinstance(fn, Step)), key=attrgetter("seq"))
        self.held = {s: _Held(s.read, _made(s), _changed(s)) for s in self.steps}
        self.has_packed = any(step.packed for step in self.steps)  # by hooks of saved tensors
        self.named = {name: (x, moment(x)) for name, x in names.tensors.items()}
        leaves = {e: e[0].variable for s in self.steps for e in s.edges if e is not None and isinstance(e[0], Leaf)}
        leaves |= {e: y for y, _ in call.roots if isinstance((e := edge_of(y))[0], Leaf)}
        self.leaves = {e: (x, moment(x)) for e, x in leaves.items()}
        # The line of the last backward that reached a tensor before this call.
        self.reached = {id(x): x._reached for x, _ in (*self.named.values(), *self.leaves.values())}
        # Ids in the record, once written: of steps; of results by step and number, leaves and numbers; of `id(x)`.
        self.operations: dict[Step, int] = {}
        self.quantities: dict[Any, int] = {}
        self.live: dict[int, int] = {}

    def record(self, most: float = math.inf) -> Record:
        """Return the record of the call, which is done; without the operations where these are more than `most`."""
        if len(self.steps) > most:
            self.steps = []
        return _Writer(self).record()


class _Writer:
    """Writes one record."""

    def __init__(self, tape: Tape) -> None:
        self.tape, self.names, self.call = tape, tape.names, tape.call
        self.recorder = Recorder()
        self.of = tape.quantities
        self.whole: dict[Any, Array] = {}  # the numbers of results and leaves
        self.written: dict[int, int] = {}  # the operations of what was written without a step, by the quantity
        self.writes: dict[int, list[tuple[int, int]]] = {}  # what reads it: operations, and positions of operands
        self.storages: dict[int, int] = {}
        self.sites = Sites()
        self.memories = {_memory_of(x._a): (name, x) for name, (x, _) in reversed(tape.named.items())}

    def record(self) -> Record:
        """Return the record."""
        if self.tape.has_packed:
            self.recorder.event(records.ModeEntered(mode="saved_tensors_hooks"))
        for step in self.tape.steps:
            self.step(step)
        for y, _ in self.call.roots:
            if (edge := edge_of(y)) not in self.of and edge not in self.tape.leaves:  # operations are left out
                self.of[edge] = self.quantity(y._a, "result", NOWHERE, (), moment(y))
            self.edge(edge)
        for x in self.call.inputs or ():
            if x._label and not self.names.of(x):
                self.recorder.name(self.tensor(x, moment(x)), x._label)
        for name, (x, now) in self.tape.named.items():
            known = self.all_of(x, now)
            self.tape.live.setdefault(id(x), known[0])
            for quantity in known:
                self.recorder.tick()
                self.recorder.name(quantity, name)
        self.changes()
        for (*_, within), cut in CUTS.items():
            self.cut(None if within else cut)
        self.backward()
        return self.recorder.record()

    def cut(self, cut: Cut | None, result: int | None = None) -> None:
        """Write the ways in which a line cuts numbers off from the graph."""
        known = () if cut is None else (x for of in cut.leaves.values() if (x := of()) is not None)
        leaves = tuple(self.tensor(x, self.now(x)) for x in known if self.names.of(x) or self.edge_now(x))
        for how in cut.hows if cut is not None else ():
            kind, site = how.kind.name, self.sites.of(cut.line)  # type: ignore[union-attr]
            self.recorder.event(
                records.Cut(site=site, kind=kind, code=how.code, call=how.call, result=result, leaves=leaves)
            )

    def step(self, step: Step) -> None:
        """Write the operation of a step, after what it reads."""
        held = self.tape.held[step]
        beside = step.operands or (None,) * len(step.edges)
        operands: list[Operand] = []
        for i, (edge, x) in enumerate(zip(step.edges, beside, strict=True)):
            operands.append(self.operand(edge, x, held.read[i] if i < len(held.read) else None))
        operands += [Numbers.of(np.array(a, np.int64) if isinstance(a, tuple) else _kept(a)) for a in step.numbers]
        site = self.sites.of(step.line)
        made: list[tuple[Array, Moment | None]] = [(m.array, m) for m in held.made]
        made = made or [(np.zeros((*shape, 1), n.dtype), None) for shape, n in _outputs(step)]
        kept = {k for k, of in step.retained.items() if of() is not None}
        nan = step.__dict__.get("arose", 0)  # what is known of numbers that are gone
        results = [self.quantity(a, "result", site, (), m, retains=k in kept, nan=nan) for k, (a, m) in enumerate(made)]
        self.of |= {(step, k): q for k, q in enumerate(results)}
        self.whole |= {(step, k): a for k, (a, m) in enumerate(made) if m is not None}
        custom = (step.cls.__name__, (step.cls.__module__,), ()) if step.is_custom else None  # type: ignore[attr-defined]
        row, settings, definitions = custom or (step.recipe.op, plain(step.recipe.settings), step.recipe.definitions)
        new = self.recorder.operation(
            row,
            settings,
            operands,
            results,
            site=site,
            module=self.names.of(step.module),
            definitions=definitions,
            grad_fn=step.name(),
            numbers=len(step.numbers),
        )
        self.tape.operations[step] = new
        for i, q in enumerate(operands):
            if isinstance(q, int) and q in self.writes:
                self.writes[q].append((new, i))

    def operand(self, edge: Edge | None, x: Any, read: Moment | None) -> Operand:
        """Return the operand of a step: a result, a leaf, data, or a constant."""
        if edge is None:
            if isinstance(x, Tensor):
                return self.data(x, read or moment(x), requires=False)
            array = read.array if read is not None else x
            if isinstance(array, np.ndarray):
                return Numbers.of(_kept(array))
            return Numbers(None, (), "object", text=str(x) if isinstance(x, int | float | str) else "…")
        quantity, known = self.edge(edge, read), self.whole.get(edge)
        if read is None or known is None or read.is_of(known) or read.array.shape != known.shape:
            return quantity
        return self.written_without_step(edge, quantity, read)

    def edge(self, edge: Edge, read: Moment | None = None) -> int:
        """Return the quantity of a result, or that of a leaf, with the numbers that were read first."""
        if edge not in self.of:
            x, now = self.tape.leaves[edge]
            known = read or now
            self.whole[edge] = known.array
            self.of[edge] = self.quantity(
                known.array, _role(x), NOWHERE, self.earlier_names(x), known, changed=not known.is_of(x._a)
            )
            self.cut(x._detached, self.of[edge])
        return self.of[edge]

    def earlier_names(self, x: Tensor) -> list[str]:
        """Return the name of a leaf that has none of the program's now, or that of what shows the same memory."""
        known = self.memories.get(_memory_of(x._a))
        return [] if self.names.of(x) else [x._label or ("" if known is None else known[0])]

    def written_without_step(self, edge: Edge, quantity: int, read: Moment) -> int:
        """Return the quantity that a change without a step has made of another one: its gradient passes unchanged."""
        written = (k for k in self.of if type(k) is tuple and k[0] == edge and isinstance(k[1], Moment))
        key = next((k for k in written if k[1].is_of(read.array)), (edge, read))
        if key not in self.of:
            site = self.sites.of(read.left) if read.left is not None else NOWHERE
            self.of[key] = result = self.quantity(read.array, "written", site, (), read)
            self.written[result] = self.recorder.operation(WRITTEN, (), (quantity,), (result,), site=site)
            self.writes[result] = []
        return self.of[key]

    def all_of(self, x: Tensor, now: Moment) -> list[int]:
        """Return the quantities of a tensor with a name: of a leaf that has changed, that which was read, and now's."""
        if (edge := self.edge_now(x)) is None:
            return [self.tensor(x, now)]
        quantity, known = self.edge(edge), self.whole.get(edge)
        if x._fn is not None or known is None or now.is_of(known):
            return [quantity]
        return [quantity, self.quantity(now.array, _role(x), NOWHERE, (), now)]

    def edge_now(self, x: Tensor) -> Edge | None:
        """Return the edge of a tensor if the call goes through it."""
        edge, known_leaf = edge_made(x), None if x._leaf is None else x._leaf()
        edge = (known_leaf, 0) if edge is None and known_leaf is not None else edge
        return edge if edge is not None and (edge in self.of or edge in self.tape.leaves) else None

    def now(self, x: Tensor) -> Moment:
        """Return the numbers that a tensor has now: of one with a name, those that it had when the call began."""
        named, known = self.tape.named.get(self.names.of(x), (None, None))
        return known if named is x and known is not None else moment(x)

    def tensor(self, x: Tensor, read: Moment) -> int:
        """Return the quantity of a tensor, with the numbers that it had."""
        edge = self.edge_now(x)
        return self.data(x, read, x.requires_grad) if edge is None else self.edge(edge, read)

    def data(self, x: Tensor, read: Moment, requires: bool) -> int:
        """Return the quantity of a tensor that the call does not go through, with the numbers that it had."""
        if read not in self.of:
            name, base = self.names.of(x) or x._label, None
            if not name:
                name, base = self.base(x, read)
            elif name in self.tape.named and self.tape.named[name][1] is read and self.edge_now(x) is None:
                name = ""  # it gets the name with all others
            if base is None and read.is_of(x._a):
                base = self.view(x)
            line = x._detached.line if x._detached is not None else x._frozen
            new = self.of[read] = self.quantity(
                read.array,
                "mask" if x._label == MASK else _role(x) if isinstance(x, Parameter) else "data",
                NOWHERE if line is None else self.sites.of(line),
                [name],
                read,
                requires=requires,
                why_not="" if requires else _why_not(x),
                module=self.names.of(x._module),
                changed=not read.is_of(x._a),
            )
            if base is not None:
                row, source, definition = base
                self.recorder.operation(row, (), (source,), (new,), definitions=[definition])
            self.cut(x._detached, new)
        return self.of[read]

    def base(self, x: Tensor, read: Moment) -> tuple[str, tuple[str, int, Definition] | None]:
        """Return the name of a tensor without one, where its numbers are older, or else of what it is an alias or view.

        That is the operation, the quantity, and its definition.
        """
        known, is_now = self.memories.get(_memory_of(x._a)), read.is_of(x._a)
        if not is_now:
            return ("", None) if known is None or known[1].requires_grad else (known[0], None)
        if known is not None:
            y = known[1]
            return "", (ALIAS, self.all_of(y, moment(y))[-1], Definition((tuple(x.shape),), (), 0))
        return "", self.view(x)

    def view(self, x: Tensor) -> tuple[str, int, Definition] | None:
        """Return the operation, the quantity and the definition of a view of a tensor with a name."""
        base = x._base
        if base is None or base.requires_grad or not self.names.of(base):
            return None
        whole = node = leaf(base.shape, base._a.dtype.name)
        for recipe, numbers in x._how:
            node = recipe.definitions[0].node([node, *map(_constant, numbers)])
        return VIEW, self.all_of(base, moment(base))[-1], Definition.of([whole], node)

    def changes(self) -> None:
        """Write the changes in place that came after numbers were read."""
        storages = {id(m.storage): m.storage for h in self.tape.held.values() for m in h.read if m.storage is not None}
        storages |= {id(m.storage): m.storage for _, m in self.tape.named.values() if m.storage is not None}
        lines = {key: s.changed[0] for key, s in storages.items() if s.changed is not None}
        found: dict[tuple[int | None, Line | None], list[tuple[int, int]]] = {
            (self.storages.get(key), line): [] for key, line in lines.items()
        }
        for step, held in self.tape.held.items():
            for i, (line, m) in held.changed.items():
                key = self.storages.get(id(m.storage)), line
                found.setdefault(key, []).append((self.tape.operations[step], i))
        for (storage, line), operations in found.items():
            site = NOWHERE if line is None else self.sites.of(line)
            self.recorder.event(records.Changed(site=site, storage=storage, operations=tuple(operations)))

    def quantity(
        self, array: Array, role: str, site: CallSite, names: Iterable[str], read: Moment | None, nan: int = 0,
        **facts: Any,
    ) -> int:  # fmt: skip
        """Write a quantity whose numbers an array has, without its axis of points, and other facts of it."""
        storage = None if read is None or read.storage is None else self.storages.get(id(read.storage))
        new = self.recorder.quantity(
            _unknown(array, nan) if read is None else Numbers.of(_kept(array)),
            role,
            site=site,
            names=filter(None, names),
            storage=storage,
            version=0 if read is None else read.version,
            **{"requires": True, **facts},
        )
        if read is not None and read.storage is not None:
            self.storages.setdefault(id(read.storage), new)
        return new

    # The backward

    def backward(self) -> None:
        """Write what the call has sent and left."""
        call, of = self.call, self.of
        request = call.request.name if call.request is not None else ""
        backward = self.recorder.begin_backward(
            [self.edge(edge_of(y)) for y, _ in call.roots],
            [Numbers.of(_kept(v._a)) for _, v in call.roots],
            site=self.sites.of(call.line),
            function=request or ("grad" if call.returns else "backward"),
            inputs=None if call.inputs is None else tuple(self.tensor(x, moment(x)) for x in call.inputs),
            implicit=call.implicit,
            create_graph=call.create,
            tangents=tuple(map(_numbers, call.request.u)) if call.request is not None else (),
        )
        received: dict[tuple[int, int], Numbers] = {}
        sent: dict[tuple[int, int], Numbers] = {}
        for step, pulled in call.pulled_steps.items():
            if step not in self.tape.operations:
                continue
            o = self.tape.operations[step]
            received |= {(o, k): _numbers(g) for k, g in enumerate(pulled.grad_outputs) if g is not None}
            grads = [*pulled.grad_inputs]
            for c in call.changes:
                if c.step is step:
                    grads = [
                        c.after if g is c.before and e is c.edge else g for g, e in zip(grads, step.edges, strict=True)
                    ]
            sent |= {(o, i): _numbers(g) for i, g in enumerate(grads) if g is not None}
        for q, o in reversed(self.written.items()):
            if known := [sent[at].whole for at in self.writes[q] if at in sent]:
                received[o, 0] = sent[o, 0] = Numbers.of(np.sum(np.stack(known), axis=0))  # type: ignore[arg-type]
        hooks = [self.hook(c) for c in call.changes if c.edge in of]
        arose = {
            self.tape.operations[p.step]: (_known(p.grad_outputs), _known(p.grad_inputs))
            for p in call.arose
            if p.step in self.tape.operations
        }
        self.recorder.end_backward(
            backward,
            received,
            sent,
            hooks,
            [self.contribution(c) for c in call.contributions],
            [self.contribution(c) for c in call.retained],
            call.freed,
            arose,
        )

    def contribution(self, c: Contribution) -> records.Contribution:
        """Return what a call adds to a `.grad`, or returns."""
        before = None if c.before is None else Numbers.of(_kept(c.before))
        after = None if c.after is None else _numbers(c.after)
        line = c.tensor._cleared
        if c.before is not None and c.before.any():
            line = self.tape.reached.get(id(c.tensor))
        elif c.before is not None and line is None and c.after is not None:
            line = changed[0] if (changed := c.after._memory.storage.changed) is not None else None
        origin = NOWHERE if line is None else self.sites.of(line)
        return records.Contribution(self.tensor(c.tensor, moment(c.tensor)), before, _numbers(c.grad), after, origin)

    def hook(self, c: Any) -> Hook:
        """Return what a hook has changed."""
        module, inner = getattr(c.hook, "of", (None, c.hook))
        function = inner if hasattr(inner, "__code__") else type(inner).__call__
        code = getattr(function, "__code__", None)
        name = getattr(inner, "__name__", "<lambda>")
        line = Line(0 if code is None else code.co_firstlineno)
        line.file = "" if code is None else code.co_filename
        operation = None if c.step is None else self.tape.operations.get(c.step)
        return Hook(
            self.of[c.edge],
            name,
            _numbers(c.before),
            _numbers(c.after),
            self.sites.of(line),
            operation,
            None if operation is None else c.step.edges.index(c.edge),
            "" if module is None else self.names.of(module) or type(module).__name__,
        )


class Sites:
    """The places of a program, each made once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], CallSite] = {}
        self._frames: dict[int, int] = {}

    def of(self, line: Line) -> CallSite:
        """Return the place of a line that called something."""
        frame, instruction = line.call
        key = line.file, int(line), line.code, line.call, line.inside
        if key not in self._known:
            spans = _spans(line.code) if line.code is not None else ()
            instruction = instruction if line.code is None else _begin(line.code, instruction)
            k = instruction // 2
            self._known[key] = CallSite(
                line.file,
                int(line),
                spans[k] if k < len(spans) else None,
                linecache.getline(line.file, line).strip(),
                line.code.co_qualname if line.code is not None else "",
                instruction,
                self._frames.setdefault(frame, len(self._frames)),
                line.inside,
            )
        return self._known[key]


def _begin(code: CodeType, offset: int) -> int:
    """Return where an instruction begins: a frame stands behind its cache once Python has specialized it."""
    while offset > 0 and code.co_code[offset] == 0:  # CACHE
        offset -= 2
    return offset


@lru_cache(maxsize=256)
def _spans(code: CodeType) -> list[Span]:
    return [*code.co_positions()]


def plain(settings: Any) -> Any:
    """Return settings as plain data: tuples, numbers and texts."""
    if isinstance(settings, tuple | list):
        return tuple(map(plain, settings))
    if isinstance(settings, range):
        return settings.start, settings.stop, settings.step
    return settings if isinstance(settings, bool | int | float | str | None) else repr(settings)


def _made(step: Step) -> Sequence[Moment]:
    """Return the numbers of the results of a step; none where it is freed."""
    return [*map(Moment, step.results)] if isinstance(step, FunctionStep) else step.made


def _outputs(step: Step) -> Iterable[tuple[Any, Node]]:
    return zip(step.shapes, step.recipe.outputs, strict=True)


def _unknown(array: Array, nan: int) -> Numbers:
    """Return numbers of a shape of which no more is known than how many are nan."""
    return Numbers(None, array.shape[:-1], array.dtype.name, known=Summary(nan=nan) if nan else None)


def _changed(step: Step) -> dict[int, tuple[Line | None, Moment]]:
    """Return where the backward of a step reads other numbers than the step itself has read or made.

    These are the positions of operands, and behind them that of the result, each with the line of the change and the
    numbers before it.
    """
    if not step.made or not step.kept:
        return {}
    count = len(step.edges)  # what is computed again of changed operands is no change of the result
    pairs = enumerate(zip((*step.reads()[:count], *step.kept[count:]), (*step.read, *step.made), strict=False))
    return {i: (m.changed, m) for i, (a, m) in pairs if a is not None and not m.is_of(a)}


def _role(x: Tensor) -> str:
    return "parameter" if isinstance(x, Parameter) else "leaf"


def _constant(a: Any) -> Node:
    """Return indices or a position as a constant."""
    numbers = np.array(a) if isinstance(a, tuple) else a[..., 0]
    return const(tuple(numbers.reshape(-1).tolist()), numbers.shape, "int64")


def _why_not(x: Tensor) -> str:
    """Return why a tensor requires no gradient, in the words of `Quantity.why_not`."""
    if x._detached is not None:
        return x._detached.hows[0].kind.why_not
    if x._frozen is not None or isinstance(x, Parameter):
        return "frozen"
    return "data" if x._a.dtype.kind == "f" else "integers"


def numbers_of(x: Any) -> Any:
    """Return the numbers of a tensor, or those of the tensors in a sequence, in sequences alike."""
    return _numbers(x) if isinstance(x, Tensor) else tuple(map(numbers_of, x))


def _kept(a: Array) -> Array:
    """Return the numbers of an array without its axis of points, which nothing changes any more where they are few."""
    a = a[..., 0] if a.ndim else a
    return a.copy() if a.size <= _COPIED else a


def _numbers(x: Tensor) -> Numbers:
    return Numbers.of(_kept(x._a))


def _known(grads: Sequence[Any]) -> tuple[Numbers, ...]:
    return tuple(_numbers(g) for g in grads if g is not None)


def _memory_of(a: Array) -> tuple[Any, ...]:
    """Return where in memory the numbers of an array lie."""
    return a.__array_interface__["data"][0], a.strides, a.shape
