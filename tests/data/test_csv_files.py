"""Points in CSV: headers, columns, numbers, quotes, line ends, and mistakes with their lines."""

import io
import os
import sys
import threading
from contextlib import closing
from itertools import product

import numpy as np
import pytest
from conftest import each
from point_files import csv, read, refused

from gradcli.data import text_files
from gradcli.data.formats import open_points
from gradcli.errors import InputError

pytestmark = pytest.mark.usefixtures("own_folder")


FORMS = [
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
    b"# x0,x1\n1,2\n3,4\n",
    b"# measured on Monday\n#\nx0;x1\n1;2\n3;4\n",
    b"# measured on Monday\n# x0 x1\n1.0e+00 2.0e+00\n3.0e+00 4.0e+00\n",
    b"   x0   x1\r\n    1    2 \r\n    3    4\r\n",
]
PARTED = [  # by other signs, which are seen in the header
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
]


@each(("text", "chunk"), [*product(FORMS, [1, 7, 2**23]), *product(PARTED, [8, 2**16])])
def test_csv_in_all_its_forms(monkeypatch, text, chunk):
    monkeypatch.setattr(text_files, "CHUNK", chunk)
    monkeypatch.setattr(text_files, "_FIRST", chunk)
    found, _ = read(csv(text), ["x0", "x1"])
    np.testing.assert_array_equal(found["x0"], [1, 3])
    np.testing.assert_array_equal(found["x1"], [2, 4])


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
        ("x0;x1\n1;2\n3;\n", "line 3, column `x1`: the cell is blank", None),
        ("x0\tx1\n\t \n", "line 2, column `x0`: the cell is blank", None),
        (
            "x0;x1\n1,5;2\n",
            "line 2, column `x0`: `1,5` is not a number\n  write `1.5` where it is a decimal comma",
            None,
        ),
        ("x0;x1\n1,2\n", "line 2: 1 cell, where the header has 2", None),
        ("x0\tx1\n1\t2\t3\n", "line 2: 3 cells, where the header has 2", None),
        ("x0,x1\n1;2\n", "line 2: 1 cell, where the header has 2", None),
        ('x0;x1\n"1;2\n', "line 2: the quotes do not match", None),
    ],
)
def test_mistakes_in_csv(text, message, names):
    told = refused(csv(text), names)
    assert "p.csv`" in told
    assert message in told


def test_errors_have_line_numbers_beyond_the_first_chunk(monkeypatch):
    monkeypatch.setattr(text_files, "CHUNK", 64)
    lines = ["x0,x1"] + ["1,2"] * 500
    lines[300] = "1,z"
    assert "line 301, column `x1`: `z`" in refused(csv("\n".join(lines)))
    lines[200] = '"1",2'
    assert "line 301, column `x1`: `z`" in refused(csv("\n".join(lines)))
    lines[300] = "1,\0"
    assert "line 301: a NUL byte" in refused(csv("\n".join(lines)))


def test_endless_rows_are_refused(monkeypatch):
    monkeypatch.setattr(text_files, "MAX_ROW", 2**12)
    monkeypatch.setattr(text_files, "CHUNK", 2**8)
    for text in ["x" * 2**17, "x0\n" + "1" * 2**17, "x0,t\n1," + '"a\n' + "b\n" * 2**17, "x" * 2**17 + "\n1\n"]:
        assert "a row of more than" in refused(csv(text))
    monkeypatch.setattr(text_files, "MAX_CELLS", 2**10)
    monkeypatch.setattr(text_files, "_LONG_LINE", 2**9)
    monkeypatch.setattr(text_files, "MAX_ROW", 2**20)
    for delimiter in ",;\t":
        most = delimiter.join(f"x{k}" for k in range(2**10))
        with closing(open_points(str(csv(f"{most}\n")))) as points:
            assert len(points.shapes) == 2**10
        assert "line 1: more than 1,024 cells" in refused(csv(f"{most}{delimiter}\n"))


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


@pytest.mark.parametrize(("name", "column"), [("R", "r"), ("x0", "X0"), ("Temp", "TEMP")])
def test_a_name_in_other_letters(name, column):
    assert refused(csv(f"q,{column}\n1,2\n"), [name]).endswith(f"\n  did you mean `{column}`?")
