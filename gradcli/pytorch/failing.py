"""Writes the record of a script that an error has ended, or of the line that it stands at: what its tensors came from.

Nothing was listened to before the error: what the live tensors refer to is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradcli.pytorch.backward import Call
from gradcli.pytorch.messages import Facts, facts_of
from gradcli.pytorch.origins import HOOKED
from gradcli.pytorch.record import Line, Recorder, Step, edge_of
from gradcli.pytorch.recording import Named, Names, Tape, _Writer
from gradcli.pytorch.tensor import Tensor, new
from gradcli.record import record as records
from gradcli.record.numbers import Numbers
from gradcli.record.record import NOWHERE, CallSite, Record

_MOST = 20_000  # operations of which all are written: of more, those of the error alone


class Ended(NamedTuple):
    """A record, which quantity of it each tensor with a name is, by its identity, and the facts of an error.

    Facts are numbers, texts, and ids of the record.
    """

    record: Record
    quantities: Mapping[int, int]
    facts: tuple[Any, ...] = ()


class Holding(Named, Protocol):
    """Names, with all that they are of."""

    def held(self) -> Sequence[Any]:
        """Return what has a name, also one that something else has where the program runs."""


def ended(error: BaseException | None, names: Holding) -> Ended:
    """Return what is known of the named tensors and of an error."""
    facts = (None if error is None else facts_of(error)) or Facts("")
    call = next((x for x in facts.about if isinstance(x, Call)), None)
    steps = [x for x in facts.about if isinstance(x, Step)]
    about = [x for e in facts.about for x in (e if isinstance(e, list | tuple) else [e])]
    live = [x for x in (*names.held(), *about) if isinstance(x, Tensor)]
    roots = [] if call is not None else [*_roots(live), *map(_leading, steps)]
    tape = Tape(call or Call(roots), names)
    if len(tape.steps) > _MOST and call is None:
        tape = Tape(Call([*map(_leading, steps)]), Names({}))
    writer = _EndWriter(tape, call)
    writer.record()
    tape.live |= {id(x): writer.tensor(x, writer.now(x)) for x in live if id(x) not in tape.live}
    plain = tuple(writer.facts(facts))
    return Ended(writer.recorder.record(), tape.live, plain)


def _roots(tensors: Any) -> list[tuple[Tensor, Tensor]]:
    """Return tensors, each with a v, but for views that a change in place has left behind."""
    result = []
    for x in tensors:
        with suppress(RuntimeError):
            if x.requires_grad:
                edge_of(x)
                result.append((x, x))
    return result


def _leading(step: Step) -> tuple[Tensor, Tensor]:
    """Return a tensor that a step made, and a v."""
    y = new(np.zeros((*step.shape, 1), np.float32))
    y._fn = step
    return y, y


class _EndWriter(_Writer):
    """Writes such a record: its backwards are those that have reached the leaves."""

    def __init__(self, tape: Tape, call: Call | None) -> None:
        super().__init__(tape)
        self.failed = call  # the call of backward that has failed, which is written as far as it came

    def backward(self) -> None:
        """Write which backwards have reached which leaves and operations, the last one last."""
        if self.failed is not None:
            super().backward()
            return
        lines: dict[int, tuple[Line, list[Tensor]]] = {}
        for x, _ in self.tape.named.values():
            if x._reached is not None:
                lines.setdefault(id(x._reached), (x._reached, []))[1].append(x)
        last = Recorder.swept
        if last is not None:
            lines[id(last)] = lines.pop(id(last), (last, []))
        for line, leaves in lines.values():
            new = self.recorder.begin_backward((), (), site=self.sites.of(line))
            reached = {(o, k) for s, o in self.tape.operations.items() if s.reached for k in range(s.count)}
            received = dict.fromkeys(reached if line is last else (), Numbers(None, (), "float32"))
            contributions = [self._added(x) for x in leaves]
            self.recorder.end_backward(new, received, {}, leaves=contributions)

    def _added(self, x: Tensor) -> records.Contribution:
        unknown = Numbers(None, tuple(x.shape), x._a.dtype.name)
        return records.Contribution(self.tensor(x, self.now(x)), None, unknown, unknown)

    # The facts of an error

    def facts(self, facts: Facts) -> Sequence[Any]:
        """Return the facts of an error as plain data."""
        match facts.key:
            case "freed graph":
                (step,) = facts.about
                return self.tape.operations[step], self.site(step.freed)
            case "changed in place":
                return self._changed(*facts.about)
            case "nan in a backward":
                return (self.tape.operations[facts.about[1]],)
            case "unused input":
                x, roots = facts.about
                base = None if x._base is None else self.plain(x._base)
                return self.plain(x), tuple(map(self.plain, roots)), base
            case "view of no_grad changed in place" | "view of a function changed in place":
                return self._view(*facts.about)
            case "one of several views changed in place":
                return self._view(*facts.about)

        return [*map(self.plain, facts.about)] or facts.values

    def site(self, line: Any) -> CallSite:
        """Return the place of a line."""
        return self.sites.of(line) if isinstance(line, Line) else NOWHERE

    def plain(self, x: Any) -> Any:
        """Return a tensor as its quantity, an array as the numbers in it, and a dtype as its name."""
        if isinstance(x, Tensor):
            return self.tensor(x, self.now(x))
        if isinstance(x, list | tuple):
            return tuple(map(self.plain, x))
        if isinstance(x, np.ndarray):
            return tuple(np.unique(x).tolist())
        return x if isinstance(x, bool | int | float | str | None) else str(x)

    def _changed(self, step: Step, memory: Any, version: int) -> Sequence[Any]:
        """Return the operation, the name of what was changed, whether it is a result, the versions, and the changes."""
        kept = [tensor for known, _, _, tensor, _ in step.checks if known is memory]
        named = [n for n, x in self.names.tensors.items() if x._memory is memory]
        named += [n for x in kept if x is not None and (n := self.names.of(x) or x._label)]
        last, how = memory.storage.changed or (None, "")
        lines = [n for n, since in memory.lines.items() if since > version]
        return (
            self.tape.operations[step],
            next(iter(named), next((n for n, x in self.names.tensors.items() if x._fn is step), "")),
            any(tensor is None for tensor in kept),
            (memory.version, version),
            None if last is None else self.site(last),
            how,
            tuple(map(self.site, lines)),
        )

    def _view(self, view: Tensor, since: bool) -> Sequence[Any]:
        """Return the view, how it arose, whether a hook made it, and, if it was changed before, where and by what."""
        origin: Any = view._origin
        last, how = view._memory.storage.changed or (None, "")
        is_hooked = origin.name == HOOKED and not origin.is_inner
        changed = None if not since else NOWHERE if last is None else self.site(last)
        return self.plain(view), origin.maker.value, origin.name, is_hooked, changed, how
