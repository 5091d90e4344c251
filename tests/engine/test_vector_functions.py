"""The LLVM engine's functions of vectors against arbitrary precision: at most 2 ulp, and C's values at the corners."""

import math

import numpy as np
import pytest
from llvm_source import in_tiles

from gradcli import parse
from gradcli.engine.llvm.functions import FUNCTIONS

mpmath = pytest.importorskip("mpmath")

rng = np.random.default_rng(0)
FAR = {"exp": 745.2, "log": 1e300, "tanh": 25.0, "sin": 2.0**21, "cos": 2.0**21}
# Multiples of π/2 as near as numbers come: what is left of them has few digits of its own.
MULTIPLES = np.concatenate([np.arange(1, 2000), rng.integers(2000, 2**19, 300)]) * (math.pi / 2)


def arguments(name):
    near = rng.uniform(-1, 1, 400)
    small = 2.0 ** rng.uniform(-1070, -1, 200)
    steps = np.arange(-40, 41) * (math.log(2) / 2)  # where the reduction changes over
    if name == "log":
        around = 1 + near * 2.0 ** rng.uniform(-50, -1, len(near))
        return np.concatenate([2.0 ** rng.uniform(-1074, 1023, 400), small, around, 2.0 ** np.arange(-30, 30)])
    return np.concatenate(
        [near, near * FAR[name], small, -small, steps, *([MULTIPLES] if name in ("sin", "cos") else [])]
    )


def values(name, x):
    with np.errstate(all="ignore"):
        return in_tiles(parse(f"y = {name}(x)"), {}, {"x": x}, len(x), 64)["y"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_most_two_ulp(name):
    x = arguments(name)
    with mpmath.workprec(200):
        right = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
        for at, found, value in zip(x, values(name, x), right, strict=True):
            nearest = float(value)
            if math.isinf(nearest):
                assert found == nearest, at
                continue
            assert abs(mpmath.mpf(float(found)) - value) <= 2 * math.ulp(nearest), (at, found, nearest)


CORNERS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e300, -1e300, 709.79, 710.5, -745.14, -750])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_corners_are_numpys(name):
    with np.errstate(all="ignore"):
        right = getattr(np, name)(CORNERS)
    found = values(name, CORNERS)
    np.testing.assert_allclose(found, right, rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(found[right == 0]), np.signbit(right[right == 0]))
