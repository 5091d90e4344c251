"""Mistakes in runs over many points: status 2, a few lines that say what and where, and no output but the old one."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import said

OLD = b"the old file"
AB = "a,b\n1,2\n3,4\n"
TWO = ("backward", "y=a*b", "z=b")
VECTOR = ("backward", "y=2*x")
X = "x[0],x[1]\n1,2\n3,4\n"


@dataclass(frozen=True)
class Mistake:
    """Arguments and the files beside them, pieces of the message, and modules that are not installed."""

    arguments: tuple[str, ...]
    files: Mapping[str, str | bytes]
    says: tuple[str, ...]
    stdin: str | bytes = ""
    without: Sequence[str] = ()
    needs: Sequence[str] = ()
    output: str | None = "r.csv"

    @property
    def line(self) -> tuple[str, ...]:
        return (*self.arguments, *(("--output", self.output) if self.output else ()))


def mistake(*arguments: str, says: str | tuple[str, ...], files: Mapping[str, str | bytes] | None = None, **more):
    return Mistake(arguments, files or {}, (says,) if isinstance(says, str) else says, **more)


def csv(text: str | bytes, *says: str, system: Sequence[str] = ("backward", "y=a*b"), **more) -> Mistake:
    """Return a mistake in a file of points p.csv."""
    return Mistake((*system, "--points", "p.csv"), {"p.csv": text}, says, **more)


def npz(*says: str, system: Sequence[str] = ("backward", "y=a*b"), save=np.savez, **arrays) -> Mistake:
    """Return a mistake in a file of points p.npz."""
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return Mistake((*system, "--points", "p.npz"), {"p.npz": buffer.getvalue()}, says)


def options(*arguments: str, says: str | tuple[str, ...], **more) -> Mistake:
    """Return options that do not fit a file of good points p.csv."""
    return mistake(*arguments, "--points", "p.csv", says=says, files={"p.csv": AB}, **more)


FILES = [
    csv("a,c\n1,2\n", "`p.csv` has no values for the input `b`", "its columns are `a`, `c`"),
    csv("1,2\n3,4\n", "`p.csv` has no values for the input `a`", "a column of numbers is headed by its name: a"),
    csv("a,b\n1,2\n3,four\n", "`p.csv`, line 3, column `b`: `four` is not a number"),
    csv("a,b\n1,2\n3,1e400\n", "`p.csv`, line 3, column `b`: `1e400` is too large", "infinity is `inf`"),
    csv("a,b\n" + "1,2\n" * 90_000 + "3\n", "`p.csv`, line 90002: 1 cell, where the header has 2"),
    csv("", "`p.csv` is empty"),
    csv("r\n1\n", "`p.csv` has no values for the input `R`", "did you mean `r`?", system=("backward", "y=R**2")),
    csv(b"\xff\xfea\0,\0b\0", "NUL byte"),
    csv("x[0],x[2]\n1,2\n", "`p.csv` has a column `x[2]`, but no `x[1]`", system=(*VECTOR, "--v", "1,1")),
    csv(X, "shapes (2,) and (3,) do not fit together", system=("jacobian", "y=x+[1,2,3]")),
    npz("`p.npz` is ragged: `a` and `b` have 2 and 3 points", a=[1.0, 2], b=[1.0, 2, 3]),
    npz("`p.npz`, array `b` holds object, not real numbers", a=[1.0], b=np.array([print], dtype=object)),
    npz("`p.npz`, array `b` is a single number", "first axis", a=[1.0], b=2.0),
    npz("`p.npz` has no values for the input `b`", "its columns are `a`, `c`", a=[1.0], c=[2.0]),
    npz("`y.v` has shape (2,) in `p.npz`, but y has shape ()", **{"a": [1.0], "b": [2.0], "y.v": [[1.0, 2.0]]}),
    mistake(
        *TWO, "--points", "p.npz", says="`p.npz` cannot be read: it is not an .npz", files={"p.npz": b"no archive"}
    ),
    mistake(*TWO, "--points", "p.csv", says="`p.csv` cannot be read: no such file"),
    mistake(
        *TWO, "--points", "p.xyz", says=("`p.xyz` has an unknown file extension", ".csv.gz, .dat"), files={"p.xyz": AB}
    ),
    mistake(
        *TWO,
        "--points",
        "p.xyz",
        says=("`p.xyz` has an unknown file extension", ".csv.gz, .dat, .json, .jsonl, .npz, .parquet"),
        files={"p.xyz": AB},
    ),
    mistake(*TWO, "--points", "p.npz.gz", says="`p.npz.gz` has an unknown file extension"),
    mistake(*TWO, "--points", "/", says="`/` is a folder without .parquet files"),
    mistake(*TWO, "--points", "-", says="standard input is empty"),
    mistake("jacobian", "y=a", "--points", "-", says="standard input, line 2, column `a`: `x` is not", stdin="a\nx\n"),
    mistake(*TWO, "--points", "-", says="standard input has no values for the input `b`", stdin="a\n1\n"),
    mistake(*TWO, "--points", "p.parquet", says="`p.parquet` cannot be read: ", needs=["pyarrow"], output="r.npz"),
    mistake(
        *TWO, "--points", "p.parquet", says="`p.parquet` cannot be read", files={"p.parquet": AB}, needs=["pyarrow"]
    ),
    mistake(
        *TWO,
        "--points",
        "p.parquet",
        says=("needs pyarrow", "pip install 'gradcli[batch]'"),
        files={"p.parquet": AB},
        without=["pyarrow", "pyarrow.parquet"],
    ),
]

COTANGENTS = [
    csv("x[0],x[1],y.v\n1,2,3\n", "`y.v` has shape () in `p.csv`, but y has shape (2,)", system=VECTOR),
    csv("x[0],x[1],y[0].v\n1,2,3\n", "`y.v` has shape (1,) in `p.csv`, but y has shape (2,)", system=VECTOR),
    csv("x[0],x[1],y[1].v\n1,2,3\n", "`p.csv` has a column `y[1].v`, but no `y[0].v`", system=VECTOR),
    csv(
        "a,b,y.v\n1,2,3\n",
        "v is given twice: by --v, and in `p.csv` as `y.v`",
        system=("backward", "y=a*b", "--v", "1"),
    ),
    csv(X, "`y` has 2 elements, and no v", "grad can be implicitly created only for scalar outputs", system=VECTOR),
    csv("a,b,w.v\n1,2,3\n", "there are 2 outputs, and no v", system=TWO),
    csv(X, "`y[0]` is given twice", system=(*VECTOR, "--v", "y=[1,2],y[0]=5")),
    options("backward", "y=a", "--v", "-", says="2 lines of gradients", stdin='{"grad": {"y": 1}}\n' * 2),
]

OPTIONS = [
    csv(
        ",".join(f"x[{k}]" for k in range(1001)) + "\n",
        "the Jacobian would have 1,001 × 1,001 entries",
        "--sparse writes only those that are not zero everywhere",
        system=("jacobian", "y=x**2"),
        output=None,
    ),
    options("backward", "y=a*b", "--engine", "jax", says=("needs the package jax", "gradcli[jax]"), without=["jax"]),
    options(
        "backward",
        "y=a*b",
        "--engine",
        "llvm",
        says=("--engine llvm needs the package llvmlite", "gradcli[jit]"),
        without=["llvmlite"],
    ),
    options(
        "backward",
        "y=a*b",
        says=("writing Parquet needs pyarrow", "gradcli[batch]"),
        without=["pyarrow"],
        output="r.parquet",
    ),
    mistake("backward", "-F", "-", "--points", "-", says="standard input can be read only once", stdin="y=a"),
    mistake("backward", "--points", "-", says="no system is given: standard input is read for --points", stdin=AB),
    mistake("backward", "y=a", "--points", "-", "--v", "-", says="name a file: --points points.csv", stdin=AB),
    mistake("jvp", "y=a", "--points", "-", "--steps", says="--steps is for single points", stdin=AB),
    mistake("jvp", "y=a", "--points", "-", "--v", "1", says="--v is for single points", stdin=AB),
]


def name_of(mistake: Mistake) -> str:
    text = " ".join([*mistake.line, *(repr(f)[:30] for f in mistake.files.values())])
    return text.encode("ascii", "backslashreplace").decode()[:90]


def contents(folder: str = ".") -> dict[str, bytes]:
    """Return all files of a folder, hidden ones too."""
    found = {}
    for path in sorted(os.listdir(folder)):
        with open(path, "rb") as file:
            found[path] = file.read()
    return found


@pytest.mark.parametrize("mistake", FILES + COTANGENTS + OPTIONS, ids=name_of)
def test_mistake(cli, tmp_path, monkeypatch, mistake):
    for module in mistake.needs:
        pytest.importorskip(module)
    for module in mistake.without:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    for name, text in mistake.files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for old in ((), ("r.csv", "r.npz", "r.parquet", "r.json")):
        for name in old:
            (tmp_path / name).write_bytes(OLD)
        before = contents()
        err = cli.refused(*mistake.line, stdin=mistake.stdin)
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
