"""`torch.special`: functions of `torch`, some under names of SciPy's."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch import torch
from gradcli.pytorch.names import pytorch_names

_OTHER = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma"}


def __getattr__(name: str) -> Any:
    if name not in pytorch_names()["torch.special"]:
        raise AttributeError(name)
    return getattr(torch, _OTHER.get(name, name))


def __dir__() -> list[str]:
    return [n for n in pytorch_names()["torch.special"] if hasattr(torch, _OTHER.get(n, n))]
