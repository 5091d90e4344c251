"""The place in the user's program that makes a call: the innermost frame in a file that is not installed."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from gradcli.process.script import statement_at
from gradcli.record.record import NOWHERE, CallSite

_OURS = str(Path(__file__).parents[1]) + os.sep
_INSTALLED = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_DISPATCH = "handle_torch_function"  # the function of PyTorch's that calls a mode
_CALL = "_call_impl"  # the function of PyTorch's in which a module is called
_MOST = 10_000  # sites that are kept
_SITES: dict[tuple[int, int], tuple[CallSite, CodeType]] = {}  # which keeps the code, so that no other has its identity


@cache
def is_installed(file: str) -> bool:
    """Return whether a file is of Python, of gradcli, or of an installed package."""
    if file.startswith("<frozen") or any(part in file for part in _PACKAGES):
        return True
    path = os.path.abspath(file) if os.path.sep in file else file
    return path.startswith(_OURS) or (path.startswith(_INSTALLED) and os.path.sep in file)


def frames(frame: FrameType | None = None) -> tuple[FrameType | None, list[Any]]:
    """Return the innermost frame of the user's program, and the modules between it and what runs, outermost first."""
    frame = frame or sys._getframe(1)
    modules: list[Any] = []
    while frame is not None and is_installed(frame.f_code.co_filename):
        if frame.f_code.co_name == _CALL and "self" in frame.f_code.co_varnames:
            modules.append(frame.f_locals["self"])
        frame = frame.f_back
    return frame, modules[::-1]


def caller(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program or of a library, behind gradcli's own.

    Between them are PyTorch's functions in Python, such as that of `x ** 2`, which call the mode.
    """
    while frame is not None and (frame.f_code.co_filename.startswith(_OURS) or frame.f_code.co_name == _DISPATCH):
        is_dispatch, frame = frame.f_code.co_name == _DISPATCH, frame.f_back
        if is_dispatch and frame is not None:
            frame = frame.f_back
    return frame


def is_called_by_program(frame: FrameType | None) -> bool:
    """Return whether the innermost frame behind gradcli's own is the program's, or the forward pass of a module."""
    frame = caller(frame)
    return frame is not None and (not is_installed(frame.f_code.co_filename) or bool(frames(frame)[1]))


def site_of(frame: FrameType | None) -> CallSite:
    """Return the place of the call that a frame runs."""
    if frame is None:
        return NOWHERE
    key = id(frame.f_code), frame.f_lasti  # the hash of code itself reads each of its instructions
    known = _SITES.get(key)
    if known is None:
        if len(_SITES) >= _MOST:
            _SITES.clear()
        known = _SITES[key] = _site(frame.f_code, frame.f_lasti, frame.f_lineno), frame.f_code
    return known[0]


def _site(code: CodeType, instruction: int, line: int) -> CallSite:
    span = next(islice(code.co_positions(), instruction // 2, None), None)
    column = span[2] if span is not None and span[0] == line else None
    text = statement_at(linecache.getline(code.co_filename, line), column)
    return CallSite(code.co_filename, line, span, text, code.co_qualname, instruction)


def user_frames(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of the user's program, the innermost first."""
    result = []
    while frame is not None:
        if not is_installed(frame.f_code.co_filename):
            result.append(frame)
        frame = frame.f_back
    return result
