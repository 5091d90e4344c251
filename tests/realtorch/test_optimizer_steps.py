"""The rule of an optimizer, evaluated line by line, gives what PyTorch's own step leaves."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.script.pages.steps import altered_lines, equations, rules_lines
from tests.pytorch.optim.test_rules import OPTIMIZERS as OF_RULES

OPTIMIZERS = [
    *OF_RULES, ("AdamW", {"maximize": True}), ("RMSprop", {}), ("Adadelta", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("ASGD", {"lambd": 0.1, "weight_decay": 0.1}),
]  # fmt: skip


def steps_of(function):
    """Return the events of all steps of optimizers in a function."""
    from gradcli.realtorch.driver import Session

    steps = []
    session = Session(lambda *_: True, lambda *_: None, None, lambda step, site: steps.append((step.steps, site)))
    with session.running():
        function()
    return steps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_a_step_of_pytorch_is_what_the_rule_says(name, settings, dtype):
    import torch

    torch.manual_seed(0)
    w = torch.randn(3, 2, dtype=getattr(torch, dtype), requires_grad=True)
    v = torch.randn((), dtype=getattr(torch, dtype), requires_grad=True)
    optimizer = getattr(torch.optim, name)([w, v], lr=0.1, **settings)

    def train():
        for _ in range(9):
            optimizer.zero_grad()
            ((w - 0.3) ** 2 * v).sum().backward()
            optimizer.step()

    steps = steps_of(train)
    assert len(steps) == 9
    tolerance = {"float32": 2e-5, "float64": 2e-7}[dtype]  # NAdam keeps a product in float32
    for [step], site in steps:
        assert site.code == "optimizer.step()"
        assert [u.name for u in step.updates] == ["w", "v"]
        for update in step.updates:
            values = {name: float(np.ravel(numbers.whole)[0]) for name, numbers in update.before.items()}
            for equation in equations(step, update):
                line = equation.line
                if line.stays:
                    exact = _evaluated(line, values)
                    assert np.isclose(equation.result, exact, tolerance, tolerance), (line.name, equation.result, exact)
                values[line.name] = float(equation.result)
        assert rules_lines([step])[0].startswith("p ← ")


def _evaluated(line, values):
    from gradcli.engine.evaluate import at_point
    from gradcli.graph.graph import Graph
    from gradcli.graph.node import leaf

    read = [leaf() for _ in line.reads]
    node = line.formula.node(read)
    at = {name: np.array(values[name]) for name in line.reads}
    return at_point(Graph.of(dict(zip(line.reads, read, strict=True)), {"": node}), at, [node])[node]


CLIPPED = """\
import torch
w = torch.tensor({start}, requires_grad=True)
u = torch.tensor([2.], requires_grad=True)
opt = torch.optim.SGD([w, u], lr=0.1)
((w * w).sum() / 2{more}).backward()
{between}
opt.step()
"""
MANY = "[3., 4.] * 5000"


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("start", "more", "between", "told"),
    [
        ("[3., 4.]", "", "torch.nn.utils.clip_grad_norm_([w], 1.)", "w.grad was scaled by 0.2 before this step: [3, 4"),
        ("[3., 4.]", "", "torch.nn.utils.clip_grad_value_([w], 3.5)", "w.grad was changed before this step: [3, 4] →"),
        ("[3., 4.]", "", "w.grad = w.grad * 2", "w.grad was scaled by 2 before this step: [3, 4] → [6, 8]"),
        ("[3., 4.]", " + u[0]", "torch.nn.utils.clip_grad_norm_([w, u], 1.)", "w.grad and u.grad were scaled by 0.19"),
        (MANY, "", "torch.nn.utils.clip_grad_norm_([w], 35.35534)", "w.grad was scaled by 0.1 before this step"),
        (MANY, "", "torch.nn.utils.clip_grad_value_([w], 3.5)", "w.grad was changed before this step"),
        ("[3., 4.]", "", "torch.nn.utils.clip_grad_norm_([w], 9.)", ""),
        (MANY, "", "", ""),
        ("[3., 4.]", "", "(w * w).sum().backward()", ""),  # a backward with a page of its own
        ("[3., 4.]", "", "for k in range(2): w.sum().backward()", ""),  # the second of which is not explained
    ],
)
def test_gradients_that_are_clipped_are_told_before_the_step_that_takes_them(tmp_path, start, more, between, told):
    from gradcli.realtorch.driver import Session
    from gradcli.realtorch.sites import Lines

    path, known = tmp_path / "script.py", []
    path.write_text(CLIPPED.format(start=start, more=more, between=between))
    listen = lambda step, site: known.append(step.altered)  # noqa: E731
    session = Session(lambda _, times: times == 1, lambda *_: None, Lines(str(path)), listen)
    with session.running():
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "script"})
    (gradients,) = known
    line = "".join(altered_lines(gradients))
    assert line.startswith(told)
    assert bool(line) == bool(told)


def test_a_step_changes_nothing_for_the_program():
    import torch
    from torch.optim import optimizer as hooks

    def train():
        w = torch.nn.Parameter(torch.ones(5))
        optimizer = torch.optim.LBFGS([w])

        def closure():
            optimizer.zero_grad()
            loss = (w**2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        mine = type("Mine", (torch.optim.Adam,), {})([torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16))])
        mine.param_groups[0]["params"][0].grad = torch.ones(2, dtype=torch.bfloat16)
        mine.step()
        torch.optim.SGD([torch.nn.Parameter(torch.ones(0))]).step()
        return w.detach().clone(), mine.param_groups[0]["params"][0].detach().clone()

    expected, results = train(), []
    steps = steps_of(lambda: results.extend(train()))
    assert all(map(torch.equal, results, expected))
    (lbfgs,), (adam,), nothing = (events for events, _ in steps)
    assert not nothing
    assert rules_lines([lbfgs])[0].startswith("w ← w + t*d, ")
    assert [u.name for u in adam.updates] == ["p"]
    assert not hooks._global_optimizer_pre_hooks
    assert not hooks._global_optimizer_post_hooks
