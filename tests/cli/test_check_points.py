"""gradcli check at the points of a file: counts, cotangents of the file's own, bounded memory, what is refused."""

import numpy as np
import pytest

SYSTEM = ("f=abs(x)*y", "df/dx=y", "df/dy=abs(x)", "df/dx=sign(x)*y")
POINTS = "x,y\n1,2\n-1,3\n0,1\n2,2\n"


def test_the_wrong_points_are_counted(cli):
    outcome = cli("check", *SYSTEM, "--points", "-", "-f", "json", stdin=POINTS)
    assert outcome.status == 1
    wrong, *right = outcome.objects
    assert [o["verdict"] for o in right] == ["right", "right"]
    assert wrong["verdict"] == "wrong"
    assert (wrong["points"], wrong["wrong"], wrong["point"]) == (3, 1, 2)  # the third has a corner, and does not count
    assert wrong["at"] == {"x": -1, "y": 3}
    assert (wrong["yours"], wrong["is"]) == (3, -3)
    assert wrong["difference"] == pytest.approx(-3, abs=10 * wrong["difference_error"])


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet"])
def test_endings(cli, tmp_path, ending):
    x = np.random.default_rng(3).normal(size=(500, 2))
    path = tmp_path / f"points.{ending}"
    if ending == "npz":
        np.savez(path, x=x)
    elif ending == "csv":
        np.savetxt(path, x, delimiter=",", header="x[0],x[1]", comments="")
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({f"x[{k}]": x[:, k] for k in range(2)}), path)
    (found,) = cli("check", "f=sum(maximum(x,0)**2)", "df/dx=2*x", "--points", str(path), "-f", "json").objects
    assert found["points"] == 500
    assert found["wrong"] == (x < 0).any(axis=1).sum()
    assert found["why"] == "in ∂f/∂x you took maximum(x, 0) for x: right only where x > 0"


def test_a_cotangent_may_stand_in_the_file(cli):
    claims = ("y=x**2", "x.grad=2*v*x+(v-1)*(v-2)", "--points", "-", "-f", "json")
    assert cli("check", *claims, stdin="x,y.v\n3,1\n4,2\n").objects[0]["verdict"] == "right"
    (found,) = cli("check", *claims, stdin="x,y.v\n3,1\n4,5\n").objects
    assert (found["verdict"], found["wrong"], found["at"]) == ("wrong", 1, {"x": 4, "v": 5})


def test_a_file_without_rows_decides_nothing(cli):
    outcome = cli("check", "f=x**2*sign(x)", "df/dx=abs(x)*x", "--points", "-", "-f", "json", stdin="x\n")
    assert outcome.status == 1
    assert outcome.objects[0]["why"] == "standard input contains no points"
