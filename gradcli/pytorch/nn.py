"""`torch.nn`."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch import containers, layers, weightless
from gradcli.pytorch.module import Module, Parameter

__all__ = ["Module", "Parameter"]  # the rest is found by name

_ROOMS = (layers, weightless, containers)


def __getattr__(name: str) -> Any:
    for room in _ROOMS:
        if name in room.__all__:
            return getattr(room, name)
    raise AttributeError(name)


def __dir__() -> list[str]:
    return [n for room in _ROOMS for n in room.__all__]
