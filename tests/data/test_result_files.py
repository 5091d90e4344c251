"""Results are read back as they were written; whatever happens, a file is the old one or the whole new one."""

import math
import os
import stat
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from conftest import GRADCLI, some

from gradcli.data import replacement
from gradcli.data.formats import create_result, open_points
from gradcli.errors import InputError
from gradcli.files import forget_read
from gradcli.graph.names import column_names

SHAPES = {"x0": (), "x": (2,), "M": (2, 3)}
ENDINGS = [".csv", ".npz", ".parquet"]
OLD = b"the old file"


@pytest.fixture(params=ENDINGS)
def ending(request, tmp_path, monkeypatch):
    if request.param == ".parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    return request.param


def blocks(*sizes):
    rng = np.random.default_rng(0)
    return [{name: rng.standard_normal((*shape, size)) for name, shape in SHAPES.items()} for size in sizes]


def write(path, written, shapes=SHAPES, **options):
    with create_result(str(path), shapes, **options) as result:
        for block in written:
            result(block)


def refused(path, written=(), shapes=SHAPES):
    with pytest.raises(InputError) as caught:
        write(path, written, shapes)
    return caught.value.render()


def test_what_is_written_is_read(ending):
    written = blocks(3, 1, 2**15)
    write(f"r{ending}", written)
    with closing(open_points(f"r{ending}")) as points:
        assert points.shapes == SHAPES
        found = list(points.blocks(list(SHAPES), 10**6))
    for name in SHAPES:
        expected = np.concatenate([b[name] for b in written], -1)
        np.testing.assert_array_equal(np.concatenate([b[name] for b in found], -1), expected)
    assert os.listdir() == [f"r{ending}"]


def test_arrays_may_be_of_any_layout_and_whole_numbers(ending):
    flipped = np.arange(6.0).reshape(3, 2)[::-1].T
    write(
        f"r{ending}",
        [{"x": flipped, "x0": np.broadcast_to(7, 3)}, {"x": np.ones((2, 1)), "x0": np.ones(1)}],
        {"x": (2,), "x0": ()},
    )
    with closing(open_points(f"r{ending}")) as points:
        (block,) = points.blocks(["x", "x0"], 10)
    assert block["x"].tolist() == [[4, 2, 0, 1], [5, 3, 1, 1]]
    assert block["x0"].tolist() == [7, 7, 7, 1]


# The text of CSV, and the arrays of .npz


def test_csv_as_it_is_printed(capsys):
    columns = {"dy/dx": ["dy[0]/dx[0]", "dy[0]/dx[1]"]}
    values = {
        "x0.grad": np.array([26, 1e-5, 1e22]),
        "dy/dx": np.array([[[math.inf, -0.0, 1]], [[math.nan, 5e-324, 0.1]]]),
    }
    shapes = {"x0.grad": (), "dy/dx": (1, 2)}
    with create_result("-", shapes, columns) as result:
        assert capsys.readouterr().out == ""  # a mistake in the first point leaves nothing behind
        result(values)
    assert (
        capsys.readouterr().out == "x0.grad,dy[0]/dx[0],dy[0]/dx[1]\n26.0,inf,nan\n1e-05,-0.0,5e-324\n1e+22,1.0,0.1\n"
    )
    write("-", [], {"M.grad": (1, 1)})
    assert capsys.readouterr().out == '"M[0,0].grad"\n'


def test_npz_as_numpy_reads_it(tmp_path):
    written = {"x.grad": np.arange(6.0).reshape(2, 3), "dy/dx": np.arange(12.0).reshape(2, 2, 3), "b": np.ones(3)}
    shapes = {"x.grad": (2,), "dy/dx": (2, 2), "b": ()}
    write(tmp_path / "r.npz", [written, written], shapes)
    with np.load(tmp_path / "r.npz") as found:
        assert list(found) == list(shapes)
        for name, value in written.items():
            np.testing.assert_array_equal(found[name], np.moveaxis(np.concatenate([value, value], -1), -1, 0))
            assert found[name].flags.c_contiguous
    before = (tmp_path / "r.npz").read_bytes()
    write(tmp_path / "r.npz", [written, written], shapes)
    assert (tmp_path / "r.npz").read_bytes() == before
    with zipfile.ZipFile(tmp_path / "r.npz") as archive:  # the time of the run would make another file of each
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_npz_of_any_length(tmp_path, monkeypatch):
    """How long an array will be is not known when its place in the archive is taken: the place must suffice."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    write(tmp_path / "r.npz", [{"b": np.arange(200.0)}], {"b": ()})
    with np.load(tmp_path / "r.npz") as found:
        np.testing.assert_array_equal(found["b"], np.arange(200.0))


def test_parquet_as_pyarrow_reads_it(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    write(tmp_path / "r.parquet", [{"x.grad": np.array([[1.0, 2.0], [math.nan, 4.0]])}], {"x.grad": (2,)})
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column_names == ["x[0].grad", "x[1].grad"] == column_names("x.grad", (2,))
    assert table.column(0).to_pylist() == [1, 2]
    assert table.column(1).null_count == 0
    # Gradients seldom repeat: a dictionary of them would be made for nothing.
    column = pq.ParquetFile(tmp_path / "r.parquet").metadata.row_group(0).column(0)
    assert not column.has_dictionary_page


# The old file, or the whole new one


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt, SystemExit, BrokenPipeError, OSError])
@pytest.mark.parametrize("old", [False, True])
def test_an_exception_leaves_the_old_file(ending, tmp_path, stop, old):
    target = tmp_path / f"r{ending}"
    if old:
        target.write_bytes(OLD)
    before = os.listdir()

    def interrupted():
        with create_result(target.name, SHAPES) as result:
            result(*blocks(10))
            assert len(os.listdir()) == len(before) + 1
            raise stop("in the middle")

    with pytest.raises(stop, match="in the middle"):
        interrupted()
    assert os.listdir() == before
    assert not old or target.read_bytes() == OLD


def test_the_new_file_takes_the_place_of_the_old_one_whole(ending, tmp_path):
    """It is renamed: who has the old file open goes on reading it, and nobody sees half of the new one."""
    target = tmp_path / f"r{ending}"
    target.write_bytes(OLD)
    before = target.stat().st_ino
    with open(target, "rb") as old:
        with create_result(f"r{ending}", SHAPES) as result:
            (temporary,) = set(os.listdir()) - {f"r{ending}"}
            during = os.stat(temporary).st_ino
            result(*blocks(10))
        assert old.read() == OLD
    assert before != target.stat().st_ino == during


def test_a_file_can_be_read_while_its_replacement_is_written(ending):
    write(f"r{ending}", blocks(10, 10))
    with closing(open_points(f"r{ending}")) as points:
        assert "this command reads it" in refused(f"r{ending}")
        forget_read()
        write(f"r{ending}", points.blocks(["M", "x"], 3), {"M": (2, 3), "x": (2,)})
    with closing(open_points(f"r{ending}")) as points:
        assert points.shapes == {"M": (2, 3), "x": (2,)}
        assert sum(block["x"].shape[-1] for block in points.blocks(["x"], 100)) == 20


def test_a_symbolic_link_stays_one(ending, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / f"r{ending}").symlink_to(f"there/t{ending}")
    for _ in range(2):  # first it points to nothing
        write(f"r{ending}", blocks(3))
        assert (tmp_path / f"r{ending}").is_symlink()
        assert os.listdir("there") == [f"t{ending}"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_mode_of_a_file(ending, tmp_path, mask):
    before = os.umask(mask)
    try:
        write(f"r{ending}", blocks(1))
        assert stat.S_IMODE(os.stat(f"r{ending}").st_mode) == 0o666 & ~mask
        os.chmod(f"r{ending}", 0o640)
        write(f"r{ending}", blocks(1))
        assert stat.S_IMODE(os.stat(f"r{ending}").st_mode) == 0o640
    finally:
        os.umask(before)


# Where nothing can be written


@pytest.mark.parametrize("name", ["r", "r.txt", "r.csv.gz", ".csv", "there/"])
def test_unknown_endings(tmp_path, name):
    assert "results are written to .csv, .npz and .parquet files; `--output -`" in refused(tmp_path / name)


def test_targets_that_are_no_files(ending, tmp_path):
    (tmp_path / f"folder{ending}").mkdir()
    os.mkfifo(tmp_path / f"pipe{ending}")
    (tmp_path / f"null{ending}").symlink_to("/dev/null")
    (tmp_path / f"loop{ending}").symlink_to(f"loop{ending}")
    (tmp_path / "file").write_text("")
    for path, message in [
        (f"folder{ending}", "it is a folder"),
        (f"pipe{ending}", "it is not a regular file"),
        (f"null{ending}", "it is not a regular file"),
        (f"nowhere/r{ending}", "its folder does not exist"),
        (f"file/r{ending}", "its folder does not exist"),
        (f"{'r' * 300}{ending}", "file name too long"),
        (f"r\0{ending}", "NUL"),
        (f"loop{ending}", "it is not a regular file"),
    ]:
        assert message in refused(path), path
        assert "cannot be written: " in refused(path)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_folders_and_files_without_permission(ending, tmp_path):
    (tmp_path / f"r{ending}").write_bytes(OLD)
    (tmp_path / f"r{ending}").chmod(0o444)
    assert "permission denied" in refused(f"r{ending}")
    (tmp_path / "there").mkdir(mode=0o555)
    assert "permission denied" in refused(f"there/r{ending}")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "writing Parquet needs pyarrow: pip install 'gradcli[batch]'" in refused(tmp_path / "r.parquet")
    assert os.listdir(tmp_path) == []


FULL = """
import resource, sys
import numpy as np
from gradcli.data.formats import create_result
from gradcli.errors import InputError
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with create_result(sys.argv[1], {"x": (2,)}) as result:
        for _ in range(4):
            result({"x": np.random.default_rng(0).standard_normal((2, 2000))})
except InputError as error:
    print(error.render())
"""


@pytest.mark.parametrize("limit", some([0, 100_000, 128_200]))
def test_a_full_disk_leaves_the_old_file(ending, tmp_path, limit):
    (tmp_path / f"r{ending}").write_bytes(OLD)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FULL, f"r{ending}", str(limit)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout == f"`r{ending}` cannot be written: file too large\n"
    assert (tmp_path / f"r{ending}").read_bytes() == OLD
    assert os.listdir() == [f"r{ending}"]


# A file that is read


@pytest.mark.parametrize(
    ("name", "text", "arguments"),
    [
        ("in.txt", "y = x**2\n", ("graph", "-F", "in.txt")),
        ("in.grad", "y = x**2\n", ("export", "-F", "in.grad", "--to", "numpy")),
        ("s.txt", "print(1)\n", ("run", "s.txt")),
        ("in.csv", "x\n1\n", ("backward", "y=x**2", "--points", "in.csv")),
        ("in.csv", "1\n2\n", ("jacobian", "y=x[0]+a", "--points", "a.csv", "--at", "x=@in.csv")),
        ("in.csv", "3\n", ("jacobian", "y=x+a", "-F", "s.grad", "--points", "a.csv")),
    ],
)
def test_an_output_that_is_read_is_refused_under_every_name(cli, own_folder, name, text, arguments):
    Path(name).write_text(text)
    Path("a.csv").write_text("a\n1\n")
    Path("s.grad").write_text("input x = @in.csv\n")
    Path("there").mkdir()
    os.link(name, f"linked{Path(name).suffix}")
    os.symlink(name, f"symlink{Path(name).suffix}")
    for path in (name, f"./there/../{name}", f"linked{Path(name).suffix}", f"symlink{Path(name).suffix}"):
        said = cli.refused(*arguments, "--output", path)
        assert f"`{path}` cannot be written: this command reads it" in said
        assert "give the result a name of its own" in said
        assert Path(name).read_text() == text
    status = cli(*arguments, "--output", f"other{Path(name).suffix}").status
    assert (status, Path(name).read_text()) == (0, text)


def test_standard_input_is_a_file_that_is_read(own_folder):
    Path("p.csv").write_text("x\n1\n")
    with open("p.csv", "rb") as points:
        given = ("backward", "y=x**2", "--points", "-", "--output", "p.csv")
        done = subprocess.run([*GRADCLI, *given], stdin=points, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, Path("p.csv").read_text()) == (2, "x\n1\n")
    assert "this command reads it" in done.stderr


# A file that others use


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_while_a_file_is_replaced_nobody_else_reads_the_new_one(cli, own_folder, monkeypatch, mode):
    Path("y.svg").touch()
    Path("y.svg").chmod(mode)
    seen = []
    replace = os.replace

    def watched(path, target):
        seen.append(stat.S_IMODE(os.stat(path).st_mode))
        replace(path, target)

    def synced(number):
        seen.append(stat.S_IMODE(os.stat(number).st_mode))

    monkeypatch.setattr(os, "replace", watched)
    monkeypatch.setattr(os, "fsync", synced)
    cli.done("graph", "y=x**2", "--output", "y.svg")
    assert seen == [0o600, mode]
    assert stat.S_IMODE(os.stat("y.svg").st_mode) == mode


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_another_program_has_open_for_a_moment(cli, own_folder, monkeypatch, times):
    """Windows refuses to replace it."""
    Path("y.svg").write_bytes(OLD)
    monkeypatch.setattr(replacement, "_PAUSE", 0.01)
    refusals = [PermissionError(13, "Access is denied")] * times
    replace = os.replace

    def refusing(path, target):
        if refusals:
            raise refusals.pop()
        replace(path, target)

    monkeypatch.setattr(os, "replace", refusing)
    done = cli("graph", "y=x**2", "--output", "y.svg")
    if times == 1:
        assert (done.status, done.notes) == (0, "")
        assert Path("y.svg").read_bytes().startswith(b"<svg")
    else:
        assert done.refused().startswith("error: `y.svg` cannot be written: access is denied\n")
        assert Path("y.svg").read_bytes() == OLD
    assert os.listdir() == ["y.svg"]


def test_what_is_left_behind_is_removed_after_a_day(own_folder):
    left = [Path(f".gradcli-{k}.tmp") for k in range(2)]
    for path in left:
        path.touch()
    os.utime(left[0], (0, 0))
    with replacement.replaced_file("r.csv"):
        assert [path.exists() for path in left] == [False, True]
    assert sorted(os.listdir()) == sorted([left[1].name, "r.csv"])
