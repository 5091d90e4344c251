"""Mistakes in runs over many points: status 2, a few lines that say what and where, and no output but the old one."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import said

OLD = b"the old file"
AB = "a,b\n1,2\n3,4\n"
PRODUCT = ("backward", "y=a*b")


@dataclass(frozen=True)
class Mistake:
    """Arguments and the file beside them, pieces of the message, and modules that are not installed."""

    arguments: tuple[str, ...]
    file: tuple[str, str | bytes]
    says: tuple[str, ...]
    without: Sequence[str] = ()
    needs: Sequence[str] = ()
    output: str = "r.csv"

    @property
    def line(self) -> tuple[str, ...]:
        return (*self.arguments, "--points", self.file[0], "--output", self.output)


def csv(text: str | bytes, *says: str, arguments: Sequence[str] = PRODUCT, **more) -> Mistake:
    """Return a mistake in a file of points p.csv, or beside it."""
    return Mistake((*arguments,), ("p.csv", text), says, **more)


def npz(*says: str, **arrays) -> Mistake:
    """Return a mistake in a file of points p.npz."""
    np.savez(buffer := io.BytesIO(), **arrays)
    return Mistake(PRODUCT, ("p.npz", buffer.getvalue()), says)


def parquet(*says: str, **more) -> Mistake:
    """Return a file p.parquet that is none."""
    return Mistake(PRODUCT, ("p.parquet", AB), says, **more)


# Mistakes in short texts stand in tests/docs/pinned.
MISTAKES = [
    csv("a,b\n1,2\n3,four\n", "`p.csv`, line 3, column `b`: `four` is not a number"),
    csv("a,b\n" + "1,2\n" * 90_000 + "3\n", "`p.csv`, line 90002: 1 cell, where the header has 2"),
    csv(b"\xff\xfea\0,\0b\0", "NUL byte"),
    csv(
        ",".join(f"x[{k}]" for k in range(1001)) + "\n",
        "the Jacobian would have 1,001 × 1,001 entries",
        "--sparse writes only those that are not zero everywhere",
        arguments=("jacobian", "y=x**2"),
    ),
    npz("`p.npz` is ragged: `a` and `b` have 2 and 3 points", a=[1.0, 2], b=[1.0, 2, 3]),
    npz("`p.npz`, array `b` holds object, not real numbers", a=[1.0], b=np.array([print], dtype=object)),
    npz("`p.npz`, array `b` is a single number", "first axis", a=[1.0], b=2.0),
    npz("`p.npz` has no values for the input `b`", "its columns are `a`, `c`", a=[1.0], c=[2.0]),
    npz("`y.v` has shape (2,) in `p.npz`, but y has shape ()", **{"a": [1.0], "b": [2.0], "y.v": [[1.0, 2.0]]}),
    Mistake(PRODUCT, ("p.npz", b"no archive"), ("`p.npz` cannot be read: it is not an .npz",)),
    parquet("`p.parquet` cannot be read: ", needs=["pyarrow"], output="r.npz"),
    parquet("`p.parquet` cannot be read", needs=["pyarrow"]),
    parquet("needs pyarrow", "pip install 'gradcli[batch]'", without=["pyarrow", "pyarrow.parquet"]),
    csv(AB, "needs the package jax", "gradcli[jax]", arguments=(*PRODUCT, "--engine", "jax"), without=["jax"]),
    csv(AB, "--engine llvm needs the package llvmlite", "gradcli[jit]", arguments=(*PRODUCT, "--engine", "llvm"),
        without=["llvmlite"]),
    csv(AB, "writing Parquet needs pyarrow", "gradcli[batch]", without=["pyarrow"], output="r.parquet"),
]  # fmt: skip


def contents(folder: str = ".") -> dict[str, bytes]:
    """Return all files of a folder, hidden ones too."""
    found = {}
    for path in sorted(os.listdir(folder)):
        with open(path, "rb") as file:
            found[path] = file.read()
    return found


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: " ".join([*mistake.line, *mistake.says])[:90])
def test_mistake(cli, tmp_path, monkeypatch, mistake):
    for module in mistake.needs:
        pytest.importorskip(module)
    for module in mistake.without:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    name, text = mistake.file
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for old in ((), ("r.csv", "r.npz", "r.parquet", "r.json")):
        for name in old:
            (tmp_path / name).write_bytes(OLD)
        before = contents()
        err = cli.refused(*mistake.line)
        assert err.startswith("error: ")
        assert all(piece in said(err) for piece in mistake.says), err
        assert contents() == before


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_a_mistake_far_down_leaves_no_output(cli, tmp_path, monkeypatch, ending):
    """The first blocks have been written by then, to a file that nobody sees."""
    monkeypatch.chdir(tmp_path)
    rows = ["1,2\n"] * 60_000
    (tmp_path / "p.csv").write_text("".join(["a,b\n", *rows, "1,two\n"]))
    (tmp_path / f"r.{ending}").write_bytes(OLD)
    monkeypatch.setattr("gradcli.data.text_files.CHUNK", 2**16)
    err = cli.refused("backward", "y=a*b", "--points", "p.csv", "--output", f"r.{ending}")
    assert "`p.csv`, line 60002, column `b`: `two` is not a number" in err
    assert sorted(os.listdir()) == ["p.csv", f"r.{ending}"]
    assert (tmp_path / f"r.{ending}").read_bytes() == OLD
