"""`torch.testing`: whether tensors are close."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.tensor import Number, Tensor, of_array

__all__ = ["assert_close"]
_TOLERANCES = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_dtype: bool = True, check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None, **_: bool,
) -> None:  # fmt: skip
    """Raise unless two tensors, numbers, or lists and dicts of them, are close; `rtol` and `atol` say how close.

    Errors: `AssertionError` with the number of elements that differ, and the largest differences, or with `msg`.
    """
    pairs = list(_pairs(actual, expected, allow_subclasses))
    same = ("shape", *["dtype"] * check_dtype, *["stride()"] * check_stride)
    for a, b, where in pairs:
        is_one = (rtol is None) != (atol is None) and not isinstance(a, bool)
        raise_if(is_one, "one tolerance", "rtol" if rtol is None else "atol", where)
        try:
            _compare(a, b, same, None if rtol is None else (rtol, atol), equal_nan)
        except AssertionError as error:
            text = f"{error}{where}"
            raise AssertionError((msg(text) if callable(msg) else msg) or text) from None


def _pairs(a: Any, b: Any, allow_subclasses: bool, *path: Any) -> Iterator[tuple[Any, Any, str]]:
    """Find what is to be compared in lists and dicts, and where it stands."""
    where = f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in path)}" if path else ""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        raise_if(len(a) != len(b), "lengths that differ", len(a), len(b), where)
        a, b = dict(enumerate(a)), dict(enumerate(b))
    if isinstance(a, dict) and isinstance(b, dict):
        absent, more = ([k for k in x if k not in y] for x, y in ((b, a), (a, b)))
        raise_if(absent or more, "keys that differ", absent, more, where)
        for key in a:
            yield from _pairs(a[key], b[key], allow_subclasses, *path, key)
    elif a is not None or b is not None:
        raise_if(not _is_pair(a, b, allow_subclasses), "no such pair", type(a), type(b), where)
        yield a, b, where


def _is_pair(a: Any, b: Any, allow_subclasses: bool) -> bool:
    """Return whether two things can be compared: two numbers, two tensors, or two arrays."""
    if isinstance(a, Number) and isinstance(b, Number):
        return True
    is_related = allow_subclasses and (isinstance(a, type(b)) or isinstance(b, type(a)))
    return isinstance(a, Tensor | np.ndarray) and (type(a) is type(b) or is_related)


def _compare(a: Any, b: Any, same: Sequence[str], near: Any, equal_nan: bool) -> None:
    """Compare two numbers, or two arrays."""
    kinds = type(a), type(b)
    if isinstance(a, Number):
        raise_if("dtype" in same and kinds[0] is not kinds[1], "types that differ", *kinds)
        raise_if(bool in kinds and a != b, "booleans that differ", a, b)
        same = ()
    x, y = (v if isinstance(v, Tensor) else of_array(np.asarray(v)) for v in (a, b))
    for name in same:
        mine, other = (v.stride() if name == "stride()" else getattr(v, name) for v in (x, y))
        raise_if(mine != other, "attributes that differ", name, mine, other)
    usual = [_TOLERANCES.get(v.dtype.name, (0.0, 0.0)) for v in (x, y)]
    rtol, atol = near or map(max, *usual)
    one, two = (v._a[..., 0] if v.is_floating_point() else v._a[..., 0].astype(int) for v in (x, y))
    close = np.isclose(one, two, rtol, atol, equal_nan)
    if not close.all():
        raise AssertionError(_mismatch(one, two, close, rtol, atol))


def _mismatch(a: Any, b: Any, close: Any, *tolerances: float) -> str:
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
    for word, result, allowed in (("absolute", sizes, absolute), ("relative", shares, relative)):
        index = tuple(map(int, np.unravel_index(int(np.argmax(result)), result.shape)))
        lines.append(f"Greatest {word} difference: {result[index].item()} at index {index}{allowed}")
    return "\n".join(lines)
