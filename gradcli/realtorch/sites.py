"""The places in the user's program that make calls: the innermost frames in files that are not installed.

The lines that call `backward` are also found in the text of the program: those whose pages end the recording.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
from collections.abc import Collection
from contextlib import suppress
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
_CALLING = ("autograd.grad", "functional.jacobian", "functional.hessian")
_Call = tuple[str, int, int]  # a file, the first and the last line
_SITES: dict[tuple[int, int], tuple[CallSite, CodeType]] = {}  # which keeps the code, so that no other has its identity


@cache
def is_installed(file: str) -> bool:
    """Return whether a file is of Python, of gradcli, or of an installed package."""
    if file.startswith("<frozen") or any(part in file for part in _PACKAGES):
        return True
    path = os.path.abspath(file) if os.path.sep in file else file
    return path.startswith(_OURS) or (path.startswith(_INSTALLED) and os.path.sep in file)


def frames(frame: FrameType | None) -> tuple[FrameType | None, list[Any]]:
    """Return the innermost frame of the user's program, and the modules between it and what runs, outermost first."""
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


class Lines:
    """The calls of `backward` and `grad` in a program's own files, of some lines alone or of all.

    Without `main`, a block of a program is recorded: its calls may be anywhere, unless they are those of some lines.
    """

    def __init__(self, main: str | None, only: Collection[int] = (), round: int = 0) -> None:
        self.main, self.only, self.round = main, frozenset(only), round
        self._calls: dict[str, list[_Call]] = {}

    def are_explained(self, sites: Collection[tuple[str, int, int]]) -> bool:
        """Return whether each of the calls is at one of these sites; a file that is imported later may have more."""
        if self.main is None:
            return bool(self.only) and self.only <= {line for _, line, _ in sites}
        for call in self._every(self.main):
            if not any(file == call[0] and call[1] <= line <= call[2] for file, line, _ in sites):
                return False
        return True

    def _every(self, program: str) -> list[_Call]:
        files = {program}
        for module in [*sys.modules.values()]:
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.endswith(".py") and not is_installed(file):
                files.add(file)
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        if main != program:
            files.discard(main)  # the same file by its whole path
        result: list[_Call] = []
        for file in files:
            if file not in self._calls:
                self._calls[file] = _calls("".join(linecache.getlines(file)), file)
            result += self._calls[file]
        if self.only:
            result = [c for c in result if any(c[1] <= n <= c[2] for n in self.only)]
        return result


def _calls(source: str, file: str) -> list[_Call]:
    """Return the calls of `backward`, `autograd.grad`, and of functions that call it, in a text.

    >>> _calls("from torch.autograd import grad\\nl.backward()\\ng, = grad(\\n y, x)\\ntorch.autograd.grad(y, x)", "")
    [('', 2, 2), ('', 3, 4), ('', 5, 5)]
    >>> _calls("J = torch.autograd.functional.jacobian(f, x)\\nH = torch.func.hessian(f)(x)", "")
    [('', 1, 1)]
    """
    result: list[_Call] = []
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                words = ast.unparse(node.func).split(".")
                if words[-1] == "backward" or words == ["grad"] or ".".join(words[-2:]) in _CALLING:
                    result.append((file, node.lineno, node.end_lineno or node.lineno))
    return sorted(result)
