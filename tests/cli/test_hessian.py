"""gradcli hessian: H as formulas and numbers, what its eigenvalues say, and H·u."""

import json

import numpy as np
import pytest


def test_symmetric_to_the_last_digit(cli):
    found = cli.json("hessian", "f=logsumexp(M@x)*sum(x**3)/norm(M)", "--at", "x=[.1,.7],M=[[1,2],[.3,.4]]")
    matrix = np.array(found["hessian"])
    assert matrix.shape == (6, 6)
    assert (matrix == matrix.T).all()


@pytest.mark.parametrize("engine", ["numpy", "llvm"])
def test_many_points(cli, tmp_path, engine):
    if engine == "llvm":
        pytest.importorskip("llvmlite")
    points, result = tmp_path / "points.csv", tmp_path / "result.csv"
    points.write_text("a,b\n1,2\n3,-1\n")
    cli.done("hessian", "f=a*b**2", "--points", str(points), "--output", str(result), "--engine", engine)
    assert result.read_text().splitlines() == [
        "d2f/da/da,d2f/da/db,d2f/db/da,d2f/db/db", "0.0,4.0,4.0,2.0", "0.0,-2.0,-2.0,6.0",
    ]  # fmt: skip
    lines = cli.done("hessian", "f=a*b**2", "--points", str(points), "-f", "json").out.splitlines()
    assert [json.loads(line)["hessian"] for line in lines] == [[[0, 4], [4, 2]], [[0, -2], [-2, 6]]]


def test_many_points_with_tangents_of_their_own(cli):
    out = cli.done("hessian", "f=a*b**2", "--points", "-", stdin="a,b,a.u,b.u\n1,2,1,0\n3,-1,0,1\n").out
    assert out == "a.hvp,b.hvp\n0.0,4.0\n-2.0,6.0\n"


GAUSSIAN_PROCESS = """
input x = [0.1, 0.7, 1.9, 3.2]
input y = [0.3, -0.2, 0.8, 1.1]
input sf = 1.2
input ell = 0.7
D = (unsqueeze(x, 1) - unsqueeze(x, 0))**2
K = sf**2*exp(-0.5*D/ell**2) + 0.01*eye(4)
nll = 0.5*y@solve(K, y) + 0.5*log(det(K))
"""


def test_the_determinant_of_a_matrix_of_four_rows(cli):
    """Of the likelihood of a Gaussian process: the formulas are those of the numbers, by central differences."""
    found = cli.json("hessian", "--wrt", "ell,sf", stdin=GAUSSIAN_PROCESS)
    assert found["where"]

    def nll(ell, sf):
        x, y = np.array([0.1, 0.7, 1.9, 3.2]), np.array([0.3, -0.2, 0.8, 1.1])
        K = sf**2 * np.exp(-0.5 * (x[:, None] - x) ** 2 / ell**2) + 0.01 * np.eye(4)
        return 0.5 * y @ np.linalg.solve(K, y) + 0.5 * np.log(np.linalg.det(K))

    h, at = 1e-4, (0.7, 1.2)
    ends = [(i, j) for i in (-h, h) for j in (-h, h)]
    mixed = sum(np.sign(i * j) * nll(at[0] + i, at[1] + j) for i, j in ends) / (4 * h**2)
    second = (nll(at[0] + h, at[1]) - 2 * nll(*at) + nll(at[0] - h, at[1])) / h**2
    assert found["hessian"][0] == pytest.approx([second, mixed], rel=1e-4)
