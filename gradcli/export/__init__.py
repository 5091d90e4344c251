"""Graphs as source code in other languages: the system and its derivatives as functions, a file a language."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import gradcli


class _Package(ModuleType):
    """The package, which may be called: `gradcli.export` is also a function of `gradcli.api`."""

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        return gradcli.__getattr__("export")(*args, **kwargs)  # type: ignore[no-any-return]


sys.modules[__name__].__class__ = _Package
