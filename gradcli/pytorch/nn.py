"""`torch.nn`."""

from __future__ import annotations

from gradcli.pytorch import containers, convolutions, layers, weightless
from gradcli.pytorch.module import Module, Parameter

__all__ = ["Module", "Parameter"]  # the rest is found by name

_ROOMS = (layers, convolutions, weightless, containers)
ELSEWHERE = {name: room.__name__.rpartition(".")[2] for room in _ROOMS for name in room.__all__}
