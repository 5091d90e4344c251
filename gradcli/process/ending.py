"""The end of the process: its exit statuses, and the signals that ask for it: Ctrl-C, `kill`, a closed terminal."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from gradcli.process.platform import ENDING, call_soon
from gradcli.process.streams import print_error

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

DONE, NO, MISTAKE, INTERRUPTED = 0, 1, 2, 130  # NO: a check that said no


def leave(status: int) -> NoReturn:
    """End the process with a status.

    Nothing is taken down: the threads of libraries may still be at work, and pyarrow's abort the process then, once in
    some hundred times (apache/arrow issue 39862). So does a library that was loaded by half, where memory is limited.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # it is full, closed, or there is none
            stream.flush()
    os._exit(status)


def _hear(handler: Callable[[int, Any], object] | signal.Handlers) -> None:
    """Handle the signals from now on; an ignored one stays ignored, as under `nohup` and after a shell's `&`."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def tidily(work: Callable[[], int]) -> int:
    """Return the status of `work`; a signal ends it as an exception does, and its status is the one a shell reports.

    The first signal counts: others wait until all is tidied up, and end the process at once then.
    """
    show = sys.unraisablehook
    sys.unraisablehook = lambda lost: _raise_later(lost, show)
    try:
        try:
            _hear(_end)
            return work()
        finally:
            _hear(signal.SIG_DFL)
    except KeyboardInterrupt:
        print_error("interrupted")
        return INTERRUPTED
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else DONE


@contextmanager
def as_python_does() -> Iterator[None]:
    """Give a script Python's own handling of signals: each Ctrl-C is a KeyboardInterrupt, which it may catch and go on.

    SIGTERM and SIGHUP end it as `sys.exit` does, so that it sees how it ended; a second one ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {n: signal.getsignal(n) for n in ENDING if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _once)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def _once(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)


def _end(number: int, frame: object) -> NoReturn:
    _hear(lambda number, frame: None)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _raise_later(lost: UnraisableHookArgs, show: Callable[[UnraisableHookArgs], object]) -> None:
    """Raise once more, a moment later, what a signal raised in a callback, such as imports have: Python goes on there.

    What else is lost so is shown.
    """
    error = lost.exc_value
    if not isinstance(error, KeyboardInterrupt | SystemExit):
        show(lost)
        return

    def end(number: int, frame: object) -> NoReturn:
        raise error

    call_soon(end)
