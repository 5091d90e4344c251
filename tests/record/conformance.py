"""The invariants that every record has, whoever wrote it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from gradcli.record.numbers import Numbers
from gradcli.record.record import Record

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic, Decimal, Fraction, range)


def check_record(record: Record, rounding: float = 8.0) -> None:
    """Assert all invariants of a record; sums may differ by `rounding` units of the last digit a term."""
    for item in parts(record):
        assert type(item) in PLAIN or isinstance(item, PLAIN), f"{item!r} is not plain data"
    assert pickle.loads(pickle.dumps(record)) == record
    _check_order(record)
    _check_references(record)
    _check_gradients(record, rounding)


def parts(item: object) -> Iterator[object]:
    """Yield what is within data, down to what is no collection."""
    if type(item).__module__.startswith("gradcli.graph."):  # graphs, and settings of nodes
        return
    if is_dataclass(item):
        assert type(item).__module__.startswith("gradcli.record."), item
        for field in fields(item):
            yield from parts(getattr(item, field.name))
    elif isinstance(item, Mapping):
        for key, value in item.items():
            yield from parts(key)
            yield from parts(value)
    elif isinstance(item, tuple | list | frozenset):
        for part in item:
            yield from parts(part)
    else:
        yield item


def _check_order(record: Record) -> None:
    for items in (record.quantities, record.operations, record.backwards):
        assert [item.id for item in items] == list(range(len(items))), "ids are in the order of creation"
    for items in (record.operations, record.events, record.backwards):
        clocks = [item.clock for item in items]
        assert clocks == sorted(clocks), "items are in the order of the clock"
    clocks = [item.clock for items in (record.operations, record.events, record.backwards) for item in items]
    assert len({*clocks}) == len(clocks), "one clock orders operations, events and backwards"


def _check_references(record: Record) -> None:
    known = range(len(record.quantities))
    assert all(q.storage >= 0 and q.version >= 0 for q in record.quantities)
    assert all((q.why_not == "") or not q.requires for q in record.quantities), "what requires has no reason not to"
    for q in record.quantities:
        assert (q.numbers.shape, q.numbers.dtype) == (q.shape, q.dtype)
        assert [clock for clock, _ in q.names] == sorted(clock for clock, _ in q.names)
    results = [q for o in record.operations for q in o.results]
    assert len({*results}) == len(results), "a quantity is the result of one operation"
    for o in record.operations:
        read = [q for q in o.operands if isinstance(q, int)]
        assert all(q in known for q in (*read, *o.results))
        assert all(q < min(o.results) for q in read if o.results), "operands are there before results"
        assert not o.definitions or len(o.definitions) == len(o.results), "each result has a definition, or none has"
        for d, q in zip(o.definitions, o.results, strict=False):
            assert d.operands == len(o.operands), "a definition has the operands of the operation"
            shape = d.steps[d.result - d.operands].shape if d.result >= d.operands else None
            assert shape in (None, record.quantities[q].shape), "a definition has the shape of the result"


def _check_gradients(record: Record, rounding: float) -> None:
    producers = record.producers
    for b in record.backwards:
        terms: dict[int, list[Numbers]] = {}
        for root, v in zip(b.roots, b.v, strict=True):
            terms.setdefault(root, []).append(v)
        for (o, i), g in b.sent.items():
            q = record.operations[o].operands[i]
            assert isinstance(q, int), "a constant has no gradient"
            assert record.quantities[q].requires, "what is sent goes to what requires a gradient"
            terms.setdefault(q, []).append(g)
        adjoints = {q: _sum(record, q, gs, rounding) for q, gs in terms.items()}
        of_quantities = [h for h in b.hooks if h.operation is None]
        for h in of_quantities:
            if h.quantity in adjoints:
                adjoint, tolerance = adjoints[h.quantity]
                assert _close(h.before, adjoint, tolerance), f"the gradient before a hook of quantity {h.quantity}"
                adjoints[h.quantity] = _whole(h.after), tolerance
        for (o, k), g in b.received.items():
            q = record.operations[o].results[k]
            assert q in adjoints, f"quantity {q} received a gradient that nothing sent"
            assert _close(g, *adjoints[q]), f"quantity {q} received what was not sent"
        for c in b.leaves:
            if c.quantity in adjoints and c.quantity not in producers:
                assert _close(c.added, *adjoints[c.quantity]), f"what is added to .grad of quantity {c.quantity}"
        for c in (*b.leaves, *b.retained):
            if c.after is not None:
                before = 0 if c.before is None else _whole(c.before)
                size = np.abs(before) + np.abs(_whole(c.added))
                tolerance = rounding * _eps(c.after.dtype) * size
                assert _close(c.after, before + _whole(c.added), tolerance), "before + added = after"


def _whole(n: Numbers) -> np.ndarray:
    assert n.whole is not None, "gradients that are checked are whole"
    kind = complex if n.whole.dtype.kind == "c" else float
    return n.whole.astype(kind)


def _eps(dtype: str) -> float:
    return {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype, 2.0**-23)


def _sum(record: Record, q: int, terms: list[Numbers], rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of terms, and how far rounding may take it."""
    arrays = [_whole(t) for t in terms]
    assert all(a.shape == record.quantities[q].shape for a in arrays), f"gradients of quantity {q} have its shape"
    tolerance = rounding * len(arrays) * _eps(terms[0].dtype) * sum(map(np.abs, arrays))
    return sum(arrays[1:], arrays[0]), tolerance


def _close(n: Numbers, expected: np.ndarray, tolerance: np.ndarray) -> bool:
    a = _whole(n)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - expected) <= tolerance
    same = (a == expected) | (np.isnan(a) & np.isnan(expected))
    return a.shape == expected.shape and bool(np.all(near | same | ~np.isfinite(expected)))
