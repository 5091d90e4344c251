"""The two parsers of CSV read the same numbers, and refuse the same files in the same words."""

import importlib.util
from contextlib import closing

import numpy as np
import pytest
from conftest import each
from hypothesis import example, given
from hypothesis import strategies as st

from gradcli.data import text_files
from gradcli.data.csv import reader
from gradcli.data.csv.reader import Table, parse
from gradcli.data.formats import open_points
from gradcli.errors import InputError

ARROW = importlib.util.find_spec("pyarrow") is not None
PARSERS = ["reference", *["arrow"] * ARROW]

_CELLS = """
0 -0 1 +1 -1 1. .5 -.5 +.5 1.e5 00012 1e5 1E5 1e+5 1e-05 1e400 -1e400 1e-400 5e-324 2.4703282292062328e-324
2.2250738585072011e-308 1.7976931348623158e308 9007199254740993 1e23 0.1e-1000 1e99999999999999999999
1e0000000005 nan -nan +nan NaN -NAN nan(1) nan() -nan(abc) inf -inf +inf INF Infinity -infinity infinit 1_0 1__0
0x10 0x1p3 -0x1.8 1d5 1D5 1f 1.5L - + . e5 1e 1e+ +-1 --1 1..2 1.2.3 null NA N/A #N/A None True true ١ １ −1
"""
CELLS = _CELLS.split()
ODD = [
    "", " ", "\t", " 1 ", "\t1", "1\t", "1\x0b", "\x0c1", "1\x1c", "\x1f1", "1\x85", "\xa01", "\u20031", "\ufeff1",
    "1 2",
]  # fmt: skip
ODD += [
    '"1"',
    '" 1"',
    '""',
    '"1,5"',
    '1"',
    '"1',
    '"1"1',
    "1\r",
    "'1'",
    "#1",
    "1;2",
    "(1)",
    "\x7f",
    "0." + "3" * 500,
    "1" * 400,
]
ODD += [repr(0.1 + 0.2), "0.1000000000000000055511151231257827021181583404541015625", "179769313486231580793e289"]

cells = (
    st.sampled_from(CELLS + ODD)
    | st.floats().map(repr)
    | st.from_regex(r"[+-]?\d{1,25}(\.\d{0,25})?([eE][+-]?\d{1,3})?", fullmatch=True).filter(str.isascii)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
)
good = st.sampled_from(["1", "-2.5", " 3", "nan", "1e-5"]) | st.floats().map(repr)
rows = st.lists(good, min_size=3, max_size=3) | st.lists(good | cells, min_size=0, max_size=4)
tables = st.lists(rows.map(",".join), max_size=8)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("parsers") / "p.csv"


def outcome(path, parser, names, size=3):
    """Return the bits of the numbers that are read before the first mistake in a block, and what is said about it."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        if parser == "reference":
            patch.setattr(reader, "parse", lambda *_: None)
        with closing(open_points(str(path))) as points:
            try:
                for block in points.blocks(names, size):
                    found.append({name: array.tobytes() for name, array in block.items()})
            except InputError as error:
                return error.render()
    return {name: b"".join(block[name] for block in found) for name in names}


def agree(path, lines, end, names, delimiter=","):
    path.write_bytes(end.join([delimiter.join(["x0", "x1", "x2"]), *lines]).encode("utf-8", "surrogateescape"))
    first, *others = [outcome(path, parser, names) for parser in PARSERS]
    assert all(other == first for other in others)
    return first


@given(tables, st.sampled_from(["\n", "\n", "\r\n", "\r"]), st.sampled_from([["x0", "x1", "x2"], ["x1"], ["x2", "x0"]]))
@example(["1,2,3", "1,2", "3,1,2,3"], "\n", ["x0"])
@example(["\ufeff1,2,3"], "\n", ["x0"])
def test_parsers_agree(path, lines, end, names):
    agree(path, lines, end, names)


@given(st.lists(rows, max_size=8), st.sampled_from(["\n", "\r\n"]), st.sampled_from(";\t"))
@example([["1", "2", "3"], ["", " ", ""], ["1", "2", "3"]], "\n", "\t")
@example([["1", "2", "3"], [" "], ["", ""]], "\n", "\t")
@example([["1,5", "2", "3"]], "\n", ";")
@example([["1\t", "\t2", " 3"]], "\n", ";")
def test_parsers_agree_whatever_parts_the_cells(path, lines, end, delimiter):
    agree(path, [delimiter.join(line) for line in lines], end, ["x0", "x2"], delimiter)


@given(st.lists(cells, min_size=1, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_parsers_agree_about_one_column(path, lines, end, last):
    path.write_bytes(("x0" + end + end.join(lines) + end * last).encode())
    first, *others = [outcome(path, parser, ["x0"]) for parser in PARSERS]
    assert all(other == first for other in others)


@each("cell", CELLS + ODD)
def test_each_cell_is_what_python_takes_for_a_number_that_float64_has_room_for(path, cell):
    try:
        number = float(cell.strip('"') if cell.startswith('"') and cell.endswith('"') else cell)
        is_large = np.isinf(number) and "i" not in cell.lower()
        wanted = np.float64(number) if cell.isascii() and "_" not in cell and not is_large else None
    except ValueError:
        wanted = None
    found = agree(path, [f"1,{cell},3"], "\n", ["x1"])
    if wanted is None or "\r" in cell:
        assert isinstance(found, str)
    else:
        np.testing.assert_array_equal(np.frombuffer(found["x1"]), [wanted])
        assert np.signbit(np.frombuffer(found["x1"])) == np.signbit(np.nan if np.isnan(wanted) else wanted)


@given(st.lists(st.lists(good, min_size=3, max_size=3).map(",".join), min_size=1, max_size=40), st.data())
def test_chunks_are_no_matter(path, lines, data):
    for line in data.draw(st.lists(st.sampled_from(["", '"1",2,3', "1,2,x", "1,2", '1,2,"\n"']), max_size=2)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    wholes = agree(path, lines, "\n", ["x0", "x1"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "CHUNK", data.draw(st.integers(1, 100)))
        patch.setattr(text_files, "_FIRST", data.draw(st.integers(1, 100)))
        assert agree(path, lines, "\n", ["x0", "x1"]) == wholes


def test_the_fast_parser_does_the_work():
    """Agreement is no merit where the reference parser decides everything."""
    pytest.importorskip("pyarrow")
    chunk = b"1,a note,2.5\n-1,\xff,nan\r\n inf,,1e-5\n"
    first, last = parse(chunk, Table(",", 3), [0, 2])
    np.testing.assert_array_equal(first, [1, -1, np.inf])
    np.testing.assert_array_equal(last, [2.5, np.nan, 1e-5])
    (middle,) = parse(b"1;1;2,5\n1;2;a\n", Table(";", 3), [1])
    np.testing.assert_array_equal(middle, [1, 2])


def test_rows_of_many_columns_need_no_objects_of_pyarrow(path):
    """It has 5 KB for a column."""
    width = 10_000
    assert parse(b"1" + b",1" * (width - 1) + b"\n", Table(",", width), range(width)) is None
    names = [f"x{k}" for k in range(width)]
    path.write_text(f"{','.join(names)}\n{','.join(map(str, range(width)))}\n")
    assert outcome(path, "arrow", ["x0", "x9999"]) == {
        "x0": np.float64(0).tobytes(),
        "x9999": np.float64(9999).tobytes(),
    }
