"""A progress bar on standard error, for a run that lasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gradcli.process.platform import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0  # seconds without a bar
_PAUSE = 0.1  # seconds between two looks of it


class _Bar:
    """A bar that appears once the run has lasted a second."""

    def __init__(self, fraction: Callable[[], float | None]) -> None:
        self._fraction = fraction
        self._start = time.monotonic()
        self._next = _PATIENCE
        self._progress: Progress | None = None

    def update(self, points: int) -> None:
        """Show how many points are done."""
        elapsed = time.monotonic() - self._start
        if elapsed < self._next:
            return
        self._next = elapsed + _PAUSE
        bar = self._progress = self._progress or _shown()
        done = self._fraction()
        rate = f"{points:,} points, {points / elapsed:,.0f} a second"
        total = None if done is None else 1
        bar.update(bar.task_ids[0], completed=done or 0, total=total, rate=rate, refresh=True)

    def stop(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()


def _shown() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    console = Console(stderr=True)
    # Without a thread of its own, which could still be writing when Python ends.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, auto_refresh=False)
    bar.add_task("", total=1, rate="")
    bar.start()
    return bar


@contextmanager
def progress(fraction: Callable[[], float | None]) -> Iterator[Callable[[int], None]]:
    """Yield a function of the number of finished points, which shows them on a terminal after the first second.

    `fraction` returns the share of the work that is done, or None where it is not known.
    """
    if not is_terminal(sys.stderr):
        yield lambda points: None
        return
    bar = _Bar(fraction)
    try:
        yield bar.update
    finally:
        bar.stop()
