"""Whole processes: a command of gradcli against a script that imports torch and does the same."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.own import JAX, LLVM, NUMPY
from tests.bench.problems import Problem, bundle_adjustment
from tests.bench.race import Competitor, Ready, race
from tests.bench.session import Session
from tests.bench.tables import print_rows, title

SCRIPT = Path(__file__).with_name("torch_file.py")
FASTER = 1.2  # times as fast as the script, from file to file: to reach


def file_to_file(session: Session) -> None:
    """Race from a file of points to a file of gradients."""
    problem = bundle_adjustment(session.points(10**6))
    with tempfile.TemporaryDirectory() as folder:
        source, formulas = Path(folder, "points.npz"), Path(folder, "bundle.grad")
        np.savez(source, **problem.points)
        formulas.write_text(problem.text, encoding="utf-8")
        size = source.stat().st_size / 2**20
        title(f"{problem.title}, {problem.count:,} points: whole processes, .npz ({size:,.0f} MiB) to .npz")
        rows = race(
            problem,
            [
                Competitor(NUMPY, partial(_command, source, formulas, "numpy")),
                Competitor(LLVM, partial(_command, source, formulas, "llvm"), "llvmlite"),
                Competitor(JAX, partial(_command, source, formulas, "jax"), "jax"),
                Competitor("script with torch", partial(_script, source, formulas), "torch"),
            ],
        )
    print_rows(rows)
    peer = rows["script with torch"]
    if peer.times:
        ratio = peer.median / rows[NUMPY].median
        print(f"  {NUMPY} is {ratio:.1f} times as fast as the script; to reach: {FASTER}")
    session.check(rows)


def _options(formulas: Path, problem: Problem) -> list[str]:
    return ["-m", "gradcli", "backward", "-F", str(formulas), "--wrt", ",".join(problem.wrt)]


def _command(source: Path, formulas: Path, engine: str, problem: Problem) -> Ready:
    target = source.with_name(f"{engine}.npz")
    files = ["--points", str(source), "--output", str(target), "--engine", engine]
    return _process([*_options(formulas, problem), *files], target)


def _script(source: Path, formulas: Path, problem: Problem) -> Ready:
    target = source.with_name("torch.npz")
    arguments = [SCRIPT, formulas, source, target, ",".join(problem.outputs), ",".join(problem.wrt)]
    return _process(list(map(str, arguments)), target)


def _process(arguments: list[str], target: Path) -> Ready:
    def named(_: Any) -> dict[str, np.ndarray[Any, Any]]:
        with np.load(target) as file:
            return {name: file[name] for name in file.files}

    return Ready(partial(_python, *arguments), named)


def _python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
