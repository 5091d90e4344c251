"""`torch.testing`: whether tensors are close."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.tensor import Tensor

__all__ = ["assert_close"]
_TOLERANCES = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_dtype: bool = True,
    **_: Any,
) -> None:
    """Raise unless two tensors, or lists of them, are close.

    Errors: `AssertionError` with the number of elements that differ, and the largest differences.
    """
    if isinstance(actual, list | tuple):
        for a, b in zip(actual, expected, strict=True):
            assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=check_dtype)
        return
    if not isinstance(actual, Tensor):
        if not np.isclose(actual, expected, rtol or 1e-7, atol or 1e-7, equal_nan):
            raise AssertionError(f"Scalars are not close!\n\nExpected {expected} but got {actual}.")
        return
    if actual.shape != expected.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.")
    if check_dtype and actual.dtype is not expected.dtype:
        raise AssertionError(f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}.")
    relative, absolute = _TOLERANCES.get(actual.dtype.name, (0.0, 0.0))
    relative, absolute = relative if rtol is None else rtol, absolute if atol is None else atol
    a, b = actual._a[..., 0].astype(float), expected._a[..., 0].astype(float)
    close = np.isclose(a, b, relative, absolute, equal_nan)
    if not close.all():
        raise AssertionError(_told(a, b, close, relative, absolute))


def _told(a: Any, b: Any, close: Any, relative: float, absolute: float) -> str:
    if not a.ndim:
        size = abs(float(a) - float(b))
        share = size / abs(float(b)) if b else float("inf")
        return (
            f"Scalars are not close!\n\nExpected {float(b)} but got {float(a)}.\nAbsolute difference: {size} (up to "
            f"{absolute} allowed)\nRelative difference: {share} (up to {relative} allowed)"
        )
    sizes = np.where(close, 0, np.abs(a - b))
    shares = np.where(close, 0, np.abs(a - b) / np.abs(b))
    lines = ["Tensor-likes are not close!", ""]
    count = int((~close).sum())
    lines.append(f"Mismatched elements: {count} / {a.size} ({100 * count / a.size:.1f}%)")
    for word, found, allowed in (("absolute", sizes, absolute), ("relative", shares, relative)):
        at = np.unravel_index(int(np.argmax(found)), found.shape)
        index = tuple(int(i) for i in at)
        lines.append(f"Greatest {word} difference: {found[at]} at index {index} (up to {allowed} allowed)")
    return "\n".join(lines)
