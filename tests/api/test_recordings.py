"""`gradcli.recording()` and `gradcli.explain` of a tensor: pages of a program's own backwards under PyTorch."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

import torch

import gradcli
from tests.record.conformance import check_record


def test_a_block_shows_the_page_of_its_backward(capsys):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with gradcli.recording() as recording:
        y = (x**2).sum()
        y.backward()
        y = (x**3).sum()
        y.backward()
    out = capsys.readouterr().out
    assert "x.grad = 2*x = [2, 4]" in out
    assert "x.grad: [2, 4] (left by line" in out
    assert ") + [3, 12] → [5, 16]" in " ".join(out.split())
    assert len(recording.pages) == 2
    for page in recording.pages:
        check_record(page.record)
        assert "<h4>" in page._repr_html_()
    assert x.grad.tolist() == [5, 16]


def test_pages_go_into_a_file_for_one_line(tmp_path, capsys):
    x = torch.tensor(3.0, requires_grad=True)
    here = inspect.currentframe().f_lineno
    with gradcli.recording(line=here + 3, output=str(tmp_path / "pages.md")) as recording:
        (x * 2).backward()
        (x * 5).backward()
    assert "x \\cdot 5" in (tmp_path / "pages.md").read_text("utf-8")
    assert len(recording.pages) == 1
    assert capsys.readouterr().out == ""


def test_a_tensor_is_explained_from_its_graph_alone():
    w = torch.tensor([0.5, 1.0], requires_grad=True)
    loss = (w.sin() * w).sum().exp()
    page = gradcli.explain(loss)
    assert w.grad is None
    check_record(page.record)
    assert "loss = exp(sum(sin(w)*w))" in str(page)
    loss.backward()
    assert all(f"{g:.6g}" in str(page) for g in w.grad.tolist())


@pytest.mark.parametrize(
    ("y", "words"),
    [(torch.ones(2), "requires no gradient"), (torch.ones(2, requires_grad=True) * 2, "give the cotangent")],
)
def test_what_has_no_page_is_refused(y, words):
    with pytest.raises(gradcli.InputError, match=words):
        gradcli.explain(y)


def test_another_ending_of_the_file_is_refused():
    with pytest.raises(gradcli.InputError, match=r"unknown ending"), gradcli.recording(output="pages.pdf"):
        pass


def test_everything_is_as_before_behind_a_block():
    before = torch.autograd.backward, torch.autograd.grad, torch.Tensor.backward, torch.autograd.Function.apply
    with pytest.raises(ZeroDivisionError), gradcli.recording():
        _ = 1 / 0
    after = torch.autograd.backward, torch.autograd.grad, torch.Tensor.backward, torch.autograd.Function.apply
    assert after == before
    assert not torch.overrides._get_current_function_mode_stack()


@pytest.mark.parametrize("is_named", [True, False])
def test_a_training_in_a_block_is_not_recorded_to_its_end(is_named, capsys):
    w = torch.tensor([1.0], requires_grad=True)
    here = inspect.currentframe().f_lineno
    with gradcli.recording(line=here + 4 if is_named else ()) as recording:
        modes = []
        for _ in range(9):
            (w**2).sum().backward()
            modes.append(len(torch.overrides._get_current_function_mode_stack()))
        if not is_named:
            (w * 3).sum().backward()
    assert modes == ([0] * 9 if is_named else [1] * 5 + [0] * 4)
    assert len(recording.pages) == (1 if is_named else 2)
    assert ("met after the recording ended" in str(recording.pages[-1])) == (not is_named)
