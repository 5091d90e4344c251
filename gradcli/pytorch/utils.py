"""`torch.utils`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "data":
        return import_module("torch.utils.data")
    from gradcli.pytorch.lookup import absent

    raise absent("torch.utils", name, {"data": None})
