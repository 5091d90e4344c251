"""Exceptions of the user's programs, as Python shows them, without gradcli's own lines."""

from __future__ import annotations

import io
import sys
import traceback
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any


class FunctionFailedError(Exception):
    """An exception that the user's own code raised, which is its `__cause__`; `status` is how the command ends."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.__cause__ = error
        code = error.code if isinstance(error, SystemExit) else 1
        self.status = code & 0xFF if isinstance(code, int) else 0 if code is None else 1


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
    if shown.__context__ is not None and all(is_ours(f.filename) for f in shown.__context__.stack):
        shown.__context__ = None
    shown.stack = traceback.StackSummary.from_list(f for f in shown.stack if not is_ours(f.filename))
    for other in (shown.__cause__, shown.__context__):
        if other is not None:
            _without_ours(other)


_HERE = str(Path(__file__).parent)


def is_ours(filename: str) -> bool:
    """Return whether a file is one of gradcli's, or of Python's imports."""
    return filename.startswith((_HERE, "<frozen importlib"))


def line_of(error: BaseException) -> int:
    """Return the line of the script at which an exception arose."""
    frames = traceback.walk_tb(error.__traceback__)
    return [0, *(line for frame, line in frames if not is_ours(frame.f_code.co_filename))][-1]
