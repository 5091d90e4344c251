"""Many points: whatever the files, the results are those of `--at` at each point, under the promised names."""

from __future__ import annotations

import csv
import io
import math
import os

import numpy as np
import pytest
from conftest import needs
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gradcli.batch import job
from gradcli.cli import many
from gradcli.data.csv import chunks as csv_chunks

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


def arguments_of(name):
    return COMMANDS[name], POINTS | (COTANGENTS if name.startswith("backward") else {})


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("target", ["csv", "npz", "parquet", "-", None])
@pytest.mark.parametrize("source", ENDINGS)
def test_the_results_are_those_of_at(cli, expected, source, target, name):
    needs(source)
    needs(target)
    command, arrays = arguments_of(name)
    points, stdin = written(source, arrays)
    output = () if target is None else ("--output", target if target == "-" else f"result.{target}")
    outcome = cli.done(*command, *points, *output, stdin=stdin)
    assert outcome.err == ""
    found = flat(read(target, outcome.out))
    assert found.keys() == expected[name].keys()
    for column, values in expected[name].items():
        np.testing.assert_allclose(found[column], values, rtol=1e-14, atol=1e-15, err_msg=column)
    # In each format, all entries stand under the same names in the same order.
    assert list(found) == list(flat(read("-", cli.done(*command, *points, stdin=stdin).out)))


@pytest.mark.parametrize(
    "options",
    [
        ("--threads", "1"),
        ("--threads", "5"),
        ("--engine", "numpy"),
        ("--engine", "numba"),
        ("--engine", "numba", "--threads", "2"),
        ("-f", "csv"),
        ("--output", "-"),
        ("-f", "csv", "--output", "-"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", COMMANDS)
def test_options_that_change_no_result(cli, name, options):
    if "numba" in options:
        pytest.importorskip("numba")
    command, arrays = arguments_of(name)
    points, _ = written("csv", arrays)
    plain, other = (cli.done(*command, *points, *more) for more in ((), options))
    if "numba" not in options:
        assert other == plain
        return
    assert other.err == ""
    one, two = (read("-", outcome.out) for outcome in (plain, other))
    assert list(one) == list(two)
    for column in one:
        np.testing.assert_allclose(two[column], one[column], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("size", [1, 3, N, N + 1])
@pytest.mark.parametrize("target", ["csv", "npz", "parquet", "-", "json"])
@pytest.mark.parametrize("source", ENDINGS)
def test_blocks_make_no_difference(cli, monkeypatch, source, target, size):
    def run():
        output = ("-f", "json") if target == "json" else ("--output", target if target == "-" else f"result.{target}")
        outcome = cli.done("backward", *SYSTEM, *points, *output, stdin=stdin)
        return outcome.out if target in ("json", "-") else flat(read(target, outcome.out))

    needs(source)
    needs(target)
    points, stdin = written(source, POINTS | COTANGENTS)
    whole = run()
    monkeypatch.setattr(job, "_LONGEST", size)
    monkeypatch.setattr(many, "_JSON_BLOCK", size)
    monkeypatch.setattr(csv_chunks, "_FIRST", 100 * size)
    monkeypatch.setattr(csv_chunks, "CHUNK", 100 * size)
    blocks = run()
    if isinstance(whole, str):
        assert blocks == whole
    else:
        np.testing.assert_equal(blocks, whole)


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
        assert list(line) == list(alone)
        assert close(line, alone)


def close(one, two):
    """Tell whether two JSON values are the same, up to the last digits of their numbers."""
    if isinstance(one, dict):
        return list(one) == list(two) and all(close(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(close, one, two))
    return one == two or (isinstance(one, float) and math.isclose(one, two, rel_tol=1e-14, abs_tol=1e-15))


# Numbers worked out by hand

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


def test_a_column_may_change_the_shape_of_a_default(cli):
    write("p.csv", "b\n7\n")
    found = cli.done("backward", "-F", "-", "--points", "p.csv", stdin=GRAD_FILE)
    assert found.out == "a.grad,b.grad\n7.0,2.0\n"


def write(path, text):
    with open(path, "w") as file:
        return file.write(text)


def test_a_longer_v_of_a_scalar_is_accumulated_with_a_note(cli):
    outcome = cli.done("backward", "y=x**2", "--v", "1,10,100,1000", "--points", "-", stdin="x\n1\n2\n")
    assert outcome.out == "x.grad\n2222.0\n4444.0\n"
    assert outcome.err.startswith("note: v has shape (4,) and y is a scalar")
    refused = cli.refused("backward", "y=x**2", "--v", "1,10", "--strict", "--points", "-", stdin="x\n1\n")
    assert "of v against" in refused


def test_v_of_another_backward_is_one_for_all_points(cli):
    write("p.csv", "x\n1\n2\n")
    second = cli.done("backward", "y=h**2", "--at", "h=5", "-f", "json").out
    assert (
        cli.done("backward", "h=3*x**2", "--v", "-", "--points", "p.csv", stdin=second).out == "x.grad\n60.0\n120.0\n"
    )


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


# No points, and a Jacobian of zeros


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
    assert outcome.err == f"note: {label} holds no points, so the result has no rows\n"
    found = flat(read(target, outcome.out))
    assert found.keys() == expected[name].keys()
    assert all(values.shape == (0,) for values in found.values())


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("command", [*WHOLE, ("backward", *SYSTEM, "--steps")], ids=" ".join)
def test_no_points_of_every_engine_and_in_json(cli, command, engine):
    points, stdin = written("-", none(POINTS | (COTANGENTS if command[0] == "backward" else {})))
    note = "note: standard input holds no points, so the result has no rows\n"
    if engine == "numpy":
        found = cli.done(*command, *points, "-f", "json", stdin=stdin)
        assert (found.out, found.err) == ("", note)
    else:
        pytest.importorskip("numba")
    if "--steps" not in command:
        found = cli.done(*command, *points, "--engine", engine, stdin=stdin)
        assert (found.out.count("\n"), found.err) == (1, note)


def test_an_empty_part_of_a_folder_is_no_matter(cli):
    pq = pytest.importorskip("pyarrow.parquet")
    points, _ = written("folder", {"a": POINTS["a"]})
    before = cli.done("backward", "y=a**2", *points)
    table = pq.read_table("points.parquet/part.2.parquet")[:0]
    for name in ("part.1", "part.3", "part.11"):
        pq.write_table(table, f"points.parquet/{name}.parquet")
    assert cli.done("backward", "y=a**2", *points) == before
    assert before.err == ""


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("system", "header", "row"),
    [
        ("y=0*a+0*b+3", "dy/da,dy/db", "0.0,0.0"),
        ("y=floor(a)", "dy/da", "0.0"),
        ("y=[1,2]*floor(a); z=sign(b)", "dy[0]/da,dy[1]/da,dy[0]/db,dy[1]/db,dz/da,dz/db", "0.0,0.0,0.0,0.0,0.0,0.0"),
    ],
)
def test_a_jacobian_of_zeros(cli, engine, system, header, row):
    pytest.importorskip("numba" if engine == "numba" else "numpy")
    out = cli.done("jacobian", system, "--points", "-", "--engine", engine, stdin=AB).out
    assert out == f"{header}\n{row}\n{row}\n"
    refused = cli.refused("jacobian", system, "--points", "-", "--engine", engine, "--sparse", stdin=AB)
    assert "all entries of the Jacobian are zero" in refused


# Of names and large points


def test_a_large_point_has_no_names_for_its_elements(cli, monkeypatch):
    """Ten million names took twenty seconds, and nobody sees them in .npz."""
    np.savez("p.npz", x=np.arange(6.0).reshape(2, 3))
    monkeypatch.setattr("gradcli.data.columns.element_names", None)
    monkeypatch.setattr("gradcli.explain.columns.element_names", None)
    cli.done("backward", "y=x**2", "--v", "ones", "--points", "p.npz", "--output", "result.npz")
    assert read("npz", "")["x.grad"].tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet", "folder"])
def test_names_of_files_that_are_not_utf_8(cli, ending):
    needs(ending)
    (_, path), _ = written(ending, {"a": POINTS["a"]})
    name, shown = os.fsdecode(b"\xff") + path, f"\ufffd{path}"
    os.rename(path, name)
    found = cli.done("backward", "y=a**2", "--points", name, "--output", f"{name}.csv")
    assert (found.out, found.err) == ("", "")
    with open(f"{name}.csv") as file:
        assert len(file.readlines()) == N + 1
    assert f"`{shown}` has no values for the input `b`" in cli.refused("backward", "y=b", "--points", name)
    if ending != "folder":
        refused = cli.refused("backward", "y=a", "--points", name, "--output", name)
        assert f"`{shown}` is the file of points" in refused


# Laws

LAW = ("y=a*b+sin(a)/b", "z=a**2")


@settings(deadline=None, max_examples=16, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=8))
@example([(math.nan, 1.0), (math.inf, -0.0), (-0.0, 0.0), (0.0, -math.inf), (5e-324, 1.7976931348623157e308)])
def test_any_points_give_what_at_gives(cli, points):
    text = "".join(["a,b\n", *(f"{a!r},{b!r}\n" for a, b in points)])
    np.save("minus.npy", -0.0)  # as a number on the command line, it is 0
    shown = [[repr(c) if c or not math.copysign(1, c) < 0 else "@minus.npy" for c in point] for point in points]
    at = [option for a, b in shown for option in ("--at", f"a={a},b={b}")]
    for command in (("backward", *LAW, "--v", "1,10"), ("jacobian", *LAW)):
        alone = cli.done(*command, *at, "-f", "json").out
        assert cli.done(*command, "--points", "-", "-f", "json", stdin=text).out == alone
        out = cli.done(*command, *at, "-f", "csv").out
        rows = [line.split(",")[4:] for line in out.splitlines()]  # after a, b, y and z
        many = cli.done(*command, "--points", "-", stdin=text).out
        assert [line.split(",") for line in many.splitlines()] == rows


def test_a_real_file_of_many_points(process):
    count = 300_000
    a, b = np.random.default_rng(0).uniform(-2, 2, (2, count)).round(6)
    np.savetxt("p.csv", np.stack([a, b], 1), fmt="%.6f", delimiter=",", header="a,b", comments="")
    outcome = process("backward", "y=sin(a)*b**3", "--points", "p.csv", "--output", "r.npz")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    with np.load("r.npz") as found:
        assert list(found) == ["a.grad", "b.grad"]
        np.testing.assert_allclose(found["a.grad"], np.cos(a) * b**3, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(found["b.grad"], 3 * np.sin(a) * b**2, rtol=1e-13, atol=1e-15)
