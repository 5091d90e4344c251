"""Names in the letters of any script, wherever a name is typed, read or shown."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from gradcli.lang.system import natural

NAMES = ["λ", "μ_1", "Δx", "ς", "вес", "変数", "größe", "x\u0302", "नाम", "عدد", "ħ", "x٣", "Å2"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_script(cli, name):
    name = unicodedata.normalize("NFKC", name)
    point = ("--at", f"{name}=3,a=2")
    assert cli.json("backward", f"y=a*{name}^2", *point)["grad"] == {name: 12, "a": 9}
    assert cli.json("backward", f"{name}=a*2; y={name}**2", "--at", "a=2", "--retain", name)["retained"] == {name: 8}
    assert cli.json("jacobian", f"y=a*{name}**2", "--wrt", name)["symbolic"] == [[f"2*a*{name}"]]
    for style in ("table", "markdown", "latex", "csv"):
        assert "12" in cli.done("backward", f"y=a*{name}^2", *point, "-f", style, *["--steps"][: style == "table"]).out


# Each two are one name: Python and gradcli compare names in the form NFKC.
SAME = [("𝜆", "λ"), ("e\u0301", "é"), ("µ", "μ"), ("ｘ", "x"), ("x２", "x2"), ("ﬁ", "fi"), ("Å", "Å"), ("aₓ", "ax")]


@pytest.mark.parametrize(("typed", "name"), SAME)
def test_names_are_compared_as_in_python(cli, tmp_path, typed, name):
    namespace = {}
    exec(f"{typed} = 1", namespace)
    assert name in namespace

    system = (f"t={typed}[0]*{name}[1]", f"input {typed}{typed}=1", f"w=t*{name}{name}")
    names = ("--wrt", typed, "--outputs", "w")
    assert cli.json("jacobian", *system, "--shape", f"{typed}=2", *names)["columns"] == [f"{name}[0]", f"{name}[1]"]
    assert cli.json("backward", *system, "--at", f"{typed}=[3,4]", *names)["grad"] == {name: [4, 3]}
    assert cli.json("backward", *system, "--at", f"{typed}[0]=3,{typed}[1]=4", *names)["grad"] == {name: [4, 3]}
    assert cli.refused("backward", *system, "--at", f"{typed}=[3,4],{name}=1")
    points = tmp_path / "points.csv"
    points.write_text(f"{typed}[0],{typed}[1]\n3,4\n", encoding="utf-8")
    assert cli.done("backward", *system, *names, "--points", str(points)).out.startswith(f"{name}[0].grad,")
    np.savez(tmp_path / "points.npz", **{typed: [[3.0, 4.0]]})
    out = cli.done("backward", *system, *names, "--points", str(tmp_path / "points.npz")).out
    assert out == f"{name}[0].grad,{name}[1].grad\n4.0,3.0\n"

    outputs = (f"{typed}=[a,2*a]", "--at", "a=1", "--outputs", typed)
    for v in (f"{typed}=[0,1]", f"{typed}[1]=1", f"onehot:{typed}[1]"):
        found = cli.json("backward", *outputs, "--v", v, "--retain", typed)
        assert (found["grad"], found["retained"]) == ({"a": 2}, {name: [0, 1]})


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
def test_files_of_points_and_results(cli, tmp_path, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    points = tmp_path / "points.csv"
    points.write_text("λ,変数[0],変数[1],é.v\n1,2,3,1\n4,5,6,2\n", encoding="utf-8")
    first, second = (str(tmp_path / f"{name}.{kind}") for name in ("first", "second"))
    cli.done("backward", "é=λ*sum(変数)", "--points", str(points), "--output", first)
    cli.done("jacobian", "é=λ*変数[1]", "--points", str(points), "--output", second)
    table = "λ.grad,変数[0].grad,変数[1].grad\n5.0,1.0,1.0\n22.0,8.0,8.0\n"
    jacobian = "dé/dλ,dé/d変数[0],dé/d変数[1]\n3.0,0.0,1.0\n6.0,0.0,4.0\n"
    if kind == "csv":
        assert [Path(path).read_text(encoding="utf-8") for path in (first, second)] == [table, jacobian]
    elif kind == "npz":
        assert {name: a.tolist() for name, a in np.load(first).items()} == {
            "λ.grad": [5, 22],
            "変数.grad": [[1, 1], [8, 8]],
        }
    else:
        import pyarrow.parquet as pq

        assert ",".join(pq.read_table(first).column_names) == table.splitlines()[0]
        assert ",".join(pq.read_table(second).column_names) == jacobian.splitlines()[0]


def test_a_stream_that_has_no_such_letters(process, tmp_path):
    points = tmp_path / "points.csv"
    points.write_text("λ\n3\n", encoding="utf-8")
    outcome = process("backward", "y=λ**2", "--points", str(points), env={"PYTHONIOENCODING": "ascii"})
    assert (outcome.status, outcome.out) == (0, "λ.grad\n6.0\n")


def test_π_is_the_constant_until_it_is_assigned_or_supplied(cli):
    assert cli.json("jacobian", "y=π*x")["symbolic"] == [["pi"]]
    assert cli.json("backward", "y=x", "--at", "x=π/2")["value"] == {"y": np.pi / 2}
    assert cli.json("backward", "y=π*x", "--at", "x=2,π=3")["grad"] == {"x": 3, "π": 2}
    assert cli.json("backward", "π=3*x; y=π*pi", "--at", "x=2")["grad"]["x"] == pytest.approx(3 * np.pi)


def test_numbers_in_names_are_compared_as_numbers():
    """Other digits than ours are letters: Ethiopic ones are digits to Python, not numbers."""
    assert sorted(["xa", "x10", "x", "x2", "x2a"], key=natural) == ["x", "x2", "x2a", "x10", "xa"]
    assert sorted(["λ10", "λ2", "λ", "x1፩2", "x1፩10"], key=natural) == ["x1፩2", "x1፩10", "λ", "λ2", "λ10"]


def test_columns_of_a_table_are_aligned(cli):
    """A letter of East Asia takes two columns of a terminal."""
    out = cli.done("backward", "変数=2*é", "y=変数**2", "--at", "é=3").out
    assert "変数 = 2*é       = 6    at é = 3\ny    = 変数**2   = 36\n" in out
