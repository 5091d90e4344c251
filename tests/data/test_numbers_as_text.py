"""Numbers as text are those of `repr`, whoever writes them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from conftest import long
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from gradcli.data import numbers
from gradcli.data.csv.parsers import Table, parse
from gradcli.data.numbers import lines_of, rows_of

pytest.importorskip("pyarrow")

EDGES = [
    0.0,
    -0.0,
    1e-4,
    9.999e-5,
    1e-5,
    1e10,
    9999999999.5,
    1e15,
    1e16,
    1e22,
    5e-324,
    np.inf,
    -np.inf,
    np.nan,
    2.0**53,
]


def written(values):
    return (rows_of([values]) or b"").decode().splitlines()


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(numbers, "_FEW", 1)


@given(st.lists(st.floats() | st.sampled_from(EDGES) | st.integers(-(10**17), 10**17).map(float), min_size=1))
@example([9.999e-05, float("nan")])
def test_each_number_is_written_as_repr_does(values):
    numbers._FEW = 1
    assert written(np.array(values)) == list(map(repr, values))


def test_numbers_of_all_sizes_are_written_as_repr_does():
    random = np.random.default_rng(0)
    values = random.normal(size=20_000) * 10.0 ** random.integers(-320, 308, size=20_000)
    values = np.concatenate([values, random.normal(size=20_000) * 10.0 ** random.integers(-8, 18, size=20_000)])
    values = np.concatenate([values, np.rint(values[-20_000:])])
    texts = written(values)
    assert texts == list(map(repr, values.tolist()))
    assert_array_equal(np.array(texts, dtype=float), values)


@pytest.mark.parametrize("scale", [1e-5, 1e-6, 1e-8, 1e-9, 1e10, 1e11, 1e15, 1e16])
def test_a_column_of_one_size_is_written_as_repr_does(scale):
    values = np.random.default_rng(0).normal(size=5000) * scale
    values[:6] = scale, -scale, 0.0, 1.0, np.nextafter(scale, 0), -np.nextafter(scale, np.inf)
    values[6:12] = 2 * scale, -3 * scale, np.nan, -np.inf, np.rint(12 * scale), 1.5 * scale
    assert written(values) == list(map(repr, values.tolist()))


def test_rows_are_lines_and_slices_start_where_they_start():
    block = np.arange(12.0).reshape(3, 4)
    assert rows_of(list(block[:, 2:])) == b"2.0,6.0,10.0\n3.0,7.0,11.0\n"


def test_lines_are_the_same_with_and_without_pyarrow(monkeypatch):
    x, words = np.array([1.0, 1e-05, -2.5e300]), np.array(['"a%"', '"NaN"', "1"], dtype=object)
    pieces = ['{"100 %s": ', x, ", ", words, ", ", x, "}"]
    lines = lines_of(pieces)
    assert lines.splitlines()[1] == '{"100 %s": 1e-05, "NaN", 1e-05}'
    monkeypatch.setattr(numbers, "_FEW", 100)
    assert lines_of(pieces) == lines
    assert lines_of(["all ", "same"]) == "all same"


def test_what_is_copied_is_left_to_others():
    assert rows_of([np.array([1.0]), np.array(["a"], dtype=object)]) is None


@long
def test_no_column_is_written_number_by_number():
    columns = [np.random.default_rng(k).normal(size=2**17) * scale for k, scale in enumerate((1.0, 1e-12, 1e-5, 1e12))]
    rows = rows_of(columns) or b""

    def seconds(work):
        times = []
        for _ in range(5):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        return min(times)

    reading = seconds(lambda: parse(rows, Table(",", len(columns)), range(len(columns))))
    assert seconds(lambda: rows_of(columns)) < 6 * reading  # about 3; `repr` of each number takes 15 times as long
