"""CSV: how long results take to be written, against points that are read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from gradcli.data.formats import create_result, open_points
from tests.bench import race
from tests.bench.session import Session
from tests.bench.tables import seconds, title

SLOWER = 2  # times as long as reading: to reach
_COLUMNS, _BLOCK, _TURNS = 4, 2**18, 7


def csv_files(session: Session) -> None:
    """Write numbers of all digits as CSV, and read them."""
    count = session.points(10**6)
    block = dict(zip("abcd", np.random.default_rng(0).normal(size=(_COLUMNS, count)), strict=True))
    title(f"CSV: {_COLUMNS} columns of {count:,} numbers with all their digits")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "numbers.csv"))
        times = {what.__name__: _fastest(partial(what, path, block)) for what in (write, read)}
    for name, time in times.items():
        print(f"  {name:8} {seconds(time)}")
    print(f"  writing takes {times['write'] / times['read']:.1f} times as long as reading; to reach: {SLOWER}")


def _fastest(run: Callable[[], None]) -> float:
    """Return the seconds that the fastest of several turns takes."""
    times = []
    for _ in range(_TURNS):
        start = race.clock()
        run()
        times.append(race.clock() - start)
    return min(times)


def write(path: str, block: dict[str, np.ndarray]) -> None:
    """Write the numbers, a block at a time."""
    count = len(block["a"])
    with create_result(path, dict.fromkeys(block, ())) as write:
        for start in range(0, count, _BLOCK):
            write({name: values[start : start + _BLOCK] for name, values in block.items()})


def read(path: str, block: dict[str, np.ndarray]) -> None:
    """Read them."""
    points = open_points(path)
    assert sum(len(found["a"]) for found in points.blocks([*block], _BLOCK)) == len(block["a"])
    points.close()
