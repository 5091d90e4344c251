"""`torch.functional`: functions of `torch`, and `torch.nn.functional` under the name that PyTorch has for it there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.pytorch import torch


def __getattr__(name: str) -> Any:
    return import_module("torch.nn.functional") if name == "F" else getattr(torch, name)


def __dir__() -> list[str]:
    return ["F", *torch.__dir__()]
