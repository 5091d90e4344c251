"""Results and gradients have PyTorch's bits where they depend on the order of additions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from digit_cases import CASES, HEAD
from test_scripts import outcome

from gradcli.kernels.rounding import fused
from gradcli.kernels.sums import moments

RECORDED = json.loads(Path(__file__).with_name("digits.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_bits_are_pytorchs(name):
    found = outcome(name, HEAD + CASES[name])
    assert found["error"] == ""
    assert found["out"].splitlines() == RECORDED[name]


def test_numbers_are_multiplied_and_added_with_one_rounding():
    a, b, c = np.random.default_rng(0).standard_normal((3, 1000))
    for x, y, z in zip(a, b, -a * b * (1 + 1e-12 * c), strict=True):
        exact = _fraction(x) * _fraction(y) + _fraction(z)
        assert fused(x, y, z) == float(exact)
    with np.errstate(all="ignore"):
        assert fused(np.float64(1e308), np.float64(10), np.float64(1)) == np.inf


def _fraction(x):
    from fractions import Fraction

    return Fraction(float(x))


def test_moments_are_the_mean_and_the_variance():
    for count in (1, 5, 8, 129, 700):
        x = np.random.default_rng(count).standard_normal((3, count))
        mean, variance = moments(x)
        np.testing.assert_allclose(mean, x.mean(axis=1), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(variance, x.var(axis=1), rtol=1e-12, atol=1e-14)
