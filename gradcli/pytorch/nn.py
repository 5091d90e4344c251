"""`torch.nn`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.pytorch import activations, containers, layers, pooling, recurrent
from gradcli.pytorch.lookup import absent
from gradcli.pytorch.module import Module, Parameter

__all__ = ["Module", "Parameter"]  # the rest is found by name


_ROOMS = (layers, activations, containers, pooling, recurrent)


def __getattr__(name: str) -> Any:
    for room in _ROOMS:
        if name in room.__all__:
            return getattr(room, name)
    if name in ("functional", "init", "utils", "parameter", "modules"):
        return import_module(f"torch.nn.{name}")
    raise absent("torch.nn", name, {n: None for room in _ROOMS for n in room.__all__})
