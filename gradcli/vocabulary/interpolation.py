"""The name of interpolation, with PyTorch's signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.errors import InputError
from gradcli.graph.calls import call_of
from gradcli.graph.node import Node
from gradcli.graph.operations.interpolation import MODES
from gradcli.vocabulary.register import flag, named


@named("interpolate", methods=())
def _interpolate(
    input: Node,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Node:
    axes = len(input.shape) - 2
    if mode not in MODES:
        raise InputError(f"there is no mode `{str(mode)[:40]}`", hint=f"it is one of {', '.join(map(repr, MODES))}")
    if axes not in MODES[mode]:
        raise InputError(f"`mode={mode!r}` is not for an array of shape {input.shape}: it is (batch, channels, …)")
    if (size is None) == (scale_factor is None):
        raise InputError("`interpolate` takes a size or a factor", hint="for example `interpolate(x, scale_factor=2)`")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise InputError(f"`mode={mode!r}` has no `align_corners`")
    counts = None if size is None else _each("size", size, axes)
    factors = None if scale_factor is None else tuple(map(float, _each("scale_factor", scale_factor, axes)))
    if min(counts or [int(n * f) for n, f in zip(input.shape[2:], factors or (), strict=True)]) < 1:
        raise InputError("nothing is left of an axis")
    corners = None if align_corners is None else flag("align_corners", align_corners)
    return call_of("interpolate", (counts, factors, mode, corners or None), input)


def _each(name: str, numbers: Any, axes: int) -> tuple[Any, ...]:
    """Return one number for each axis."""
    listed = tuple(numbers) if isinstance(numbers, list | tuple) else (numbers,) * axes
    integers = name == "size"
    wrong = any(type(n) is bool or not isinstance(n, int if integers else (int, float)) for n in listed)
    if wrong or len(listed) != axes or not all(0 < n <= 2**20 for n in listed):
        kind = "a positive integer" if integers else "a positive number"
        raise InputError(f"`{name}` is {kind}{f', or {axes} of them' if axes > 1 else ''}")
    return listed
