"""Which columns of a file of points are read, copied and skipped, and under what names the file may come."""

from __future__ import annotations

import gzip
import os
import threading

import numpy as np
import pytest
from conftest import needs

pytestmark = pytest.mark.usefixtures("own_folder")

TABLE = 'id,flow rate,p.in,z\na1,1,2,3\n"b,2",3,,5\nc,4,NA,6\nd,5,6,7\n'
NAMES = ("--columns", "x=flow rate,p=p.in")


@pytest.fixture
def table():
    with open("table.csv", "w") as file:
        file.write(TABLE)
    return ("--points", "table.csv")


def test_values_are_columns(cli, table):
    found = cli.done("backward", "y=x*z; w=z**2", *table, "--columns", "x=flow rate", "--v", "1,0", "--values").out
    assert found.splitlines()[:2] == ["y,w,x.grad,z.grad", "3.0,9.0,3.0,1.0"]
    found = cli.done("jacobian", "y=stack([z,2*z])", *table, "--values").out
    assert found.splitlines()[:2] == ["y[0],y[1],dy[0]/dz,dy[1]/dz", "3.0,6.0,1.0,2.0"]


@pytest.mark.parametrize("arrow", [True, False])
def test_columns_by_their_headers(cli, table, arrow, monkeypatch):
    if not arrow:
        monkeypatch.setattr("gradcli.data.csv.reader._ARROW_WIDTH", 0)
    command = ("backward", "y=x*p", *table, *NAMES)
    assert "line 3, column `p.in`: the cell is blank" in (err := cli.refused(*command))
    assert "--missing skip leaves such points out" in err
    outcome = cli.done(*command, "--missing", "skip", "--keep", "z,id")
    assert outcome.out == "z,id,p.grad,x.grad\n3,a1,1.0,2.0\n7,d,5.0,6.0\n"
    assert "note: 2 points were skipped: a cell is missing" in outcome.err
    rows = cli.done(*command, "--missing", "nan", "--keep", "id").out.splitlines()
    assert rows == ["id,p.grad,x.grad", "a1,1.0,2.0", '"b,2",3.0,nan', "c,4.0,nan", "d,5.0,6.0"]


def test_json_has_what_is_kept(cli, table):
    found = cli.done("hessian", "y=z**3", *table, "--keep", "id,flow rate", "-f", "json").objects
    assert [line["keep"] for line in found[:2]] == [
        {"id": "a1", "flow rate": "1"},
        {"id": "b,2", "flow rate": "3"},
    ]
    assert found[1]["hessian"] == [[30.0]]


def test_parquet_keeps_types(cli):
    needs("parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [2**60 + 1, 5], "x": [None, 2.0], "day": ["Mo", "Tu"]}), "points.parquet")
    command = ("backward", "y=x**2", "--points", "points.parquet", "--keep", "id,day", "--output", "result.parquet")
    assert "a null is not a number" in cli.refused(*command)
    cli.done(*command, "--missing", "nan")
    table = pq.read_table("result.parquet")
    assert table["id"].to_pylist() == [2**60 + 1, 5]
    assert table["day"].to_pylist() == ["Mo", "Tu"]
    assert np.isnan(table["x.grad"][0].as_py())
    outcome = cli.done(*command, "--missing", "skip")
    assert pq.read_table("result.parquet").to_pydict() == {"id": [5], "day": ["Tu"], "x.grad": [4.0]}
    assert "1 point was skipped" in outcome.err


def test_npz_keeps_numbers(cli, table):
    np.savez("points.npz", **{"x": np.array([1.0, 2.0]), "run no": np.array([7, 8])})
    cli.done("backward", "y=x**2", "--points", "points.npz", "--keep", "run no", "--output", "result.npz")
    with np.load("result.npz") as found:
        assert {name: found[name].tolist() for name in found} == {"run no": [7, 8], "x.grad": [2, 4]}
    cli.done("backward", "y=x**2", "--points", "points.npz", "--columns", "x=run no", "--output", "result.npz")
    with np.load("result.npz") as found:
        assert found["x.grad"].tolist() == [14, 16]
    err = cli.refused("backward", "y=z**2", *table, "--keep", "id", "--output", "result.npz")
    assert "the column `id` has texts, and a .npz file has numbers" in err


def test_a_packed_file(cli):
    with gzip.open("points.csv.gz", "wt") as file:
        file.write("x\n" + "1.5\n" * 100_000)
    name, *numbers = cli.done("backward", "y=x**2", "--points", "points.csv.gz").out.split()
    assert (name, [*map(float, numbers)]) == ("x.grad", [3.0] * 100_000)
    with open("points.csv.gz", "r+b") as packed:
        packed.truncate(60)
    assert "`points.csv.gz` cannot be read: it ends early" in cli.refused(
        "backward", "y=x**2", "--points", "points.csv.gz"
    )
    with open("points.csv.gz", "w") as broken:
        broken.write("x\n1\n")
    assert "`points.csv.gz` cannot be read" in cli.refused("backward", "y=x**2", "--points", "points.csv.gz")


@pytest.mark.parametrize("text", ["x,b\n3,2\n", '{"x": 3, "b": 2, "id": "a"}\n', '\n  {"at": {"x": 3, "b": 2}}\n'])
@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode())], ids=["plain", "gzip"])
def test_what_a_pipe_brings_is_known_by_its_first_characters(cli, text, pack):
    """`zcat` and a file extension are not needed: `jq -c .at | gradcli backward --points -`."""
    assert cli.done("backward", "y=b*x**2", "--points", "-", stdin=pack(text)).out == "b.grad,x.grad\n9.0,12.0\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe(cli):
    """A process substitution, `<(command)`, is a pipe without a file extension."""
    os.mkfifo("pipe")

    def write():
        with open("pipe", "w") as pipe:
            pipe.write("x\n3\n")

    writer = threading.Thread(target=write)
    writer.start()
    assert cli.done("backward", "y=x**2", "--points", "pipe").out == "x.grad\n6.0\n"
    writer.join()


def test_check_reads_columns_by_their_headers(cli, table):
    command = ("check", "y=x*p**2", "dy/dp=2*x*p", *table, *NAMES)
    err = cli.refused(*command)
    assert "line 3, column `p.in`: the cell is blank" in err
    outcome = cli.done(*command, "--missing", "skip", "-f", "json")
    assert outcome.objects[0]["verdict"] == "right"
    assert "note: 2 points were skipped: a cell is missing" in outcome.err
    wrong = cli("check", "y=x*p**2", "dy/dp=p*x", *table, *NAMES, "--missing", "skip", "-f", "json")
    told = wrong.objects[0]
    assert (wrong.status, told["points"], told["at"]) == (1, 2, {"p": 2.0, "x": 1.0})
    assert "--columns is for many points" in cli.refused("check", "y=x", "dy/dx=1", "--columns", "x=flow rate")
