"""Points are read as they were written, in blocks; every mistake in a file is told in one sentence."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from conftest import HANG, at_most, long
from point_files import COLUMNS, SHAPES, VALUES, csv, csv_text, json_lines, npz, parquet, points_first, read, refused

from gradcli.data.formats import create_result, open_points

pytestmark = pytest.mark.usefixtures("own_folder")


# All formats


@pytest.fixture(params=["csv", "npz", "npz deflated", "npz in Fortran order", "parquet", "jsonl"])
def written(request):
    """The same points, in a file of each format."""
    if request.param == "csv":
        return csv(csv_text())
    if request.param == "parquet":
        return parquet(list(COLUMNS.items()))
    if request.param == "jsonl":
        return json_lines()
    order = np.asfortranarray if "Fortran" in request.param else np.ascontiguousarray
    arrays = {name: order(points_first(value)) for name, value in VALUES.items()}
    return npz(np.savez_compressed if "deflated" in request.param else np.savez, **arrays)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_points_are_read_in_blocks(written, size):
    found, sizes = read(written, size=size)
    assert list(found) == list(VALUES)
    for name, value in VALUES.items():
        np.testing.assert_array_equal(found[name], value)
    assert sum(sizes) == 5
    assert max(sizes) == min(size, 5)


def test_shapes_count_and_fraction(written):
    with closing(open_points(str(written))) as points:
        assert points.shapes == SHAPES
        assert points.count == (None if written.suffix in (".csv", ".jsonl") else 5)
        fractions = [points.fraction for _ in points.blocks(["x0"], 2)]
        assert points.fraction == 1
    assert fractions == sorted(fractions)


def test_a_variable_that_is_not_there(written):
    assert "has no values for `x1`\n  did you mean `x" in refused(written, ["x1"])


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_a_file_that_is_not_there(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    message = refused(tmp_path / f"q{ending}")
    assert "cannot be read" in message
    assert "o such file" in message


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_pipes_and_devices_are_refused_at_once(tmp_path, ending):
    """Nobody writes into the pipe: who opens it waits."""
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    os.mkfifo(f"p{ending}")
    (tmp_path / f"null{ending}").symlink_to("/dev/null")
    with at_most(HANG):
        says = "is a pipe, not a file\n  CSV and JSON Lines are read from pipes and devices"
        assert refused(f"p{ending}") == f"`p{ending}` {says}"
    assert refused(f"null{ending}").startswith(f"`null{ending}` is a device, not a file")


# No points


@pytest.mark.parametrize("kind", ["csv", "npz", "npz deflated", "npz in Fortran order", "parquet", "jsonl"])
def test_a_file_without_points(kind):
    if kind == "csv":
        path = csv(csv_text().splitlines()[0] + "\n")
    elif kind == "parquet":
        path = parquet([(name, np.zeros(0)) for name in COLUMNS])
    else:
        save = np.savez_compressed if "deflated" in kind else np.savez
        order = "F" if "Fortran" in kind else "C"
        arrays = {name: np.zeros((0, *shape), order=order) for name, shape in SHAPES.items()}
        path = npz(save, **arrays)
    with closing(open_points(str(path))) as points:
        assert points.shapes == SHAPES
        assert not points.count
        assert list(points.blocks(list(SHAPES), 10)) == []
    assert "has no values for `q`" in refused(path, ["q"])


@pytest.mark.parametrize("name", ["p", "p.xyz", "p.npz.gz", ".csv"])
def test_unknown_endings(name):
    endings = ".csv, .csv.gz, .dat, .json, .jsonl, .npz, .parquet, .tsv and .txt"
    assert f"points are read from {endings} files" in refused(csv("x0\n1\n", name))


def test_names_are_printed_without_what_a_terminal_obeys(tmp_path):
    assert "p�[2J" in refused(tmp_path / "p\x1b[2J.csv")
    for ending in (".csv", ".npz", ".parquet", ""):
        assert refused(f"p\0{ending}") == f"`p�{ending}` cannot be read: a name has no NUL characters"
    assert "`1\ufffd[2J`" in refused(csv("x0\n1\x1b[2J\n"))
    assert f"`{'1a' * 20}…`" in refused(csv(f"x0\n{'1a' * 1000}\n"))


# Memory

# Not ru_maxrss: a process has that of its parent, up to the exec.
MEASURE = """
import re, sys
from pathlib import Path
from gradcli.data.formats import open_points
from gradcli.data.formats import create_result
points = open_points(sys.argv[1])
with create_result(sys.argv[2], {"g": (), "h": (2,)}) as result:
    for block in points.blocks(["a", "x"], 2**14):
        result({"g": block["a"], "h": block["x"]})
points.close()
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def peak(source):
    command = [sys.executable, "-c", MEASURE, source, "r.npz"]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


@long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak there")
@pytest.mark.parametrize("layout", ["C", "F", "parquet"])
def test_memory_does_not_grow_with_the_number_of_points(tmp_path, layout):
    if layout == "parquet":
        pytest.importorskip("pyarrow")
    peaks = []
    source = "p.parquet" if layout == "parquet" else "p.npz"
    for count in (10**5, 10**6):
        if layout == "parquet":
            rng = np.random.default_rng(0)  # of numbers that cannot be packed
            with create_result(source, {"a": (), "x": (2,)}) as result:
                result({"a": rng.random(count), "x": rng.random((2, count))})
        else:
            np.savez(source, a=np.ones(count), x=np.ones((count, 2), order=layout))
        peaks.append(peak(source))
        with np.load("r.npz") as found:
            assert found["h"].shape == (count, 2)
    # In Fortran's order x is mapped: its pages count while nobody else needs the room, and are the file's.
    mapped = 16_000 if layout == "F" else 0
    assert peaks[1] < peaks[0] + 6000 + mapped  # KiB; the values are 24 MB
