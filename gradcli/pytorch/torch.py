"""`torch` itself: all that scripts find in it by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.pytorch import (  # noqa: F401  (they register names)
    compositions,
    creation,
    gathering,
    indexing,
    inplace,
    joining,
    operators,
    order,
    products,
    random,
    reductions,
    views,
)
from gradcli.pytorch.dtypes import Size, bool_, device, dtype
from gradcli.pytorch.lookup import absent, function_named
from gradcli.pytorch.modes import (
    Mode,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from gradcli.pytorch.printing import set_printoptions
from gradcli.pytorch.registry import TORCH
from gradcli.pytorch.tensor import Tensor

__version__ = "2.13.0+cpu"
__all__ = ["Tensor", "__version__"]  # the rest is found by name

TORCH.update(
    {
        "Size": Size,
        "Tensor": Tensor,
        "bool": bool_,
        "device": device,
        "dtype": dtype,
        "enable_grad": enable_grad,
        "inference_mode": inference_mode,
        "is_grad_enabled": is_grad_enabled,
        "is_inference_mode_enabled": lambda: Mode.inference,
        "no_grad": no_grad,
        "set_grad_enabled": set_grad_enabled,
        "set_printoptions": set_printoptions,
        "pi": 3.141592653589793,
        "e": 2.718281828459045,
        "inf": float("inf"),
        "nan": float("nan"),
        "strided": "torch.strided",
        "contiguous_format": "torch.contiguous_format",
        "preserve_format": "torch.preserve_format",
        "newaxis": None,
        "set_num_threads": lambda n: None,
        "get_num_threads": lambda: 1,
        "is_anomaly_enabled": lambda: Mode.anomaly,
        "use_deterministic_algorithms": lambda *_, **__: None,
        "set_float32_matmul_precision": lambda *_: None,
    }
)

_MODULES = ("autograd", "nn", "optim", "func", "linalg", "special", "utils", "cuda", "testing", "random")


_LAYERS = ("avg_pool1d", "conv1d", "conv2d", "max_pool1d", "max_pool2d", "prelu", "group_norm")


def __getattr__(name: str) -> Any:
    if name in TORCH:
        return TORCH[name]
    if name in _MODULES:
        return import_module(f"torch.{name}")
    if name in ("save", "load"):
        return getattr(import_module("gradcli.pytorch.saving"), name)
    if name == "vmap":
        return import_module("torch.func").vmap
    if name in _LAYERS:
        return getattr(import_module("gradcli.pytorch.functional"), name)
    found = function_named(name)
    if found is None:
        raise absent("torch", name, {**TORCH, **dict.fromkeys(_MODULES)})
    TORCH[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*TORCH, *_MODULES})
