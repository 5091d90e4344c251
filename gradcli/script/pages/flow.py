"""The flow of gradients: a line a parameter, from the record, with the reason where a gradient is None, 0 or nan."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import groupby, takewhile
from typing import Any

from gradcli.pages.sections import Grid, Math, Section, Text
from gradcli.record.numbers import Numbers, Summary, size_text
from gradcli.record.record import Backward, Contribution, Cut, Operation, Quantity, Record

MANY = 12  # leaves: of more, each page has the section
_BARS = 8  # letters of the longest bar
_CUTS = {
    "detached": "cut off by detach()",
    "unrecorded": "used under no_grad()",
    "discrete": "only integers were computed of it",
    "indices": "only integers were computed of it",
    **dict.fromkeys(("number", "list", "array", "copied"), "its numbers were copied"),
    "not_read": "the loss does not depend on its result",
}
_SHORTEST = 3  # equal parameters that are one line
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # in the path of a module


@dataclass(frozen=True)
class Flow:
    """A parameter: |value|, |grad| of this call (None without one), and why that is None, 0 or not finite."""

    name: str
    shape: tuple[int, ...]
    value_norm: float | None
    grad_norm: float | None
    why: str = ""

    @property
    def size(self) -> float | None:
        """|grad| over the root of how many numbers there are; None where it has no logarithm."""
        if self.grad_norm is None or not 0 < self.grad_norm < math.inf:
            return None
        return self.grad_norm / math.sqrt(math.prod(self.shape) or 1)


def flow(record: Record, backward: Backward) -> list[Flow]:
    """Return the parameters in the order of the forward pass, and behind them those that it did not use."""
    reasons = _Reasons(record, backward)
    added = {c.quantity: c for c in backward.leaves}
    order = {q: (o.clock, k) for o in record.operations[::-1] for k, q in enumerate(o.operands) if isinstance(q, int)}
    produced = record.producers
    leaves = [
        q for q in record.quantities if q.id not in produced and (q.requires or q.why_not == "frozen" or q.id in added)
    ]
    latest = {q.name or str(q.id): q for q in leaves}
    rows = sorted(latest.values(), key=lambda q: order.get(q.id, (math.inf, q.id)))
    return [_row(q, added.get(q.id), reasons) for q in rows]


def _row(q: Quantity, c: Contribution | None, reasons: _Reasons) -> Flow:
    value = q.numbers.norm
    if c is None:
        return Flow(q.name, q.shape, value, None, reasons.of_none(q))
    if c.added.not_finite:
        return Flow(q.name, q.shape, value, float(c.added.not_finite), reasons.of_not_finite())
    grad = c.added.norm
    return Flow(q.name, q.shape, value, grad, "" if grad else reasons.of_zero(q))


@dataclass
class _Reasons:
    """The reasons for gradients that are None, 0 or not finite, as the record has them."""

    record: Record
    backward: Backward
    readers: dict[int, list[tuple[Operation, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for o in self.record.operations:
            for i, q in enumerate(o.operands):
                if isinstance(q, int):
                    self.readers.setdefault(q, []).append((o, i))

    def of_none(self, q: Quantity) -> str:
        """Return why a parameter got no gradient."""
        if not q.requires:
            return f"frozen in line {q.site.line}" if q.site.line else "frozen: requires_grad is False"
        for event in self.record.events:
            if isinstance(event, Cut) and (event.source == q.id or q.id in event.leaves):
                where = f" in line {event.site.line}" if event.site.line else ""
                return f"{_CUTS.get(event.kind.lower(), event.kind)}{where}"
        if self.backward.inputs is not None and q.id not in self.backward.inputs:
            return "not among the inputs of this call"
        return "" if q.id in self.readers else "never used in this forward"

    def of_zero(self, q: Quantity) -> str:
        """Return why all of a gradient is 0: the first operation behind the parameter through which nothing comes."""
        seen: set[int] = set()
        waiting = [q.id]
        while waiting:
            for o, i in self.readers.get(waiting.pop(), ()):
                if o.id in seen:
                    continue
                seen.add(o.id)
                received = [self.backward.received.get((o.id, k)) for k in range(len(o.results))]
                sent = self.backward.sent.get((o.id, i))
                if any(g is not None and not g.is_zero for g in received) and (sent is None or sent.is_zero):
                    return self._dead(o, i)
                waiting += o.results
        return ""

    def _dead(self, o: Operation, i: int) -> str:
        at = o.operands[i]
        assert isinstance(at, int)
        x, where = self.record.quantities[at], f"line {o.site.line}"
        others = [q for k, q in enumerate(o.operands) if k != i and isinstance(q, int)]
        greatest = x.numbers.summary.greatest
        if o.row == "relu" and greatest is not None and greatest <= 0:
            rows = f" in all {x.shape[0]:,} rows" if x.shape else ""
            return f"dead: relu's input ({where}) is negative{rows}"
        zero = next((self.record.quantities[k] for k in others if self.record.quantities[k].numbers.is_zero), None)
        if zero is not None:
            return f"{o.row} ({where}) multiplies by {zero.name or 'numbers'} that are 0"
        return f"{o.row} ({where}) has slope 0 here"

    def of_not_finite(self) -> str:
        """Return the operation in which numbers that are not finite arose, in the forward pass or the backward."""
        record, backward = self.record, self.backward
        for o in record.operations:
            results = [record.quantities[q].numbers for q in o.results]
            operands = [record.quantities[q].numbers if isinstance(q, int) else q for q in o.operands]
            if not all(n.is_finite for n in results) and all(n.is_finite for n in operands):
                return f"{_kind(results)} arises in {o.row} (line {o.site.line}){_extremes(operands)}"
        for o in record.operations[::-1]:
            received = [g for k in range(len(o.results)) if (g := backward.received.get((o.id, k))) is not None]
            sent = [g for i in range(len(o.operands)) if (g := backward.sent.get((o.id, i))) is not None]
            if received and all(n.is_finite for n in received) and not all(n.is_finite for n in sent):
                operands = [record.quantities[q].numbers if isinstance(q, int) else q for q in o.operands]
                return f"{_kind(sent)} arises in the backward of {o.row} (line {o.site.line}){_extremes(operands)}"
        return "v is not finite" if not all(n.is_finite for n in backward.v) else ""


def _kind(numbers: Sequence[Numbers]) -> str:
    return "nan" if any(n.not_finite == "nan" for n in numbers) else "infinity"


def _extremes(operands: Sequence[Numbers]) -> str:
    """Return the least and the greatest number of the first operand: of x from -3 to 0."""
    _, least, greatest, *_ = operands[0].summary if operands else Summary()
    if least is None or greatest is None or isinstance(least, bool):
        return ""
    several = math.prod(operands[0].shape) > 1
    return f": its operand is from {least:.3g} to {greatest:.3g}" if several else f": its operand is {least:.3g}"


# The section


def flow_section(record: Record, backward: Backward) -> Section:
    """Return the flow as a table; modules of the same parameters, one behind the other, are folded."""
    rows = flow(record, backward)
    sizes = [math.log10(s) for row in rows if (s := row.size) is not None]
    least, most = min(sizes, default=0.0), max(sizes, default=0.0)
    head: tuple[Math, ...] = ("parameter", "shape", "|value|", "|grad|", "")
    count = len([row for row in rows if row.grad_norm is not None])
    few = "1 parameter" if len(rows) == 1 else f"{len(rows):,} parameters"
    above = f"{few} in the order of the forward pass, {count:,} with a gradient of this call"
    scale = "; the bar is log10 of |grad|/√n over the range of the call" * (len(sizes) > 1)
    return Section(
        "flow", (Text((above + scale,)), Grid(head, tuple(_cells(rows, partial(_bar, least=least, most=most)))))
    )


def _cells(rows: Sequence[Flow], bar: Callable[[float | None], str]) -> Iterator[tuple[Math, ...]]:
    k = 0
    while k < len(rows):
        length, count = _repeated_modules(rows, k)
        same = _count_without_gradient(rows, k)
        if count >= _SHORTEST and length * count >= same:
            yield from _rows_of_repeated(rows[k : k + length * count], length, count, bar)
            k += length * count
        elif same >= _SHORTEST:
            module = _common([row.name for row in rows[k : k + same]])
            yield module, f"{same} arrays", "", "None", rows[k].why
            k += same
        else:
            row = rows[k]
            yield row.name, size_text(row.shape), _text(row.value_norm), _text(row.grad_norm), bar(row.size) or row.why
            k += 1


def _count_without_gradient(rows: Sequence[Flow], start: int) -> int:
    """Return how many parameters from `start` on, of one module, have no gradient for the same reason."""
    first = rows[start]

    def is_alike(row: Flow) -> bool:
        return row.grad_norm is None and row.why == first.why and bool(_common([first.name, row.name]))

    return sum(1 for _ in takewhile(is_alike, rows[start:]))


def _common(names: Sequence[str]) -> str:
    """Return the module that parameters are of, with dots for the rest: encoder.…; "" where there is none."""
    parts = [name.split(".") for name in names]
    shared = [each[0] for each in zip(*parts, strict=False) if len(set(each)) == 1]
    prefix = ".".join(shared[: min(map(len, parts)) - 1])
    return f"{prefix}.…" if prefix else ""


def _split(name: str) -> tuple[str, str, str]:
    """Return what is before the first number in a parameter's path, that number, and the rest.

    >>> _split("net.3.weight"), _split("w2")
    (('net.', '3', '.weight'), ('w2', '', ''))
    """
    match = _NUMBER.search(name)
    return (name[: match.start()], match[0], name[match.end() :]) if match else (name, "", "")


def _repeated_modules(rows: Sequence[Flow], start: int) -> tuple[int, int]:
    """Return how many parameters from `start` on are a module, and how often it is repeated with the same shapes."""
    modules = (
        (head, [(_split(row.name)[2], row.shape, row.why) for row in part])
        for (head, _), part in groupby(rows[start:], lambda row: _split(row.name)[:2])
    )
    first = next(modules)
    return len(first[1]), 1 + sum(1 for _ in takewhile(first.__eq__, modules))


def _rows_of_repeated(
    rows: Sequence[Flow], length: int, count: int, bar: Callable[[float | None], str]
) -> Iterator[tuple[Math, ...]]:
    """Yield the rows of equal modules: their first and last gradients, and the least and the largest one."""
    (head, first, _), (_, last, _) = _split(rows[0].name), _split(rows[-length].name)
    name = f"{head}{first} … {last}"
    known = [row for row in rows if row.size is not None]
    if not known:
        yield name, f"{count} × the same", "", _text(rows[0].grad_norm), rows[0].why
        return
    least, most = min(known, key=lambda r: r.size or 0), max(known, key=lambda r: r.size or 0)
    grads = f"{_text(known[0].grad_norm)} … {_text(known[-1].grad_norm)}"
    yield name, f"{count} × the same", "", grads, ""
    for word, row in (("least", least), ("largest", most)):
        yield f"  {word}: {row.name}", size_text(row.shape), _text(row.value_norm), _text(row.grad_norm), bar(row.size)


def _bar(size: float | None, least: float, most: float) -> str:
    if size is None:
        return ""
    share = 1.0 if most == least else (math.log10(size) - least) / (most - least)
    full = 1 + round(share * (_BARS - 1))
    return "▇" * full + "▁" * (_BARS - full)


def _text(norm: float | None) -> str:
    return "None" if norm is None else f"{norm:.3g}"


def as_data(rows: Sequence[Flow]) -> list[dict[str, Any]]:
    """Return the flow for JSON."""
    return [asdict(row) for row in rows]
