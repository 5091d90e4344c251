"""`affine_grid` and `grid_sample`: pictures at the points of a grid, whose corners are at -1 and 1."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch.calls import called
from gradcli.pytorch.messages import missing_if, refuse_if, warn
from gradcli.pytorch.names import TORCH

_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Return the points (x, y) to which affine maps take those of a picture of this size: (batch, rows, columns, 2)."""
    sizes = tuple(size)
    if align_corners is None:
        warn("corners of a grid")
    refuse_if(len(sizes) not in (4, 5), "size of a grid", size)
    missing_if(len(sizes) == 5, "torch.nn.functional.affine_grid of 5 axes")
    wrong = theta.dim() != 3 or theta.shape[-2:] != (2, 3)
    refuse_if(wrong, "matrices of a grid", size, theta.shape)
    refuse_if(min(sizes) < 1, "empty grid", size)
    count, _, rows, columns = sizes
    y, x = (_axis(n, bool(align_corners), theta.dtype) for n in (rows, columns))
    x, y = x.expand(rows, columns), y[:, None].expand(rows, columns)
    points = TORCH["stack"]([x, y, TORCH["ones_like"](x)], -1).view(1, rows * columns, 3)
    grid = points.expand(count, -1, -1).bmm(theta.transpose(1, 2))
    return called(grid.view(count, rows, columns, 2), "AffineGridGeneratorBackward0")


def _axis(n: int, align_corners: bool, dtype: Any) -> Any:
    """Return the coordinates of the elements of an axis: from -1 to 1, or of their centers."""
    if n == 1:
        return TORCH["zeros"](1, dtype=dtype)
    return TORCH["linspace"](-1, 1, n, dtype=dtype) * (1.0 if align_corners else (n - 1) / n)


def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:  # fmt: skip
    """Return the pictures at the points (x, y) of grids, by linear interpolation or of the nearest element."""
    refuse_if(mode not in _MODES, "mode of a sample", mode)
    refuse_if(padding_mode not in _PADDINGS, "padding of a sample", padding_mode)
    if align_corners is None:
        warn("corners of a grid")
    refuse_if(len(input) != len(grid), "batches of a sample", list(input.shape), list(grid.shape))
    unlike = mode == "bicubic" or padding_mode == "reflection" or input.dim() != 4
    how = f"mode={mode!r}, padding_mode={padding_mode!r}"
    missing_if(unlike, f"torch.nn.functional.grid_sample({how}) of {input.dim()} axes")
    rows, columns = input.shape[2:]
    x, y = (_position(grid[..., i], n, bool(align_corners), padding_mode) for i, n in enumerate((columns, rows)))
    if mode == "nearest":
        result = _taken(input, x.detach().round(), y.detach().round())
    else:
        left, top = x.detach().floor(), y.detach().floor()
        right, below = x - left, y - top  # the shares of the elements on the right, and below
        result = sum(
            _taken(input, left + i, top + j) * ((right if i else 1 - right) * (below if j else 1 - below))[:, None]
            for j in (0, 1)
            for i in (0, 1)
        )
    return called(result, "GridSampler2DBackward0")


def _position(coordinate: Any, n: int, align_corners: bool, padding_mode: str) -> Any:
    """Return coordinates as positions along an axis of n elements; of the border where they are behind it."""
    position = (coordinate + 1) / 2 * (n - 1) if align_corners else ((coordinate + 1) * n - 1) / 2
    return position.clamp(0, n - 1) if padding_mode == "border" else position


def _taken(input: Any, x: Any, y: Any) -> Any:
    """Return the elements of pictures in these columns and rows, and 0 outside."""
    rows, columns = input.shape[2:]
    inside = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
    flat = (y.clamp(0, rows - 1) * columns + x.clamp(0, columns - 1)).long().flatten(1)
    values = input.flatten(2).gather(2, flat[:, None].expand(-1, input.shape[1], -1))
    return values.unflatten(2, x.shape[1:]) * inside[:, None]
