"""A limit of memory (`ulimit -v`): it ends a run with an error, whatever libraries do that get no memory."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from signal import Signals
from typing import TYPE_CHECKING, ClassVar, NoReturn

from gradcli.process import environment
from gradcli.process.activity import after_a_crash
from gradcli.process.platform import CRASHES, FORKS, end_with, memory_limit
from gradcli.process.signals import hear
from gradcli.process.status import MISTAKE
from gradcli.process.streams import print_error

if TYPE_CHECKING:
    from gradcli.process.child import Child, Parent

# How libraries end the process where they get no memory: by a status, or by a signal.
_OF_LIBRARIES = (1, MISTAKE, *CRASHES)

# What a child process reports to its parent: that a script begins, or its status.
_SCRIPT, _ENDED = "script", "ended"
_CRASHED = "compiled code that it calls failed, or got no memory{limit}"


def shortage() -> str:
    """Return the message of a run that has not enough memory."""
    return f"error: not enough memory{_limit()}"


def _limit() -> str:
    result = memory_limit()
    return f"\n  `ulimit` allows {result // 2**20:,} MiB" if result is not None else ""


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error is for want of memory: under a limit, libraries have many words for it.

    >>> errors = MemoryError(), OSError(12, "Cannot allocate memory"), ValueError()
    >>> [is_out_of_memory(error) for error in errors]
    [True, True, False]
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
    """The parent that waits for this process, if there is one."""

    parent: ClassVar[Parent | None] = None


def of_a_script() -> None:
    """Report to the parent that a script runs, and its status if it ends by `os._exit`."""
    parent = _Watched.parent
    if parent is None:
        return
    parent.send((_SCRIPT, 0))
    process, leave = os.getpid(), os._exit

    def _exit(status: int) -> NoReturn:
        if os.getpid() == process:  # not a process that the script has forked
            parent.send((_ENDED, status))
        leave(status)

    os._exit = _exit


def watched(work: Callable[[], int]) -> int:
    """Return the status of `work`, which is done by a child process where memory is limited.

    OpenBLAS, pyarrow and LLVM end the process that gets no memory or no thread; then an error names the limit.
    """
    if memory_limit() is None or not FORKS:
        return work()
    from gradcli.process.child import Child, fork  # for a run with a limit alone

    environment.add("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others reserve a GiB in advance
    number, leave = os.getpid(), os._exit
    try:
        side = fork()
    except OSError:  # the number of processes is limited, too
        return work()
    if isinstance(side, Child):
        return _awaited(side)
    end_with(number)
    _Watched.parent = side
    _silence()
    try:
        status = work()
    except MemoryError:  # there was none to report the first one
        leave(MISTAKE)
    except SystemError:  # nor for Python to say what it lacked
        leave(1)
    side.send((_ENDED, status))
    return status


def _awaited(child: Child) -> int:
    """Return the status that the child has sent, or what its end means, and pass it the signals until then."""

    def forward(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child.number, number)

    hear(forward)
    reports: dict[str, int] = {}
    for kind, status in child.messages():
        reports[kind] = status & 0xFF
        if kind == _ENDED:
            break
    ending = child.wait()
    if _ENDED in reports:
        return reports[_ENDED]
    if _SCRIPT not in reports:
        after_a_crash()
    if _SCRIPT in reports and ending in CRASHES:
        print_error(f"error: {Signals(-ending).name} ended the script: {_CRASHED.format(limit=_limit())}")
        return 128 - ending
    if ending in _OF_LIBRARIES:
        print_error(shortage())
        return MISTAKE
    return ending if ending >= 0 else 128 - ending


def _silence() -> None:
    """Send the standard error of libraries to the null device; gradcli's own stays."""
    if sys.stderr is not None:
        sys.stderr = open(os.dup(2), "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)  # noqa: SIM115
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.unraisablehook = lambda _: None
