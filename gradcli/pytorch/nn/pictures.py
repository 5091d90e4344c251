"""Pictures in another size, and with parts of their channels in another order."""

from __future__ import annotations

from functools import partial
from typing import Any

from gradcli.graph.calls import call_of
from gradcli.graph.operations.interpolation import MODES
from gradcli.pytorch.argument_checks import several
from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.messages import missing_if, raise_if
from gradcli.pytorch.names import function
from gradcli.pytorch.running import apply
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
    counts = None if size is None else tuple(several(size, axes))
    factors = None if scale_factor is None else tuple(map(float, several(scale_factor, axes)))
    settings = (counts, factors, mode, align_corners or None)
    kind = "".join(map(str.capitalize, mode.split("-")))
    name = f"AdaptiveAvgPool{axes}DBackward0" if mode == "area" else f"Upsample{kind}{axes}DBackward0"
    return apply("interpolate", partial(call_of, "interpolate", settings), (input,), settings, name)


# Channels


@function("channel_shuffle", module=NN)
def channel_shuffle(input: Any, groups: int) -> Any:
    """Return channels taken from each group in turn."""
    count, channels, *rest = input.shape
    result = input.view(count, groups, channels // groups, *rest).transpose(1, 2).reshape(input.shape)
    return set_grad_fn_name(result, "ChannelShuffleBackward0")


@function("pixel_shuffle", module=NN)
def _pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    *outer, channels, rows, columns = input.shape
    k = upscale_factor
    parts = input.view(*outer, channels // k**2, k, k, rows, columns)
    first = len(outer)
    order = (*range(first + 1), first + 3, first + 1, first + 4, first + 2)
    result = parts.permute(*order).reshape(*outer, channels // k**2, rows * k, columns * k)
    return set_grad_fn_name(result, "PixelShuffleBackward0")


@function("pixel_unshuffle", module=NN)
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Return the elements of blocks as channels: the inverse of `pixel_shuffle`."""
    *outer, channels, rows, columns = input.shape
    k, first = downscale_factor, len(outer)
    parts = input.view(*outer, channels, rows // k, k, columns // k, k)
    order = (*range(first + 1), first + 2, first + 4, first + 1, first + 3)
    result = parts.permute(*order).reshape(*outer, channels * k * k, rows // k, columns // k)
    return set_grad_fn_name(result, "PixelUnshuffleBackward0")
