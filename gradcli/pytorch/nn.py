"""`torch.nn`."""

from __future__ import annotations

from gradcli.pytorch import containers, convolutions, layers, weightless
from gradcli.pytorch.module import Module, Parameter

__all__ = ["Module", "Parameter"]  # the rest is found by name

ELSEWHERE = {
    name: room.__name__.rpartition(".")[2]
    for room in (layers, convolutions, weightless, containers)
    for name in room.__all__
}
