"""A limit of memory (`ulimit -v`): it ends a run with an error, whatever libraries do that get no memory."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from gradcli.cli.signals import hear
from gradcli.cli.status import MISTAKE
from gradcli.cli.streams import tell
from gradcli.platform import CRASHES, FORKS, end_with, fork, memory_limit

# How libraries end the process where they get no memory: by a status, or by a signal.
_OF_LIBRARIES = (1, MISTAKE, *CRASHES)


def shortage() -> str:
    """Return what to tell where there is not enough memory."""
    found = memory_limit()
    hint = f"\n  `ulimit` allows {found // 2**20:,} MiB" if found is not None else ""
    return f"error: this needs more memory than there is{hint}"


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


def watched(work: Callable[[], int]) -> int:
    """Return the status of `work`, which is done by a child process where memory is limited.

    OpenBLAS, pyarrow and LLVM end the process that gets no memory or no thread; then it is told what the limit did.
    """
    if memory_limit() is None or not FORKS:
        return work()
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others reserve a GiB in advance
    reader, writer = os.pipe()
    parent = os.getpid()
    try:
        child = fork()
    except OSError:  # the number of processes is limited, too
        return work()
    if child == 0:
        end_with(parent)
        _silence()
        try:
            status = work()
        except MemoryError:  # there was none to tell of the first one
            os._exit(MISTAKE)
        except SystemError:  # nor for Python to say what it lacked
            os._exit(1)
        os.write(writer, bytes([status & 0xFF]))
        return status
    os.close(writer)
    return _awaited(child, reader)


def _awaited(child: int, reader: int) -> int:
    """Return the status that the child has written, or what its end means, and pass it the signals until then."""

    def forward(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    hear(forward)
    told = os.read(reader, 1)
    ending = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if told:
        return told[0]
    if ending in _OF_LIBRARIES:
        tell(shortage())
        return MISTAKE
    return ending if ending >= 0 else 128 - ending


def _silence() -> None:
    """Leave standard error to what gradcli says: libraries write last words of their own to its descriptor."""
    if sys.stderr is not None:
        sys.stderr = open(os.dup(2), "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)  # noqa: SIM115
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.unraisablehook = lambda _: None
