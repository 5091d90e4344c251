"""`torch.testing`: whether tensors are close."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.messages import refuse_if
from gradcli.pytorch.tensor import Tensor, of_array

__all__ = ["assert_close"]
_PLACE = "\n\nThe failure occurred for item "
_TOLERANCES = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}


def assert_close(
    actual: Any, expected: Any, *, equal_nan: bool = False, check_dtype: bool = True, **tolerances: float | None
) -> None:
    """Raise unless two tensors, numbers, or lists of them, are close; `rtol` and `atol` say how close.

    Errors: `AssertionError` with the number of elements that differ, and the largest differences.
    """
    if isinstance(actual, list | tuple):
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            try:
                assert_close(a, b, equal_nan=equal_nan, check_dtype=check_dtype, **tolerances)
            except AssertionError as error:
                text, _, inner = str(error).partition(_PLACE)
                raise AssertionError(f"{text}{_PLACE}[{i}]{inner}") from None
        return
    actual, expected = (x if isinstance(x, Tensor) else of_array(np.asarray(float(x))) for x in (actual, expected))
    for name in ("shape", "dtype") if check_dtype else ("shape",):
        a, b = getattr(actual, name), getattr(expected, name)
        refuse_if(a != b, "attributes that differ", name, a, b)
    usual = _TOLERANCES.get(actual.dtype.name, (0.0, 0.0))
    allowed = [u if (t := tolerances.get(n)) is None else t for n, u in zip(("rtol", "atol"), usual, strict=True)]
    a, b = (x._a[..., 0] if x.is_floating_point() else x._a[..., 0].astype(int) for x in (actual, expected))
    close = np.isclose(a, b, allowed[0], allowed[1], equal_nan)
    if not close.all():
        raise AssertionError(_told(a, b, close, *allowed))


def _told(a: Any, b: Any, close: Any, *tolerances: float) -> str:
    with np.errstate(all="ignore"):
        sizes = np.where(close, 0, np.abs(a - b))
        shares = np.where(close, 0, sizes / np.abs(b))
    word = "close" if any(tolerances) else "equal"
    relative, absolute = (f" (up to {t} allowed)" if any(tolerances) else "" for t in tolerances)
    lines = [f"{'Tensor-likes' if a.ndim else 'Scalars'} are not {word}!", ""]
    if not a.ndim:
        lines.append(f"Expected {b.item()} but got {a.item()}.")
        lines += [f"Absolute difference: {sizes.item()}{absolute}", f"Relative difference: {shares.item()}{relative}"]
        return "\n".join(lines)
    count = int((~close).sum())
    lines.append(f"Mismatched elements: {count} / {a.size} ({100 * count / a.size:.1f}%)")
    for word, found, allowed in (("absolute", sizes, absolute), ("relative", shares, relative)):
        index = tuple(map(int, np.unravel_index(int(np.argmax(found)), found.shape)))
        lines.append(f"Greatest {word} difference: {found[index].item()} at index {index}{allowed}")
    return "\n".join(lines)
