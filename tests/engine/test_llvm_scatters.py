"""Scatters of moved parts in one loop, the prefetch of the next row, and results anywhere in memory."""

import numpy as np
import pytest
from llvm_source import in_tiles
from numpy.testing import assert_array_equal
from test_compiled import expected_of, whole_numbers

from gradcli import parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.llvm.code import write
from gradcli.engine.schedule import Schedule

# By how far the parts are moved: 0 and 1; 0, 1 and 3; 2 and 1 with elements on both sides that get nothing; 1 alone.
MOVED = [
    "y = sum(100*(x[1:] - x[:-1]**2)**2)",
    "y = sum(x[3:]*x[1:-2] + x[:-3])",
    "y = sum(x[1:4]*x[2:5])",
    "y = sum(x[1:]**2)",
    "y = sum(x[4:]*x[:2])",
    "y = sum(x[2:]*x[:-2]) + sum(x[1:]*x[:-1])*sum(x)",
]


@pytest.fixture(autouse=True)
def llvm():
    pytest.importorskip("llvmlite")


@pytest.mark.parametrize("text", MOVED)
@pytest.mark.parametrize("count", [5, 6])
def test_scatter_of_parts_that_are_moved(text, count):
    graph = vjp(parse(text, x=(6,)))
    points = whole_numbers(graph, count, 0)
    for name, value in expected_of(graph, points, count).items():
        assert_array_equal(in_tiles(graph, {}, points, count, 4)[name], value)


def test_the_next_row_is_asked_for():
    source = write(Schedule.of(vjp(parse(MOVED[0], x=(100,))), {}), 8).source
    (loop,) = (part for part in source.split("define internal void @loop") if "fsub" in part)
    assert loop.count("@llvm.prefetch") >= 1


@pytest.mark.parametrize("count", [1, 7, 64, 1037])
def test_rows_begin_anywhere_in_a_line_of_the_cache(count):
    graph = parse("y = 2*x + s; z = 3*s - 1", x=(3,))
    run = Compiled(graph, engine="llvm", threads=2)
    run.kernel.fewest = 100
    points = whole_numbers(graph, count, 0)
    expected = expected_of(graph, points, count)
    for start in range(9):
        memory = {name: np.full(np.size(value) + 20, np.nan) for name, value in expected.items()}
        out = {name: memory[name][start : start + v.size].reshape(v.shape) for name, v in expected.items()}
        run(points, out)
        for name, value in expected.items():
            assert_array_equal(out[name], value)
            assert np.isnan(memory[name]).sum() == 20  # nothing beside it is written
