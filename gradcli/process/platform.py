"""Features that not every system has: signals, forks, memory limits, names of devices, cores; and the environment.

No other module uses these names, so this one shows what gradcli does without them.  The guide's page `systems`
describes it.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

WINDOWS = os.name == "nt"

# Signals

# Signals that ask a process to end. SIGBREAK is Windows's, SIGHUP is not.
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
ENDING: tuple[signal.Signals, ...] = tuple(getattr(signal, name) for name in _ENDING if hasattr(signal, name))
_PROFILE, _HANGUP, _KILL = (getattr(signal, name, None) for name in ("SIGPROF", "SIGHUP", "SIGKILL"))


def call_soon(handler: Callable[[int, Any], NoReturn]) -> None:
    """Call a signal handler in the main thread a millisecond from now."""
    if (alarm := getattr(signal, "SIGALRM", None)) and hasattr(signal, "setitimer"):  # which wakes it where it sleeps
        signal.signal(alarm, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        return
    from threading import Timer

    signal.signal(signal.SIGINT, handler)
    timer = Timer(0.001, signal.raise_signal, [signal.SIGINT])
    timer.daemon = True
    timer.start()


@contextmanager
def hangups_blocked() -> Iterator[bool]:
    """Block SIGHUP, for this process and those that it starts meanwhile; give False where there is none."""
    if not _HANGUP or not hasattr(signal, "pthread_sigmask"):
        yield False
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {_HANGUP})
    try:
        yield True
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {_HANGUP})


# Processes

# A library of macOS's may crash in a forked process, which is why Python's own `multiprocessing` does not fork there.
FORKS = hasattr(os, "fork") and sys.platform != "darwin"
WITHOUT_WINDOW = 0x08000000 if WINDOWS else 0  # CREATE_NO_WINDOW: of a child on Windows
_LATE = 124  # the status of what `timeout` has ended
OUT_OF_TIME = (_LATE,) if _PROFILE is None else (_LATE, -_PROFILE)


def fork() -> int:
    """Fork this process: return the child's number here, and 0 in the child.

    Errors: `OSError` where there can be no more processes.
    """
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child waits for none of them
        return os.fork()


def kill(process: int) -> None:
    """End a process at once, if it still runs."""
    with suppress(ProcessLookupError):
        os.kill(process, _KILL or signal.SIGTERM)


class ComputingTime:
    """A limit of the processor time of this process; waiting does not count.  A process has one."""

    def __init__(self) -> None:
        self._end = float("inf")
        self._watched = False

    def limit(self, seconds: float) -> None:
        """End the process, in a way that is one of `OUT_OF_TIME`, once it has computed so long; 0 is for ever."""
        if _PROFILE and hasattr(signal, "setitimer"):
            signal.signal(_PROFILE, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            return
        self._end = time.process_time() + seconds if seconds else float("inf")
        if not self._watched:
            from threading import Thread

            self._watched = True
            Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> NoReturn:
        while time.process_time() < self._end:
            time.sleep(0.02)
        os._exit(_LATE)


# Memory


def memory_limit() -> int | None:
    """Return how many bytes this process may have, or None where there is no limit."""
    try:
        import resource
    except ImportError:
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((n for n in limits if n != resource.RLIM_INFINITY), default=None)


def return_free_memory() -> None:
    """Give freed pages between others back to the system, where the C library can: glibc's `malloc_trim`."""
    import ctypes

    with suppress(Exception):
        ctypes.CDLL(None).malloc_trim(0)


def limit_memory(more: int) -> None:
    """Limit the memory of this process to what it has and `more` bytes; it stays without a limit outside of Linux."""
    with suppress(Exception):
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = used + more
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def shortage() -> str:
    """Return the message of a run that has not enough memory."""
    limit = memory_limit()
    return "error: not enough memory" + (f"\n  `ulimit` allows {limit // 2**20:,} MiB" if limit is not None else "")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error is for want of memory: under a limit, libraries have many words for it.

    >>> errors = MemoryError(), OSError(12, "Cannot allocate memory"), ValueError()
    >>> [is_out_of_memory(error) for error in errors]
    [True, True, False]
    """
    from gradcli.errors import InputError

    limited = memory_limit() is not None
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM or (limited and error.errno is None)
    told = isinstance(error, InputError)  # one may say that a library is missing, which could not be loaded
    cause = error.__context__ if told else error
    loading = isinstance(cause, ImportError | SystemError) and not isinstance(cause, ModuleNotFoundError)
    return isinstance(error, MemoryError) or (limited and (loading or (not told and isinstance(error, RuntimeError))))


# The environment of the libraries that gradcli uses, which a script does not see

_ADDED: set[str] = set()


def add_variable(name: str, value: str) -> None:
    """Set a variable of the environment, unless the user has."""
    if name not in os.environ:
        os.environ[name] = value
        _ADDED.add(name)


@contextmanager
def users_environment() -> Iterator[None]:
    """Restore the user's environment variables while a script runs."""
    added = {name: os.environ.pop(name) for name in sorted(_ADDED) if name in os.environ}
    try:
        yield
    finally:
        for name, value in added.items():
            os.environ.setdefault(name, value)


# Files

STANDARD_INPUT = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")  # its names as a file

# Names that are devices on Windows in each folder, with any file extension.
_DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{k}" for port in ("COM", "LPT") for k in range(1, 10))}


def is_device_name(path: str, windows: bool = WINDOWS) -> bool:
    r"""Return whether a path is that of a device by its name alone.

    >>> is_device_name(r"C:\data\nul.csv", windows=True), is_device_name("null.csv", windows=True)
    (True, False)
    >>> is_device_name("nul.csv", windows=False)
    False
    """
    name = path.replace("\\", "/").rpartition("/")[2].partition(".")[0]
    return windows and name.rstrip(" ").upper() in _DEVICES


# Shells


def quote(word: str, windows: bool = WINDOWS) -> str:
    r"""Return a word as a shell of this system reads it: on Windows, PowerShell and `cmd`.

    >>> quote("x[0]=1", windows=False), quote("x[0]=1,y=2", windows=True), quote("graph", windows=True)
    ("'x[0]=1'", '"x[0]=1,y=2"', 'graph')
    """
    if not windows:
        import shlex

        return shlex.quote(word)
    inner = word.replace('"', '\\"')
    return word if re.fullmatch(r"[\w.:=/\\+*-]+", word, re.ASCII) else f'"{inner}"'


def join(words: Iterable[str]) -> str:
    """Return a command line as a shell of this system reads it."""
    return " ".join(map(quote, words))


def styles() -> None:
    """Make the console show styles: those of Windows print their codes as text otherwise."""
    if WINDOWS:
        with suppress(ImportError):  # click has it there
            importlib.import_module("colorama").just_fix_windows_console()


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal; a program may close a stream, or put another object in its place."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def has_styles(stream: Any) -> bool:
    """Return whether a stream is a terminal that shows bold text and colours, and the user wants them."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and is_terminal(stream)


def is_closed_pipe(error: OSError) -> bool:
    """Return whether an error in writing says that nobody reads any more: Windows has no name of its own for it."""
    return isinstance(error, BrokenPipeError) or (WINDOWS and error.errno == errno.EINVAL)


# The computer


def cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
