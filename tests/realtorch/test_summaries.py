"""Of the large intermediates of a network with many parameters, summaries are kept: its page is that of all numbers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

import torch

from gradcli.realtorch import writing
from gradcli.realtorch.driver import Session
from gradcli.realtorch.values import summary_of
from gradcli.record.numbers import Numbers
from gradcli.report.render import Look, render_pages
from gradcli.script.under_pytorch.page import page_of
from tests.record.conformance import check_record

LAYERS, WIDTH = 13, 70  # of 100 rows: more than are copied


def record_of_network(last):
    records = []
    torch.manual_seed(0)
    with Session(lambda *_: True, lambda record, *_: records.append(record)).running():
        layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
        h = torch.randn(100, WIDTH)
        for layer in layers:
            h = torch.relu(layer(h))
        last(h).sum().backward()
    (record,) = records
    assert isinstance(record.backwards, tuple), record
    return record


@pytest.mark.parametrize(
    "last",
    [torch.tanh, torch.sqrt, lambda h: torch.where(h > 0, h.log(), h), lambda h: (h - 1e4).relu(), lambda h: h / 0],
    ids=["finite", "infinite", "nan", "dead", "forward"],
)
def test_the_page_of_summaries_is_that_of_all_numbers(monkeypatch, last):
    record = record_of_network(last)
    kept = [*record.backwards[0].received.values(), *(q.numbers for q in record.quantities if q.role == "result")]
    assert len([n for n in kept if n.whole is None and n.known is not None]) > 2 * LAYERS
    monkeypatch.setattr(writing, "FORMULAS", 100)
    whole = record_of_network(last)
    assert all(n.whole is not None for n in whole.backwards[0].received.values())
    check_record(whole)
    assert render_pages([page_of(record)], Look()) == render_pages([page_of(whole)], Look())


@pytest.mark.parametrize("entry", [1.0, 0.0, float("nan"), float("inf")])
def test_a_summary_says_what_all_numbers_say(entry):
    x = torch.randn(5000) * (entry != 0)
    x[17] = entry
    summary, whole = summary_of(x), Numbers.of(x.numpy())
    assert summary.whole is None
    for name in ("is_finite", "not_finite", "is_zero"):
        assert getattr(summary, name) == getattr(whole, name)
    assert summary.norm == pytest.approx(whole.norm)
    for of_one, of_all in zip(summary.summary[1:], whole.summary[1:], strict=True):
        assert np.array_equal(of_one, of_all, equal_nan=True)
