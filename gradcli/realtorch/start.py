"""The start of a recording: when the program imports PyTorch, and not before, as `python SCRIPT.py` would."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `torch` as it is installed, and calls a function once it is imported."""

    def __init__(self, imported: Callable[[], None]) -> None:
        self.imported = imported
        self._is_found = False  # others may ask again, who have a list of finders of their own

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where PyTorch is, with a loader that tells when it is loaded."""
        if name != "torch" or self._is_found:
            return None
        self._is_found = True
        with suppress(ValueError):
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.imported)
        return spec


class _Loader(importlib.abc.Loader):
    """Python's own loader of a module, which calls a function behind it."""

    def __init__(self, loader: Any, loaded: Callable[[], None]) -> None:
        self.loader, self.loaded = loader, loaded

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Load the module."""
        module.__loader__ = module.__spec__.loader = self.loader  # type: ignore[union-attr]
        self.loader.exec_module(module)
        self.loaded()


@contextmanager
def started_with_torch(start: Callable[[ExitStack], None]) -> Iterator[None]:
    """Call a function when PyTorch is imported in a block, at once where it is already; what it enters ends with it."""
    with ExitStack() as stack:
        if "torch" in sys.modules:
            start(stack)
            yield
            return
        finder = _Finder(lambda: start(stack))
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            with suppress(ValueError):
                sys.meta_path.remove(finder)
