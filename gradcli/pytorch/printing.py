"""The text of tensors, with PyTorch's widths, precision and line breaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcli.pytorch.dtypes import default_dtype
from gradcli.pytorch.modes import Mode

Array = np.ndarray[Any, Any]
Tensor = Any  # the class is defined above


class Options:
    """The options of `torch.set_printoptions`."""

    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


def set_printoptions(
    precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None, profile: Any = None,
    sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how tensors are printed."""
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    usual = dict(zip(options, _PROFILES[profile], strict=True)) if profile is not None else {}
    for name, value in {**usual, **{n: v for n, v in options.items() if v is not None}}.items():
        setattr(Options, name, value)
    Options.sci_mode = sci_mode


class _Format:
    """The format of a tensor's numbers, all of one width."""

    def __init__(self, numbers: Array) -> None:
        real = numbers.dtype.kind == "f"
        # What is 0 or not finite does not count, and may stand out.
        result = numbers[np.isfinite(numbers) & (numbers != 0)].astype(float) if real else numbers.reshape(-1)
        self.spec, self.end = (".0f", ".") if real else ("", "")
        if real and result.size:
            least, most = np.abs(result).min(), np.abs(result).max()
            is_wide = bool(most / least > 1000.0 or most > 1.0e8 or least < 1.0e-4)
            scientific = is_wide if Options.sci_mode is None else Options.sci_mode
            if scientific or (result != np.ceil(result)).any():
                self.spec, self.end = f".{Options.precision}{'e' if scientific else 'f'}", ""
        self.width = max((len(self._text(v)) for v in result.tolist()), default=1)

    def _text(self, value: Any) -> str:
        return format(value, self.spec) + (self.end if math.isfinite(value) else "")

    def __call__(self, value: Any) -> str:
        return self._text(value).rjust(self.width)


def tensor_text(x: Tensor) -> str:
    """Return a tensor as PyTorch prints it."""
    numbers, called = x._a[..., 0], "Invalid"  # which is the step of a view that its numbers have left behind
    with suppress(RuntimeError):
        called = "" if (step := x.grad_fn) is None else step.name().rpartition("::")[2]
    suffixes = [f"size={tuple(numbers.shape)}"] if not numbers.size and numbers.ndim != 1 else []
    if x.dtype is not default_dtype() and (x.dtype.name not in ("int64", "bool") or not numbers.size):
        suffixes.append(f"dtype={x.dtype}")
    if called:
        suffixes.append(f"grad_fn=<{called}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    if x._tangent is not None and x._tangent[0] is Mode.dual:
        suffixes.append(f"tangent={x._tangent[1]}")
    indent = len("tensor(")
    text = _with_suffixes(f"tensor({numbers_text(numbers, indent) if numbers.size else '[]'}", suffixes, indent)
    return f"Parameter containing:\n{text}" if type(x).__name__ == "Parameter" else text


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Add what stands behind the numbers, on a new line where a line would be too long."""
    last = len(text) - text.rfind("\n") + 1
    result = text
    for suffix in suffixes:
        if last + len(suffix) + 2 > Options.linewidth:
            result += f",\n{' ' * indent}{suffix}"
            last = indent + len(suffix)
        else:
            result += f", {suffix}"
            last += len(suffix) + 2
    return result + ")"


def numbers_text(numbers: Array, indent: int) -> str:
    """Return the numbers, in brackets, lines broken and long arrays shortened."""
    summarised, shown = numbers.size > Options.threshold, numbers
    for axis, n in enumerate(numbers.shape if summarised else ()):
        shown = np.take(shown, _edge_indices(n), axis=axis)
    return _brackets(numbers, indent, summarised, _Format(shown))


def _edge_indices(n: int) -> Sequence[int]:
    """Return which elements of an axis are shown where not all are: those at its ends."""
    edge = Options.edgeitems
    return [*range(edge), *range(n - edge, n)] if n > 2 * edge else range(n)


def _brackets(numbers: Array, indent: int, summarised: bool, write: _Format) -> str:
    if not numbers.ndim:
        return write(numbers.item())
    n, edge = len(numbers), Options.edgeitems
    kept = _edge_indices(n) if summarised else range(n)
    gap = ["..."] if len(kept) < n else []
    if numbers.ndim == 1:
        values, width = numbers.tolist(), max(1, (Options.linewidth - indent) // (write.width + 2))
        texts = [write(values[i]) for i in kept]
        texts[edge:edge] = [f" {dots}" for dots in gap]
        rows = [", ".join(texts[i : i + width]) for i in range(0, len(texts), width)]
    else:
        rows = [_brackets(numbers[i], indent + 1, summarised, write) for i in kept]
        rows[edge:edge] = gap
    between = "," + "\n" * max(1, numbers.ndim - 1) + " " * (indent + 1)
    return f"[{between.join(rows)}]"
