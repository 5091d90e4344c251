"""Once each line has its page, a program runs with PyTorch's own functions."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.realtorch.sites import Lines
from tests.realtorch.runs import run_script

SCRIPT = """\
import torch
from torch.autograd import grad


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, v):
        with torch.enable_grad():
            x = torch.ones(1, requires_grad=True)
            torch.autograd.backward(2 * x)
        return v * x.grad


x = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
for step in range(30):
    loss = (Twice.apply(x) ** 2).sum()
    loss.backward()
    optimizer.step()
if step:
    (x * 3).sum().backward()
grad((x**2).sum(), x)
"""


def functions():
    """Return what PyTorch has where the recording puts functions of its own."""
    import torch

    return [torch.Tensor.backward, vars(torch.autograd.Function)["apply"], torch.compile], [
        torch.autograd.backward,
        torch.autograd.grad,
    ]


def session_of(path, only=(), round=0):
    from gradcli.realtorch.driver import Session

    sites = []
    wants = lambda site, times: (not only or site.line in only) and times in (1, round)  # noqa: E731
    session = Session(wants, lambda _, site, is_recorded: sites.append((site.line, is_recorded)), Lines(str(path)))
    return session, sites


def test_pytorch_has_its_own_functions_again(tmp_path):
    import torch
    from torch.overrides import _get_current_function_mode_stack

    path = tmp_path / "lines.py"
    own, passed = functions()
    session, _ = session_of(path)
    with session.running():
        assert functions()[0] != own
        assert _get_current_function_mode_stack()
        session._end_if_on_top()
        assert functions()[0] == own
        assert not _get_current_function_mode_stack()
        assert functions()[1] != passed
        torch.autograd.grad = mine = lambda *_: None  # the program's own function stays
    try:
        assert torch.autograd.grad is mine
        assert torch.autograd.backward is passed[0]
    finally:
        torch.autograd.grad = passed[1]


def test_lines_are_counted_and_explained_after_the_end(tmp_path):
    import torch

    path = tmp_path / "script.py"
    session, sites = session_of(path)
    source = compile(SCRIPT, str(path), "exec")
    own = torch.Tensor.backward
    with session.running():
        session._end_if_on_top()
        exec(source, {"__name__": "script"})
    assert torch.Tensor.backward is own
    assert sites == [(22, False), (25, False), (26, False)]
    assert {site.line: times for site, times in session.reached.items()} == {22: 30, 25: 1, 26: 1}


def test_a_round_after_the_end_is_explained(tmp_path):
    path = tmp_path / "script.py"
    session, sites = session_of(path, only=(22,), round=7)
    session.lines.round = 7
    with session.running():
        session._end_if_on_top()
        exec(compile(SCRIPT, str(path), "exec"), {"__name__": "script"})
    assert sites == [(22, False), (22, False)]
    assert session.reached.total() == 32


def test_a_script_prints_what_it_prints_where_the_recording_ends(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + "print(x, x.grad)\n")
    plain, ended = run_script(path, False), run_script(path, True, lines=True)
    assert (ended.out, ended.err, ended.status) == (plain.out, plain.err, plain.status)
    assert len(ended.records) >= 3


def test_backwards_and_steps_are_counted_until_the_session_rests(tmp_path):
    from torch.optim import optimizer as hooks

    from gradcli.realtorch.driver import Session

    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace("range(30)", "range(400)"))
    session = Session(lambda _, times: times == 1, lambda *_: None, Lines(str(path), {22}), lambda *_: None)
    with session.running():
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "script"})
        assert not hooks._global_optimizer_pre_hooks
    reached = {site.line: times for site, times in session.reached.items()}
    assert all(100 <= reached[line] < 150 for line in (22, 23)), reached
    assert {site.line for site in session.uncounted} == {22, 23}
