"""The signals that ask for the end: Ctrl-C, `kill`, and a terminal that is closed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from gradcli.process.platform import ENDING, call_soon
from gradcli.process.status import DONE, INTERRUPTED
from gradcli.process.streams import print_error

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


def hear(handler: Callable[[int, Any], object] | signal.Handlers) -> None:
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
            hear(_end)
            return work()
        finally:
            hear(signal.SIG_DFL)
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
    hear(lambda number, frame: None)
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
