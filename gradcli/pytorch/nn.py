"""`torch.nn`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.pytorch import activations, layers
from gradcli.pytorch.lookup import absent
from gradcli.pytorch.module import Module, Parameter

__all__ = ["Module", "Parameter"]  # the rest is found by name


def __getattr__(name: str) -> Any:
    for room in (layers, activations):
        if name in room.__all__:
            return getattr(room, name)
    if name in ("functional", "init", "utils", "parameter", "modules"):
        return import_module(f"torch.nn.{name}")
    raise absent("torch.nn", name, dict.fromkeys([*layers.__all__, *activations.__all__]))
