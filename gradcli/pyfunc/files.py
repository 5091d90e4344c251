"""The user's file, run as a Python program, and its functions by name."""

from __future__ import annotations

import linecache
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from importlib.abc import InspectLoader
from importlib.machinery import SourceFileLoader
from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.errors import InputError, nearest
from gradcli.files import UsersFolder, printable, program_text, reason
from gradcli.process.script_imports import ScriptImports
from gradcli.process.tracebacks import FunctionFailedError
from gradcli.pyfunc.aliases import aliases

MAX_BYTES = 2**24
_KEPT: list[types.ModuleType] = []  # functions look up their modules' names as long as they live


class _Loader(InspectLoader):
    """Loads the bytes of a file, which Python decodes by the encoding that they declare."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data

    def get_source(self, fullname: str) -> str | None:
        return None

    def get_code(self, fullname: str) -> types.CodeType:
        text = program_text(self.data, self.path)
        linecache.cache[self.path] = (len(text), None, text.splitlines(keepends=True), self.path)
        code: types.CodeType = compile(self.data, self.path, "exec", dont_inherit=True)
        return code


class File:
    """A Python file that was run; `running` restores its imports while its functions are called."""

    def __init__(self, path: str, derivatives: Mapping[str, Any]) -> None:
        self.path = path
        self._derivatives = derivatives
        self._users_folder = UsersFolder()
        self._folder = str(Path(path).resolve().parent)
        self.module = types.ModuleType(Path(path).stem)
        _KEPT.append(self.module)
        self._run()

    def _run(self) -> None:
        """Run the file, whose prints go to standard error: standard output has the command's result."""
        try:
            if os.path.getsize(self.path) > MAX_BYTES:
                raise InputError(f"`{printable(self.path)}` is larger than {MAX_BYTES >> 20} MiB")
            data = Path(self.path).read_bytes()
        except (OSError, ValueError) as error:
            raise InputError(f"`{printable(self.path)}` cannot be read: {reason(error)}") from None
        absolute = os.path.abspath(self.path)
        self.module.__file__ = absolute
        self.module.__loader__ = SourceFileLoader(self.module.__name__, absolute)
        with self.running():
            _Loader(self.path, data).exec_module(self.module)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Resolve imports as for the file, and raise its exceptions as its own.

        Errors: `FunctionFailedError` for an exception, `InputError` for what cannot be traced.
        """
        name = self.module.__name__
        before = sys.modules.get(name), sys.argv
        sys.argv = [self.path]
        try:
            with (
                self._users_folder.entered(),
                redirect_stdout(sys.stderr),
                ScriptImports(self.module, self._folder).started(),
                aliases(self._derivatives),
            ):
                sys.modules[name] = self.module
                yield
        except (InputError, KeyboardInterrupt, BrokenPipeError):
            raise
        except BaseException as error:
            raise FunctionFailedError(error) from error
        finally:
            sys.argv = before[1]
            if before[0] is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = before[0]

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function of a name, which may have dots: `Model.energy`.

        Errors: `InputError` where there is no such function.
        """
        value: Any = self.module
        for part in name.split("."):
            if not hasattr(value, part):
                known = [n for n, f in vars(value).items() if callable(f) and not n.startswith("_")]
                label = printable(self.path)
                raise InputError(f"`{label}` has no `{name}`", hint=nearest(part, known, "functions there"))
            value = getattr(value, part)
        if not callable(value) or isclass(value) or isinstance(value, np.ufunc):
            kind = "a class" if isclass(value) else f"a value of type {type(value).__name__}"
            raise InputError(f"`{name}` of `{printable(self.path)}` is {kind}, and not a Python function")
        return value  # type: ignore[no-any-return]
