"""Products of many factors against exact arithmetic: what a float64 can hold is found, whatever is met on the way."""

from fractions import Fraction
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gradcli import evaluate, vjp
from gradcli.engine import products
from gradcli.graph.construct import product_of_others, reduce
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf

FACTORS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 5e-324, -1e-300, 1e300, 0.5, 3.0])


def rounded(number):
    """Return an exact number as a float64."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def exact(factors):
    """Return the product, and for each factor the product of the others."""
    exactly = [Fraction(f) for f in factors]
    others = [prod(exactly[:i] + exactly[i + 1 :]) for i in range(len(exactly))]
    return rounded(prod(exactly)), [rounded(other) for other in others]


def close(found, expected):
    # A number below the smallest normal one has fewer digits.
    assert_allclose(found, expected, rtol=1e-13, atol=1e-323)


@given(st.lists(FACTORS, min_size=1, max_size=9))
def test_what_a_number_can_hold_is_found(factors):
    x = np.array(factors)[:, None]
    whole, others = exact(factors)
    with np.errstate(all="ignore"):
        close(products.prod((0,), x)[0], whole)
        close(products.product_of_others((0,), x)[:, 0], others)


@pytest.mark.parametrize("count", [31, 33, 64, 999, 1001, 2500, 40_000])
def test_very_many_factors(count):
    """Powers of two, so that nothing is rounded: their exponents add up to little, and on the way to very much."""
    exponents = np.random.default_rng(count).integers(-900, 900, count)
    exponents[-2:] = 0
    exponents -= exponents.sum() // count
    x = np.ldexp(1.0, exponents)[:, None]
    total = int(exponents.sum())
    with np.errstate(all="ignore"):
        assert products.prod((0,), x)[0] == np.ldexp(1.0, total)
        assert_array_equal(products.product_of_others((0,), x)[:, 0], np.ldexp(1.0, total - exponents))


def test_a_point_does_not_change_its_neighbours():
    """Factors in a moderate range are multiplied as they are: to the same bits as when they are taken apart."""
    x = np.random.default_rng(0).uniform(-3, 3, (5, 2, 100))
    wild = np.concatenate([x, np.full((5, 2, 1), 1e300)], axis=-1)
    for axes in ((0,), (1,), (0, 1)):
        with np.errstate(all="ignore"):
            assert_array_equal(products.prod(axes, wild)[..., :-1], products.prod(axes, x))
            assert_array_equal(products.product_of_others(axes, wild)[..., :-1], products.product_of_others(axes, x))


def test_no_factors():
    x = leaf((0, 2))
    graph = Graph.of({"x": x}, {"y": reduce("prod", x, (0,)), "z": product_of_others(x, (0,))})
    y, z = evaluate(graph, {"x": np.ones((0, 2, 3))}).values()
    assert_array_equal(y, np.ones((2, 3)))
    assert z.shape == (0, 2, 3)
    (grad,) = evaluate(vjp(graph), {"x": np.ones((0, 2, 3)), "y.v": np.ones((2, 3)), "z.v": z}).values()
    assert grad.shape[:-1] == (0, 2)
