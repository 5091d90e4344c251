"""`torch.special`: functions of `torch`, some under names of SciPy's."""

from __future__ import annotations

from functools import cache
from typing import Any

from gradcli.pytorch.calls import vocabulary_row
from gradcli.pytorch.dispatch import Dispatcher
from gradcli.pytorch.names import implementation
from gradcli.pytorch.tables import pytorch_names

_OTHER = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma"}


def _implementation(name: str) -> Any:
    is_known = name in pytorch_names()["torch.special"]
    return (implementation(_OTHER.get(name, name), "torch") or vocabulary_row(name)) if is_known else None


@cache
def __getattr__(name: str) -> Any:
    if (compute := _implementation(name)) is None:
        raise AttributeError(name)
    return Dispatcher(_OTHER.get(name, name), compute, "torch", f"special_{name}").function()


def __dir__() -> list[str]:
    return [n for n in pytorch_names()["torch.special"] if _implementation(n) is not None]
