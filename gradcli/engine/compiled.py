"""A graph compiled once, to be run at any number of points: blocks of points, spread over threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from gradcli.engine.blocks import Arrays, Work, are_contiguous
from gradcli.engine.evaluate import depends_on_count
from gradcli.engine.numpy_kernel import NumpyKernel
from gradcli.engine.numpy_plan import CACHE_LINE
from gradcli.engine.schedule import Schedule
from gradcli.errors import InputError, Notes
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph
from gradcli.process.platform import cores

_LINE = CACHE_LINE // 8  # points in a line of the cache


class Kernel(Protocol):
    """A schedule made ready by an engine.

    `block` is the number of points in a block at which it is fastest, `fewest` the number that is worth a thread.
    """

    block: int
    fewest: int

    def new(self, count: int) -> dict[str, Array]:
        """Return arrays for the results at `count` points."""

    def buffers(self, count: int) -> list[Array]:
        """Return the memory that a thread needs for blocks of `count` points."""

    def begin(self, points: Arrays, results: Arrays) -> Work | None:
        """Return the work that computes the results at a block of points; None unless they are contiguous float64."""


class Compiled:
    """A graph ready to run, by the engine `numpy`, `llvm` or `jax`.

    `same` holds the inputs that have one value for all points, of shape `(*shape, 1)`.  Called with the other inputs,
    each of shape `(*shape, N)`, it returns for each output an array of that layout; where an output is the same at all
    points, its last axis has length 1.  The results go into the arrays `out`, if they are given.

    Errors: `InputError` when the engine is not installed.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> run = Compiled(Graph.of({"x": x}, {"y": 3 * x**2}))
    >>> run({"x": np.array([1.0, 2.0])})
    {'y': array([ 3., 12.])}
    """

    def __init__(
        self,
        graph: Graph,
        same: Mapping[str, Array] | None = None,
        engine: str = "numpy",
        threads: int | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.threads = threads or cores()
        schedule = Schedule.of(graph, same or {})
        self.kernel = _kernel(schedule, engine, notes or Notes())
        self._fewest = 2 if isinstance(self.kernel, NumpyKernel) and depends_on_count(schedule.steps) else 1
        # In their order; `results` take the place of those that vary.
        self._outputs: dict[str, Any] = {name: schedule.constants.get(name) for name in graph.outputs}
        self._names = list(schedule.outputs)
        self._spare: dict[int, list[list[Array]]] = {}  # buffers for so many points, for each thread
        self._pool: tuple[int, int, ThreadPoolExecutor | None] = (0, 0, None)  # its threads, and their process

    def __call__(self, points: Arrays, out: Arrays | None = None) -> dict[str, Array]:
        """Return the outputs at the points."""
        count = next((a.shape[-1] for a in points.values()), 1)
        if 0 < count < self._fewest:
            return self._at_two(points, out)
        if not out:
            results: Arrays = self.kernel.new(count)
        else:
            results = out if list(out) == self._names else {name: out[name] for name in self._names}
        work = self.kernel.begin(points, results)
        if work is None:
            self._copied(points, results, count)
        else:
            self._run(work, count)
        return {**self._outputs, **results}

    def _at_two(self, points: Arrays, out: Arrays | None) -> dict[str, Array]:
        """Return the outputs at one point, computed at two equal points: the bits are those among many points."""
        both = self({name: np.repeat(a, 2, axis=-1) for name, a in points.items()})
        results = {name: both[name][..., :1] for name in self._names}
        for name, array in (out or {}).items():
            array[...] = results[name]
        return {**self._outputs, **(out or results)}

    def _copied(self, points: Arrays, results: Arrays, count: int) -> None:
        """Fill the results by way of contiguous copies."""
        points = {name: np.ascontiguousarray(a, float) for name, a in points.items()}
        contiguous = results if are_contiguous(results.values()) else self.kernel.new(count)
        work = self.kernel.begin(points, contiguous)
        assert work is not None
        self._run(work, count)
        if contiguous is not results:
            for name, array in contiguous.items():
                results[name][...] = array

    def _run(self, work: Work, count: int) -> None:
        """Fill the results, block by block; each thread takes the next block that nobody has begun."""
        if not self._names or not count:
            return
        workers = max(1, min(self.threads, count // self.kernel.fewest))
        # Blocks of one length, as many as the threads share evenly; they begin where a line of the cache may begin.
        rounds = -(-count // (self.kernel.block * workers))
        block = min(self.kernel.block, -(-count // (rounds * workers * _LINE)) * _LINE, count)
        ranges = iter(_ranges(count, block))
        # Buffers are reused, since the system clears new memory.  A concurrent call allocates its own.
        buffers = self._spare.pop(block, [])
        buffers += [self.kernel.buffers(block) for _ in range(workers - len(buffers))]
        if workers == 1:
            self._work(ranges, work, block, buffers[0])
        else:
            pool = self._helpers(workers - 1)
            others = [pool.submit(self._work, ranges, work, block, b) for b in buffers[1:workers]]
            try:
                self._work(ranges, work, block, buffers[0])
            finally:
                deque(ranges, maxlen=0)  # after an error no thread begins another block
                begun = [other for other in others if not other.cancel()]
                for other in begun:
                    other.result()
        self._spare = {block: buffers}

    def _helpers(self, count: int) -> ThreadPoolExecutor:
        """Return a pool of at least `count` threads, kept for the next call: starting threads may take longer than it.

        After a fork they are new, since a process has only its own.
        """
        threads, process, pool = self._pool
        if pool is None or threads < count or process != os.getpid():
            pool = ThreadPoolExecutor(count)
            self._pool = count, os.getpid(), pool
        return pool

    def _work(self, ranges: Iterator[tuple[int, int]], work: Work, block: int, buffers: list[Array]) -> None:
        with np.errstate(all="ignore"):
            for start, stop in ranges:
                work(buffers if stop - start == block else self.kernel.buffers(stop - start), start, stop)


def _ranges(count: int, block: int) -> list[tuple[int, int]]:
    """Return the ranges of the blocks of points; none but the first is of one point (see `depends_on_count`).

    >>> _ranges(17, 8)
    [(0, 8), (8, 17)]
    """
    starts = [start for start in range(0, count, block) if start == 0 or start < count - 1]
    return list(zip(starts, [*starts[1:], count], strict=True))


def _kernel(schedule: Schedule, engine: str, notes: Notes) -> Kernel:
    if engine == "numpy" or not schedule.steps:
        return NumpyKernel(schedule)
    package, extra = {"llvm": ("llvmlite", "jit"), "jax": ("jax", "jax")}[engine]
    try:
        import_module(package)
    except ImportError:
        raise InputError(
            f"--engine {engine} needs the package {package}",
            hint=f"pip install 'gradcli[{extra}]' installs it; --engine numpy needs nothing more",
            options=("--engine",),
            text=engine,
        ) from None
    if engine == "jax":
        from gradcli.engine.jax_kernel import JaxKernel

        return JaxKernel(schedule)
    from gradcli.engine.llvm.code import NotCompiledError
    from gradcli.engine.llvm.kernel import LlvmKernel

    try:
        return LlvmKernel(schedule)
    except NotCompiledError as error:
        notes.add("note", f"{error}: the NumPy engine computes these points")
        return NumpyKernel(schedule)
