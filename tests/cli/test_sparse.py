"""`--sparse`: the entries that are not zero everywhere, at a cost that grows with them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from conftest import long

from gradcli.graph.sparsity import MAX_COLUMNS

pytestmark = pytest.mark.usefixtures("own_folder")

BROYDEN = "y = (3 - 2*x)*x - concatenate([[0], x[:-1]]) - 2*concatenate([x[1:], [0]]) + 1"
N = 4 * MAX_COLUMNS


def broyden(x):
    """Return the three diagonals of the Jacobian, by hand: below, on, and above the main one."""
    return np.full(len(x) - 1, -1.0), 3 - 4 * x, np.full(len(x) - 1, -2.0)


def points(n):
    x = np.random.default_rng(0).normal(size=n)
    np.save("x.npy", x)
    return x


def test_npz_is_that_of_scipy(cli):
    scipy = pytest.importorskip("scipy.sparse")
    system, at = "y = M@x + x[::-1]; z = sum(x)", "M=[[0,1,2],[3,0,0],[0,0,4]],x=[1,2,3]"
    cli.done("jacobian", system, "--at", at, "--wrt", "x", "--sparse", "--output", "J.npz")
    whole = cli.json("jacobian", system, "--at", at, "--wrt", "x")
    found = scipy.load_npz("J.npz")
    assert found.shape == (4, 3)
    assert found.toarray().tolist() == whole["jacobian"]


def test_the_cost_grows_with_the_entries(cli):
    """There are 20,000 columns, of which each row has three: a matrix of bits would take 50 MB."""
    x = points(N)
    cli.done("jacobian", BROYDEN, "--at", "x=@x.npy", "--sparse", "--output", "J.npz")
    with np.load("J.npz") as found:
        rows = np.repeat(np.arange(N), np.diff(found["indptr"]))
        entries = dict(zip(zip(rows.tolist(), found["indices"].tolist(), strict=True), found["data"], strict=True))
    below, on, above = broyden(x)
    assert len(entries) == 3 * N - 2
    for offset, diagonal in ((-1, below), (0, on), (1, above)):
        own = [entries[i, i + offset] for i in range(max(0, -offset), min(N, N - offset))]
        np.testing.assert_allclose(own, diagonal, rtol=1e-13)


def test_many_points_of_many_columns(cli):
    x = np.random.default_rng(1).normal(size=(2, N))
    np.savez("points.npz", x=x)
    cli.done("jacobian", "y=x**3", "--points", "points.npz", "--sparse", "--output", "J.csv")
    with open("J.csv") as file:
        head, *rows = file.read().splitlines()
    assert head.split(",")[-1] == f"dy[{N - 1}]/dx[{N - 1}]"
    np.testing.assert_allclose(np.array([row.split(",") for row in rows], dtype=float), 3 * x**2, rtol=1e-13)


@long
def test_elements_of_a_loop(cli):
    """The function of `BROYDEN`, put together element by element, is as fast, and its Jacobian has the same entries."""
    x = points(N)
    loop = "y[i] = (3-2*x[i])*x[i] - (x[i-1] if i > 0 else 0) - 2*(x[i+1] if i < n-1 else 0) + 1 for i in 0..n-1"
    found = cli.done("jacobian", "--at", "x=@x.npy", "--sparse", stdin=f"n = {len(x)}\n{loop}\n").out
    assert found == cli.done("jacobian", BROYDEN, "--at", "x=@x.npy", "--sparse").out


def test_what_is_too_large_is_refused_at_once_and_its_entries_are_not_counted_wrong(cli):
    before = time.process_time()
    error = cli.refused("jacobian", "y=x**2", "--shape", "x=1000000", "--sparse")
    assert time.process_time() - before < 8
    assert "1,000,000 rows and 1,000,000 columns is too large" in error
    assert "000,000,000" not in error
