"""Points in files of Parquet, and in folders of them, which are one data set."""

import contextlib
import os
import socket
import sys
from contextlib import closing

import numpy as np
import pytest
from conftest import HANG, at_most
from point_files import parquet, read, refused

from gradcli.data.formats import open_points
from gradcli.data.parquet import parts
from gradcli.errors import InputError

pytestmark = pytest.mark.usefixtures("own_folder")


def test_parquet_of_any_numbers():
    pa = pytest.importorskip("pyarrow")
    kinds = [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.decimal128(5, 2)]
    columns = [(f"x{i}", pa.array([1, 0], pa.int8()).cast(kind)) for i, kind in enumerate(kinds)]
    columns += [("x6", pa.array([1, 0]).dictionary_encode()), ("x7", pa.array([2**63 + 1, 0], pa.uint64()))]
    found, _ = read(parquet(columns))
    assert [found[f"x{i}"].tolist() for i in range(7)] == [[1, 0]] * 7
    assert found["x7"].tolist() == [2.0**63, 0]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a"], "column `x0`: string is not a numeric type"),
        ([["a"]], "column `x0[0]`: string is not a numeric type"),
        ([[[1.0]]], "column `x0[0]`: list<element: double> is not a numeric type"),
        ([{"a": 1.0}], "column `x0`: struct<a: double> is not a numeric type"),
        ([1.0, 2.0, None], "row 3, column `x0`: a null is not a number"),
        ([None], "row 1, column `x0`: a null is not a number"),
    ],
)
def test_mistakes_in_parquet(column, message):
    assert message in refused(parquet([("x0", column)]))


def test_parquet_columns_that_are_missing_or_there_twice():
    assert "has the column `x0` twice" in refused(parquet([("x0", [1.0]), ("x0", [1.0])]))
    assert "has a column `x[1]`, but no `x[0]`" in refused(parquet([("x[1]", [1.0])]))


def test_a_folder_is_one_data_set(tmp_path):
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


def test_a_damaged_part_of_a_folder_is_named(tmp_path):
    for k in (1, 2):
        whole = parquet([("x0", [1.0, 2.0])], f"set/{k}.parquet", write_page_checksum=True).read_bytes()
    (tmp_path / "set/2.parquet").write_bytes(whole[: len(whole) // 2])
    message = refused(tmp_path / "set")
    assert "set/2.parquet` cannot be read: " in message
    assert "magic bytes not found" in message
    start = whole.index(np.array(2.0).tobytes())
    (tmp_path / "set/2.parquet").write_bytes(whole[:start] + b"\1" + whole[start + 1 :])
    message = refused(tmp_path / "set")
    assert "set/2.parquet` cannot be read: " in message
    assert "checksum" in message


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_no_flipped_bit_of_a_page_is_read(dictionary, compression, version):
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


def test_a_folder_with_what_is_no_file(tmp_path):
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


def test_files_of_a_folder_that_differ(tmp_path):
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


@pytest.mark.parametrize("size", [None, 2])
def test_a_column_of_lists_is_a_vector(size):
    pa = pytest.importorskip("pyarrow")
    lists = pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64(), size) if size else None)
    found, _ = read(parquet([("x", lists), ("b", [7, 8, 9])]), size=2)
    assert found["x"].tolist() == [[1, 3, 5], [2, 4, 6]]
    assert found["b"].tolist() == [7, 8, 9]
