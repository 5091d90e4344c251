"""Checks of the arguments of convolutions and pools, with PyTorch's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.graph.windows import Window
from gradcli.pytorch.messages import raise_if, torch_error
from gradcli.pytorch.tensor import Tensor


def several(setting: Any, axes: int) -> list[int]:
    """Return a setting as one number for each axis, or as it is where it has another length."""
    result = list(setting) if isinstance(setting, tuple | list) else [setting]
    return result * axes if len(result) == 1 else result


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def check_convolution(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any], groups: int,
    transposed: bool = False,
) -> None:  # fmt: skip
    """Check the arguments of a convolution over some axes; `settings` are stride, padding and dilation.

    Errors: `RuntimeError`.
    """
    rank, shape = input.dim(), list(weight.shape)
    wrong = rank not in (axes + 1, axes + 2)
    name = f"_transpose{axes}" if transposed else axes
    raise_if(wrong, "rank of a convolution's input", axes + 1, axes + 2, name, list(input.shape))
    check_settings(len(shape) - 2, settings)
    check_types(input, weight, None if transposed else bias)
    raise_if(not transposed and shape[0] % groups, "groups of a weight", groups, shape)
    whole = list(input.shape) if rank == axes + 2 else [1, *input.shape]
    count, channels, how = shape[0], shape[1] * groups, f"groups={groups}"
    if transposed:
        count, channels, how = channels, count, "transposed=1"
    raise_if(whole[1] != channels, "channels of a convolution", how, shape, whole, channels, whole[1])
    bias_sizes = [count] if bias is None else list(bias.shape)
    raise_if(bias_sizes != [count], "size of a convolution's bias", shape, count, bias_sizes)
    if not transposed and not isinstance(settings["padding"], str):
        padding, dilation = several(settings["padding"], axes), several(settings["dilation"], axes)
        windows = [Window(n, 1, p, d) for n, p, d in zip(shape[2:], padding, dilation, strict=True)]
        rows = list(zip(windows, whole[2:], strict=True))
        sizes = [w.padded(n) for w, n in rows], [w.reach for w in windows]
        raise_if(any(w.fitting(n) < 1 for w, n in rows), "kernel larger than the input", *map(_by, sizes))


def check_settings(axes: int, settings: dict[str, Any]) -> None:
    """Check the settings of a convolution over some axes."""
    raise_if(axes < 1, "rank of a weight")
    sizes = {name: several(setting, axes) for name, setting in settings.items() if not isinstance(setting, str)}
    raise_if(settings["padding"] == "same" and set(sizes["stride"]) != {1}, "strides of the same size")
    for name, values in sizes.items():
        wrong = len(values) != axes or min(values) < (name != "padding")
        raise_if(wrong, "setting of a convolution", name, axes, values)


def check_types(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Check that weight and bias have the input's dtype."""
    reference = input if bias is None else bias
    raise_if(reference._a.dtype != input._a.dtype, "types of input and bias", input.dtype.in_c, reference.dtype.in_c)
    other = input._a.dtype != weight._a.dtype
    single = other and input._a.dtype == "float32"
    raise_if(single, "types of input and weight", input.dtype.tensor, weight.dtype.tensor)
    raise_if(other, "scalar type of a weight", input.dtype.word, weight.dtype.word)


def check_pooling(name: str, input: Tensor, settings: dict[str, Any], ceil: bool) -> None:
    """Check the arguments of pooling; `settings` are kernel_size, stride, padding and dilation.

    Errors: `RuntimeError`, `IndexError`.
    """
    axes, rank, sizes = int(name[-2]), input.dim(), input.shape
    if rank not in (axes + 1, axes + 2):
        raise torch_error(
            "rank for avg_pool2d" if name == "avg_pool2d" else "rank for a pool", list(sizes), rank, -rank, rank - 1
        )
    each = {key: several(setting, axes) for key, setting in settings.items()}
    for key, values in each.items():
        wrong = (axes > 1 and len(values) != axes) or (key in ("kernel_size", "stride") and min(values) <= 0)
        raise_if(wrong, "setting of a pool", name, key, values)
    windows = [Window(n, s, p, d, ceil) for n, s, p, d in zip(*(v[:axes] for v in each.values()), strict=True)]
    wide = any(w.padding > w.reach // 2 for w in windows)
    raise_if(wide, "padding of a pool", name, each["padding"])
    rows = list(zip(windows, sizes[-axes:], strict=True))
    small = name == "avg_pool3d" and any(w.padded(n) < w.reach for w, n in rows)
    result = [w.fitting(n) for w, n in rows]
    raise_if(small or (name == "max_pool1d" and min(result) < 1), "setting of a pool", name, "kernel_size", list(sizes))
    head = [sizes[-axes - 1], *[1] * (axes == 1)]
    before, after = ("x".join(map(str, (*head, *values))) for values in (sizes[-axes:], result))
    raise_if(min(result) < 1, "output of a pool", before, after)
