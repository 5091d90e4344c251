"""Points are read as they were written, in blocks; every mistake in a file is told in one sentence."""

import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from conftest import HANG, at_most

from gradcli.data.csv import chunks as csv_chunks
from gradcli.data.npz import members as npz_members
from gradcli.data.points import open_points, parts
from gradcli.data.result import create_result
from gradcli.errors import InputError

X0 = np.array([1.5, -2.0, 3e-7, 4.0, 5.0])
X = np.arange(10.0).reshape(2, 5)
M = np.arange(20.0).reshape(2, 2, 5) / 3
VALUES = {"x0": X0, "x": X, "M": M, "x.v": -X}
SHAPES = {"x0": (), "x": (2,), "M": (2, 2), "x.v": (2,)}
COLUMNS = {
    "x0": X0,
    "x[0]": X[0],
    "x[1]": X[1],
    **{f"M[{i},{j}]": M[i, j] for i in range(2) for j in range(2)},
    "x[0].v": -X[0],
    "x[1].v": -X[1],
}


def read(path, names=None, size=1000):
    """Return the values of those variables, and the sizes of the blocks."""
    with closing(open_points(str(path))) as points:
        blocks = list(points.blocks(names or list(points.shapes), size))
    for block in blocks:
        assert all(a.dtype == float and a.flags.c_contiguous for a in block.values())
    sizes = [{a.shape[-1] for a in block.values()} for block in blocks]
    assert all(len(s) == 1 for s in sizes)
    return {n: np.concatenate([b[n] for b in blocks], -1) for n in blocks[0]}, [s.pop() for s in sizes]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(path, names=None):
    """Return the message about a file that cannot be read."""
    with pytest.raises(InputError) as caught:
        read(path, names)
    message = caught.value.render()
    assert message.replace("\n", "").isprintable()
    assert len(message.splitlines()) <= 2
    return message


@pytest.fixture
def csv(tmp_path):
    def write(text, name="p.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def npz(tmp_path):
    def write(save=np.savez, **arrays):
        path = tmp_path / "p.npz"
        save(path, **arrays)
        return path

    return write


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def write(columns, name="p.parquet", **options):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        arrays = [a if isinstance(a, pa.Array) else pa.array(a) for _, a in columns]
        pq.write_table(pa.Table.from_arrays(arrays, [n for n, _ in columns]), path, **options)
        return path

    return write


def csv_text(columns=COLUMNS):
    head = ",".join(f'"{name}"' if "," in name else name for name in columns)
    rows = zip(*(map(repr, map(float, column)) for column in columns.values()), strict=True)
    return "\n".join([head, *map(",".join, rows)]) + "\n"


def points_first(array):
    return np.moveaxis(array, -1, 0)


# All formats


@pytest.fixture(params=["csv", "npz", "npz deflated", "npz in Fortran order", "parquet"])
def written(request, csv):
    """The same points, in a file of each format."""
    if request.param == "csv":
        return csv(csv_text())
    if request.param == "parquet":
        return request.getfixturevalue("parquet")(list(COLUMNS.items()))
    order = np.asfortranarray if "Fortran" in request.param else np.ascontiguousarray
    arrays = {name: order(points_first(value)) for name, value in VALUES.items()}
    return request.getfixturevalue("npz")(np.savez_compressed if "deflated" in request.param else np.savez, **arrays)


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
        assert points.count == (None if written.suffix == ".csv" else 5)
        fractions = [points.fraction for _ in points.blocks(["x0"], 2)]
        assert points.fraction == 1
    assert fractions == sorted(fractions)


def test_only_the_variables_asked_for_are_read_in_their_order(written):
    found, _ = read(written, ["M", "x0"])
    assert list(found) == ["M", "x0"]
    np.testing.assert_array_equal(found["M"], M)


def test_a_variable_that_is_not_there(written):
    assert "has no values for `x1`\n  did you mean `x" in refused(written, ["x1"])


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_a_file_that_is_not_there(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    message = refused(tmp_path / f"q{ending}")
    assert "cannot be read" in message
    assert "o such file" in message


def test_broken_files(csv):
    assert refused(csv(b"PK\x03\x04 and no more", "p.npz")).endswith(
        "p.npz` cannot be read: it is no .npz file, or a damaged one"
    )
    pytest.importorskip("pyarrow")
    message = refused(csv(b"PAR1 and no more", "p.parquet"))
    assert "p.parquet` cannot be read: " in message
    assert "magic bytes not found" in message


def test_memory_that_is_not_there_is_no_mistake_in_the_file(written, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(csv_chunks, "_FIRST", 2**62)
    monkeypatch.setattr(npz_members, "_exactly", full)
    monkeypatch.setattr("gradcli.data.parquet.points._Part._numbers", full)
    with pytest.raises(MemoryError):
        read(written)


def test_a_name_that_is_not_utf_8(written, tmp_path):
    """It is read as it can be written, and is no trouble in messages."""
    name = os.fsdecode(b"\xff" + os.fsencode(written.name))
    written.rename(tmp_path / name)
    np.testing.assert_array_equal(read(name, ["x0"])[0]["x0"], X0)
    assert refused(name, ["x1"]).startswith(f"`\ufffd{written.name}` has no values for `x1`")
    assert refused(f"no{name}") == f"`no\ufffd{written.name}` cannot be read: no such file or directory"


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_pipes_and_devices_are_refused_at_once(tmp_path, ending):
    """Nobody writes into the pipe: who opens it waits."""
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    os.mkfifo(f"p{ending}")
    (tmp_path / f"null{ending}").symlink_to("/dev/null")
    with at_most(HANG):
        assert refused(f"p{ending}") == f"`p{ending}` is a pipe, not a file\n  only CSV is read from pipes and devices"
    assert refused(f"null{ending}").startswith(f"`null{ending}` is a device, not a file")


def test_a_name_that_is_too_long():
    for ending in ("", ".csv", ".npz", ".parquet"):
        assert refused("r" * 300 + ending).endswith(f"rrr{ending}` cannot be read: file name too long")


# No points


@pytest.mark.parametrize("kind", ["csv", "npz", "npz deflated", "npz in Fortran order", "parquet"])
def test_a_file_without_points(request, csv, kind):
    if kind == "csv":
        path = csv(csv_text().splitlines()[0] + "\n")
    elif kind == "parquet":
        path = request.getfixturevalue("parquet")([(name, np.zeros(0)) for name in COLUMNS])
    else:
        save = np.savez_compressed if "deflated" in kind else np.savez
        order = "F" if "Fortran" in kind else "C"
        arrays = {name: np.zeros((0, *shape), order=order) for name, shape in SHAPES.items()}
        path = request.getfixturevalue("npz")(save, **arrays)
    with closing(open_points(str(path))) as points:
        assert points.shapes == SHAPES
        assert not points.count
        assert list(points.blocks(list(SHAPES), 10)) == []
    assert "has no values for `q`" in refused(path, ["q"])


@pytest.mark.parametrize("text", ["x0", "x0\n\n  \n", "\ufeffx0\r\n", '"x0"\n', "\n\nx0\n", "x0\r\r"])
def test_headers_without_rows(csv, text):
    with closing(open_points(str(csv(text)))) as points:
        assert list(points.blocks(["x0"], 10)) == []


def test_a_table_without_rows_has_columns_of_no_type(parquet):
    pa = pytest.importorskip("pyarrow")
    with closing(open_points(str(parquet([("x0", pa.array([], pa.null()))])))) as points:
        assert list(points.blocks(["x0"], 10)) == []


@pytest.mark.parametrize("name", ["p", "p.txt", "p.csv.gz", ".csv"])
def test_unknown_endings(csv, name):
    assert "points are read from .csv, .npz and .parquet files" in refused(csv("x0\n1\n", name))


def test_endings_are_read_in_any_case(csv):
    assert read(csv("x0\n1\n", "P.CSV"))[0]["x0"] == [1]


def test_names_are_printed_without_what_a_terminal_obeys(csv, tmp_path):
    assert "p�[2J" in refused(tmp_path / "p\x1b[2J.csv")
    for ending in (".csv", ".npz", ".parquet", ""):
        assert refused(f"p\0{ending}") == f"`p�{ending}` cannot be read: a name has no NUL characters"
    assert "`1\ufffd[2J`" in refused(csv("x0\n1\x1b[2J\n"))
    assert f"`{'1a' * 20}…`" in refused(csv(f"x0\n{'1a' * 1000}\n"))


# CSV


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfx0,x1\n1,2\n3,4\n",
        b"x0,x1\r\n1,2\r\n3,4\r\n",
        b"x0,x1\r1,2\r3,4\r",
        b"x0,x1\n1,2\n3,4",
        b"\n  \nx0,x1\n\n1,2\n \t \n\r\n3,4\n\n\n",
        b" x0 ,\tx1\n 1 ,\t2\n+3,4.\n",
        b'"x0","x1"\n"1",2\n3,"4 "\n',
        b"note,x0,x1,note,\xff\nhello,1,2,,\xfe\n1_0,3,4,\xc3\xa9,(nan)\n",
        b'note,x0,x1\n"two\nlines, ""quoted""",1,2\r\n\n"\xff",3,4\n',
        b"x0,x[,x1,x[0\n1,a,2,b\n3,c,4,d\n",
        b"x0,x1,the \x1b date\n1,2,a\x1c\n3,4,b\n",
    ],
)
@pytest.mark.parametrize("chunk", [1, 7, 2**23])
def test_csv_in_all_its_forms(csv, monkeypatch, text, chunk):
    monkeypatch.setattr(csv_chunks, "CHUNK", chunk)
    monkeypatch.setattr(csv_chunks, "_FIRST", chunk)
    found, _ = read(csv(text), ["x0", "x1"])
    np.testing.assert_array_equal(found["x0"], [1, 3])
    np.testing.assert_array_equal(found["x1"], [2, 4])


def test_blanks_inside_brackets_of_a_name(csv):
    with closing(open_points(str(csv('"M[ 0, 0 ]","M[0 ,1]",y [0]\n1,2,3\n')))) as points:
        assert points.shapes == {"M": (1, 2)}


@pytest.mark.parametrize(
    ("text", "message", "names"),
    [
        ("", "is empty", None),
        ("\n \n", "is empty", None),
        ("x0,x1\n1,2\n3\n", "line 3: 1 cell, where the header has 2", None),
        ("x0,x1\n1,2\n\n3,4,5\n", "line 4: 3 cells, where the header has 2", None),
        ("x0,x1\n1,2,3\n3\n", "line 2: 3 cells, where the header has 2", None),
        ("x0,x1\n1,\n", "line 2, column `x1`: the cell is blank", None),
        ("x0,x1\n , \n", "line 2, column `x0`: the cell is blank", None),
        ('x0\n1\n""\n', "line 3, column `x0`: the cell is blank", None),
        ("x0,x1\n1,2\n\n\n3,one\n", "line 5, column `x1`: `one` is not a number", None),
        ('x0,"M[0, 0]"\n1,2\n3,1_0\n', "line 3, column `M[0,0]`: `1_0` is not a number", None),
        ("x0\n1\n\u0661\n", "line 3, column `x0`: `\u0661` is not a number", None),
        ("x0\n1,5\n", "line 2: 2 cells, where the header has 1", None),
        ('note,x0\n"a\nb",1\n\n"c\nd",z\n', "line 5, column `x0`: `z` is not a number", ["x0"]),
        ('x0,note\n1,"no end\n2,b\n', "line 2: the quotes do not match", ["x0"]),
        ('x0,note\n1,"a"b\n', "line 2: the quotes do not match", ["x0"]),
        ('x0,"note\n1,2\n', "line 1: the quotes do not match", None),
        ("x0,x0\n1,2\n", "has the column `x0` twice", None),
        ('"M[0,0]","M[0, 0]"\n1,2\n', "has the column `M[0,0]` twice", None),
        ("x[0],x[2]\n1,2\n", "has a column `x[2]`, but no `x[1]`", None),
        ("x[1]\n1\n", "has a column `x[1]`, but no `x[0]`", None),
        ('"x[999999999999,99999999999,9999999999]"\n1\n', "but no `x[0,0,0]`", None),
        ("x,x[0]\n1,2\n", "has both `x` and `x[0]`", None),
        ('x[0].v,"x[0,0].v"\n1,2\n', "has both `x[0].v` and `x[0,0].v`", None),
        (b"x0\n1\n2\n\x00\n", "line 4: a NUL byte", None),
        ("x0\n1\n".encode("utf-16"), "line 1: a NUL byte", None),
        (bytes(range(256)) * 10, "line 1: a NUL byte", None),
    ],
)
def test_mistakes_in_csv(csv, text, message, names):
    told = refused(csv(text), names)
    assert "p.csv`" in told
    assert message in told


def test_errors_have_line_numbers_beyond_the_first_chunk(csv, monkeypatch):
    monkeypatch.setattr(csv_chunks, "CHUNK", 64)
    lines = ["x0,x1"] + ["1,2"] * 500
    lines[300] = "1,z"
    assert "line 301, column `x1`: `z`" in refused(csv("\n".join(lines)))
    lines[200] = '"1",2'
    assert "line 301, column `x1`: `z`" in refused(csv("\n".join(lines)))
    lines[300] = "1,\0"
    assert "line 301: a NUL byte" in refused(csv("\n".join(lines)))


def test_a_byte_order_mark_stands_at_the_beginning_only(csv, monkeypatch):
    monkeypatch.setattr(csv_chunks, "_FIRST", 1)
    assert "line 2, column `x0`" in refused(csv("\ufeffx0\n\ufeff1\n"))
    assert "line 2, column `x0`" in refused(csv("x0\n\ufeff1\n"))


def test_a_file_that_grows_is_never_read_to_more_than_its_end(csv, monkeypatch):
    monkeypatch.setattr(csv_chunks, "CHUNK", 10)
    monkeypatch.setattr(csv_chunks, "_FIRST", 10)
    path = csv("x0\n" + "1\n" * 20)
    with closing(open_points(str(path))) as points:
        with open(path, "a") as file:
            file.write("1\n" * 40)
        fractions = [points.fraction for _ in points.blocks(["x0"], 100)]
    assert max(fractions) == fractions[-1] == 1
    assert fractions[0] < 0.5


def test_endless_rows_are_refused(csv, monkeypatch):
    monkeypatch.setattr(csv_chunks, "MAX_ROW", 2**12)
    monkeypatch.setattr(csv_chunks, "CHUNK", 2**8)
    for text in ["x" * 2**17, "x0\n" + "1" * 2**17, "x0,t\n1," + '"a\n' + "b\n" * 2**17, "x" * 2**17 + "\n1\n"]:
        assert "a row of more than" in refused(csv(text))
    monkeypatch.setattr(csv_chunks, "MAX_CELLS", 2**10)
    monkeypatch.setattr(csv_chunks, "_LONG_LINE", 2**9)
    monkeypatch.setattr(csv_chunks, "MAX_ROW", 2**20)
    for delimiter in ",;\t":
        most = delimiter.join(f"x{k}" for k in range(2**10))
        with closing(open_points(str(csv(f"{most}\n")))) as points:
            assert len(points.shapes) == 2**10
        assert "line 1: more than 1,024 cells" in refused(csv(f"{most}{delimiter}\n"))


def test_a_file_without_an_end_is_refused(tmp_path):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    assert "NUL" in refused(tmp_path / "zero.csv")


def test_a_pipe_is_read_and_has_no_fraction(tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("x0\n1\n2\n",))
    writer.start()
    with closing(open_points(str(path))) as points:
        assert points.fraction is None
        (block,) = points.blocks(["x0"], 10)
    writer.join()
    np.testing.assert_array_equal(block["x0"], [1, 2])


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x0\n1\nz\n")))
    points = open_points("-")
    assert points.fraction is None
    with pytest.raises(InputError, match=r"^standard input, line 3, column `x0`: `z` is not a number"):
        list(points.blocks(["x0"], 1))
    points.close()
    assert not sys.stdin.closed
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        open_points("-")


def test_a_long_cell_in_a_column_that_is_not_used(csv):
    assert read(csv(f'x0,t\n1,{"a" * 2**21}\n2,"{"b" * 2**21}"\n'), ["x0"])[0]["x0"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "x0;x1\n1;2\n3;4\n",
        "x0\tx1\n1\t2\n3\t4\n",
        '\ufeff"x0";"x1"\r\n"1";2\r\n3;4\r\n',
        "\n\n\n\n\n\n\n\n\n x0 ; x1 ;\n 1 ; 2;\n\n3;4;\n",
        "\tx0\tx1\n0\t1\t2\n1\t3\t4\n",
        "date, local;x0;x1;note\n1, 2;1;2;a, b\n3, 4;3;4;\n",
        "the date;x0,0;M[0,1];x0;x1\na;b;c;1;2\na;b;c;3;4\n",
        '"two\nlines"\tx0\t"x1"\na\t1\t2\nb\t3\t4\n',
        "x0,x1,a;b;c\n1,2,;;\n3,4,;;;;;;\n",
        '"a;b;c";x0;x1\n1;1;2\n3;3;4\n',
        "the date;the hour,x0,x1\n1;2,1,2\n,3,4\n",
    ],
)
@pytest.mark.parametrize("chunk", [8, 2**16])
def test_what_parts_the_cells_is_seen_in_the_header(csv, monkeypatch, text, chunk):
    monkeypatch.setattr(csv_chunks, "CHUNK", chunk)
    monkeypatch.setattr(csv_chunks, "_FIRST", chunk)
    found, _ = read(csv(text), ["x0", "x1"])
    np.testing.assert_array_equal(found["x0"], [1, 3])
    np.testing.assert_array_equal(found["x1"], [2, 4])


def test_names_of_matrices_need_no_quotes_between_semicolons(csv):
    with closing(open_points(str(csv("M[0,0];M[0,1];b\n1;2;3\n")))) as points:
        assert points.shapes == {"M": (1, 2), "b": ()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x0;x1\n1;2\n3;\n", "line 3, column `x1`: the cell is blank"),
        ("x0\tx1\n\t \n", "line 2, column `x0`: the cell is blank"),
        (
            "x0;x1\n1,5;2\n",
            "line 2, column `x0`: `1,5` is not a number\n  write a point, not a comma, in a number: 1.5",
        ),
        ("x0;x1\n1,2\n", "line 2: 1 cell, where the header has 2"),
        ("x0\tx1\n1\t2\t3\n", "line 2: 3 cells, where the header has 2"),
        ("x0,x1\n1;2\n", "line 2: 1 cell, where the header has 2"),
        ('x0;x1\n"1;2\n', "line 2: the quotes do not match"),
    ],
)
def test_mistakes_between_other_signs(csv, text, message):
    assert message in refused(csv(text))


@pytest.mark.parametrize(("name", "column"), [("R", "r"), ("x0", "X0"), ("Temp", "TEMP")])
def test_a_name_in_other_letters(csv, name, column):
    assert refused(csv(f"q,{column}\n1,2\n"), [name]).endswith(f"\n  did you mean `{column}`?")


# .npz


@pytest.mark.parametrize("kind", ["?", "i1", ">i2", "<u8", "f2", ">f4", "<f8", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("count", [2, 3])
def test_npz_of_any_numbers(npz, kind, order, count):
    values = np.resize([0, 1, 1, 1, 0, 1, 1], (count, 5 - count)).astype(kind, order=order)
    found, _ = read(npz(x=values), size=1)
    np.testing.assert_array_equal(found["x"], values.T.astype(float))


@pytest.mark.parametrize("count", [1, 2, 5, 23, 24, 25, 100])
@pytest.mark.parametrize("tile", [1, 200, 2**24])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_fortran_order_of_any_number_of_points(npz, monkeypatch, count, tile, size):
    monkeypatch.setattr(npz_members, "_TILE", tile)
    arrays = {f"x{k}": np.random.default_rng(k).standard_normal((count, *s)) for k, s in enumerate([(2, 3, 4), (24,)])}
    found, _ = read(npz(**{name: np.asfortranarray(a) for name, a in arrays.items()}), size=size)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], np.moveaxis(array, 0, -1))


@pytest.mark.parametrize("shape", [(2, 50_000), (50_000, 2), (200, 250)])
def test_fortran_order_is_read_in_long_pieces(npz, monkeypatch, shape):
    """Of a million elements, one by one, each would be a call of the system."""
    calls = []
    exactly = npz_members._exactly
    monkeypatch.setattr(npz_members, "_exactly", lambda *arguments: calls.append(1) or exactly(*arguments))
    read(npz(x=np.ones(shape, order="F")), size=100)
    assert len(calls) <= 1100


def test_a_wide_float_beyond_float64_is_infinite(npz):
    wide = np.array([1, 2], dtype=np.longdouble) * np.longdouble(10) ** 300
    assert read(npz(x=wide * wide))[0]["x"].tolist() == [np.inf] * 2


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(1.0), "`x` is a single number\n  points run along the first axis"),
        (np.array([1j]), "`x` holds complex128, not real numbers"),
        (np.array(["a"]), "`x` holds <U1, not real numbers"),
        (np.array([{}], dtype=object), "`x` holds object, not real numbers"),
        (np.array([1], dtype="M8[s]"), "`x` holds datetime64[s], not real numbers"),
        (np.zeros(1, dtype=[("é", float)]), "not real numbers"),
        (np.zeros((3, 0)), "`x` has no elements"),
        (np.zeros((0, 0)), "`x` has no elements"),
    ],
)
def test_npz_of_something_else(npz, array, message):
    assert message in refused(npz(x=array))
    # What is not used can be anything.
    assert read(npz(**{"x": array, "b": np.ones(2), "a note": array}), ["b"])[0]["b"].tolist() == [1, 1]


def test_ragged_arrays(npz):
    path = npz(a=np.ones(3), b=np.ones(3), c=np.ones((4, 2)))
    assert "is ragged: `a` and `c` have 3 and 4 points" in refused(path)
    assert len(read(path, ["a", "b"])[0]["a"]) == 3
    with closing(open_points(str(path))) as points:
        assert points.count is points.fraction is None
        next(points.blocks(["c"], 1))
        assert (points.count, points.fraction) == (4, 0.25)


def npy(shape, values=b"", version=(2, 0), descr="<f8", fortran=False):
    """Return a member of an archive, as its header wants it to be."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(2 if version == (1, 0) else 4, "little") + text + values


def archive(path, members, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, data in members:
            file.writestr(name, data)
    return path


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_headers_of_all_versions(tmp_path, version):
    member = npy((2,), np.array([1.0, 2.0]).tobytes(), version)
    path = archive(tmp_path / "p.npz", [("x.npy", member), ("README", b"hello"), ("y", b""), ("sub/x.npy", b"")])
    assert read(path)[0]["x"].tolist() == [1, 2]


def test_fortran_order_of_single_numbers(tmp_path):
    member = npy((3,), np.array([1.0, 2.0, 3.0]).tobytes(), fortran=True)
    assert read(archive(tmp_path / "p.npz", [("x.npy", member)]), size=2)[0]["x"].tolist() == [1, 2, 3]
    assert "is a single number" in refused(archive(tmp_path / "q.npz", [("x.npy", npy((), bytes(8), fortran=True))]))


@pytest.mark.parametrize("shape", [(0,), (0, 2)])
@pytest.mark.parametrize("fortran", [False, True])
def test_headers_without_points(tmp_path, shape, fortran):
    path = archive(tmp_path / "p.npz", [("x.npy", npy(shape, fortran=fortran))])
    with closing(open_points(str(path))) as points:
        assert list(points.blocks(["x"], 10)) == []


def test_headers_of_python_2(tmp_path):
    member = npy("(2L,)", np.array([1.0, 2.0]).tobytes(), (1, 0))
    assert read(archive(tmp_path / "p.npz", [("x.npy", member)]))[0]["x"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (b"", "array `x` cannot be read: it is no array of NumPy's"),
        (b"\x93NUM", "array `x` cannot be read: it is no array of NumPy's"),
        (b"nothing of NumPy's", "array `x` cannot be read: it is no array of NumPy's"),
        (npy((2,), bytes(15)), "array `x` ends early"),
        (npy((2, 2), bytes(15), fortran=True), "array `x` ends early"),
        (npy((10**15,)), "array `x` ends early"),
        (npy((2, 10**15)), "array `x`: an array of shape 1e+15 is too large"),
        (npy((2, *[1] * 40), bytes(16)), "array `x`: an array of 40 dimensions has too many"),
        (npy((-2,)), "its shape is negative"),
        (npy((2,), version=(9, 0)), "cannot be read: version 9 of its format is not known"),
        (npy((2,))[:9], "cannot be read: its header is damaged"),
        (npy((2,))[:20], "cannot be read: its header is damaged"),
        (npy((2,), descr="what"), "cannot be read: its header is damaged"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"(" * 10**5, "cannot be read: its header is damaged"),
        (b"\x93NUMPY\x02\x00\x10\x27\x00\x00" + b"(" * 10**5, "cannot be read: its header is damaged"),
    ],
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_broken_members(tmp_path, member, message, method):
    assert message in refused(archive(tmp_path / "p.npz", [("x.npy", member)], compression=method))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice(tmp_path):
    path = archive(tmp_path / "p.npz", [(name, npy((1,), bytes(8))) for name in ("x.npy", "x.npy", "y.npy")])
    assert "has the array `x` twice" in refused(path)
    assert read(path, ["y"])[0]["y"] == [0]


@pytest.mark.parametrize("shape", [(2000, 2), (2, 2000)])
@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_archives(tmp_path, fortran, method, shape):
    values = np.random.default_rng(0).standard_normal(shape).tobytes()
    path = archive(tmp_path / "p.npz", [("x.npy", npy(shape, values, fortran=fortran))], compression=method)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(b ^ 0x55 for b in whole[middle : middle + 50]) + whole[middle + 50 :])
    assert refused(path).endswith("array `x` cannot be read: it is damaged")
    for cut in (0, 1, middle, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert refused(path).endswith("p.npz` cannot be read: it is no .npz file, or a damaged one")


def test_an_archive_whose_beginning_is_not_there(tmp_path):
    path = archive(tmp_path / "p.npz", [("x.npy", npy((1,), bytes(8))), ("y.npy", npy((1,), bytes(8)))])
    path.write_bytes(path.read_bytes()[100:])
    assert refused(path).endswith("array `x` cannot be read: it is damaged")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("fortran", [False, True])
def test_an_archive_with_a_wrong_size_of_a_member(tmp_path, method, fortran):
    member = npy((2, 200), bytes(16), fortran=fortran)
    path = archive(tmp_path / "p.npz", [("x.npy", member)], compression=method)
    whole = bytearray(path.read_bytes())
    size = whole.index(b"PK\x01\x02") + 24
    whole[size : size + 4] = (10**4).to_bytes(4, "little")
    path.write_bytes(whole)
    assert refused(path).endswith("array `x` cannot be read: it ends early")


def test_memory_that_is_not_there_for_a_header(npz, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(npz_members, "_READERS", {(1, 0): full})
    with pytest.raises(MemoryError):
        read(npz(x=np.ones(1)))


def test_encrypted_and_unusually_compressed_members(tmp_path):
    path = archive(tmp_path / "p.npz", [("x.npy", npy((1,), bytes(8)))])
    whole = bytearray(path.read_bytes())
    whole[6] |= 1  # the flag of encryption, in front of the member and in the directory
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(whole)
    assert refused(path).endswith("array `x` cannot be read: it is encrypted")
    path = archive(tmp_path / "q.npz", [("x.npy", npy((1,), bytes(8)))], compression=zipfile.ZIP_LZMA)
    assert "np.savez_compressed" in refused(path)


# Parquet


def test_parquet_of_any_numbers(parquet):
    pa = pytest.importorskip("pyarrow")
    kinds = [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.decimal128(5, 2)]
    columns = [(f"x{i}", pa.array([1, 0], pa.int8()).cast(kind)) for i, kind in enumerate(kinds)]
    columns += [("x6", pa.array([1, 0]).dictionary_encode()), ("x7", pa.array([2**63 + 1, 0], pa.uint64()))]
    found, _ = read(parquet(columns))
    assert [found[f"x{i}"].tolist() for i in range(7)] == [[1, 0]] * 7
    assert found["x7"].tolist() == [2.0**63, 0]


def test_parquet_names_with_points_are_no_paths(parquet):
    columns = [("y0", [1.0]), ("y0.v", [2.0]), ("y", [{"v": 3.0}]), (" M[0, 0] ", [4.0]), ("X0", [5.0])]
    found, _ = read(parquet(columns), ["y0.v", "y0", "M", "X0"])
    assert [float(found[n].item()) for n in found] == [2, 1, 4, 5]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a"], "column `x0`: string is no type of numbers"),
        ([[1.0]], "column `x0`: list<element: double> is no type of numbers"),
        ([{"a": 1.0}], "column `x0`: struct<a: double> is no type of numbers"),
        ([1.0, 2.0, None], "row 3, column `x0`: a null is not a number"),
        ([None], "row 1, column `x0`: a null is not a number"),
    ],
)
def test_mistakes_in_parquet(parquet, column, message):
    assert message in refused(parquet([("x0", column)]))


def test_parquet_columns_that_are_missing_or_there_twice(parquet):
    assert "has the column `x0` twice" in refused(parquet([("x0", [1.0]), ("x0", [1.0])]))
    assert "has a column `x[1]`, but no `x[0]`" in refused(parquet([("x[1]", [1.0])]))


def test_a_folder_is_one_data_set(parquet, tmp_path):
    for k in (10, 2, 1):
        parquet([("x0", [k + 0.0, k + 0.5]), ("a note", ["a", "b"])], f"set/part.{k}.parquet")
    parquet([("x0", np.zeros(0))], "set/part.3.parquet")
    for name in (".hidden.parquet", "_metadata", "_temporary.parquet", "notes.txt"):
        (tmp_path / "set" / name).write_text("no Parquet")
    found, sizes = read(tmp_path / "set", ["x0"])
    assert found["x0"].tolist() == [1, 1.5, 2, 2.5, 10, 10.5]
    assert sizes == [2, 2, 2]
    assert [p.name for p in parts(str(tmp_path / "set"))] == [f"part.{k}.parquet" for k in (1, 2, 3, 10)]
    with closing(open_points(str(tmp_path / "set"))) as points:
        assert points.count == 6
    parquet([("x0", np.ones(5)), ("y", [1.0, 1, 1, None, 1])], "set/part.11.parquet", row_group_size=2)
    assert len(read(tmp_path / "set", ["x0"], size=2)[1]) == 6
    parquet([("x0", [1.0, 1, 1, None, 1])], "set/part.11.parquet", row_group_size=2)
    for size in (1, 3, 1000):  # rows are counted from the beginning of the part
        with pytest.raises(InputError) as caught:
            read(tmp_path / "set", ["x0"], size)
        assert caught.value.message.endswith("set/part.11.parquet`, row 4, column `x0`: a null is not a number")


def test_a_damaged_part_of_a_folder_is_named(parquet, tmp_path):
    for k in (1, 2):
        whole = parquet([("x0", [1.0, 2.0])], f"set/{k}.parquet", write_page_checksum=True).read_bytes()
    (tmp_path / "set/2.parquet").write_bytes(whole[: len(whole) // 2])
    assert "set/2.parquet` cannot be read: " in refused(tmp_path / "set")
    start = whole.index(np.array(2.0).tobytes())
    (tmp_path / "set/2.parquet").write_bytes(whole[:start] + b"\1" + whole[start + 1 :])
    message = refused(tmp_path / "set")
    assert "set/2.parquet` cannot be read: " in message
    assert "checksum" in message


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_no_flipped_bit_of_a_page_is_read(parquet, dictionary, compression, version):
    options = {"use_dictionary": dictionary, "compression": compression, "data_page_version": version}
    path = parquet([("x0", np.arange(50.0) / 7)], write_page_checksum=True, write_statistics=False, **options)
    pq = pytest.importorskip("pyarrow.parquet")
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    end = column.data_page_offset + column.total_compressed_size
    end -= (column.data_page_offset - column.dictionary_page_offset) if column.dictionary_page_offset else 0
    whole = bytearray(path.read_bytes())
    for place in range(end - 40, end):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        assert "cannot be read: " in refused(path)


@pytest.mark.parametrize("bit", [0, 3, 6])
def test_a_flipped_bit_loses_no_rows(parquet, bit):
    """Headers and footers have no checksums, and a page of an unknown kind would be passed over."""
    path = parquet([("x0", X0)], write_page_checksum=True, write_statistics=False, store_schema=False)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
        with contextlib.suppress(InputError), closing(open_points(str(path))) as points:
            if "x0" in points.shapes:  # its name may be another one
                assert sum(len(block["x0"]) for block in points.blocks(["x0"], 2)) == len(X0), place


def test_a_folder_with_what_is_no_file(parquet, tmp_path):
    parquet([("x0", [1.0])], "set/1.parquet")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as there:
        os.mkfifo("set/2.parquet")
        with at_most(HANG):
            assert "set/2.parquet` is a pipe, not a file" in refused(tmp_path / "set")
        os.remove("set/2.parquet")
        there.bind("set/2.parquet")
        assert "set/2.parquet` is a socket, not a file" in refused(tmp_path / "set")
    os.remove("set/2.parquet")
    os.mkdir("set/2.parquet")
    assert "set/2.parquet` is a folder, not a file" in refused(tmp_path / "set")
    os.rmdir("set/2.parquet")
    os.symlink("nowhere", "set/2.parquet")
    assert "set/2.parquet` cannot be read: no such file" in refused(tmp_path / "set")
    os.remove("set/2.parquet")
    os.symlink("1.parquet", "set/2.parquet")
    os.mkfifo("set/pipe")  # it has no such name
    assert read(tmp_path / "set")[0]["x0"].tolist() == [1, 1]


@pytest.mark.parametrize("name", ["set", "set.parquet", "set.csv", "set.npz", b"\xff", "a set/"])
def test_a_folder_of_any_name(parquet, tmp_path, name):
    name = os.fsdecode(name)
    os.mkdir(name)
    for part in (b"1.parquet", b"\xff2.parquet"):
        shutil.copy(parquet([("x0", [1.0])]), os.path.join(name, os.fsdecode(part)))
    assert read(name)[0]["x0"].tolist() == [1, 1]


def test_parts_stand_in_the_order_of_their_numbers(parquet, tmp_path):
    names = ["part.2", "part.007", "part.7", "part.10", "part.0100", "part.b", "z.PARQUET"]
    for k, name in enumerate(names):
        parquet([("x0", [float(k)])], f"set/{name}" if "PARQUET" in name else f"set/{name}.parquet")
    assert read(tmp_path / "set")[0]["x0"].tolist() == list(range(len(names)))


def test_files_of_a_folder_that_differ(parquet, tmp_path):
    parquet([("x[0]", [1.0]), ("b", [1.0])], "set/1.parquet")
    parquet([("x[0]", [1.0]), ("x[1]", [1.0]), ("b", [1.0])], "set/2.parquet")
    assert read(tmp_path / "set", ["b"])[0]["b"].tolist() == [1, 1]
    message = refused(tmp_path / "set", ["x"])
    assert "has `x` of shape (2,), but " in message
    assert "2.parquet" in message
    parquet([("x[0]", ["a"])], "set/2.parquet")
    assert "2.parquet" in refused(tmp_path / "set", ["b"])
    assert "2.parquet`, column `x[0]`: string" in refused(tmp_path / "set", ["x"])


def test_a_folder_without_parquet(tmp_path):
    (tmp_path / "p.csv").mkdir()
    assert "is a folder without .parquet files" in refused(tmp_path / "p.csv")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "p.parquet").write_bytes(b"PAR1")
    assert "reading Parquet needs pyarrow: pip install 'gradcli[batch]'" in refused(tmp_path / "p.parquet")


# Names that are not ASCII


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_names_in_greek(ending):
    """They are those of formulas: to Python, the micro sign is a mu."""
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    values = {"λ": np.array([1.0, 2]), "µ": np.ones((2, 2)), "µ.v": np.zeros((2, 2)), "größe_1": np.array([3.0, 4])}
    with create_result(f"p{ending}", {name: array.shape[:-1] for name, array in values.items()}) as result:
        result.write(values)
    with closing(open_points(f"p{ending}")) as points:
        assert points.shapes == {"λ": (), "\u03bc": (2,), "\u03bc.v": (2,), "größe_1": ()}
    np.testing.assert_array_equal(read(f"p{ending}", ["λ"])[0]["λ"], [1, 2])


def test_what_is_no_name_in_any_letters(csv):
    with closing(open_points(str(csv("x²,²,λ,x[²],2λ,λ.w,λ.v,a-b,x0\n")))) as points:
        assert points.shapes == {"λ": (), "λ.v": (), "x0": ()}


# Memory

# Not ru_maxrss: a process has that of its parent, up to the exec.
MEASURE = """
import re, sys
from pathlib import Path
from gradcli.data.points import open_points
from gradcli.data.result import create_result
points = open_points(sys.argv[1])
with create_result(sys.argv[2], {"g": (), "h": (2,)}) as result:
    for block in points.blocks(["a", "x"], 2**14):
        result.write({"g": block["a"], "h": block["x"]})
points.close()
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def peak(source):
    command = [sys.executable, "-c", MEASURE, source, "r.npz"]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


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
                result.write({"a": rng.random(count), "x": rng.random((2, count))})
        else:
            np.savez(source, a=np.ones(count), x=np.ones((count, 2), order=layout))
        peaks.append(peak(source))
        with np.load("r.npz") as found:
            assert found["h"].shape == (count, 2)
    assert peaks[1] < peaks[0] + 6000  # KiB; the values are 24 MB
