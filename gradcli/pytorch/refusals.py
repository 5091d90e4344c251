"""What PyTorch says where layers and `torch.linalg` do not take what they are given: checks, in its order and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.pytorch.calls import spelled
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.tensor import Tensor


def several(given: Any, axes: int) -> list[int]:
    """Return a setting as one number for each axis, or as it is where it has another length."""
    found = list(given) if isinstance(given, tuple | list) else [given]
    return found * axes if len(found) == 1 else found


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def check_convolution(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any], groups: int
) -> None:
    """Refuse what a convolution over so many axes does not take; `settings` are stride, padding and dilation.

    Errors: `RuntimeError`.
    """
    if input.dim() not in (axes + 1, axes + 2):
        raise refusal("rank of a convolution's input", axes + 1, axes + 2, axes, list(input.shape))
    check_settings(weight.dim() - 2, settings)
    check_types(input, weight, bias)
    shape = list(weight.shape)
    if shape[0] % groups:
        raise refusal("groups of a weight", groups, shape)
    whole = list(input.shape) if input.dim() == axes + 2 else [1, *input.shape]
    if whole[1] != shape[1] * groups:
        raise refusal("channels of a convolution", f"groups={groups}", shape, whole, shape[1] * groups, whole[1])
    if bias is not None and list(bias.shape) != shape[:1]:
        raise refusal("size of a convolution's bias", "", shape, shape[0], list(bias.shape))
    apart = several(settings["dilation"], axes)
    reach = [d * (n - 1) + 1 for n, d in zip(shape[2:], apart, strict=True)]
    if isinstance(settings["padding"], str):
        return
    room = [n + 2 * p for n, p in zip(whole[2:], several(settings["padding"], axes), strict=True)]
    if any(n < r for n, r in zip(room, reach, strict=True)):
        raise refusal("kernel larger than the input", _by(room), _by(reach))


def check_settings(axes: int, settings: dict[str, Any]) -> None:
    """Refuse sizes that no convolution over so many axes has."""
    if axes < 1:
        raise RuntimeError("weight should have at least three dimensions")
    sizes = {name: several(given, axes) for name, given in settings.items() if not isinstance(given, str)}
    if settings["padding"] == "same" and set(sizes["stride"]) != {1}:
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    for name, own in sizes.items():
        if len(own) != axes:
            raise refusal("setting of a convolution", name, axes, own)
    for name, least, words in (
        ("padding", 0, "negative padding is not supported"),
        ("stride", 1, "non-positive stride is not supported"),
        ("dilation", 1, "dilation should be greater than zero"),
    ):
        if min(sizes.get(name, [least])) < least:
            raise RuntimeError(words)


def check_types(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Refuse a weight and a bias of other types than the input's."""
    if bias is not None and bias._a.dtype != input._a.dtype:
        raise RuntimeError(f"Input type ({spelled(input)}) and bias type ({spelled(bias)}) should be the same")
    if input._a.dtype == weight._a.dtype:
        return
    if input._a.dtype == "float32":
        raise refusal("types of input and weight", input.dtype.tensor, weight.dtype.tensor)
    raise RuntimeError(f"expected scalar type {input.dtype.word} but found {weight.dtype.word}")


def check_pooling(name: str, input: Tensor, settings: dict[str, Any], ceil: bool) -> None:
    """Refuse what pooling does not take; `settings` are kernel_size, stride, padding and dilation.

    Errors: `RuntimeError`, `IndexError`.
    """
    axes = int(name[-2])
    if (rank := input.dim()) not in (axes + 1, axes + 2):
        raise refusal(f"rank for {name}", list(input.shape), rank, -rank, rank - 1)
    for key, given in settings.items():
        if axes == 2 and len(several(given, axes)) != axes:
            either = "either be omitted, a single int" if key == "stride" else "either be a single int"
            raise RuntimeError(f"{name}: {key} must {either}, or a tuple of two ints")
    size, step, ends, apart = (several(v, axes) for v in settings.values())
    for key, own in (("kernel_size", size), ("stride", step)):
        if name == "max_pool1d" and own[0] <= 0:
            raise refusal("sizes of max_pool1d", key, own[0])
    if 0 in step:
        raise RuntimeError("stride should not be zero")
    for words, own, letter in (("kernel size", size, "k"), ("stride", step, "d")):
        pair = own if axes == 2 else [1, *own]
        if min(pair) <= 0:
            raise refusal("sizes of a pool", words, letter, pair[0], pair[1])
    for n, p, d in zip(size, ends, apart, strict=True):
        if p > (d * (n - 1) + 1) // 2:
            raise refusal("padding of max_pool1d" if name == "max_pool1d" else "padding of a pool", p, n, d)
    rows = zip(input.shape[-axes:], size, step, ends, apart, strict=True)
    found = [(m + 2 * p - d * (n - 1) - 1 + (s - 1) * ceil) // s + 1 for m, n, s, p, d in rows]
    if min(found) < 1:
        if name == "max_pool1d":
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {found[0]}")
        channels, flat = input.shape[-axes - 1], [1] * (axes == 1)
        before, after = ("x".join(map(str, (channels, *flat, *own))) for own in (input.shape[-axes:], found))
        raise RuntimeError(f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small")


def check_square(name: str, A: Tensor) -> Tensor:
    """Return a square matrix, or a stack of them.

    Errors: `RuntimeError` for anything else.
    """
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise refusal("not a square matrix", name, A.shape[-2], A.shape[-1])
    if A._a.dtype.kind != "f":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.word}")
    return A


def first_zero(A: Any) -> tuple[int, int] | None:
    """Return which matrix of a stack is the first without an inverse, and where its elimination meets a 0."""
    import numpy as np

    for number, matrix in enumerate(A.reshape(-1, *A.shape[-2:])):
        own = matrix.copy()
        for k in range(len(own)):
            best = k + int(np.abs(own[k:, k]).argmax())
            own[[k, best]] = own[[best, k]]
            if not own[k, k]:
                return number, k + 1
            own[k + 1 :] -= np.outer(own[k + 1 :, k] / own[k, k], own[k])
    return None
