"""Work that may take forever, or all memory, done by a child process that is stopped in time."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

MAX_BYTES = 2**31  # of memory beyond what the parent has

Result = TypeVar("Result")


def within(seconds: float, work: Callable[[Callable[[Result], None]], None]) -> Result | None:
    """Return the last result that `work` reported before its time was up, or None where there was none.

    `work` gets a function to report with; what it reports is pickled.  Where processes cannot fork nothing is done.

    >>> within(1, lambda report: report(6 * 7))
    42
    >>> within(0.2, lambda report: (report(1), time.sleep(60), report(2)))
    1
    """
    if not hasattr(os, "fork"):
        return None
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child computes with Python alone
        child = os.fork()
    if child == 0:
        _work(reader, writer, work)
    os.close(writer)
    try:
        return _last(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _work(reader: int, writer: int, work: Callable[[Callable[[Result], None]], None]) -> None:
    """Do the work in the child, which ends here."""
    os.close(reader)
    try:
        _limit_memory()

        def report(result: Result) -> None:
            data = pickle.dumps(result)
            data = len(data).to_bytes(8, "little") + data
            while data:
                data = data[os.write(writer, data) :]

        work(report)
    finally:
        os._exit(0)  # no traceback of the child's, and nothing of the parent's is flushed twice


def _limit_memory() -> None:
    with suppress(Exception):  # not on every system
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = used + MAX_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _last(reader: int, until: float) -> Result | None:
    """Return the last whole result in the pipe when it is closed, or when the time is up."""
    data = b""
    while select.select([reader], [], [], max(0, until - time.monotonic()))[0]:
        part = os.read(reader, 2**20)
        if not part:
            break
        data += part
    found: Result | None = None
    while len(data) >= 8 and len(data) >= 8 + (size := int.from_bytes(data[:8], "little")):
        found = pickle.loads(data[8 : 8 + size])
        data = data[8 + size :]
    return found
