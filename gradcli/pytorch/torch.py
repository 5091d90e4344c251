"""`torch` itself: all that scripts find in it by name."""

from __future__ import annotations

import math
import os
from importlib import import_module
from typing import Any

from gradcli.pytorch import modes
from gradcli.pytorch.cuda import OutOfMemoryError
from gradcli.pytorch.dtypes import Size, bool_, check_device, contiguous_format, device, dtype, preserve_format, strided
from gradcli.pytorch.names import TORCH, function_named
from gradcli.pytorch.printing import set_printoptions
from gradcli.pytorch.tables import pytorch_names
from gradcli.pytorch.tensor import Tensor
from gradcli.pytorch.version import __version__

for _name in (
    *("compositions", "creation", "indexing", "inplace", "joining", "operators", "products", "selection"),
    *("random", "reductions", "storage", "views", "statistics"),
):
    import_module(f"gradcli.pytorch.operations.{_name}")  # which registers names
for _name in ("autograd", "autograd.graph"):
    import_module(f"gradcli.pytorch.{_name}")  # which completes tensors and what is recorded


class _Threads:
    """The number of threads that a script asks PyTorch for: at first `OMP_NUM_THREADS`, at most the cores."""

    _first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    _cores = os.cpu_count() or 1
    count = min(int(_first) or _cores, _cores) if _first.isdecimal() else _cores


__all__ = ["Tensor", "__version__"]  # the rest is found by name

TORCH.update(
    {
        "OutOfMemoryError": OutOfMemoryError,
        "Size": Size,
        "Tensor": Tensor,
        "bool": bool_,
        "device": device,
        "dtype": dtype,
        "is_inference_mode_enabled": lambda: modes.Mode.inference,
        "set_printoptions": set_printoptions,
        **{name: getattr(math, name) for name in ("pi", "e", "inf", "nan")},
        "strided": strided,
        "contiguous_format": contiguous_format,
        "preserve_format": preserve_format,
        "newaxis": None,
        "get_default_device": lambda: device("cpu"),
        "set_default_device": check_device,
        "set_num_threads": lambda n: setattr(_Threads, "count", n),
        "get_num_threads": lambda: _Threads.count,
        "is_autocast_enabled": lambda *_: False,
        "is_anomaly_enabled": lambda: modes.Mode.anomaly,
        "is_anomaly_check_nan_enabled": lambda: modes.Mode.check_nan,
        "use_deterministic_algorithms": lambda *_, **__: None,
        "set_float32_matmul_precision": lambda *_: None,
    }
)

ELSEWHERE = {"autocast": "amp", "GradScaler": "amp", "save": "saving", "load": "saving", "vmap": "func"}
ELSEWHERE |= dict.fromkeys(("enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"), "modes")


def __getattr__(name: str) -> Any:
    value = TORCH[name]
    if value is None and name != "newaxis":
        raise AttributeError(name)
    return value


def __dir__() -> list[str]:
    return [n for n in pytorch_names()["torch"] if n in TORCH or function_named(n, "torch")]
