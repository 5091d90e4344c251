"""`torch.autograd.graph`: the nodes of what was recorded, and hooks on what they keep for the backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.pytorch.modes import _Switch
from gradcli.pytorch.record import Edge

__all__ = ["Node", "saved_tensors_hooks"]

Node = Edge


class saved_tensors_hooks(_Switch):
    """Have one function called with each tensor that is kept for the backward, and another with what that returned."""

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        super().__init__(hooks=(pack_hook, unpack_hook))


saved_tensors_hooks.__module__ = "torch.autograd.graph"
