"""Exceptions of the user's programs, as Python shows them, without gradcli's own lines."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from itertools import takewhile
from pathlib import Path
from typing import Any


class FunctionFailedError(Exception):
    """An exception that the user's own code raised, which is its `__cause__`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(text_of(error))
        self.__cause__ = error


def text_of(error: BaseException) -> str:
    """Return the text of an exception, whose `__str__` may be the user's own and fail."""
    try:
        return str(error)
    except BaseException:
        return "<exception str() failed>"


def exit_status(error: SystemExit) -> int:
    """Return the status with which Python exits for `sys.exit(code)`; a code that is no integer is printed.

    >>> [exit_status(SystemExit(code)) for code in (None, 3, -1, 256, 10**30)]
    [0, 3, 255, 0, 255]
    """
    code = error.code
    if code is None or isinstance(code, int):
        number = code or 0
        return (number if abs(number) < 2**63 else -1) & 0xFF  # of an integer beyond C's `long`, Python takes -1
    print(code, file=sys.stderr)
    return 1


def traceback_text(error: BaseException) -> str:
    """Return an exception as Python shows it, with the script's lines alone."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=False)
    _without_ours(shown)
    text = "".join(shown.format())
    # Python 3.11 knows the name that was meant only where it writes the error itself.
    with redirect_stderr(io.StringIO()) as written:
        sys.__excepthook__(type(error), error, None)
    whole = written.getvalue().rstrip("\n").rpartition("\n")[2]
    last = text.rstrip("\n").rpartition("\n")[2]
    return f"{text[: -len(last) - 1]}{whole}\n" if whole.startswith(f"{last}. Did you mean") else text


def _without_ours(shown: Any) -> None:
    """Leave the script's lines alone in an exception, in its cause, and in that which was being handled."""
    context = shown.__context__
    # An exception of gradcli's was handled while the text of the user's own one failed.
    name = "" if context is None else next(iter(context.format_exception_only()), "")
    if context is not None and (all(is_ours(f.filename) for f in context.stack) or name.startswith("gradcli.")):
        shown.__context__ = None
    shown.stack = traceback.StackSummary.from_list(theirs(shown.stack))
    for other in (shown.__cause__, shown.__context__):
        if other is not None:
            _without_ours(other)


_HERE = str(Path(__file__).parents[1])
_SESSION = str(Path(_HERE) / "pytorch" / "session.py")  # which runs scripts
_EXTRACT = "_extract_from_extended_frame_gen"  # by which Python makes every traceback that it prints


@contextmanager
def without_ours() -> Iterator[None]:
    """Leave gradcli's frames, and those that led to the program, out of the tracebacks that it makes within a block."""
    extract: Any = traceback.StackSummary.__dict__[_EXTRACT]
    walk: Any = traceback.walk_stack
    if walk.__module__ == __name__:  # within another such block, which may end first
        yield
        return

    def walked(f: Any) -> Any:
        return takewhile(lambda pair: pair[0].f_code.co_filename != _SESSION, walk(f))

    def extracted(cls: Any, /, frames: Any, **options: Any) -> Any:
        return traceback.StackSummary.from_list(theirs(extract.__func__(cls, frames, **options)))

    setattr(traceback.StackSummary, _EXTRACT, classmethod(extracted))
    traceback.walk_stack = walked
    try:
        yield
    finally:
        setattr(traceback.StackSummary, _EXTRACT, extract)
        traceback.walk_stack = walk


def is_ours(filename: str) -> bool:
    """Return whether a file is one of gradcli's, or of Python's imports."""
    return filename.startswith((_HERE, "<frozen importlib"))


def theirs(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Return frames without those of gradcli, and without those by which PyTorch calls a mode of gradcli's.

    These are `handle_torch_function`, and the frame before it, of a function that comes again behind the mode.  Frames
    stand in either order.
    """
    every = [*frames]
    ours = {k for k, frame in enumerate(every) if is_ours(frame.filename)}
    calls = [k for k, frame in enumerate(every) if frame.name == "handle_torch_function"]
    by_mode = {k + i * side for k in calls for side in (-1, 1) if k - side in ours for i in (0, 1)}
    return [frame for k, frame in enumerate(every) if k not in ours | by_mode]


def line_of(error: BaseException) -> int:
    """Return the line of the script at which an exception arose."""
    frames = traceback.walk_tb(error.__traceback__)
    return [0, *(line for frame, line in frames if not is_ours(frame.f_code.co_filename))][-1]
