"""What is known of the tensors of a script that has stopped, or stands at a line: the record, read by its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradcli.record.record import CallSite, Cut, Operation, Quantity, Record
from gradcli.text.wrapping import in_words


class Line(int):
    """The number of a line, with its file."""

    file = ""


def line_of(file: str, number: int) -> Line:
    """Return the number of a line with its file."""
    line = Line(number)
    line.file = file
    return line


def line_at(site: CallSite) -> Line:
    """Return the number of the line of a place, with its file."""
    return line_of(site.file, site.line)


def is_unknown(operation: Operation) -> bool:
    """Return whether an operation is PyTorch's, and has no formula."""
    return operation.is_opaque and operation.settings[:1] == ("torch",)


def is_custom(operation: Operation) -> bool:
    """Return whether an operation is a call of the script's own Function."""
    return operation.is_opaque and not is_unknown(operation) and operation.row != "written"


@dataclass(frozen=True)
class CutLine:
    """A line that detaches the numbers of tensors, and how it does."""

    hows: Sequence[Cut]

    @property
    def line(self) -> Line:
        """The line, with its file."""
        return line_at(self.hows[0].site)

    @property
    def how(self) -> str:
        """The sentence about it."""
        return in_words([c.how for c in self.hows])

    @property
    def kinds(self) -> set[str]:
        """The kinds of its cuts."""
        return {c.kind for c in self.hows}

    def leads_to(self, quantity: int | None) -> bool:
        """Return whether the numbers depend on a leaf, or on an intermediate that retains its gradient."""
        return any(quantity in c.leaves for c in self.hows)


@dataclass
class Known:
    """A record, and which quantity of it each live tensor is, by its identity.

    `key` is that of an error among PyTorch's messages, with its `facts`: numbers, texts, and ids of the record.
    """

    record: Record = field(default_factory=Record)
    quantities: Mapping[int, int] = field(default_factory=dict)
    key: str = ""
    facts: tuple[Any, ...] = field(default_factory=tuple)
    is_live: bool = False  # whether the facts are those of a message alone, and the rest is to be looked up
    is_partial: bool = False  # whether the recording had ended before

    def id_of(self, x: Any) -> int | None:
        """Return the id of the quantity of a tensor; None of another object."""
        return self.quantities.get(id(x))

    def of(self, x: Any) -> Quantity | None:
        """Return the quantity of a tensor; None of another object."""
        q = self.id_of(x)
        return None if q is None else self.record.quantities[q]

    @cached_property
    def _cuts(self) -> Mapping[Any, CutLine]:
        """The cuts of each line, by its file and its number, and those of each quantity, by its id."""
        result: dict[Any, list[Cut]] = {}
        for e in self.record.events:
            if isinstance(e, Cut) and e.source is None:
                result.setdefault((e.site.file, e.site.line) if e.result is None else e.result, []).append(e)
        return {key: CutLine(hows) for key, hows in result.items()}

    @property
    def has_cuts(self) -> bool:
        """Whether anything is cut off."""
        return bool(self._cuts)

    def cut_at(self, file: str, line: int) -> CutLine | None:
        """Return what a line cuts off."""
        return self._cuts.get((file, int(line)))

    def cut_of(self, q: int | Quantity | None) -> CutLine | None:
        """Return where a quantity was cut off; None for one that was not."""
        return self._cuts.get(q.id if isinstance(q, Quantity) else q)

    @property
    def producers(self) -> Mapping[int, Operation]:
        """The operation of each quantity that is a result."""
        return self.record.producers

    def behind(self, roots: Sequence[int]) -> tuple[list[Operation], set[int]]:
        """Return the operations that lead to quantities, in their order, and all quantities that gradients flow to."""
        operations = self.record.behind(roots)
        read = {x for o in operations for x in o.operands if isinstance(x, int) and self.record.quantities[x].requires}
        return operations, {*roots, *read}

    def tensors_in(self, x: Any) -> list[int]:
        """Return the quantities of a tensor, or of those in a list or a dictionary."""
        if isinstance(x, list | tuple | dict):
            return [q for e in (x.values() if isinstance(x, dict) else x) for q in self.tensors_in(e)]
        return [self.quantities[id(x)]] if id(x) in self.quantities else []

    def leads(self, x: Any, to: Operation | int) -> bool:
        """Return whether a tensor, or one in a list or a dictionary, came from an operation, or from a quantity."""
        operations, quantities = self.behind(self.tensors_in(x))
        return to in quantities if isinstance(to, int) else any(o.id == to.id for o in operations)

    def is_computed(self, x: Any) -> bool:
        """Return whether an object is a tensor with a history, or holds one."""
        return any(q in self.producers and self.record.quantities[q].requires for q in self.tensors_in(x))
