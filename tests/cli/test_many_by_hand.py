"""Many points whose results are worked out by hand, and whose names are promised."""

from __future__ import annotations

import pytest
from test_many_points import read

pytestmark = pytest.mark.usefixtures("own_folder")


GRAD_FILE = "input a = 2\ninput b = [1, 10]\ny = a*b\n"
AB = "a,b\n1,2\n3,4\n"


@pytest.mark.parametrize(
    ("arguments", "points", "text"),
    [
        (("backward", "y=a*b"), AB, "a.grad,b.grad\n2.0,1.0\n4.0,3.0\n"),
        (("backward", "y=a*b"), "\ufeffb,when,a\r\n2,x,1\r\n4,,3\r\n", "a.grad,b.grad\n2.0,1.0\n4.0,3.0\n"),
        (("backward", "y=a*b"), '"b", a \n2,1\n\n"4",3', None),
        (("backward", "y=x10*x2"), "x10,x2\n1,2\n", "x2.grad,x10.grad\n1.0,2.0\n"),
        (("backward", "y=a*b*c"), "a,b,c\n2,3,5\n", "a.grad,b.grad,c.grad\n15.0,10.0,6.0\n"),
        (("backward", "y=a*b*c", "--at", "c=5"), AB, "a.grad,b.grad,c.grad\n10.0,5.0,2.0\n20.0,15.0,12.0\n"),
        (("jacobian", "y=a*sum(x)", "--at", "x=[5,7]", "--wrt", "a"), "a\n1\n", "dy/da\n12.0\n"),
        (("backward", "y=a*b*c", "--wrt", "c,a"), "a,b,c\n2,3,5\n", "c.grad,a.grad\n6.0,15.0\n"),
        (("backward", "y=a*b", "--wrt", "b"), AB, "b.grad\n1.0\n3.0\n"),
        (("backward", "y=2*a", "z=b"), "a,b,y.v,z.v\n1,2,10,1\n3,4,-1,0\n", "a.grad,b.grad\n20.0,1.0\n-2.0,0.0\n"),
        (
            ("backward", "y=x*x"),
            "x[1],x[0],y[0].v,y[1].v\n1,2,1,0\n3,4,10,1\n",
            "x[0].grad,x[1].grad\n4.0,0.0\n80.0,6.0\n",
        ),
        (
            ("backward", "y=2*M"),
            '"M[0,0]","M[0,1]","y[0,0].v","y[0,1].v"\n1,2,5,7\n',
            '"M[0,0].grad","M[0,1].grad"\n10.0,14.0\n',
        ),
        (("backward", "y=a**2"), "a,y.v\n3,10\n4,-1\n", "a.grad\n60.0\n-8.0\n"),
        (("backward", "y=2*a", "z=b", "--v", "10,1"), AB, "a.grad,b.grad\n20.0,1.0\n20.0,1.0\n"),
        (("backward", "y=2*a", "z=b", "--v", "z=1", "--v", "ones"), AB, "a.grad,b.grad\n2.0,2.0\n2.0,2.0\n"),
        (("backward", "y=a*b", "z=b", "--outputs", "z"), AB, "a.grad,b.grad\n0.0,1.0\n0.0,1.0\n"),
        (("backward", "y=a*b", "z=b", "--outputs", "z,y", "--v", "100,1"), AB, "a.grad,b.grad\n2.0,101.0\n4.0,103.0\n"),
        (("backward", "y=a*b", "z=b", "--outputs", "z,y", "--v", "onehot:1"), AB, "a.grad,b.grad\n2.0,1.0\n4.0,3.0\n"),
        (("backward", "h=2*a", "y=h**2", "--retain", "h"), "a\n1\n3\n", "a.grad,h.grad\n8.0,4.0\n24.0,12.0\n"),
        (("backward", "h=2*a", "y=h**2", "--retain", "all"), "a\n1\n", "a.grad,h.grad,y.grad\n8.0,4.0,1.0\n"),
        (
            ("backward", "k=3*a", "h=2*k", "y=h**2", "--retain", "h,k"),
            "a\n1\n",
            "a.grad,h.grad,k.grad\n72.0,12.0,24.0\n",
        ),
        (("backward", "h=2*a", "y=h**2", "--retain", "h"), "a,h.v\n1,7\n", "a.grad,h.grad\n8.0,4.0\n"),
        (("jacobian", "y=a*b", "z=3*b"), AB, "dy/da,dy/db,dz/da,dz/db\n2.0,1.0,0.0,3.0\n4.0,3.0,0.0,3.0\n"),
        (("jacobian", "y=a*b", "z=3*b", "--sparse"), AB, "dy/da,dy/db,dz/db\n2.0,1.0,3.0\n4.0,3.0,3.0\n"),
        (("jacobian", "y=a*b", "z=3*b", "--wrt", "b", "--outputs", "z,y"), AB, "dz/db,dy/db\n3.0,1.0\n3.0,3.0\n"),
        (("jacobian", "y=a+0*b"), AB, "dy/da,dy/db\n1.0,0.0\n1.0,0.0\n"),
        (("jacobian", "y=5*a"), AB, "dy/da\n5.0\n5.0\n"),
        (
            ("jacobian", "y=[x[0], x[1]**2]"),
            "x[0],x[1]\n1,2\n",
            "dy[0]/dx[0],dy[0]/dx[1],dy[1]/dx[0],dy[1]/dx[1]\n1.0,0.0,0.0,4.0\n",
        ),
        (("jacobian", "y=[x[0], x[1]**2]", "--sparse"), "x[0],x[1]\n1,2\n", "dy[0]/dx[0],dy[1]/dx[1]\n1.0,4.0\n"),
        (("jacobian", "y=M[0,1]*a"), 'a,"M[0,0]","M[0,1]"\n3,1,2\n', '"dy/dM[0,0]","dy/dM[0,1]",dy/da\n0.0,3.0,2.0\n'),
        (("jacobian", "y=2*x", "--shape", "x=1"), "x[0]\n1\n", "dy[0]/dx[0]\n2.0\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_numbers_and_names(cli, arguments, points, text):
    expected = text or "a.grad,b.grad\n2.0,1.0\n4.0,3.0\n"
    assert cli.done(*arguments, "--points", "-", stdin=points).out == expected
    with open("p.csv", "w", newline="") as file:
        file.write(points)
    assert cli.done(*arguments, "--points", "p.csv", "--output", "r.csv").out == ""
    with open("r.csv", newline="") as file:
        assert file.read() == expected


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ("a\n3\n5\n", "a.grad,b[0].grad,b[1].grad\n12.0,3.0,30.0\n12.0,5.0,50.0\n"),
        ("b[0],b[1]\n7,8\n", "a.grad,b[0].grad,b[1].grad\n87.0,2.0,20.0\n"),
        ("b[1],a,b[0]\n8,-1,7\n", "a.grad,b[0].grad,b[1].grad\n87.0,-1.0,-10.0\n"),
    ],
)
def test_a_file_overrides_the_defaults_that_it_names(cli, points, text):
    expected = text.replace("12.0", "101.0")  # v is 1 and 10, and the default of b is 1 and 10
    with open("system.grad", "w") as file:
        file.write(GRAD_FILE)
    found = cli.done("backward", "-F", "system.grad", "--v", "1,10", "--points", "-", stdin=points)
    assert found.out == expected


def write(path, text):
    with open(path, "w") as file:
        return file.write(text)


def test_an_output_without_a_column_of_cotangents_gets_zero_with_a_note(cli):
    outcome = cli.done("backward", "y=2*a", "z=b", "--points", "-", stdin="a,b,y.v\n1,2,10\n")
    assert outcome.out == "a.grad,b.grad\n20.0,0.0\n"
    assert outcome.err == "note: standard input has no `z.v`: z gets the cotangent 0\n"


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
