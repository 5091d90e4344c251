"""A graph compiled once, to be run at any number of points: blocks of points, spread over threads."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from gradcli.engine.numpy_kernel import NumpyKernel
from gradcli.engine.numpy_plan import CACHE_LINE
from gradcli.engine.schedule import Schedule
from gradcli.errors import InputError, Notes
from gradcli.graph.graph import Graph

Array = np.ndarray[Any, Any]

_LINE = CACHE_LINE // 8  # points in a line of the cache

_in_rows, _dtype = attrgetter("flags.c_contiguous"), attrgetter("dtype")


class Kernel(Protocol):
    """A schedule made ready by an engine.

    `block` is the number of points that it works on at best, `fewest` the number that is worth a thread.
    """

    block: int
    fewest: int

    def new(self, count: int) -> dict[str, Array]:
        """Return arrays for the results at `count` points."""

    def buffers(self, count: int) -> list[Array]:
        """Return the memory that a thread needs for blocks of `count` points."""

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at a block of points."""


class Compiled:
    """A graph ready to run, by the engine `numpy`, `numba` or `jax`.

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
        # In their order; `results` take the place of those that vary.
        self._outputs: dict[str, Any] = {name: schedule.constants.get(name) for name in graph.outputs}
        self._varying = list(schedule.outputs)
        self._spare: dict[int, list[list[Array]]] = {}  # buffers for so many points, for each thread

    def __call__(self, points: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Return the outputs at the points."""
        if not _are_rows(points.values()):
            points = {name: np.ascontiguousarray(a, float) for name, a in points.items()}
        count = next((a.shape[-1] for a in points.values()), 1)
        results = {name: out[name] for name in self._varying} if out else self.kernel.new(count)
        if _are_rows(results.values()):
            self._run(points, results, count)
        else:
            rows = self.kernel.new(count)
            self._run(points, rows, count)
            for name, array in rows.items():
                results[name][...] = array
        return self._outputs | results

    def _run(self, points: Mapping[str, Array], results: Mapping[str, Array], count: int) -> None:
        """Fill the results, block by block; each thread takes the next block that nobody has begun."""
        if not results or not count:
            return
        workers = max(1, min(self.threads, count // self.kernel.fewest))
        # Blocks of one length, as many as the threads share evenly; they begin where a line of the cache may begin.
        rounds = -(-count // (self.kernel.block * workers))
        block = min(self.kernel.block, -(-count // (rounds * workers * _LINE)) * _LINE, count)
        ranges = iter([(start, min(start + block, count)) for start in range(0, count, block)])
        # Memory that was used already needs no clearing by the system; a call at the same time finds none to take.
        buffers = self._spare.pop(block, [])
        buffers += [self.kernel.buffers(block) for _ in range(workers - len(buffers))]
        if workers == 1:
            self._work(ranges, points, results, block, buffers[0])
        else:
            with ThreadPoolExecutor(workers - 1) as pool:
                others = [pool.submit(self._work, ranges, points, results, block, b) for b in buffers[1:]]
                self._work(ranges, points, results, block, buffers[0])
                for other in others:
                    other.result()
        self._spare = {block: buffers}

    def _work(
        self,
        ranges: Iterator[tuple[int, int]],
        points: Mapping[str, Array],
        results: Mapping[str, Array],
        block: int,
        buffers: list[Array],
    ) -> None:
        def part(arrays: Mapping[str, Array], start: int, stop: int) -> Mapping[str, Array]:
            return arrays if stop - start == count else {name: a[..., start:stop] for name, a in arrays.items()}

        count = next(iter(results.values())).shape[-1]
        with np.errstate(all="ignore"):
            for start, stop in ranges:
                own = buffers if stop - start == block else self.kernel.buffers(stop - start)
                self.kernel.run(own, part(points, start, stop), part(results, start, stop))


def _are_rows(arrays: Collection[Array]) -> bool:
    """Tell whether kernels can read and write the arrays: it is asked of a thousand of them in each call."""
    return all(map(_in_rows, arrays)) and set(map(_dtype, arrays)) <= {np.dtype(float)}


def _kernel(schedule: Schedule, engine: str, notes: Notes) -> Kernel:
    if engine == "numpy" or not schedule.steps:
        return NumpyKernel(schedule)
    package, name, extra = {"numba": ("llvmlite", "Numba", "jit"), "jax": ("jax", "JAX", "jax")}[engine]
    try:
        import_module(package)
    except ImportError:
        raise InputError(
            f"--engine {engine} needs {name}",
            hint=f"pip install 'gradcli[{extra}]' installs it; --engine numpy is always there",
        ) from None
    if engine == "jax":
        from gradcli.engine.jax_kernel import JaxKernel

        return JaxKernel(schedule)
    from gradcli.engine.numba_code import NotInNumbaError
    from gradcli.engine.numba_kernel import NumbaKernel

    try:
        return NumbaKernel(schedule, notes)
    except NotInNumbaError as error:
        notes.add("note", f"{error}: the NumPy engine takes its place")
        return NumpyKernel(schedule)


def cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
