"""A line that is no longer counted has its count from the parameters that it changes in place."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.realtorch.lines import Lines

SCRIPT = """\
import torch
w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.{optimizer}
for k in range({rounds}):
    (w**2).sum().backward()
    if k % {every} == {every} - 1:
        {step}
"""
MANUAL = "w.data.sub_(0.1 * w.grad)"


@pytest.mark.parametrize(
    ("optimizer", "every", "step", "more"),
    [
        ("SGD([w], 0.1)", 1, "optimizer.step()", {5: 399, 7: 399}),
        ("AdamW([w], 0.1, weight_decay=0.1)", 1, "optimizer.step()", {5: 399, 7: 399}),
        ("SGD([w], 0.1)", 4, "optimizer.step()", {5: 399, 7: 99}),
        ("SGD([w], 0.1)", 1, "with torch.no_grad(): w -= 0.1", {5: 399}),
        ("SGD([w], 0.1)", 1, MANUAL, {5: None}),
    ],
)
def test_lines_are_counted_by_what_they_change(tmp_path, optimizer, every, step, more):
    from torch.optim import optimizer as hooks

    from gradcli.realtorch.driver import Session

    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(optimizer=optimizer, rounds=400, every=every, step=step))
    session = Session(lambda _, times: times == 1, lambda *_: None, Lines(str(path), {5}), lambda *_: None)
    with session.running():
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "script"})
        assert not hooks._global_optimizer_pre_hooks
    reached, uncounted = session.reached, session.updates.more
    assert all(reached[site] < 150 for site in reached)
    found = {s.line: None if uncounted[s] is None else reached[s] - 1 + uncounted[s] for s in reached}
    assert {n: found[n] for n in more if more[n] is None} == {n: None for n in more if more[n] is None}
    assert all(abs(found[n] - more[n]) <= 4 for n in more if more[n] is not None)  # about
