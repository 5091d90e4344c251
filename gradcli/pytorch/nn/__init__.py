"""`torch.nn`: its classes stand in the files below, which are read when a name of theirs is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.pytorch.tables import pytorch_names

_FILES = ("layers", "recurrent", "attention", "transformer", "windows", "modules", "containers", "module")
__all__: list[str] = []  # all is found by name


def _class(name: str) -> Any:
    for file in _FILES if name[0].isupper() else ():
        result = getattr(import_module(f"{__name__}.{file}"), name, None)
        if getattr(result, "__module__", "").startswith("torch.nn."):
            return result
    return None


def __getattr__(name: str) -> Any:
    if (result := _class(name)) is None:
        raise AttributeError(name)
    return result


def __dir__() -> list[str]:
    return sorted(filter(_class, pytorch_names()["torch.nn"]))
