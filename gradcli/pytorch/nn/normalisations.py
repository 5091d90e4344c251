"""Normalisations: over the last axes, over a batch, a sample or a group of channels, and over neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.pytorch.calls import call_function, set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import function
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.tensor import Tensor


@function("layer_norm", "rms_norm", module=NN)
def _along_last_axes(input: Tensor, normalized_shape: Any, weight: Any, eps: Any, op: str, **rest: Any) -> Tensor:
    sizes = list(normalized_shape)
    fits = list(input.shape[-len(sizes) :]) == sizes
    raise_if(not fits, f"shape for {op}", sizes, ", ".join(map(str, sizes)), list(input.shape))
    result = call_function(op, input, tuple(sizes), weight, **rest, eps=eps)
    if op == "layer_norm":
        return result  # type: ignore[no-any-return]
    name = "Mul(0,Rsqrt(AddBackward1(MeanBackward1(Pow(0)))))"
    return set_grad_fn_name(result, name if weight is None else f"Mul({name},1)")  # type: ignore[no-any-return]


@function("batch_norm", module=NN)
def _batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None, bias: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> Tensor:  # fmt: skip
    size = input.numel() // input.shape[1]
    raise_if(training and size == 1, "single value in a batch", input.shape)
    vectors = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, x in vectors.items():
        if x is not None:
            raise_if(x.numel() != input.shape[1], "size of a statistic", name, input.shape[1], x.numel())
    if training and running_mean is not None and running_var is not None:
        axes = tuple(i for i in range(input.dim()) if i != 1)
        wide = input._a[..., 0].astype(np.float64)
        _track(running_mean, wide.mean(axes), momentum)
        _track(running_var, wide.var(axes, ddof=1), momentum)
    fixed = (None, None) if training else (running_mean, running_var)
    return call_function("batch_norm", input, *fixed, weight, bias, training, eps=eps)


def _track(running: Tensor, statistic: Any, momentum: float) -> None:
    """Move a running statistic towards that of a batch."""
    running._memory.keep()
    running._a[:, 0] = momentum * statistic + (1 - momentum) * running._a[:, 0]
    running._memory.version += 1


@function("instance_norm", module=NN)
def _instance_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, use_input_stats: bool, momentum: float,
    eps: float,
) -> Tensor:  # fmt: skip
    """Each channel of each sample is normalised by itself."""
    count, channels, *rest = input.shape
    raise_if(use_input_stats and math.prod(rest) == 1, "single value in a batch", (1, count * channels, *rest))
    params = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, p in params.items():
        if p is not None:
            raise_if(p.numel() != channels, "size of a statistic", name, count * channels, count * p.numel())
    if use_input_stats:
        wide, axes = input._a[..., 0].astype(np.float64), tuple(range(2, input.dim()))
        for running, each in ((running_mean, wide.mean(axes)), (running_var, wide.var(axes, ddof=1))):
            if running is not None:
                _track(running, each.mean(0), momentum)
        params |= {"running_mean": None, "running_var": None}
    given = [name for name, p in params.items() if p is not None]
    of_params = [f"Repeat({given.index(name) + 1})" if name in given else "_" for name in ("weight", "bias")]
    result = call_function("instance_norm", input, *params.values(), use_input_stats, eps=eps)
    return set_grad_fn_name(result, f"View(NativeBatchNorm(View(0),{','.join(of_params)}))")  # type: ignore[no-any-return]


@function("group_norm", module=NN)
def _group_norm(input: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Tensor:
    raise_if(input.shape[1] % num_groups, "channels in groups", list(input.shape), num_groups)
    return call_function("group_norm", input, num_groups, weight, bias, eps=eps)  # type: ignore[no-any-return]


@function("local_response_norm", module=NN)
def local_response_norm(input: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """Return numbers over a power of the mean square of the channels around."""
    squares = input.pow(2).unsqueeze(1)
    ends = (0, 0) * (input.dim() - 2) + (size // 2, (size - 1) // 2)
    rows = F.pad(squares.flatten(3) if input.dim() > 3 else squares, (0, 0, *ends[-2:]))
    means = F.avg_pool2d(rows, (size, 1), stride=1).squeeze(1).view(input.shape)
    return input / (means * alpha + k).pow(beta)
