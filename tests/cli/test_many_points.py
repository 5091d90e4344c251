"""Many points: whatever the files, the results are those of `--at` at each point, under the promised names."""

from __future__ import annotations

import csv
import io
import math
import os
import re

import numpy as np
import pytest
from conftest import examples, needs
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gradcli.batch import job
from gradcli.cli import answers_at_points
from gradcli.data import text_files

pytestmark = pytest.mark.usefixtures("own_folder")

SYSTEM = ("h=x@M", "y=a*h+b", "s=b**2*sin(x[1])", "t=3*a")
N = 7
RNG = np.random.default_rng(1)
POINTS = {  # points along the first axis
    "a": RNG.standard_normal(N),
    "b": RNG.standard_normal(N),
    "x": RNG.standard_normal((N, 2)),
    "M": RNG.standard_normal((N, 2, 2)),
    "unused": np.full(N, np.nan),
}
COTANGENTS = {"y.v": RNG.standard_normal((N, 2)), "s.v": RNG.standard_normal(N), "t.v": RNG.standard_normal(N)}
ENDINGS = ["csv", "npz", "parquet", "folder", "-"]
COMMANDS = {
    "backward": ("backward", *SYSTEM),
    "backward --retain": ("backward", *SYSTEM, "--retain", "h", "--wrt", "x,a"),
    "jacobian": ("jacobian", *SYSTEM),
    "jacobian --sparse": ("jacobian", *SYSTEM, "--sparse", "--outputs", "t,y"),
}


def column_names(name, shape):
    """Return the names as CLI.md has them: `x0`, `x[0]`, `M[0,1]`, `y[0].v`."""
    stem, dot, suffix = name.partition(".")
    return [stem + f"[{','.join(map(str, key))}]" * bool(key) + dot + suffix for key in np.ndindex(*shape)]


def columns_of(arrays):
    return {
        column: array.reshape(len(array), math.prod(array.shape[1:]))[:, k].tolist()
        for name, array in arrays.items()
        for k, column in enumerate(column_names(name, array.shape[1:]))
    }


def csv_text(arrays):
    columns = columns_of(arrays)
    out = io.StringIO()
    csv.writer(out).writerows(
        [["the date", *columns], *(["today", *row] for row in zip(*columns.values(), strict=True))]
    )
    return out.getvalue()


def written(kind, arrays, name="points"):
    """Write points in a format; return the arguments that name them, and standard input."""
    if kind == "-":
        return ("--points", "-"), csv_text(arrays)
    path = f"{name}.{'parquet' if kind == 'folder' else kind}"
    if kind == "csv":
        with open(path, "w", newline="") as file:
            file.write(csv_text(arrays))
    elif kind == "npz":
        np.savez(path, **arrays, notes=np.array(["no number"]))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"the date": ["today"] * len(next(iter(arrays.values()))), **columns_of(arrays)})
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=4)
        else:
            os.mkdir(path)
            pq.write_table(table[:5], f"{path}/part.2.parquet")
            pq.write_table(table[5:], f"{path}/part.10.parquet")
    return ("--points", path), ""


def read(kind, out):
    """Return the names and the values in a result: columns, or for .npz arrays, with points along the first axis."""
    if kind == "npz":
        assert out == ""
        with np.load("result.npz") as found:
            return {name: found[name] for name in found}
    if kind == "parquet":
        assert out == ""
        import pyarrow.parquet as pq

        table = pq.read_table("result.parquet")
        return {name: np.array(table[name]) for name in table.column_names}
    if kind == "csv":
        assert out == ""
        with open("result.csv", newline="") as file:
            out = file.read()
    head, *rows = csv.reader(io.StringIO(out))
    return dict(zip(head, np.array(rows, dtype=float).reshape(len(rows), len(head)).T, strict=True))


def flat(found):
    """Return the columns of a result in any format."""
    return {
        column: array.reshape(len(array), math.prod(array.shape[1:]))[:, k]
        for name, array in found.items()
        for k, column in enumerate(entries(name, array.shape[1:]))
    }


def entries(name, shape):
    """Return the names of the elements of an array in .npz: of `dy/dx`, the rows of y and the columns of x."""
    if not name.startswith("d") or "/" not in name or not shape:
        return column_names(name, shape)
    above, below = (part[1:] for part in name.split("/"))
    rank = np.ndim(POINTS.get(below)) - 1
    rows, across = shape[: len(shape) - rank], shape[len(shape) - rank :]
    return [f"d{i}/d{j}" for i in column_names(above, rows) for j in column_names(below, across)]


def at_each_point(cli, command):
    """Return what `--at` gives at each point, as columns."""
    found = []
    for k in range(N):
        text = ",".join(f"{name}={POINTS[name][k].tolist()}" for name in ("a", "b", "x", "M"))
        v = ",".join(f"{name[0]}={value[k].tolist()}" for name, value in COTANGENTS.items())
        arguments = [a for a in command if a != "--sparse"]
        point = cli.json(*arguments, "--at", text, *(("--v", v) if command[0] == "backward" else ()))
        if command[0] == "backward":
            grads = {f"{n}.grad": np.array(g) for n, g in (point["grad"] | point.get("retained", {})).items()}
            found.append(
                {c: v for n, g in grads.items() for c, v in zip(column_names(n, g.shape), g.flat, strict=True)}
            )
        else:
            places = [(i, j) for i in range(len(point["rows"])) for j in range(len(point["columns"]))]
            kept = [p for p in places if "--sparse" not in command or point["symbolic"][p[0]][p[1]] != "0"]
            names = {p: f"d{point['rows'][p[0]]}/d{point['columns'][p[1]]}" for p in kept}
            found.append({names[p]: point["jacobian"][p[0]][p[1]] for p in kept})
    return {name: np.array([point[name] for point in found]) for name in found[0]}


@pytest.fixture(scope="module")
def expected(cli):
    return {name: at_each_point(cli, command) for name, command in COMMANDS.items()}


@pytest.fixture(scope="module")
def columns(cli):
    """Return the names of the columns that each command prints, in their order."""
    found = {}
    for name in COMMANDS:
        command, arrays = arguments_of(name)
        points, stdin = written("-", arrays)
        found[name] = list(read("-", cli.done(*command, *points, stdin=stdin).out))
    return found


def arguments_of(name):
    return COMMANDS[name], POINTS | (COTANGENTS if name.startswith("backward") else {})


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("target", ["csv", "npz", "parquet", "-", None])
@pytest.mark.parametrize("source", ENDINGS)
def test_the_results_are_those_of_at(cli, expected, columns, source, target, name):
    needs(source)
    needs(target)
    command, arrays = arguments_of(name)
    points, stdin = written(source, arrays)
    output = () if target is None else ("--output", target if target == "-" else f"result.{target}")
    outcome = cli.done(*command, *points, *output, stdin=stdin)
    assert outcome.notes == ""
    found = flat(read(target, outcome.out))
    assert found.keys() == expected[name].keys()
    for column, values in expected[name].items():
        np.testing.assert_allclose(found[column], values, rtol=1e-14, atol=1e-15, err_msg=column)
    assert list(found) == columns[name]  # in the same order in each format


@pytest.mark.parametrize("target", ["csv", "npz", "parquet", "-", "json"])
@pytest.mark.parametrize("source", ENDINGS)
def test_blocks_make_no_difference(cli, monkeypatch, source, target):
    def run():
        output = ("-f", "json") if target == "json" else ("--output", target if target == "-" else f"result.{target}")
        outcome = cli.done("backward", *SYSTEM, *points, *output, stdin=stdin)
        return outcome.out if target in ("json", "-") else flat(read(target, outcome.out))

    needs(source)
    needs(target)
    points, stdin = written(source, POINTS | COTANGENTS)
    whole = run()
    for size in (1, 3, N, N + 1):
        monkeypatch.setattr(job, "_LONGEST", size)
        monkeypatch.setattr(answers_at_points, "_JSON_BLOCK", size)
        monkeypatch.setattr(text_files, "_FIRST", 100 * size)
        monkeypatch.setattr(text_files, "CHUNK", 100 * size)
        blocks = run()
        if isinstance(whole, str):
            assert blocks == whole, size
        else:
            np.testing.assert_equal(blocks, whole, err_msg=str(size))


WHOLE = [command for command in COMMANDS.values() if "--sparse" not in command]


@pytest.mark.parametrize("command", [*WHOLE, ("backward", *SYSTEM, "--steps")], ids=" ".join)
def test_json_is_what_at_prints(cli, command):
    points, stdin = written("-", POINTS | (COTANGENTS if command[0] == "backward" else {}))
    found = cli.done(*command, *points, "-f", "json", stdin=stdin).objects
    assert len(found) == N
    for k, line in enumerate(found):
        text = ",".join(f"{name}={POINTS[name][k].tolist()}" for name in ("a", "b", "x", "M"))
        v = ",".join(f"{name[0]}={value[k].tolist()}" for name, value in COTANGENTS.items())
        alone = cli.json(*command, "--at", text, *(("--v", v) if command[0] == "backward" else ()))
        alone.pop("notes", None)  # on a single point
        assert list(line) == list(alone)
        assert close(line, alone)


def close(one, two):
    """Tell whether two JSON values are the same, up to the last digits of their numbers."""
    if isinstance(one, dict):
        return list(one) == list(two) and all(close(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(close, one, two))
    return one == two or (isinstance(one, float) and math.isclose(one, two, rel_tol=1e-14, abs_tol=1e-15))


@pytest.mark.parametrize("style", ["csv", "json"])
def test_a_bad_row_far_down_leaves_whole_lines_of_the_rows_before_it(cli, monkeypatch, style):
    monkeypatch.setattr(text_files, "_FIRST", 100)
    monkeypatch.setattr(text_files, "CHUNK", 100)
    rows = "".join(f"{k},2\n" for k in range(500))
    command = ("backward", "y=a*b", "--points", "-", "-f", style)
    good = cli.done(*command, stdin=f"a,b\n{rows}").out
    found = cli(*command, stdin=f"a,b\n{rows}5,x7\n")
    assert (found.status, found.err) == (2, "error: standard input, line 502, column `b`: `x7` is not a number\n")
    assert good.startswith(found.out)
    assert 400 < found.out.count("\n") < 501
    assert found.out.endswith("\n")
    refused = cli.refused("backward", "y=a*b", "--points", "-", "--output", "r.csv", stdin=f"a,b\n{rows}5,x7\n")
    assert "line 502" in refused
    assert os.listdir() == []


# No points


def none(arrays):
    return {name: values[:0] for name, values in arrays.items()}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("target", ["csv", "npz", "parquet", "-", None])
@pytest.mark.parametrize("source", ENDINGS)
def test_no_points_give_a_result_without_rows(cli, expected, source, target, name):
    needs(source)
    needs(target)
    command, arrays = arguments_of(name)
    points, stdin = written(source, none(arrays))
    output = () if target is None else ("--output", target if target == "-" else f"result.{target}")
    outcome = cli.done(*command, *points, *output, stdin=stdin)
    label = "standard input" if source == "-" else f"`{points[1]}`"
    assert outcome.notes == f"note: {label} contains no points, so the result has no rows\n"
    found = flat(read(target, outcome.out))
    assert found.keys() == expected[name].keys()
    assert all(values.shape == (0,) for values in found.values())


def test_an_empty_part_of_a_folder_is_no_matter(cli):
    pq = pytest.importorskip("pyarrow.parquet")
    points, _ = written("folder", {"a": POINTS["a"]})
    before = cli.done("backward", "y=a**2", *points)
    table = pq.read_table("points.parquet/part.2.parquet")[:0]
    for name in ("part.1", "part.3", "part.11"):
        pq.write_table(table, f"points.parquet/{name}.parquet")
    assert cli.done("backward", "y=a**2", *points) == before
    assert before.err == ""


# Of names and large points


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet", "folder"])
def test_names_of_files_that_are_not_utf_8(cli, ending):
    needs(ending)
    (_, path), _ = written(ending, {"a": POINTS["a"]})
    name, shown = os.fsdecode(b"\xff") + path, f"\ufffd{path}"
    os.rename(path, name)
    found = cli.done("backward", "y=a**2", "--points", name, "--output", f"{name}.csv")
    assert (found.out, found.err) == ("", f"wrote {shown}.csv: 7 points\n")
    with open(f"{name}.csv") as file:
        assert len(file.readlines()) == N + 1
    assert f"`{shown}` has no values for the input `b`" in cli.refused("backward", "y=b", "--points", name)
    if ending != "folder":
        refused = cli.refused("backward", "y=a", "--points", name, "--output", name)
        assert f"`{shown}` cannot be written: this command reads it" in refused


# Laws

LAW = ("y=a*b+sin(a)/b", "z=a**2")


@settings(deadline=None, max_examples=examples(16), suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=8))
@example([(math.nan, 1.0), (math.inf, -0.0), (-0.0, 0.0), (0.0, -math.inf), (5e-324, 1.7976931348623157e308)])
def test_any_points_give_what_at_gives(cli, points):
    text = "".join(["a,b\n", *(f"{a!r},{b!r}\n" for a, b in points)])
    np.save("minus.npy", -0.0)  # as a number on the command line, it is 0
    shown = [[repr(c) if c or not math.copysign(1, c) < 0 else "@minus.npy" for c in point] for point in points]
    at = [option for a, b in shown for option in ("--at", f"a={a},b={b}")]
    for command in (("backward", *LAW, "--v", "1,10"), ("jacobian", *LAW)):
        alone = re.sub(r', "notes": .*\]', "", cli.done(*command, *at, "-f", "json").out)  # of --at alone
        assert cli.done(*command, "--points", "-", "-f", "json", stdin=text).out == alone
        out = cli.done(*command, *at, "-f", "csv").out
        rows = [line.split(",")[4:] for line in out.splitlines()]  # after a, b, y and z
        many = cli.done(*command, "--points", "-", stdin=text).out
        assert [line.split(",") for line in many.splitlines()] == rows
