"""Imports while a script runs: the script's as in Python, those of gradcli and its libraries without its folder.

A file `sympy.py` beside a script is the script's module.  gradcli, which imports SymPy when a page needs it, must get
the library.  A finder resolves modules that are not imported yet by who imports them.  Where a file beside the script
has the name of a library, `sys.modules` holds the library's module, and the script's replaces it during each import by
the script.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder, all_suffixes
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

_HERE = str(Path(__file__).parents[1]) + os.sep
_IMPORTLIB = str(Path(importlib.__file__).parent) + os.sep
_SUFFIXES = tuple(all_suffixes())
# What gradcli imports if it is installed: where it is not, a file of that name beside the script is not taken for it.
OPTIONAL = frozenset(
    ("IPython", "cairosvg", "distributed", "fast_sugiyama", "jax", "llvmlite", "onnx", "pyarrow", "scipy", "textual")
)
_NEVER = {"__main__", "encodings", "gradcli", "torch"}  # Python has these before a script is read, or we do


class ScriptImports:
    """Resolves imports by who imports, from `started` to the end of it."""

    def __init__(self, main: ModuleType, folder: str | None) -> None:
        """Remember where libraries are: on the path as it is now, without the script's folder."""
        self._main = main.__dict__
        self._folder = folder
        self._path = list(sys.path)
        self._finders = list(sys.meta_path)
        self._is_script: dict[str, bool] = {}
        self._shadows: dict[str, _Shadow] = {}
        self._lock = threading.RLock()
        self._import: Any = builtins.__import__
        self._import_module: Any = importlib.import_module

    @contextmanager
    def started(self) -> Iterator[None]:
        """Resolve imports by who imports, and restore Python's own way afterwards."""
        path = list(sys.path)
        if not sys.flags.safe_path:
            sys.path.insert(0, self._folder or "")
            for name in self._names_beside():
                self._shadow(name)
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            with suppress(ValueError):  # the script may have removed it
                sys.meta_path.remove(self)
            if builtins.__import__ == self._importing:
                builtins.__import__, importlib.import_module = self._import, self._import_module
            sys.path[:] = path
            for name in self._shadows:
                self._settle(name)

    def _names_beside(self) -> list[str]:
        """Return the names of modules in the script's folder that libraries have, too."""
        folder = self._folder or os.getcwd()
        try:
            names = {e.partition(".")[0] for e in os.listdir(folder) if "." not in e or e.endswith(_SUFFIXES)}
        except OSError:
            return []
        return [name for name in names if self._is_shadow(name, PathFinder.find_spec(name, [folder]))]

    def _is_shadow(self, name: str, spec: ModuleSpec | None) -> bool:
        """Return whether what the script would import has a name under which libraries import something else."""
        if spec is None or spec.origin is None or name in _NEVER or _is_pythons(name):
            return False
        library = self._library(name)
        return name in OPTIONAL if library is None else library.origin != spec.origin

    def _library(self, name: str) -> ModuleSpec | None:
        """Return where a name is found without the script's folder."""
        for finder in self._finders:
            path = self._path if finder is PathFinder else None
            if hasattr(finder, "find_spec") and (result := finder.find_spec(name, path, None)) is not None:
                return result
        return None

    def _shadow(self, name: str) -> None:
        """Keep the modules of the script that have a library's name apart from the library's."""
        if not self._shadows:
            builtins.__import__, importlib.import_module = self._importing, self._importing_module
        self._shadows.setdefault(name, _Shadow(name, self._folder or ""))

    def _settle(self, name: str) -> None:
        """Take out of `sys.modules` the script's module, if it was imported before the library's name was known."""
        module = sys.modules.get(name)
        if module is not None and not self._shadows[name].scripts and self._is_of_script(vars(module)):
            self._shadows[name].modules[True].update(self._shadows[name].taken())

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module is.

        Errors: `ModuleNotFoundError` where gradcli imports what is not installed.
        """
        if path is not None or _is_pythons(name):
            return None
        scripts, gradclis = self._importer(sys._getframe(1))
        if scripts:
            if self._is_shadow(name, PathFinder.find_spec(name)):
                self._shadow(name)
            return None
        result = self._library(name)
        if result is None and gradclis:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return result

    def _importer(self, frame: FrameType | None) -> tuple[bool, bool]:
        """Return whether the script's code imports, or if not, whether gradcli's does, maybe by a library.

        Code that is of no file, as `exec` runs it, counts as that of its caller.
        """
        nearest = None
        while frame is not None:
            names, file = frame.f_globals, str(frame.f_globals.get("__file__"))
            ours = names is globals() or file.startswith(_IMPORTLIB)
            if names is self._main or ("__file__" in names and not ours):
                scripts = self._is_of_script(names)
                nearest = scripts if nearest is None else nearest
                if scripts or file.startswith(_HERE):
                    return nearest, not scripts
            frame = frame.f_back
        return bool(nearest), False

    def _is_of_script(self, names: Mapping[str, Any]) -> bool:
        """Return whether a module is the script, or of its folder."""
        if names is self._main:
            return True
        file = _folded(str(names.get("__file__")))
        if file not in self._is_script:
            roots = {os.path.join(_folded(p), ""): False for p in (*self._path, _HERE)}
            roots.setdefault(os.path.join(_folded(self._folder or ""), ""), True)
            home = max((root for root in roots if file.startswith(root)), key=len, default="")
            self._is_script[file] = roots.get(home, True)
        return self._is_script[file]

    def _importing(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        """Import as `__import__` does, the module that the name means to the importing module.

        A module written in C has no `__file__` while it is loaded: then the module that loads it counts.
        """
        top = (str((globals or {}).get("__package__")) if level else name).partition(".")[0]
        if top not in self._shadows:
            return self._import(name, globals, locals, fromlist, level)  # type: ignore[no-any-return]
        known = globals and ("__file__" in globals or globals is self._main)
        scripts = self._is_of_script(globals) if known else self._importer(sys._getframe(1))[0]
        with self._meant_by(top, scripts):
            return self._import(name, globals, locals, fromlist, level)  # type: ignore[no-any-return]

    def _importing_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import as `importlib.import_module` does."""
        top = (str(package) if name.startswith(".") else name).partition(".")[0]
        scripts = top in self._shadows and self._importer(sys._getframe(1))[0]
        with self._meant_by(top, scripts) if top in self._shadows else nullcontext():
            return self._import_module(name, package)  # type: ignore[no-any-return]

    @contextmanager
    def _meant_by(self, top: str, scripts: bool) -> Iterator[None]:
        """In a block, have the script's module of a name in `sys.modules`, or the library's."""
        with self._lock:
            self._settle(top)
            shadow = self._shadows[top]
            before = shadow.scripts
            shadow.put(scripts)
            try:
                yield
            finally:
                shadow.put(before)


class _Shadow:
    """The modules of the script and of a library that have the same name; one of them is in `sys.modules`."""

    def __init__(self, name: str, folder: str) -> None:
        self.scripts = False  # whether it is the script's
        self.modules: tuple[dict[str, ModuleType], dict[str, ModuleType]] = ({}, {})
        self._name, self._folder = name, folder
        self._beside: dict[str, bool] = {}

    def put(self, scripts: bool) -> None:
        """Put the modules of the script, or those of the library, into `sys.modules`."""
        if scripts is not self.scripts:
            self.modules[self.scripts].clear()
            self.modules[self.scripts].update(self.taken())
            sys.modules.update(self.modules[scripts])
            self.scripts = scripts

    def taken(self) -> dict[str, ModuleType]:
        """Take the module out of `sys.modules`, with those in it that the script has, too; return them.

        The others stay: NumPy, which is written in C, looks for its own in `sys.modules`.
        """
        inner = [name for name in [*sys.modules] if name.startswith(f"{self._name}.") and self._is_beside(name)]
        return {name: sys.modules.pop(name) for name in (self._name, *inner) if name in sys.modules}

    def _is_beside(self, name: str) -> bool:
        """Return whether the script's folder has a module in a package."""
        if name not in self._beside:
            path = os.path.join(self._folder, *name.split("."))
            self._beside[name] = any(map(os.path.exists, (path, *(path + suffix for suffix in _SUFFIXES))))
        return self._beside[name]


def _folded(path: str) -> str:
    """Return a path in the form in which paths are compared."""
    return os.path.normcase(os.path.abspath(path))


def _is_pythons(name: str) -> bool:
    """Return whether a module is built into Python, so that no file can shadow it."""
    return BuiltinImporter.find_spec(name) is not None or FrozenImporter.find_spec(name) is not None
