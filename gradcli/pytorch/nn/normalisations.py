"""Normalisations: over the last axes, over a batch, a sample or a group of channels, and over neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.graph.calls import call_with
from gradcli.graph.node import Node
from gradcli.pytorch.calls import call_function, number
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.messages import raise_if, torch_error
from gradcli.pytorch.names import function
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor


@function("layer_norm", module=NN)
def _layer_norm(input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Tensor:
    sizes = list(normalized_shape)
    if list(input.shape[-len(sizes) :]) != sizes:
        raise torch_error("shape for layer_norm", sizes, ", ".join(map(str, sizes)), list(input.shape))
    return call_function("layer_norm", input, tuple(normalized_shape), weight, bias, eps)


@function("rms_norm", module=NN)
def _rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Tensor:
    sizes = list(normalized_shape)
    fits = list(input.shape[-len(sizes) :]) == sizes
    raise_if(not fits, "shape for rms_norm", sizes, ", ".join(map(str, sizes)), list(input.shape))
    name = "Mul(0,Rsqrt(AddBackward1(MeanBackward1(Pow(0)))))"
    name = name if weight is None else f"Mul({name},1)"
    return _normalised("rms_norm", (tuple(sizes),), input, {"weight": weight}, eps, name)


def _normalised(
    op: str, settings: tuple[Any, ...], x: Tensor, params: dict[str, Tensor | None], eps: float | None, name: str
) -> Tensor:
    """Return a normalisation by its row; `params` are the tensors that it takes beside the input, by its options."""
    given = [key for key, p in params.items() if p is not None]
    numbers = [] if eps is None else [number(eps, x.dtype)]

    def build(x: Node, *more: Node) -> Node:
        return call_with(op, settings, (x,), **dict(zip((*given, "eps"), more, strict=False)))

    operands = [x, *(p for p in params.values() if p is not None)]
    return apply(op, build, operands, (*given, *settings, eps is None), name, numbers)


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
    name = f"View(NativeBatchNorm(View(0),{','.join(of_params)}))"
    return _normalised("instance_norm", (use_input_stats,), input, params, eps, name)


@function("group_norm", module=NN)
def _group_norm(input: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Tensor:
    raise_if(input.shape[1] % num_groups, "channels in groups", list(input.shape), num_groups)
    params = {"weight": weight, "bias": bias}
    return _normalised("group_norm", (num_groups,), input, params, eps, "NativeGroupNormBackward0")


@function("local_response_norm", module=NN)
def local_response_norm(input: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """Return numbers over a power of the mean square of the channels around."""
    squares = input.pow(2).unsqueeze(1)
    ends = (0, 0) * (input.dim() - 2) + (size // 2, (size - 1) // 2)
    rows = F.pad(squares.flatten(3) if input.dim() > 3 else squares, (0, 0, *ends[-2:]))
    means = F.avg_pool2d(rows, (size, 1), stride=1).squeeze(1).view(input.shape)
    return input / (means * alpha + k).pow(beta)
