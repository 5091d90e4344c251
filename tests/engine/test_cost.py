"""What a statement costs on its way from text to a gradient, counted in calls of functions: no clock disturbs them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gradcli import evaluate, parse, vjp

# Calls a statement: what there were when this was written, and a tenth.  In three times as many a chain of 100,000
# statements took three times as long as in PyTorch.  Loops (`for i in 0..9`) and kinds of inputs cost five to parse.
MOST = {"parse": 90, "vjp": 45, "evaluate": 38}


def calls(work):
    """Return how many functions are called, Python's and C's, and what comes of it."""
    count = 0

    def hear(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        found = work()
    finally:
        sys.setprofile(before)
    return count, found


def costs(n):
    """Return the calls for a chain of n sines, in each step."""
    text = "\n".join(f"t{i + 1} = sin(t{i})" for i in range(n))
    found = {}
    found["parse"], graph = calls(lambda: parse(text))
    found["vjp"], swept = calls(lambda: vjp(graph))
    point = {"t0": np.array([0.5]), f"t{n}.v": np.ones(1)}
    found["evaluate"], results = calls(lambda: evaluate(swept, point))
    assert np.isfinite(results["t0.grad"]).all()
    return found


@pytest.fixture(scope="module")
def lengths():
    costs(10)  # what is worked out once
    return {n: costs(n) for n in (1000, 2000, 4000)}


@pytest.mark.parametrize("step", MOST)
def test_calls_a_statement(lengths, step):
    assert (lengths[2000][step] - lengths[1000][step]) / 1000 <= MOST[step]


@pytest.mark.parametrize("step", MOST)
def test_calls_grow_with_the_length(lengths, step):
    first, second = (lengths[2 * n][step] - lengths[n][step] for n in (1000, 2000))
    assert second == pytest.approx(2 * first, rel=0.01)
