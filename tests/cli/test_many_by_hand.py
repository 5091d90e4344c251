"""Many points whose results are worked out by hand, and whose names are promised."""

from __future__ import annotations

import pytest
from test_many_points import read

pytestmark = pytest.mark.usefixtures("own_folder")


AB = "a,b\n1,2\n3,4\n"


def write(path, text):
    with open(path, "w") as file:
        return file.write(text)


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_points_of_at_are_written_too(cli, ending):
    points = ("--at", "a=1,b=2", "--at", "b=4,a=3")
    cli.done("backward", "y=a*b", *points, "--output", f"result.{ending}")
    found = read(ending, "")
    assert {name: values.tolist() for name, values in found.items()} == {"a.grad": [2, 4], "b.grad": [1, 3]}


def test_the_result_of_one_run_gives_the_cotangents_of_the_next(cli):
    write("p.csv", "x,h\n1,3\n2,12\n")  # h = 3x²
    grads = cli.done("backward", "y=h**2", "--points", "p.csv").out.split()[1:]
    write("q.csv", "\n".join(["x,h.v", *(f"{x},{g}" for x, g in zip("12", grads, strict=True))]))
    chained = cli.done("backward", "h=3*x**2", "--points", "q.csv").out
    assert chained == cli.done("backward", "h=3*x**2", "y=h**2", "--points", "p.csv").out == "x.grad\n36.0\n288.0\n"


@pytest.mark.parametrize("engine", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("system", "header", "row"),
    [
        ("y=0*a+0*b+3", "dy/da,dy/db", "0.0,0.0"),
        ("y=floor(a)", "dy/da", "0.0"),
        ("y=[1,2]*floor(a); z=sign(b)", "dy[0]/da,dy[1]/da,dy[0]/db,dy[1]/db,dz/da,dz/db", "0.0,0.0,0.0,0.0,0.0,0.0"),
    ],
)
def test_a_jacobian_of_zeros(cli, engine, system, header, row):
    pytest.importorskip("llvmlite" if engine == "llvm" else "numpy")
    out = cli.done("jacobian", system, "--points", "-", "--engine", engine, stdin=AB).out
    assert out == f"{header}\n{row}\n{row}\n"
    refused = cli.refused("jacobian", system, "--points", "-", "--engine", engine, "--sparse", stdin=AB)
    assert "all entries of the Jacobian are zero" in refused
