"""gradcli's engines, and the memory copy that no engine can be faster than."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.compiled import Compiled, cores
from gradcli.errors import Notes
from tests.bench.problems import Problem
from tests.bench.race import LEFT_OUT, Competitor, LeftOutError, Ready

Array = np.ndarray[Any, Any]


def compiled(problem: Problem, engine: str, threads: int | None = None) -> Compiled:
    """Return the derivative, compiled by an engine."""
    notes = Notes()
    run = Compiled(problem.graph(), {n: a[..., None] for n, a in problem.same.items()}, engine, threads, notes)
    if notes.lines:  # NumPy has taken its place
        raise LeftOutError(LEFT_OUT)
    return run


def engine(problem: Problem, name: str = "numpy", threads: int | None = None) -> Ready:
    """Return gradcli with an engine; results go into arrays that are already there, as when a file is computed."""
    run = compiled(problem, name, threads)
    out: dict[str, Array] = {}

    def into() -> dict[str, Array]:
        results = run(problem.points, out=out)
        if not out:
            out.update({n: a for n, a in results.items() if a.shape[-1] == problem.count})
        return results

    return Ready(into, dict)


def memory_copy(problem: Problem, threads: int) -> Ready:
    """Return what reads all points once, and writes as many bytes as there are results, once: the limit of memory.

    What NumPy writes the processor mostly reads first, which is not counted: an engine that goes by the cache may be
    ahead of it.
    """
    results = [a for a in compiled(problem, "numpy")(problem.points).values() if a.shape[-1] == problem.count]
    rows = [row for a in problem.points.values() for row in a.reshape(-1, problem.count)]
    targets = [row for a in results for row in a.reshape(-1, problem.count)]
    moves = [(target, rows[i :: len(targets)]) for i, target in enumerate(targets)]
    if threads == 1:
        return Ready(lambda: _move(moves, 0, problem.count), None)
    share = -(-problem.count // threads)
    starts = range(0, problem.count, share)
    pool = ThreadPoolExecutor(threads)
    return Ready(lambda: list(pool.map(lambda start: _move(moves, start, start + share), starts)), None)


def _move(moves: list[tuple[Array, list[Array]]], start: int, stop: int) -> None:
    """Copy each row to its target; of two for one target their sum, which takes as long as both to read."""
    for target, rows in moves:
        into, parts = target[start:stop], [row[start:stop] for row in rows]
        if len(parts) < 2:
            np.copyto(into, parts[0] if parts else 0)
        else:
            np.add(*parts[:2], out=into)
        for part in parts[2:]:
            np.add(into, part, out=into)


NUMPY = "gradcli NumPy"
LLVM = "gradcli LLVM"
JAX = "gradcli JAX"
COPY = "memory copy, 1 thread"

ENGINES = [
    Competitor(NUMPY, engine),
    Competitor(LLVM, partial(engine, name="llvm"), "llvmlite"),
    Competitor(JAX, partial(engine, name="jax"), "jax"),
]
COPIES = [Competitor(COPY, partial(memory_copy, threads=1))]
if cores() > 1:
    COPIES.append(Competitor(f"memory copy, {cores()} threads", partial(memory_copy, threads=cores())))
