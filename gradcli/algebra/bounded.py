"""Work that may take forever, or all memory, done by a child process that is stopped in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, Queue
from threading import Thread
from typing import Any, Generic, TypeVar

from gradcli.process import platform
from gradcli.process.child import Child, Parent, started

MAX_BYTES = 2**31  # of memory beyond what the parent has
_PATIENCE = 5  # times the computing time is the limit of elapsed time: other processes take their part
_START = 60  # seconds in which a child that does not fork has to be there
_LOOK = 0.1  # seconds; on Windows, Ctrl-C is heard between two waits alone

Question = TypeVar("Question")
Result = TypeVar("Result")
Report = Callable[[Result], None]
Work = Callable[[Any, Report[Any]], None]


class Bounded(Generic[Question, Result]):
    """A child process that answers questions, each within a time of computing and a memory.

    `work` gets a question and a function to report results with, any number of times; the last report before the
    timeout is the answer.  Questions and reports are pickled.  One child answers all questions; one that had to be
    stopped is replaced by a new one.  Where processes do not fork, `work` is pickled too, and a child is a new Python,
    which takes a moment to start.  If no child can be started, every answer is None.

    `seconds` limits the child's computing time; the limit of elapsed time is five times that.

    >>> with Bounded(lambda n, report: (report(6 * n), n > 7 and time.sleep(60), report(7 * n)), 0.2) as bounded:
    ...     bounded.ask(7), bounded.ask(8), bounded.ask(6)
    (49, 48, 42)
    """

    def __init__(self, work: Callable[[Question, Report[Result]], None], seconds: float) -> None:
        self.work, self.seconds = work, seconds
        self._child: _Answering | None = None
        self._fresh = True
        self._impossible = False

    def __enter__(self) -> Bounded[Question, Result]:
        """Start nothing yet: the first question does."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the child."""
        self._stop()

    def ask(self, question: Question) -> Result | None:
        """Return the last report on a question before its time was up, or None where there was none."""
        while True:
            if self._child is None:
                self._child, self._fresh = self._started(), True
            if self._child is None:
                return None
            result: Result | None
            self._child.process.send(question)
            result, ending = self._child.answer(time.monotonic() + _PATIENCE * self.seconds)
            if ending == "done":
                self._fresh = False
                return result
            if ending == "late" or self._stop() in platform.OUT_OF_TIME or self._fresh:
                self._stop()
                return result
            # The child ended by itself, perhaps of memory that earlier questions left allocated: a new one is asked.

    def _started(self) -> _Answering | None:
        """Return a new child, or None where there can be none."""
        if self._impossible:
            return None
        with suppress(OSError, RecursionError):  # of starting a process, and of pickling its work
            child = _Answering(started(partial(_serve, self.work, self.seconds)))
            if child.answer(time.monotonic() + _START)[1] == "done":
                return child
            child.stop()
        self._impossible = True
        return None

    def _stop(self) -> int:
        """Stop the child if there is one, and return how it ended: its status, or minus the signal that ended it."""
        child, self._child = self._child, None
        return 0 if child is None else child.stop()


class _Answering:
    """A child process whose reports are collected by a thread, since a pipe of Windows has no limit of time."""

    def __init__(self, process: Child) -> None:
        self.process = process
        self._received: Queue[Any] = Queue()
        self._reader = Thread(target=self._collect, daemon=True)
        self._reader.start()

    def _collect(self) -> None:
        for message in self.process.messages():
            self._received.put((message,))
        self._received.put(None)

    def answer(self, until: float) -> tuple[Any, str]:
        """Return the last report, and why there are no more: `done`, `late` at the timeout, or the child `ended`."""
        result = None
        while (left := until - time.monotonic()) > 0:
            with suppress(Empty):
                match self._received.get(timeout=min(left, _LOOK)):
                    case None:
                        return result, "ended"
                    case (None,):
                        return result, "done"
                    case ((report,),):
                        result = report
        return result, "late"

    def stop(self) -> int:
        """End the child, and return how it ended."""
        self.process.kill()
        status = self.process.wait()
        self._reader.join()
        self.process.close()
        return status


def _serve(work: Work, seconds: float, parent: Parent) -> None:
    """Answer the parent's questions until there are no more, or it is gone.

    A report is sent in a tuple, and None after the last one.  A first None says that the child has started.
    """
    platform.limit_memory(MAX_BYTES)
    time_limit = platform.ComputingTime()
    parent.send(None)
    for question in parent.messages():
        time_limit.limit(seconds)
        work(question, lambda result: parent.send((result,)))
        time_limit.limit(0)
        parent.send(None)
