"""Pictures, and rows, in another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, cast, const
from gradcli.pytorch.argument_checks import several
from gradcli.pytorch.calls import exact
from gradcli.pytorch.messages import missing_if, raise_if
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor

Array = np.ndarray[Any, Any]


_MODES = {("nearest", 1), ("nearest", 2), ("linear", 1), ("bilinear", 2)}


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    **others: Any,
) -> Tensor:  # fmt: skip
    for name, value in others.items():
        missing_if(value, f"torch.nn.functional.interpolate({name}=…)")
    axes = input.dim() - 2
    which = "either" if size is None else "only one of"
    raise_if((size is None) == (scale_factor is None), "size and factor", which)
    raise_if(mode == "nearest" and align_corners is not None, "corners of another mode")
    missing_if((mode, axes) not in _MODES, f"torch.nn.functional.interpolate(mode={mode!r}) of {input.dim()} axes")
    sizes = list(input.shape[2:])
    factors = [None] * axes if size is not None else several(scale_factor, axes)
    counts = several(size, axes) if size is not None else [int(n * f) for n, f in zip(sizes, factors, strict=True)]
    kind = np.float64 if input.dtype.name == "float64" and mode != "nearest" else np.float32
    sources = [_sources(kind, mode, align_corners, *row) for row in zip(sizes, counts, factors, strict=True)]

    def build(x: Node) -> Node:
        for axis, (low, high, part) in enumerate(sources, 2):
            near = take(x, axis, IndexArray.of(low))
            if mode == "nearest":
                x = near
                continue
            shape = (len(part), *[1] * (axes + 1 - axis))
            first, second = (const(tuple(map(exact, weights)), shape) for weights in (1 - part, part))
            x = cast(near * first + take(x, axis, IndexArray.of(high)) * second, x.dtype)
        return x

    settings = (mode, align_corners, tuple(counts), tuple(factors))
    return apply("interpolate", build, (input,), settings, f"Upsample{mode.capitalize()}{axes}DBackward0")


def _sources(
    kind: Any, mode: str, corners: bool | None, n: int, count: int, factor: float | None
) -> tuple[Array, Array, Array]:
    """Return the two elements of an axis between which each new one lies, and how far it is from the first."""
    steps = np.arange(count, dtype=kind)
    if corners or (mode != "nearest" and count == n):  # PyTorch copies an axis that keeps its size
        at = steps * kind((n - 1) / (count - 1) if count > 1 else 0)
    else:
        scale = kind(1 / factor if factor else n / count)
        at = steps * scale if mode == "nearest" else np.maximum((steps + kind(0.5)) * scale - kind(0.5), 0)
    low = np.minimum(at.astype(np.int64), n - 1)
    return low, np.minimum(low + 1, n - 1), at - low
