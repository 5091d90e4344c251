"""Work that may take forever, or all memory, done by a child process that is stopped in time."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, BinaryIO, Generic, TypeVar

from gradcli import platform

MAX_BYTES = 2**31  # of memory beyond what the parent has
_PATIENCE = 3  # times what a child may compute, by the clock: other processes take their part
_START = 60  # seconds in which a child that does not fork has to be there
_ROOT = str(Path(platform.__file__).parent.parent)  # and no folder of a script's, whose modules are not ours
_LOOK = 0.1  # seconds; on Windows, Ctrl-C is heard between two waits alone
_SPAWNED = """\
import sys
sys.path.append(sys.argv[1])
from gradcli.algebra.bounded import spawned
spawned()
"""

Question = TypeVar("Question")
Result = TypeVar("Result")
Report = Callable[[Result], None]
Work = Callable[[Any, Report[Any]], None]


class Bounded(Generic[Question, Result]):
    """A child process that answers questions, each within a time of computing and a memory.

    `work` gets a question and a function to report with, as often as it likes; the last report before the time was up
    is the answer.  Questions and reports are pickled.  One child answers all questions, and another takes its place
    where it had to be stopped.  Where processes do not fork, `work` is pickled too, and a child is a new Python, which
    takes a moment to start; there are no answers where it cannot start.

    `seconds` are those that the child computes; three times that is the limit by the clock.

    >>> with Bounded(lambda n, report: (report(6 * n), n > 7 and time.sleep(60), report(7 * n)), 0.2) as bounded:
    ...     bounded.ask(7), bounded.ask(8), bounded.ask(6)
    (49, 48, 42)
    """

    def __init__(self, work: Callable[[Question, Report[Result]], None], seconds: float) -> None:
        self.work, self.seconds = work, seconds
        self._child: _Child | None = None
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
            self._child.send(question)
            result, ending = self._child.received(time.monotonic() + _PATIENCE * self.seconds)
            if ending == "done":
                self._fresh = False
                return result
            if ending == "late" or self._stop() in platform.OUT_OF_TIME or self._fresh:
                self._stop()
                return result
            # It ended by itself, maybe for memory that former questions took: one of its own gets all of it.

    def _started(self) -> _Child | None:
        """Return a new child, or None where there can be none."""
        if self._impossible:
            return None
        with suppress(OSError, RecursionError):  # of starting a process, and of pickling its work
            child = (_Forked if platform.FORKS else _Spawned)(self.work, self.seconds)
            if child.is_ready():
                return child
            child.stop()
        self._impossible = True
        return None

    def _stop(self) -> int:
        """Stop the child if there is one, and return how it ended: its status, or minus the signal that ended it."""
        child, self._child = self._child, None
        return 0 if child is None else child.stop()


class _Child:
    """A child process, to which questions are sent; a thread collects what it reports."""

    def __init__(self, questions: BinaryIO, reports: BinaryIO) -> None:
        self._questions = questions
        self._reports = reports
        self._received: Queue[Any] = Queue()
        self._reader = Thread(target=self._collect, daemon=True)
        self._reader.start()

    def _collect(self) -> None:
        with suppress(Exception):  # the child has ended, maybe within a report
            while True:
                self._received.put((pickle.load(self._reports),))
        self._received.put(None)

    def is_ready(self) -> bool:
        """Wait until the child is there; return whether it is."""
        return True

    def send(self, value: Any) -> None:
        """Send a question; if the child has ended, `received` returns that."""
        with suppress(OSError):
            pickle.dump(value, self._questions)
            self._questions.flush()

    def received(self, until: float) -> tuple[Any, str]:
        """Return the last report before the end of them, and whether that came: `done`, or else `late`, or `ended`."""
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
        """End the child, and return its status."""
        status = self._end()
        self._reader.join()
        with suppress(OSError):  # a question that nobody has read
            self._questions.close()
        self._reports.close()
        return status

    def _end(self) -> int:
        raise NotImplementedError


class _Forked(_Child):
    """A child that has what its parent has."""

    def __init__(self, work: Work, seconds: float) -> None:
        (questions, asks), (reports, answers) = os.pipe(), os.pipe()

        self._process = platform.fork()
        if self._process == 0:
            try:
                os.close(asks)
                os.close(reports)
                _serve(os.fdopen(questions, "rb"), os.fdopen(answers, "wb"), work, seconds)
            finally:
                os._exit(0)  # no traceback of the child's, and nothing of the parent's is flushed twice
        os.close(questions)
        os.close(answers)
        super().__init__(os.fdopen(asks, "wb"), os.fdopen(reports, "rb"))

    def _end(self) -> int:
        platform.kill(self._process)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


class _Spawned(_Child):
    """A child that is a new Python, and imports what it needs: nothing of the program that its parent runs."""

    def __init__(self, work: Work, seconds: float) -> None:
        import subprocess

        text = pickle.dumps((work, seconds))
        self._process = subprocess.Popen(
            [sys.executable or "", "-P", "-c", _SPAWNED, _ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        super().__init__(self._process.stdin, self._process.stdout)  # type: ignore[arg-type]
        self.send(text)

    def is_ready(self) -> bool:
        return self.received(time.monotonic() + _START)[1] == "done"

    def _end(self) -> int:
        with suppress(OSError):
            self._process.terminate()
        return self._process.wait()


def spawned() -> None:
    """Serve as a child that is a new Python, over its standard streams, to which nobody else writes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    work, seconds = pickle.loads(pickle.load(sys.stdin.buffer))
    pickle.dump(None, answers)
    answers.flush()
    _serve(sys.stdin.buffer, answers, work, seconds)


def _serve(questions: BinaryIO, answers: BinaryIO, work: Work, seconds: float) -> None:
    """Answer questions until the parent has no more, or is gone.

    A report is sent in a tuple; None follows the last one.
    """

    def send(value: Any) -> None:
        pickle.dump(value, answers)
        answers.flush()

    platform.limit_memory(MAX_BYTES)
    time_limit = platform.ComputingTime()
    while True:
        question = pickle.load(questions)
        time_limit.limit(seconds)
        work(question, lambda result: send((result,)))
        time_limit.limit(0)
        send(None)
