"""A recording that a program does not see: its frames are in no traceback and no warning that the program prints."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from gradcli.process.tracebacks import without_ours

_HERE = str(Path(__file__).parent)
_DISPATCH = "handle_torch_function"  # PyTorch's function that calls a mode, from a function in Python


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_HERE)


@contextmanager
def unseen() -> Iterator[None]:
    """Leave the frames of the recording out of tracebacks and warnings in a block."""
    show = warnings._showwarnmsg  # type: ignore[attr-defined]

    def shown(message: Any) -> None:
        frame = _outside(message.filename)
        if frame is not None:
            registry = frame.f_globals.setdefault("__warningregistry__", {})
            key = str(message.message), message.category, frame.f_lineno
            if registry.get(key) is not None:
                return
            registry[key] = True
            message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
        show(message)

    warnings._showwarnmsg = shown  # type: ignore[attr-defined]
    try:
        with without_ours():
            yield
    finally:
        warnings._showwarnmsg = show  # type: ignore[attr-defined]


def _outside(file: str) -> FrameType | None:
    """Return the frame of the program that a warning is about, where it was given at a line of ours."""
    if not file.startswith(_HERE) and not file.endswith(f"torch{os.sep}overrides.py"):
        return None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (_is_ours(frame) and frame.f_code.co_name == "__torch_function__"):
        frame = frame.f_back
    while frame is not None and (_is_ours(frame) or frame.f_code.co_name == _DISPATCH):
        is_dispatch, frame = frame.f_code.co_name == _DISPATCH, frame.f_back
        if is_dispatch and frame is not None:
            frame = frame.f_back
    return frame
