"""Several threads call one `Compiled`, each with points of its own."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradcli import parse
from gradcli.engine.compiled import Compiled

GRAPH = parse("h = x*x + 1; g = h - x; y = h*g - g")
WITHIN = 20  # seconds


def expected(x):
    h = x * x + 1
    return h * (h - x) - (h - x)


@pytest.fixture(params=["numpy", "llvm"])
def run(request):
    """Return what was compiled, and called once: it keeps its memory for the next call."""
    pytest.importorskip({"llvm": "llvmlite"}.get(request.param, request.param))
    run = Compiled(GRAPH, engine=request.param, threads=1)
    run({"x": np.arange(64.0)})
    return run


def test_two_calls_at_once_share_no_memory(run):
    begin, both = run.kernel.begin, threading.Barrier(2, timeout=WITHIN)
    used = []

    def together(work, buffers, start, stop):
        used.append(buffers)
        both.wait()  # both calls have their memory now, and neither is done
        work(buffers, start, stop)

    run.kernel.begin = lambda *arrays: partial(together, begin(*arrays))
    points = [np.arange(64.0), np.arange(64.0) + 100]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda x: run({"x": x})["y"], points))
    for x, y in zip(points, found, strict=True):
        assert_array_equal(y, expected(x))
    first, second = used
    assert not any(np.may_share_memory(a, b) for a in first for b in second)


def test_a_call_during_another_leaves_it_alone(run):
    """The second begins and ends while the first is at work."""
    begin = run.kernel.begin
    inner = []

    def interrupted(work, buffers, start, stop):
        if not inner:
            inner.append(None)
            inner.append(run({"x": np.arange(64.0) + 100})["y"])
        work(buffers, start, stop)

    run.kernel.begin = lambda *arrays: partial(interrupted, begin(*arrays))
    assert_array_equal(run({"x": np.arange(64.0)})["y"], expected(np.arange(64.0)))
    assert_array_equal(inner[1], expected(np.arange(64.0) + 100))
    assert_array_equal(run({"x": np.arange(64.0)})["y"], expected(np.arange(64.0)))


@pytest.mark.parametrize("threads", [1, 3])
def test_many_calls_of_many_lengths(run, threads):
    run.threads, run.kernel.block, run.kernel.fewest = threads, 64, 16
    points = [np.arange(n, dtype=float) + n for n in [64, 200, 17, 1000, 128, 64, 333, 1] * 10]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: run({"x": x})["y"], points))
    for x, y in zip(points, found, strict=True):
        assert_array_equal(y, expected(x))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_threads_are_kept_for_the_next_call_and_made_anew_after_a_fork(run):
    run.threads, run.kernel.fewest = 3, 16
    points = np.arange(64.0)
    before = set(threading.enumerate())
    for _ in range(5):
        run({"x": points})
    assert len({t.name.rpartition("_")[0] for t in set(threading.enumerate()) - before}) == 1
    child = multiprocessing.get_context("fork").Process(
        target=lambda: assert_array_equal(run({"x": points})["y"], expected(points))
    )
    child.start()
    child.join(WITHIN)
    assert child.exitcode == 0
