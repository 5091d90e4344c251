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
