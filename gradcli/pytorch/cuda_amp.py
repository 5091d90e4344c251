"""`torch.cuda.amp`: the old names of `torch.amp`'s classes, with PyTorch's warnings."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch import amp
from gradcli.pytorch.messages import warn


class autocast(amp.autocast):
    """`torch.amp.autocast` on CUDA."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        warn("old name of mixed precision", "autocast")
        super().__init__("cuda", dtype, enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler` on CUDA."""

    def __init__(self, *args: Any, enabled: bool = True, **kwargs: Any) -> None:
        warn("old name of mixed precision", "GradScaler")
        super().__init__("cuda", *args, enabled=enabled, **kwargs)


__all__ = ["GradScaler", "autocast"]
autocast.__module__, GradScaler.__module__ = "torch.cuda.amp.autocast_mode", "torch.cuda.amp.grad_scaler"
