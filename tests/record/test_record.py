"""The record: plain data that pickles, compares equal, and whose invariants are seen to be broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradcli.graph.construct import index
from gradcli.graph.node import leaf
from gradcli.record.definition import Definition
from gradcli.record.numbers import Numbers
from gradcli.record.record import CallSite, Contribution, Cut, Hook, Recorder
from tests.record.conformance import check_record


def n(*values: float) -> Numbers:
    return Numbers.of(np.array(values))


def squares(hooked: bool = False):
    """A record of y = x*x, z = y*x at x = [1, 2], whose backward sends x three gradients."""
    recorder = Recorder()
    x = recorder.quantity(n(1, 2), "leaf", requires=True, names=["x"])
    y = recorder.quantity(n(1, 4), "result", requires=True, names=["y"])
    first = recorder.operation("mul", (), (x, x), (y,), site=CallSite("f.py", 2))
    z = recorder.quantity(n(1, 8), "result", requires=True, names=["z"])
    second = recorder.operation("mul", (), (y, x), (z,), site=CallSite("f.py", 3))
    recorder.event(Cut(kind="detached", code=".detach()", source=z))
    b = recorder.begin_backward((z,), (n(1, 1),), site=CallSite("f.py", 4))
    adjoint, passed = n(1, 2), n(10, 20) if hooked else n(1, 2)
    sent = {(second, 0): adjoint, (second, 1): n(1, 4)}
    inner = passed.whole * np.array([1, 2])
    sent |= {(first, 0): Numbers.of(inner), (first, 1): Numbers.of(inner)}
    hooks = [Hook(y, "double", adjoint, passed)] * hooked
    added = Numbers.of(2 * inner + np.array([1, 4]))
    recorder.end_backward(
        b, {(second, 0): n(1, 1), (first, 0): passed}, sent, hooks, [Contribution(x, None, added, added)]
    )
    return recorder.record()


@pytest.mark.parametrize("hooked", [False, True])
def test_a_record_of_a_backward_has_the_invariants(hooked):
    record = squares(hooked)
    check_record(record)
    assert record == squares(hooked) != squares(not hooked)
    assert {q: o.id for q, o in record.producers.items()} == {1: 0, 2: 1}


def test_a_definition_is_plain_data_that_makes_a_node():
    x, y = leaf((2,)), leaf((2,))
    recorder = Recorder()
    q = [recorder.quantity(n(1, 2), "leaf", requires=True) for _ in "xy"]
    result = recorder.quantity(Numbers.of(np.array(3.0)), "result", requires=True)
    definition = Definition.of([x, y], index(x * x + y, (0,)))
    recorder.operation("f", (), q, (result,), definitions=[definition])
    record = recorder.record()
    check_record(record)
    assert record.operations[0].definitions == (Definition.of([y, x], index(y * y + x, (0,))),)
    node = definition.node([x, y])
    assert node.op == "index"
    assert node.args[0].args[0].args == (x, x)
    wrong = replace(record.operations[0], operands=(q[0],))
    with pytest.raises(AssertionError):
        check_record(replace(record, operations=(wrong,)))


def _wrong(record, **changes):
    (b,) = record.backwards
    return replace(record, backwards=(replace(b, **{k: f(b) for k, f in changes.items()}),))


WRONG = {
    "sent": lambda r: _wrong(r, sent=lambda b: {**b.sent, (0, 0): n(1, 5)}),
    "received": lambda r: _wrong(r, received=lambda b: {**b.received, (0, 0): n(1, 2)}),
    "hook": lambda r: _wrong(r, hooks=lambda b: [replace(b.hooks[0], before=n(7, 7))]),
    "added": lambda r: _wrong(r, leaves=lambda b: (replace(b.leaves[0], added=n(0, 0)),)),
    "after": lambda r: _wrong(r, leaves=lambda b: (replace(b.leaves[0], after=n(0, 0)),)),
    "constant": lambda r: _wrong(r, sent=lambda b: {**b.sent, (0, 1): None}),
    "clock": lambda r: replace(r, operations=tuple(replace(o, clock=1) for o in r.operations)),
    "ids": lambda r: replace(r, operations=r.operations[::-1]),
    "order": lambda r: replace(r, operations=(r.operations[1], r.operations[0])),
    "two producers": lambda r: replace(r, operations=(r.operations[0], replace(r.operations[1], results=(1,)))),
    "unknown operand": lambda r: replace(r, operations=(replace(r.operations[0], operands=(9, 9)), r.operations[1])),
    "a callable": lambda r: replace(r, operations=(replace(r.operations[0], settings=(print,)), r.operations[1])),
    "a shape": lambda r: replace(r, quantities=(replace(r.quantities[0], shape=(3,)), *r.quantities[1:])),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_broken_invariant_is_seen(what):
    with pytest.raises((AssertionError, AttributeError)):
        check_record(WRONG[what](squares(hooked=True)))


def test_numbers_say_what_is_known_of_them():
    a = np.array([3.0, np.nan, np.inf])
    assert Numbers.of(a) == Numbers.of(a.copy())
    assert [Numbers.of(x).is_finite for x in (a, a[:1], np.arange(3))] == [False, True, True]
    assert [Numbers.of(x).is_zero for x in (a, np.zeros(2), np.zeros(0))] == [False, True, False]
    assert Numbers(None, (3,), "float64").is_finite
    assert Numbers.of(np.arange(3)) != Numbers.of(np.arange(3.0))
