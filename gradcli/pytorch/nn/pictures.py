"""Pictures in another size, at the points of a grid, and with parts of their channels in another order."""

from __future__ import annotations

from functools import partial
from typing import Any

from gradcli.graph.operations.interpolation import MODES
from gradcli.pytorch.calls import call_function, set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.messages import missing_if, raise_if, warn
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.nn.windows import several
from gradcli.pytorch.tensor import Tensor


@function("interpolate", module=NN)
def interpolate(
    input: Any, size: Any, scale_factor: Any, mode: str, align_corners: bool | None, **others: Any
) -> Tensor:
    for name, value in others.items():
        missing_if(value, f"torch.nn.functional.interpolate({name}=…)")
    axes = input.dim() - 2
    which = "either" if size is None else "only one of"
    raise_if((size is None) == (scale_factor is None), "size and factor", which)
    raise_if(mode in ("nearest", "area", "nearest-exact") and align_corners is not None, "corners of another mode")
    missing_if(axes not in MODES.get(mode, ()), f"torch.nn.functional.interpolate(mode={mode!r}) of {input.dim()} axes")
    factors = None if scale_factor is None else tuple(map(float, several(scale_factor, axes)))
    kind = "".join(map(str.capitalize, mode.split("-")))
    name = f"AdaptiveAvgPool{axes}DBackward0" if mode == "area" else f"Upsample{kind}{axes}DBackward0"
    result = call_function("interpolate", input, size, factors, mode, align_corners)
    return set_grad_fn_name(result, name)  # type: ignore[no-any-return]


# At the points of a grid, whose corners are at -1 and 1


@function("affine_grid", module=NN)
def affine_grid(theta: Any, size: Any, align_corners: bool | None) -> Any:
    """Return the points (x, y) to which affine maps take those of a picture of this size: (batch, rows, columns, 2)."""
    sizes = tuple(size)
    if align_corners is None:
        warn("corners of a grid")
    raise_if(len(sizes) not in (4, 5), "size of a grid", size)
    missing_if(len(sizes) == 5, "torch.nn.functional.affine_grid of 5 axes")
    wrong = theta.dim() != 3 or theta.shape[-2:] != (2, 3)
    raise_if(wrong, "matrices of a grid", size, theta.shape)
    raise_if(min(sizes) < 1, "empty grid", size)
    count, _, rows, columns = sizes
    y, x = (_axis(n, bool(align_corners), theta.dtype) for n in (rows, columns))
    x, y = x.expand(rows, columns), y[:, None].expand(rows, columns)
    points = TORCH["stack"]([x, y, TORCH["ones_like"](x)], -1).view(1, rows * columns, 3)
    grid = points.expand(count, -1, -1).bmm(theta.transpose(1, 2))
    return set_grad_fn_name(grid.view(count, rows, columns, 2), "AffineGridGeneratorBackward0")


def _axis(n: int, align_corners: bool, dtype: Any) -> Any:
    """Return the coordinates of the elements of an axis: from -1 to 1, or of their centers."""
    if n == 1:
        return TORCH["zeros"](1, dtype=dtype)
    return TORCH["linspace"](-1, 1, n, dtype=dtype) * (1.0 if align_corners else (n - 1) / n)


@function("grid_sample", module=NN)
def grid_sample(input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool | None) -> Any:
    """Return the pictures at the points (x, y) of grids: linear or cubic interpolation, or the nearest element.

    Source: R. Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -3/4.
    """
    raise_if(mode not in ("bilinear", "nearest", "bicubic"), "mode of a sample", mode)
    raise_if(padding_mode not in ("zeros", "border", "reflection"), "padding of a sample", padding_mode)
    if align_corners is None:
        warn("corners of a grid")
    raise_if(len(input) != len(grid), "batches of a sample", list(input.shape), list(grid.shape))
    missing_if(input.dim() != 4, f"torch.nn.functional.grid_sample of {input.dim()} axes")
    aligned, (rows, columns) = bool(align_corners), input.shape[2:]
    padded = partial(_padded, padding_mode=padding_mode, align_corners=aligned)
    x, y = (_position(grid[..., i], n, aligned) for i, n in enumerate((columns, rows)))
    if mode != "bicubic":  # which pads the elements alone
        x, y = padded(x, columns), padded(y, rows)
    shares = _SHARES[mode]
    left, top = (v.detach().round() if mode == "nearest" else v.detach().floor() for v in (x, y))
    across, down = shares(x - left), shares(y - top)
    result = sum(
        _taken(input, padded(left + i, columns), padded(top + j, rows)) * (across[i] * down[j])[:, None]
        for j in down
        for i in across
    )
    return set_grad_fn_name(result, "GridSampler2DBackward0")


def _cubic(t: Any) -> dict[int, Any]:
    """Return the shares of the four elements around a point, by their distance from the one on its left."""
    near = ((1.25 * d - 2.25) * d * d + 1 for d in (t, 1 - t))
    far = (((3.75 - 0.75 * d) * d - 6) * d + 3 for d in (1 + t, 2 - t))
    return dict(zip((0, 1, -1, 2), (*near, *far), strict=True))


# The shares of the elements around a point, by how far they are behind the first of them.
_SHARES = {"nearest": lambda t: {0: 1 + (t - t)}, "bilinear": lambda t: {0: 1 - t, 1: t}, "bicubic": _cubic}


def _position(coordinate: Any, n: int, align_corners: bool) -> Any:
    """Return coordinates as positions along an axis of n elements."""
    return (coordinate + 1) / 2 * (n - 1) if align_corners else ((coordinate + 1) * n - 1) / 2


def _padded(position: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """Return positions moved into an axis of n elements: to its border, or reflected there; no gradient from there."""
    if padding_mode == "zeros":
        return position
    if padding_mode == "reflection":
        low, span = (0, n - 1) if align_corners else (-0.5, n)
        wave = (position - low).remainder(2 * span) if span else 0 * position
        position = low + span - (wave - span).abs()
    inside = (position > 0) & (position < n - 1)
    return TORCH["where"](inside, position, position.detach().clamp(0, n - 1))


def _taken(input: Any, x: Any, y: Any) -> Any:
    """Return the elements of pictures in these columns and rows, and 0 outside."""
    rows, columns = input.shape[2:]
    inside = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
    flat = (y.clamp(0, rows - 1) * columns + x.clamp(0, columns - 1)).long().flatten(1)
    values = input.flatten(2).gather(2, flat[:, None].expand(-1, input.shape[1], -1))
    return values.unflatten(2, x.shape[1:]) * inside[:, None]


# Channels


@function("channel_shuffle", module=NN)
def channel_shuffle(input: Any, groups: int) -> Any:
    """Return channels taken from each group in turn."""
    result = input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
    return set_grad_fn_name(result, "ChannelShuffleBackward0")


@function("pixel_shuffle", module=NN)
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Return channels as the elements of blocks."""
    blocks = input.unflatten(-3, (-1, upscale_factor, upscale_factor)).movedim((-4, -3), (-3, -1))
    return set_grad_fn_name(blocks.flatten(-2).flatten(-3, -2), "PixelShuffleBackward0")


@function("pixel_unshuffle", module=NN)
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Return the elements of blocks as channels: the inverse of `pixel_shuffle`."""
    blocks = input.unflatten(-1, (-1, downscale_factor)).unflatten(-3, (-1, downscale_factor))
    return set_grad_fn_name(blocks.movedim((-3, -1), (-4, -3)).flatten(-5, -3), "PixelUnshuffleBackward0")
