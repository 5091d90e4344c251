"""Products of the other factors, of thousands that overflow, against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from conftest import long

from gradcli.engine.products import product_of_others


@long
@pytest.mark.parametrize("zeros", [(), (7,), (7, 1500)])
@pytest.mark.parametrize("count", [1000, 1001, 2500])
def test_products_of_the_others_are_those_of_fractions(count, zeros):
    random = np.random.default_rng(count)
    factors = random.normal(size=count) * 10.0 ** random.permutation(np.arange(count) % 41 - 20)
    factors[[k for k in zeros if k < count]] = 0
    found = product_of_others((0,), factors[:, None])[:, 0]
    exact = [Fraction(f) for f in factors.tolist()]
    for k in (0, 7, count // 2, count - 1):
        others = prod((f for i, f in enumerate(exact) if i != k), start=Fraction(1))
        try:
            expected = float(others)
        except OverflowError:
            expected = np.copysign(np.inf, others.numerator)
        assert found[k] == pytest.approx(expected, rel=1e-11, abs=0)
