"""The results of commands as plain data, computed from a graph, points and cotangents."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import gradcli


class _Package(ModuleType):
    """The package, which may be called: `gradcli.explain` is also a function of `gradcli.api`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return gradcli.__getattr__("explain")(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
