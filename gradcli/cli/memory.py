"""A limit of memory (`ulimit -v`): it ends a run with an error, whatever libraries do that get no memory."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from signal import Signals
from typing import ClassVar, NoReturn

from gradcli.activity import after_a_crash
from gradcli.cli import environment
from gradcli.cli.signals import hear
from gradcli.cli.status import MISTAKE
from gradcli.cli.streams import tell
from gradcli.platform import CRASHES, FORKS, end_with, fork, memory_limit

# How libraries end the process where they get no memory: by a status, or by a signal.
_OF_LIBRARIES = (1, MISTAKE, *CRASHES)


# What a child process reports to its parent, in two bytes: a script begins, or a status.
_SCRIPT, _ENDED = b"s", b"e"
_CRASHED = "compiled code that it calls failed, or got no memory{limit}"


def shortage() -> str:
    """Return the message of a run that has not enough memory."""
    return f"error: not enough memory{_limit()}"


def _limit() -> str:
    result = memory_limit()
    return f"\n  `ulimit` allows {result // 2**20:,} MiB" if result is not None else ""


def lacking(error: Exception) -> bool:
    """Tell whether an error is for want of memory: under a limit, libraries have many words for it.

    >>> lacking(MemoryError()), lacking(OSError(12, "Cannot allocate memory")), lacking(ValueError())
    (True, True, False)
    """
    from gradcli.errors import InputError

    limited = memory_limit() is not None
    if isinstance(error, InputError):  # one may say that a library is missing, which could not be loaded
        return limited and _is_of_loading(error.__context__)
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM or (limited and error.errno is None)
    return isinstance(error, MemoryError) or (limited and (_is_of_loading(error) or isinstance(error, RuntimeError)))


def _is_of_loading(error: BaseException | None) -> bool:
    return isinstance(error, ImportError | SystemError) and not isinstance(error, ModuleNotFoundError)


class _Watched:
    """The pipe on which the child process reports its progress to the parent."""

    pipe: ClassVar[int | None] = None


def _report(kind: bytes, status: int = 0) -> None:
    if _Watched.pipe is not None:
        os.write(_Watched.pipe, kind + bytes([status & 0xFF]))


def of_a_script() -> None:
    """Report to the parent that a script runs, and its status if it ends by `os._exit`."""
    if _Watched.pipe is None:
        return
    _report(_SCRIPT)
    process, leave = os.getpid(), os._exit

    def _exit(status: int) -> NoReturn:
        if os.getpid() == process:  # not a process that the script has forked
            with suppress(OSError):  # the script may have closed the pipe
                _report(_ENDED, status)
        leave(status)

    os._exit = _exit


def watched(work: Callable[[], int]) -> int:
    """Return the status of `work`, which is done by a child process where memory is limited.

    OpenBLAS, pyarrow and LLVM end the process that gets no memory or no thread; then an error names the limit.
    """
    if memory_limit() is None or not FORKS:
        return work()
    environment.add("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others reserve a GiB in advance
    reader, writer = os.pipe()
    parent, leave = os.getpid(), os._exit
    try:
        child = fork()
    except OSError:  # the number of processes is limited, too
        return work()
    if child == 0:
        end_with(parent)
        _Watched.pipe = writer
        _silence()
        try:
            status = work()
        except MemoryError:  # there was none to tell of the first one
            leave(MISTAKE)
        except SystemError:  # nor for Python to say what it lacked
            leave(1)
        _report(_ENDED, status)
        return status
    os.close(writer)
    return _awaited(child, reader)


def _awaited(child: int, reader: int) -> int:
    """Return the status that the child has written, or what its end means, and pass it the signals until then."""

    def forward(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    hear(forward)
    reports = {}
    while _ENDED not in reports and (report := os.read(reader, 2)):
        reports[report[:1]] = report[1]
    ending = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if _ENDED in reports:
        return reports[_ENDED]
    if _SCRIPT not in reports:
        after_a_crash()
    if _SCRIPT in reports and ending in CRASHES:
        tell(f"error: {Signals(-ending).name} ended the script: {_CRASHED.format(limit=_limit())}")
        return 128 - ending
    if ending in _OF_LIBRARIES:
        tell(shortage())
        return MISTAKE
    return ending if ending >= 0 else 128 - ending


def _silence() -> None:
    """Send the standard error of libraries to the null device; gradcli's own stays."""
    if sys.stderr is not None:
        sys.stderr = open(os.dup(2), "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)  # noqa: SIM115
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.unraisablehook = lambda _: None
