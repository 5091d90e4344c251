"""Mistakes in files, in what a pipe brings, and in sizes."""

from __future__ import annotations

import struct

import numpy as np
import pytest

# Files


def npy(shape: str, dtype: str = "<f8", data: bytes = b"") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.npy", b"", "cannot be read: it is not an array of NumPy's"),
        ("x.npy", bytes(range(256)), "cannot be read: it is not an array of NumPy's"),
        ("x.npy", npy("(2,)", data=b"\0" * 8), "ends early"),
        ("x.npy", npy("(10**15,)"), ""),
        ("x.npy", npy("(1000000000000000,)"), "is too large"),
        ("x.npy", npy("(2,)", "|O", b"\0" * 16), "holds object, not numbers"),
        ("x.npy", npy("(1,)", "<c16", b"\0" * 16), "holds complex128, not numbers"),
        ("x.npy", npy("(0,)"), "empty"),
        ("x.csv", b"", "holds no numbers"),
        ("x.csv", b"1,2\n3,a\n", "line 2, column 2: `a` is not a number"),
        ("x.csv", b"1,2\n3\n", "line 2: 1 cell, where the first line has 2"),
        ("x.csv", b"1,\0\n", "NUL"),
        ("x.csv", b"1,\xff\n", "is not UTF-8 text"),
        ("x.txt", b"1", ".npy and .csv"),
    ],
)
@pytest.mark.parametrize("option", [("--at", "x=@{}", "--v", "1"), ("--at", "x=1", "--v", "@{}")], ids=["at", "v"])
def test_files_of_values(cli, tmp_path, name, content, says, option):
    path = tmp_path / name
    path.write_bytes(content)
    assert says in cli.refused("backward", "y=x", *(text.format(path) for text in option))


def test_an_npy_file_is_never_unpickled(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.array([print], dtype=object), allow_pickle=True)
    assert "holds object" in cli.refused("backward", "y=x", "--at", f"x=@{tmp_path / 'x.npy'}")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (bytes(range(256)), "NUL"),
        (b"y = x\0", "NUL"),
        (b"y = x # caf\xe9\n", "is not UTF-8 text (byte 11)"),
        (b"", "no system is given"),
        (b"# nothing\n\n", "no system is given"),
        (b"y = x\n" * 2, "assigned already (line 1 of "),
    ],
)
def test_files_of_statements(cli, tmp_path, content, says):
    path = tmp_path / "system.grad"
    path.write_bytes(content)
    assert says in cli.refused("jacobian", "-F", str(path))


@pytest.mark.parametrize(
    ("path", "says"), [("/dev/zero", "NUL"), ("/", "is a directory"), ("no/such.grad", "no such file"), ("", "no such")]
)
def test_paths_that_are_no_files(cli, path, says):
    assert says in cli.refused("jacobian", "-F", path)
    for option in (("--at", f"x=@{path}.npy"), ("--at", f"x=@{path}.csv"), ("--at", f"x=@{path}")):
        cli.refused("backward", "y=x", *option)


def test_endless_files(cli, tmp_path):
    for name in ("x.npy", "x.csv"):
        (tmp_path / name).symlink_to("/dev/zero")
        cli.refused("backward", "y=x", "--at", f"x=@{tmp_path / name}")


def test_a_system_as_long_as_a_book_series(cli):
    assert "is longer than 16 MiB" in cli.refused("jacobian", stdin="y\n" * (9 * 2**20))


# What a pipe brings


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        ("[" * 100_000, "is not the JSON"),
        ('{"grad": {"y": ' + "9" * 400 + "}}", "not an array of numbers"),
        ('{"grad": {"y": ' + "9" * 5000 + "}}", "is not the JSON"),
        (b"\0", "NUL"),
    ],
)
def test_json_on_standard_input(cli, stdin, says):
    assert says in cli.refused("backward", "y=x**2", "--at", "x=1", "--v", "-", stdin=stdin)


# Size


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000 + "x" + ")" * 20_000,
        "[" * 20_000 + "x" + "]" * 20_000,
        "sin(" * 20_000 + "x" + ")" * 20_000,
        "x[" * 20_000 + "0" + "]" * 20_000,
        "(" * 20_000,
        "-" * 20_000 + "x",
        "x" + "**x" * 20_000,
        "x" + "+x" * 100_000,
        "x" + "<x" * 100_000,
        "[" * 100 + "x" + "]" * 100,
        "9" * 100_000 + "*x",
        "x" * 1000 + "(x)",
        "*".join(["9**99"] * 99) + "*x",
    ],
    ids=lambda text: f"{text[:12]}… ({len(text)})",
)
def test_expressions_of_absurd_size(cli, text):
    assert len(cli.refused("jacobian", f"y={text}")) < 1000


def test_a_chain_of_absurd_size_is_refused_or_answered(cli):
    """Python 3.14 reads attributes of attributes to any depth."""
    outcome = cli("jacobian", "y=x" + ".T" * 100_000)
    if outcome.status:
        assert len(outcome.refused()) < 1000
    else:
        assert outcome.out == "y = x\n\n∂y/∂x = 1\n"
