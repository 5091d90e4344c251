"""Each call of `backward` or `grad` in the scripts has a record with all invariants, which says what happened."""

from __future__ import annotations

import contextlib
import io
import warnings

import pytest
from collection import scripts

from gradcli.pytorch import session
from gradcli.pytorch.record import Listener
from gradcli.pytorch.recording import Tape
from gradcli.record.naming import names_of, script_frames
from tests.conftest import some
from tests.record.conformance import check_record

FEW = 400  # operations of a record that is looked at


def records_of(source, name="script.py", folder=None):
    """Return the record of each call of a script."""
    tapes, result = {}, []

    class Records(Listener):
        def begins(self, call):
            call.explained = True
            tapes[id(call)] = Tape(call, names_of(next(f for f in script_frames() if f.f_code.co_filename == name)))

        def is_done(self, call):
            tape = tapes.pop(id(call))
            if len(tape.steps) < FEW and call.request is None:
                result.append((tape.record(), call))

    with Records().listening(), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.run(session.Script(source, name, folder))
    return result


@pytest.mark.parametrize("name", some(scripts()))
def test_the_record_of_each_call_of_a_script_has_the_invariants(name):
    for record, _ in records_of(scripts()[name]):
        check_record(record)


START = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n"


def record_of(source):
    ((record, _),) = records_of(START + source)
    check_record(record)
    return record


def value(record, name):
    (quantity,) = [q for q in record.quantities if q.name == name]
    return quantity.numbers.whole.tolist()


def test_numbers_are_those_of_the_moment():
    record = record_of("b = torch.ones(2)\ny = x*2 + b\nb += 5\nz = (y*b).sum()\nz.backward()\n")
    (product,) = [o for o in record.operations if o.row == "add"]
    old = record.quantities[product.operands[1]]
    new = [q for q in record.quantities if q.name == "b"][-1]
    assert (old.name, old.changed, new.changed) == ("b", True, False)
    assert (old.numbers.whole.tolist(), new.numbers.whole.tolist(), value(record, "y")) == ([1, 1], [6, 6], [3, 5])
    assert (old.storage, old.version, new.version) == (new.storage, 0, 1)
    assert (product.site.line, product.site.span, product.site.code) == (4, (4, 4, 4, 11), "y = x*2 + b")
    assert product.grad_fn == "AddBackward0"


def test_what_no_step_has_written_stands_between():
    record = record_of("y = x*2\ny.data[0] = 100\nz = (y**2).sum()\nz.backward()\n")
    (written,) = [o for o in record.operations if o.row == "written"]
    assert written.site.code == "y.data[0] = 100"
    before, after = (record.quantities[q].numbers.whole.tolist() for q in (*written.operands, *written.results))
    assert (before, after) == ([2, 4], [100, 4])
    (backward,) = record.backwards
    assert backward.sent[written.id, 0].whole.tolist() == [200, 8]


def test_hooks_have_the_gradient_before_and_after():
    record = record_of("y = x*3\ny.register_hook(lambda g: g*10)\n(y**2).sum().backward()\n")
    (backward,) = record.backwards
    (hook,) = backward.hooks
    assert (hook.before.whole.tolist(), hook.after.whole.tolist()) == ([6, 12], [60, 120])
    assert record.quantities[hook.quantity].name == "y"
    assert [c.after.whole.tolist() for c in backward.leaves] == [[180, 360]]
