"""Results and gradients have PyTorch's bits where they depend on the order of additions."""

from __future__ import annotations

import contextlib
import io
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from digit_cases import CASES, HEAD, ON_INTEL

from gradcli import platform
from gradcli.kernels import mkl, processor, products
from gradcli.kernels.moments import moments
from gradcli.kernels.rounding import fused
from gradcli.pytorch.session import Script, run

RECORDED = json.loads(Path(__file__).with_name("digits.json").read_text())


def _check(name, code):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        ending = run(Script(HEAD + code, name, None))
    assert ending.error is None
    assert out.getvalue().splitlines() == RECORDED[name]


@pytest.mark.parametrize("name", CASES)
def test_bits_are_pytorchs(name):
    _check(name, CASES[name])


@pytest.mark.parametrize("name", ON_INTEL)
def test_bits_are_pytorchs_on_processors_of_intels(name, monkeypatch):
    for module in (products, mkl):
        monkeypatch.setattr(module, "IS_INTEL", True)
    _check(name, ON_INTEL[name])


def test_the_maker_of_the_processor_is_told_or_asked_for():
    assert platform.processor().strip()
    assert not processor.IS_INTEL  # as all tests ask for


def test_numbers_are_multiplied_and_added_with_one_rounding():
    a, b, c = np.random.default_rng(0).standard_normal((3, 1000))
    for x, y, z in zip(a, b, -a * b * (1 + 1e-12 * c), strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert fused(x, y, z) == float(exact)
    with np.errstate(all="ignore"):
        assert fused(np.float64(1e308), np.float64(10), np.float64(1)) == np.inf


def test_moments_are_the_mean_and_the_variance():
    for count in (1, 5, 8, 129, 700):
        x = np.random.default_rng(count).standard_normal((3, count))
        mean, variance = moments(x)
        np.testing.assert_allclose(mean, x.mean(axis=1), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(variance, x.var(axis=1), rtol=1e-12, atol=1e-14)
