"""`torch.amp`: mixed precision, which a CPU without bfloat16 does not have; what turns it off runs as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli.pytorch.dtypes import device
from gradcli.pytorch.messages import missing_if, warn


class autocast:
    """A context, or a decorator, in which nothing changes; on CUDA, which there is not, with PyTorch's warning.

    Errors: `MissingError` on the CPU, where PyTorch computes in bfloat16.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:  # fmt: skip
        kind = device(device_type).type
        missing_if(enabled and kind == "cpu", "torch.autocast on the CPU")
        if enabled and kind == "cuda":
            warn("autocast without CUDA")

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            return func(*args, **kwargs)

        return call


class GradScaler:
    """The loss scaler of float16 training on CUDA; without CUDA it changes nothing, and warns as PyTorch does."""

    def __init__(self, device: str = "cuda", *_: Any, enabled: bool = True, **__: Any) -> None:
        missing_if(enabled and device == "cpu", "torch.amp.GradScaler on the CPU")
        if enabled:
            warn("scaler without CUDA")

    def is_enabled(self) -> bool:
        return False

    def scale(self, outputs: Any) -> Any:
        return outputs

    def unscale_(self, optimizer: Any) -> None: ...

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None: ...

    def get_scale(self) -> float:
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


__all__ = ["GradScaler", "autocast"]
autocast.__module__, GradScaler.__module__ = "torch.amp.autocast_mode", "torch.amp.grad_scaler"
