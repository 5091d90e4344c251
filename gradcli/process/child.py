"""A child process and its parent, which exchange messages: a fork, or a new Python where processes do not fork."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from gradcli.process import platform

_ROOT = str(Path(__file__).parents[2])  # not a script's folder, whose modules may have the names of ours
_NEW_PYTHON = """\
import sys
sys.path.append(sys.argv[1])
from gradcli.process.child import _in_a_new_python
_in_a_new_python()
"""


class Parent:
    """The messages from and to another process, here the parent; they are pickled."""

    def __init__(self, reads: BinaryIO, writes: BinaryIO) -> None:
        self._reads, self._writes = reads, writes

    def send(self, message: Any) -> None:
        """Send a message; one to a process that has ended is lost."""
        with suppress(OSError):
            pickle.dump(message, self._writes)
            self._writes.flush()

    def messages(self) -> Iterator[Any]:
        """Yield the messages of the other process until it has ended."""
        while True:
            try:
                message = pickle.load(self._reads)
            except Exception:  # the end, maybe within a message
                return
            yield message


class Child(Parent):
    """A child of this process, with its number.

    `wait` returns how it ends, its status or minus the signal that ends it; `kill` ends it at once, if it still runs.
    """

    def __init__(
        self, number: int, reads: BinaryIO, writes: BinaryIO, wait: Callable[[], int], kill: Callable[[], None]
    ) -> None:
        super().__init__(reads, writes)
        self.number, self.wait, self.kill = number, wait, kill

    def close(self) -> None:
        """Close the channel, once the child has ended and nobody reads any more."""
        with suppress(OSError):  # a message that the child has not read
            self._writes.close()
        self._reads.close()


def started(work: Callable[[Parent], object]) -> Child:
    """Return a new child that does `work` and ends; it is pickled where processes do not fork.

    A new Python imports what it needs, and nothing of the program that its parent runs.

    Errors: `OSError` where there can be no more processes.
    """
    if not platform.FORKS:
        from subprocess import DEVNULL, PIPE, Popen

        command, flags = [sys.executable or "", "-P", "-c", _NEW_PYTHON, _ROOT], platform.WITHOUT_WINDOW
        process: Any = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, creationflags=flags)
        child = Child(process.pid, process.stdout, process.stdin, process.wait, process.terminate)
        child.send(pickle.dumps(work))
        return child
    (questions, asks), (answers, reports) = os.pipe(), os.pipe()
    number = platform.fork()
    if number == 0:
        os.close(asks)
        os.close(answers)
        _done(work, Parent(os.fdopen(questions, "rb"), os.fdopen(reports, "wb")))
    os.close(questions)
    os.close(reports)
    ends, kill = (lambda: os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])), partial(platform.kill, number)
    return Child(number, os.fdopen(answers, "rb"), os.fdopen(asks, "wb"), ends, kill)


def _done(work: Callable[[Parent], object], parent: Parent) -> NoReturn:
    try:
        work(parent)
    finally:
        os._exit(0)  # no traceback of the child's, and nothing of the parent's is flushed twice


def _in_a_new_python() -> None:
    """Do the work that the parent sends first, over the standard streams, to which nobody else writes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    parent = Parent(sys.stdin.buffer, answers)
    _done(pickle.loads(next(parent.messages())), parent)
