"""Points where a value or a gradient is not finite are counted in a warning, which names the operation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import ENDINGS, each, needs

from gradcli.batch import job
from gradcli.cli import answers_at_points

pytestmark = pytest.mark.usefixtures("own_folder")


POLES = [3, 1, 0, 2, 0, 0.5, 0]  # the first is point 3


@each("size", [1, 2, 3, 4, 1000])
@each(
    ("options", "form"),
    [
        (options, form)
        for options in (("backward",), ("jacobian",), ("jacobian", "--sparse"))
        for form in (*ENDINGS, "-", "json")
        if not ("--sparse" in options and form == "json")
    ],
)
def test_poles_are_counted_in_a_warning_each_of_values_and_of_derivatives(cli, monkeypatch, options, form, size):
    needs(form)
    monkeypatch.setattr(job, "_LONGEST", size)
    monkeypatch.setattr(answers_at_points, "_JSON_BLOCK", size)
    np.savez("p.npz", a=POLES)
    output = ("-f", "json") if form == "json" else ("--output", form if form == "-" else f"r.{form}")
    outcome = cli.done(*options, "y=1/a", "--points", "p.npz", *output)
    jacobian = options[0] == "jacobian"
    what, name = ("Jacobians", "dy/da") if jacobian else ("gradients", "a.grad")
    assert outcome.notes == (
        "warning: the values of 3 of 7 points are not finite;\n"
        "  at the first, point 3, y is inf: it arises in `div` (1/a), whose value is not finite\n"
        f"warning: the {what} of 3 of 7 points are not finite;\n"
        f"  at the first, point 3, {name} is -inf: it arises in `div` (1/a), whose value is not finite\n"
    )
    if form == "json":
        found = [line["jacobian"][0][0] if jacobian else line["grad"]["a"] for line in outcome.objects]
    elif form == "npz":
        with np.load("r.npz") as arrays:
            found = arrays[name].tolist()
    elif form == "parquet":
        import pyarrow.parquet as pq

        found = pq.read_table("r.parquet")[name].to_pylist()
    else:
        found = (outcome.out if form == "-" else Path("r.csv").read_text("utf-8")).split()[1:]
    assert [float(value) for value in found] == [-1 / a**2 if a else -np.inf for a in POLES]


@each(
    ("system", "a", "count", "says"),
    [
        (
            "y=log(a)",
            [1, -1, -2, 0],
            "3 of 4 points are not finite;\n  at the first, point 2",
            "y is nan: it arises in",
        ),
        ("y=log(a)*[1,2]", [1, 0], "1 of 2 points are not finite", "y[0] is -inf: it arises in `log` (log(a))"),
        ("y=[1,2,a]*1e300; z=y*1e9", [1, 2], "2 of 2 points are not finite", "z[0] is inf: it arises in `mul` (y*1e9)"),
        ("y=where(a>0,log(a),1/(a+1))", [1, -1], "at the first, point 2", "y is inf: it arises in `div` (1/(a+1))"),
        ("y=floor(a*1e300)*0+a", [1, 1e9], "1 of 2 points are not finite", "y is nan: it arises in `mul` (a*1e300)"),
        ("input b = inf\ny=a+b", [1, 2], "2 of 2 points are", "y is inf: the input b itself is not finite"),
    ],
)
@each("command", ["backward", "jacobian"])
@each("engine", ["numpy", "llvm", "json"])
def test_values_are_told_as_gradients_are(cli, engine, command, system, a, count, says):
    if engine == "llvm":
        pytest.importorskip("llvmlite")
    np.savez("p.npz", a=np.array(a, dtype=float))
    options = ("-f", "json") if engine == "json" else ("--engine", engine)
    v = ("--v", "ones") if command == "backward" else ()
    outcome = cli.done(command, system, "--points", "p.npz", "--wrt", "a", *v, *options)
    values, _, _ = outcome.err.partition("\nwarning: ")
    assert values.startswith("warning: the values of ")
    assert count in values
    assert says in values
    if engine != "json":  # what is checked is not written
        names = outcome.out.splitlines()[0].split(",")
        assert all(name == "a.grad" or name.endswith("/da") for name in names)
