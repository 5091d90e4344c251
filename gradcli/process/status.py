"""The end of the process: its exit statuses, and its exit."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn

DONE, NO, MISTAKE, INTERRUPTED = 0, 1, 2, 130  # NO: a check that said no


def leave(status: int) -> NoReturn:
    """End the process with a status.

    Nothing is taken down: the threads of libraries may still be at work, and pyarrow's abort the process then, once in
    some hundred times (apache/arrow issue 39862). So does a library that was loaded by half, where memory is limited.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it is full, closed, or there is none
            stream.flush()
    os._exit(status)
