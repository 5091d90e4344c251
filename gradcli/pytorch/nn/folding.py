"""`unfold` and `fold`: the blocks of pictures as columns, and pictures as sums of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from gradcli.graph.windows import Window
from gradcli.pytorch.argument_checks import several
from gradcli.pytorch.calls import called, check_numbers
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import calling
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.operations.creation import zeros
from gradcli.pytorch.tensor import Tensor, axis_of, of_array

# What each setting is called in errors, and the least that it may be.
_SETTINGS = {"kernel_size": ("kernel size", "kernel", 1), "dilation": ("dilation", "dilation", 1)}
_SETTINGS |= {"padding": ("padding", "pad", 0), "stride": ("stride", "stride", 1)}


def _windows(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> list[Window]:
    """Return the windows along the rows and the columns."""
    sizes = [several(setting, 2) for setting in (kernel_size, dilation, padding, stride)]
    for name, values in zip(_SETTINGS, sizes, strict=True):
        raise_if(len(values) != 2, "count of a block's sizes", name, len(values))
        words, short, least = _SETTINGS[name]
        how = "greater than zero" if least else "non-negative"
        raise_if(min(values) < least, "sizes of a block", words, how, short, values[0], short, values[1])
    return [Window(k, step, end, apart) for k, apart, end, step in zip(*sizes, strict=True)]


def _indices(windows: Sequence[Window], sizes: Sequence[int]) -> Tensor:
    """Return where the elements of all blocks are in a flat padded picture: first the first element of each block."""
    rows, columns = (w.positions(n).T + w.padding for w, n in zip(windows, sizes, strict=True))
    width = windows[1].padded(sizes[1])
    return of_array((rows[:, None, :, None] * width + columns[:, None]).reshape(-1))


def _settings(windows: Sequence[Window]) -> dict[str, tuple[int, ...]]:
    return {
        "kernel_size": tuple(w.size for w in windows),
        "dilation": tuple(w.dilation for w in windows),
        "padding": tuple(w.padding for w in windows),
        "stride": tuple(w.step for w in windows),
    }


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Return the blocks of pictures as columns: (batch, channels · elements of a block, blocks)."""
    windows = _windows(kernel_size, dilation, padding, stride)
    axis_of(2, input.dim())
    raise_if(input.dim() not in (3, 4), "rank for unfold", list(input.shape))
    *outer, channels, _, _ = input.shape
    sizes = tuple(input.shape[-2:])
    counts = tuple(w.fitting(n) for w, n in zip(windows, sizes, strict=True))
    settings = _settings(windows)
    first_three = [settings[name] for name in ("kernel_size", "dilation", "padding")]
    raise_if(min(counts) < 1, "blocks of unfold", sizes, *first_three, counts)
    check_numbers("im2col", input.dtype)
    (top, left) = settings["padding"]
    flat = F.pad(input, (left, left, top, top)).flatten(-2)
    columns = flat.index_select(-1, _indices(windows, sizes))
    size = math.prod(settings["kernel_size"])
    return called(columns.reshape(*outer, channels * size, math.prod(counts)), "Im2ColBackward0")


@partial(calling, name="fold")
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:  # fmt: skip
    """Return pictures whose elements are the sums of those of the blocks that cover them: the adjoint of `unfold`."""
    windows, sizes = _windows(kernel_size, dilation, padding, stride), tuple(several(output_size, 2))
    *outer, height, length = input.shape
    settings = _settings(windows)
    kernel, size = settings["kernel_size"], math.prod(settings["kernel_size"])
    axis = input.dim() - 2
    raise_if(height % size, "channels of fold", axis, axis, height, kernel)
    counts = [w.fitting(n) for w, n in zip(windows, sizes, strict=True)]
    count = math.prod(counts)
    wrong = min(counts) < 1 or length != count
    raise_if(wrong, "blocks of fold", sizes, *settings.values(), axis + 1, *counts, count, axis + 1, length)
    check_numbers("col2im", input.dtype)
    padded = [w.padded(n) for w, n in zip(windows, sizes, strict=True)]
    terms = input.reshape(*outer, height // size, size * length)
    empty = zeros(*outer, height // size, math.prod(padded), dtype=input.dtype)
    total = empty.index_add(-1, _indices(windows, sizes), terms).unflatten(-1, padded)
    for axis, (w, n) in enumerate(zip(windows, sizes, strict=True)):
        total = total.narrow(axis - 2, w.padding, n)
    return called(total, "Col2ImBackward0")
