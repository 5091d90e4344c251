"""gradcli jvp: J·u as JSON, CSV and a page, at points, as formulas, and at the points of a file."""

import json

import numpy as np
import pytest

SYSTEM = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")
POINT = ("--at", "x0=1,x1=2")


def test_an_object_a_point(cli):
    found = cli.json("jvp", *SYSTEM, *POINT, "--u", "x0=1,x1=2")
    assert found == {
        "at": {"x0": 1, "x1": 2},
        "value": {"y0": 3, "y1": 17, "y2": 20},
        "u": {"x0": 1, "x1": 2},
        "jvp": {"y0": 6, "y1": 50, "y2": 20},
    }


def test_an_input_that_is_left_out_has_the_tangent_0(cli):
    outcome = cli.done("jvp", *SYSTEM, *POINT, "--u", "x1=2", "-f", "json")
    assert outcome.objects[0]["jvp"] == {"y0": 0, "y1": 48, "y2": 20}
    assert "x0: not in `--u`, so the tangent is 0" in outcome.err


def test_a_single_scalar_input_needs_no_tangent(cli):
    assert cli.json("jvp", "y=x**2", "--at", "x=3")["jvp"] == {"y": 6}


def test_without_a_point_the_result_is_formulas_that_can_be_typed_back(cli):
    found = cli.json("jvp", *SYSTEM, "--u", "x0=1,x1=2")
    assert found["jvp"] == {"y0": "6*x0", "y1": "2*x0 + 12*x1**2", "y2": "20"}
    assert "at" not in found


def test_both_sides_of_the_pairing_are_shown(cli):
    found = cli.json("jvp", *SYSTEM, *POINT, "--u", "x0=1,x1=2", "--v", "1,10,100")
    assert found["pairing"] == 6 + 500 + 2000 == 26 * 1 + 1240 * 2
    assert found["grad"] == {"x0": 26, "x1": 1240}
    page = cli.done("jvp", *SYSTEM, *POINT, "--u", "x0=1,x1=2", "--v", "1,10,100").out
    assert "= 1·6 + 10·50 + 100·20   = 2506" in page
    assert "= 26·1 + 1240·2          = 2506" in page


@pytest.mark.parametrize(
    ("system", "point", "tangent", "rule"),
    [
        ("y = x @ M", "x=[1,2],M=[[1,2],[3,4]]", "x=[1,1],M[0,1]=1", "ẋ @ M + x @ Ṁ"),
        ("y = M.T", "M=[[1,2],[3,4]]", "M[0,1]=1", "Ṁ.T"),
        ("y = sum(x)", "x=[1,2]", "x[0]=1", "sum(ẋ)"),
        ("y = x[0] - x[1]", "x=[1,2]", "x[0]=1", "ṫ1 - ṫ2"),
    ],
)
def test_a_structural_rule_is_written_in_tangents(cli, system, point, tangent, rule):
    found = cli.json("jvp", system, "--at", point, "--u", tangent, "--steps")
    assert found["steps"]["forward"][-1]["rule"] == rule


@pytest.mark.parametrize("engine", ["numpy", "llvm"])
def test_the_points_of_a_file_may_have_tangents_of_their_own(cli, tmp_path, engine):
    if engine == "llvm":
        pytest.importorskip("llvmlite")
    points = tmp_path / "points.csv"
    points.write_text("a,b,a.u\n1,2,1\n3,4,10\n")
    result = tmp_path / "result.npz"
    cli.done("jvp", "y=a*b", "--points", str(points), "--output", str(result), "--engine", engine)
    assert np.load(result)["y.jvp"].tolist() == [2, 40]
    outcome = cli.done("jvp", "y=a*b", "--points", str(points), "-f", "json")
    assert [json.loads(line)["jvp"]["y"] for line in outcome.out.splitlines()] == [2, 40]
    assert "b gets the tangent 0" in outcome.err


def test_a_tangent_for_all_points_is_given_by_u(cli):
    out = cli.done("jvp", "y=a*b", "--points", "-", "--u", "b=2", stdin="a,b\n1,2\n3,4\n").out
    assert out == "y.jvp\n2.0\n6.0\n"


def test_the_cotangent_has_another_name_beside_an_input_v(cli):
    found = cli.done("jvp", "y=v*x", "--at", "v=2,x=3", "--u", "v=1,x=0", "--v", "2", "--only", "pairing").out
    assert found.splitlines()[1].split() == ["y\u0304·ẏ", "=", "2·3", "=", "6"]


MISTAKES = {
    "no tangent": (["y=x*z", "--at", "x=1,z=1"], "no tangent is given"),
    "of no input": (["y=x*z", "--u", "q=1"], "`q` is not an input here"),
    "of a wrong shape": (["y=x*z", "--u", "z=[1,2]"], "shape (2,) of u against shape () of z"),
    "of an element that is not": (["y=x", "--at", "x=[1,2]", "--u", "x[2]=1"], "`x[2]` is not an element of `x`"),
    "twice": (["y=x*z", "--u", "z=1", "--u", "x=1"], "--u is given twice"),
    "twice, and together": (["y=x*z", "--u", "z=1", "--u", "x=[1]"], "--u 'z=1,x=[1]'"),
    "none": (["y=x*z", "--shape", "x=2", "--at", "x=[1,2],z=1"], "--u 'x[0]=1,x[1]=1,z=1'"),
    "one name twice": (["y=x*z", "--u", "z=1,z=2"], "`z` is given twice"),
    "of a computed name": (["h=x;y=h**2", "--u", "h=1"], "`h` is not an input here"),
    "of a constant": (["y=x*z", "--wrt", "x", "--u", "z=1"], "`z` is not an input here"),
    "not a number": (["y=x", "--u", "x=z"], "`z` is not a number"),
    "v without a point": (["y=x", "--u", "x=1", "--v", "1"], "--v is for points"),
    "steps of a file": (["y=x", "--points", "samples/points.csv", "--steps"], "--steps is for single points"),
    "an array too large": (["y=x", "--shape", "x=99999999999x9", "--u", "x=1"], "99999999999×9 is too large"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told(cli, mistake):
    arguments, told = MISTAKES[mistake]
    assert told in cli.refused("jvp", *arguments)


@pytest.mark.parametrize("command", [("jvp", "--u", "1", "--steps"), ("jvp", "--v", "1"), ("jacobian", "--order", "3")])
def test_what_is_for_single_points_goes_into_the_file_of_a_page(cli, tmp_path, command):
    whole = (*command, "y=sin(x)", "--at", "x=1")
    cli.done(*whole, "--output", str(tmp_path / "page.txt"))
    assert (tmp_path / "page.txt").read_text("utf-8") == cli.done(*whole).out


def test_a_tangent_in_both_places_is_refused(cli):
    assert "u is given twice" in cli.refused("jvp", "y=a", "--points", "-", "--u", "a=1", stdin="a,a.u\n1,2\n")


def test_the_jacobian_of_a_page_has_the_inputs_that_move(cli):
    out = cli.done("jvp", "y=w*x+b**2", "--at", "x=2,w=3,b=1", "--u", "x=1,b=0").out
    assert "∂y/∂x = w = 3\n" in out
    assert "∂y/∂b" not in out
    assert "∂y/∂w" not in out
    assert out.endswith("ẏ = 3·1 = 3\n")
    assert "∂y/∂x = w" in (formulas := cli.done("jvp", "y=w*x+b**2", "--u", "x=2").out)
    assert "∂y/∂b" not in formulas
    assert cli.json("jvp", "y=w*x+b**2", "--u", "b=2")["jvp"] == {"y": "4*b"}


@pytest.mark.parametrize(
    ("u", "grads"), [("1,0.5,2", [1, [0.5, 2]]), ("1,[0.5,2]", [1, [0.5, 2]]), ("ones", [1, [1, 1]])]
)
def test_a_tangent_in_order(cli, u, grads):
    result = cli.json("jvp", "y=b*sum(x)", "--at", "x=[2,1],b=3", "--u", u)
    assert [*result["u"].values()] == grads
    assert result["jvp"] == {"y": 3 * grads[0] + 3 * sum(grads[1])}
    assert cli.json("hessian", "y=b*sum(x)", "--at", "x=[2,1],b=3", "--u", u)["u"] == result["u"]


@pytest.mark.parametrize("u", ["1", "1,2", "1,2,3,4", "[1,2],3", "[[1,2,3]]", "1,[[2,3]]"])
def test_a_tangent_in_order_that_does_not_fit(cli, u):
    message = cli.refused("jvp", "y=b*sum(x)", "--at", "x=[2,1],b=3", "--u", u)
    assert "of u against the inputs b, x with 3 elements" in message
    assert "for example --u 'b=1,x[0]=1,x[1]=1'" in message
