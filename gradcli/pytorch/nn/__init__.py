"""`torch.nn`: its classes stand in the files below, which are read when a name of theirs is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_FILES = ("layers", "convolutions", "weightless", "containers", "module")
__all__: list[str] = []  # all is found by name


def __getattr__(name: str) -> Any:
    for file in _FILES:
        found = import_module(f"{__name__}.{file}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(name)


def __dir__() -> list[str]:
    return sorted({name for file in _FILES for name in import_module(f"{__name__}.{file}").__all__})
