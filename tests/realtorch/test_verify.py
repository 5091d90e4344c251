"""The formulas of gradcli's table give the numbers, and the gradients, of PyTorch."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.record.numbers import Numbers
from gradcli.report.render import Look, render_pages
from gradcli.script.under_pytorch.page import page_of
from gradcli.script.under_pytorch.verify import verified, verify
from tests.realtorch.runs import SAMPLES, records_of, run_script

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("what", ["result", "sent"])
def test_a_wrong_formula_is_left_out(what):
    (record,) = run_script(next(p for p in SAMPLES if p.stem == "cube"), True).records
    (backward,) = record.backwards
    o = record.operations[0]
    if what == "result":
        (step, *rest) = o.definitions[0].steps
        other = replace(o, definitions=(replace(o.definitions[0], steps=(step._replace(op="add"), *rest)),))
        record = replace(record, operations=(other, *record.operations[1:]))
    else:
        key, g = next((k, g) for k, g in backward.sent.items() if k[0] == o.id)
        backward = replace(backward, sent={**backward.sent, key: Numbers.of(g.whole + 1)})
    without, wrong = verified(record, backward)
    assert [each.id for each in wrong] == [o.id]
    assert without.operations[0].is_opaque
    assert not without.operations[1].is_opaque


def test_a_change_through_data_is_no_fault_of_a_formula(tmp_path):
    text = (
        "import torch\n"
        "x = torch.tensor([1., 2.], requires_grad=True)\n"
        "y = x.exp() * x.sin()\n"
        "x.data.mul_(3)\n"
        "y.sum().backward()\n"
    )
    (record,) = records_of(tmp_path, text)
    page = render_pages([page_of(record)], Look())
    assert "gradcli's formula of `sin` gives what line 3 computed, and not what its" in page
    assert "in place in between, through .data" in page
    assert "own Function" not in page
    assert "a fault of gradcli's" not in page


def test_a_hook_of_a_module_that_changes_nothing_is_no_operation(tmp_path):
    text = (
        "import torch\n"
        "m = torch.nn.Linear(2, 1)\n"
        "m.register_full_backward_hook(lambda *_: None)\n"
        "m(torch.ones(1, 2, requires_grad=True)).sum().backward()\n"
    )
    (record,) = records_of(tmp_path, text)
    page = render_pages([page_of(record)], Look())
    assert "BackwardHookFunction" not in page
    assert "m = linear(x, m.weight, bias=m.bias)" in page


def test_what_a_hook_changes_in_place_is_no_fault_of_a_formula(tmp_path):
    text = (
        "import torch\n"
        "x = torch.tensor([1., 2.], requires_grad=True)\n"
        "def halve(g):\n"
        "    g *= 0.5\n"
        "x.register_hook(halve)\n"
        "(2 * x).sum().backward()\n"
    )
    (record,) = records_of(tmp_path, text)
    (hook,) = record.backwards[0].hooks
    assert (hook.name, hook.before.whole.tolist(), hook.after.whole.tolist()) == ("halve", [2, 2], [1, 1])
    assert "formula of" not in render_pages([page_of(record)], Look())


def test_a_leaf_has_the_numbers_that_its_data_has_now(tmp_path):
    text = (
        "import torch\n"
        "m = torch.nn.Linear(2, 1)\n"
        "m(torch.ones(2)).sum().backward()\n"
        "m.weight.data.fill_(3.)\n"
        "m(torch.ones(2)).sum().backward()\n"
    )
    _, record = records_of(tmp_path, text)
    weight = next(q for q in record.quantities if q.name == "m.weight")
    assert weight.numbers.whole.tolist() == [[3, 3]]
    assert "formula of" not in render_pages([page_of(record)], Look())


def test_a_weight_that_the_backward_of_a_gradient_transposes_too(tmp_path):
    text = (
        "import torch\n"
        "w = torch.tensor([[1., 2.], [3., 4.], [5., 6.]], requires_grad=True)\n"
        "x = torch.tensor([[0.5, -1.]], requires_grad=True)\n"
        "y = torch.nn.functional.linear(x, w, torch.zeros(3, requires_grad=True)).sin()\n"
        "g, = torch.autograd.grad(y.sum(), x, create_graph=True)\n"
        "g.norm().backward()\n"
    )
    record = records_of(tmp_path, text)[-1]
    linear = next(o for o in record.operations if o.row == "linear")
    assert not linear.is_opaque
    assert verify(record, record.backwards[0], linear)
    page = render_pages([page_of(record)], Look())
    assert "linear(x, w, bias=" in page
    assert ".T.T" not in page


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("backward", "told"),
    [
        (
            "scaler.scale(loss).backward()",
            "what is added to each .grad is 8 times as large, until `unscale_` or `step`",
        ),
        ("torch.autograd.grad(scaler.scale([loss]), w)", "the returned gradients are 8 times as large, and the scaler"),
        ("(scaler.scale(loss) + loss).backward()", ""),
        ("loss.backward()", ""),
        ("torch.amp.GradScaler('cpu', enabled=False).scale(loss).backward()", ""),
        ("torch.amp.GradScaler('cpu', init_scale=1.).scale(loss).backward()", ""),
    ],
)
def test_a_loss_that_a_scaler_has_multiplied_says_so(tmp_path, backward, told):
    import torch

    scale = torch.amp.GradScaler.scale
    text = (
        "import torch\n"
        "w = torch.tensor([1., 2.], requires_grad=True)\n"
        "scaler = torch.amp.GradScaler('cpu', init_scale=8.)\n"
        "loss = (w * w).sum()\n"
        f"{backward}\n"
    )
    (record,) = records_of(tmp_path, text)
    page = " ".join(render_pages([page_of(record)], Look()).split())
    assert told in page
    assert ("note: `GradScaler.scale` multiplied the loss by 8: " in page) == bool(told)
    assert torch.amp.GradScaler.scale is scale


def test_a_view_that_was_changed_in_place_is_no_leaf_with_a_gradient_of_0(tmp_path):
    path = tmp_path / "view.py"
    path.write_text(
        "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\ny = x * 2\ny[0] += x[1]\ny.sum().backward()\n"
    )
    (record,) = run_script(path, True).records
    text = render_pages([page_of(record)], Look())
    assert "y[0].grad" not in text
    assert "x.grad: None → [2, 3]" in text
