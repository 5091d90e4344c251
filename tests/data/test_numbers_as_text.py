"""Numbers as text are read as the same numbers, whoever writes them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from gradcli.data.csv import result
from gradcli.data.csv.result import rows_of
from gradcli.report.data.json import block_lines

pytest.importorskip("pyarrow")

EDGES = [
    0.0, -0.0, 1e-4, 9.999e-5, 1e-5, 1e10, 9999999999.5, 1e15, 1e16, 1e22, 5e-324, np.inf, -np.inf, np.nan, 2.0**53,
]  # fmt: skip


def check_read_back(values):
    """Compare the numbers in lines of CSV and of JSON with those that were written, to the last bit."""
    texts = b"".join(rows_of([values]) or ()).decode().splitlines()
    assert_array_equal(
        np.array(list(map(float, texts))).view(np.int64), np.where(np.isnan(values), np.nan, values).view(np.int64)
    )
    finite = values[np.isfinite(values)]
    if finite.size:
        lines, _ = block_lines(Block({"x": finite}))
        assert lines.splitlines() == [f'{{"x": {x!r}}}' for x in finite.tolist()]


class Block:
    """The answer at a block of points, whose values are given."""

    def __init__(self, values):
        self.values = values

    def objects(self):
        return [self.values]

    def formula(self, value):
        return str(value)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(result, "_FEW", 1)


@given(st.lists(st.floats() | st.sampled_from(EDGES) | st.integers(-(10**17), 10**17).map(float), min_size=1))
@example([9.999e-05, float("nan")])
def test_each_number_is_read_back(values):
    result._FEW = 1
    check_read_back(np.array(values))


def test_numbers_of_all_sizes_are_read_back():
    random = np.random.default_rng(0)
    values = random.normal(size=20_000) * 10.0 ** random.integers(-320, 308, size=20_000)
    check_read_back(np.concatenate([values, np.rint(values), EDGES]))


def test_rows_are_lines_and_slices_start_where_they_start():
    block = np.arange(12.0).reshape(3, 4)
    assert b"".join(rows_of(list(block[:, 2:]))) == b"2,6,10\n3,7,11\n"


def test_lines_have_what_varies_and_what_is_the_same():
    x, words = np.array([1.0, 1e-05, np.inf]), np.array(['a%"', "NaN", "1"], dtype=object)
    M = np.arange(12.0).reshape(2, 2, 3)
    values = {"100 %s": x, "w": {"w": words, "x": x}, "M": M, "same": np.array([[2.0], [np.nan]]), "rows": ["x%"]}
    lines, pieces = block_lines(Block(values))
    for k, line in enumerate(lines.splitlines()):
        number = "Infinity" if k == 2 else x[k]
        assert json.loads(line) == {
            "100 %s": number,
            "w": {"w": words[k], "x": number},
            "M": M[..., k].tolist(),
            "same": [2.0, "NaN"],
            "rows": ["x%"],
        }
    assert pieces == 15
    assert block_lines(Block({"a": np.array([1.0])})) == ('{"a": 1.0}', 1)


def test_what_is_copied_is_left_to_others():
    assert rows_of([np.array([1.0]), np.array(["a"], dtype=object)]) is None
