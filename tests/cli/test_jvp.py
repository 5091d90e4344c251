"""gradcli jvp: J·u as JSON, CSV and a page, at points, as formulas, and at the points of a file."""

import json

import numpy as np
import pytest


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


@pytest.mark.parametrize("command", [("jvp", "--u", "1", "--steps"), ("jvp", "--v", "1"), ("jacobian", "--order", "3")])
def test_what_is_for_single_points_goes_into_the_file_of_a_page(cli, tmp_path, command):
    whole = (*command, "y=sin(x)", "--at", "x=1")
    cli.done(*whole, "--output", str(tmp_path / "page.txt"))
    assert (tmp_path / "page.txt").read_text("utf-8") == cli.done(*whole).out


def test_a_tangent_in_both_places_is_refused(cli):
    assert "u is given twice" in cli.refused("jvp", "y=a", "--points", "-", "--u", "a=1", stdin="a,a.u\n1,2\n")
