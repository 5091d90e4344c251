"""Work that may take forever, or all memory, done by a child process that is stopped in time."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, Generic, NamedTuple, TypeVar

MAX_BYTES = 2**31  # of memory beyond what the parent has
_PATIENCE = 3  # times what a child may compute, by the clock: other processes take their part

Question = TypeVar("Question")
Result = TypeVar("Result")
Report = Callable[[Result], None]


class _Child(NamedTuple):
    """A child process, and the connection to it."""

    process: int
    pipe: Connection[Any, Any]


class Bounded(Generic[Question, Result]):
    """A child process that answers questions, each within a time of computing and a memory.

    `work` gets a question and a function to report with, as often as it likes; the last report before the time was up
    is the answer.  Questions and reports are pickled; what else `work` needs, the child has from its parent.  One child
    answers all questions, and another takes its place where it had to be stopped.  Where processes cannot fork there
    are no answers.

    `seconds` are those that the child computes; three times that is the limit by the clock.

    >>> with Bounded(lambda n, report: (report(6 * n), n > 7 and time.sleep(60), report(7 * n)), 0.2) as bounded:
    ...     bounded.ask(7), bounded.ask(8), bounded.ask(6)
    (49, 48, 42)
    """

    def __init__(self, work: Callable[[Question, Report[Result]], None], seconds: float) -> None:
        self.work, self.seconds = work, seconds
        self._child: _Child | None = None
        self._fresh = True

    def __enter__(self) -> Bounded[Question, Result]:
        """Start nothing yet: the first question does."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the child."""
        self._stop()

    def ask(self, question: Question) -> Result | None:
        """Return the last report on a question before its time was up, or None where there was none."""
        if not hasattr(os, "fork"):
            return None
        while True:
            until = time.monotonic() + _PATIENCE * self.seconds
            if self._child is None:
                self._child, self._fresh = _started(self.work, self.seconds), True
            with suppress(OSError):  # it has ended, which its answer tells
                self._child.pipe.send(question)
            found: Result | None
            found, ending = _received(self._child.pipe, until)
            if ending == "done":
                self._fresh = False
                return found
            signalled = -self._stop()
            if ending == "late" or signalled == signal.SIGPROF or self._fresh:
                return found
            # It ended by itself, maybe for memory that former questions took: one of its own gets all of it.

    def _stop(self) -> int:
        """Stop the child if there is one, and return how it ended: its status, or minus the signal that ended it."""
        if self._child is None:
            return 0
        child, self._child = self._child, None
        child.pipe.close()
        with suppress(ProcessLookupError):
            os.kill(child.process, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1])


def _started(work: Callable[[Question, Report[Result]], None], seconds: float) -> _Child:
    """Return a new child, whose questions take so many seconds."""
    ours, theirs = Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child computes with Python alone
        process = os.fork()
    if process == 0:
        ours.close()
        _serve(theirs, work, seconds)
    theirs.close()
    return _Child(process, ours)


def _serve(pipe: Connection[Any, Any], work: Callable[[Question, Report[Result]], None], seconds: float) -> None:
    """Answer the questions in the child, which ends here when its parent has no more, or is gone.

    A report is sent in a tuple; None follows the last one.
    """
    try:
        _limit_memory()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        while True:
            question = pipe.recv()
            signal.setitimer(signal.ITIMER_PROF, seconds)
            work(question, lambda result: pipe.send((result,)))
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send(None)
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


def _received(pipe: Connection[Any, Any], until: float) -> tuple[Any, str]:
    """Return the last report before the end of them, and whether that came: `done`, or else `late`, or `ended`."""
    found = None
    while pipe.poll(max(0, until - time.monotonic())):
        try:
            told = pipe.recv()
        except (EOFError, OSError):
            return found, "ended"
        if told is None:
            return found, "done"
        (found,) = told
    return found, "late"
