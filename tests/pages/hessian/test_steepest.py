"""The direction of steepest curvature: no other direction has a larger second derivative."""

import numpy as np
import pytest

from gradcli.pages.hessian.page import steepest


@pytest.mark.parametrize("seed", range(5))
def test_no_direction_is_steeper(seed):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(4, 4))
    matrix = half + half.T
    second, along = steepest(matrix)
    others = rng.normal(size=(1000, 4))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert along @ matrix @ along == pytest.approx(second)
    assert (np.abs(np.einsum("ki,ij,kj->k", others, matrix, others)) <= abs(second) + 1e-12).all()
