"""How tensors are printed: PyTorch's widths, precision and line breaks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.pytorch.dtypes import default_dtype
from gradcli.pytorch.record import Step

if TYPE_CHECKING:
    from gradcli.pytorch.tensor import Array, Tensor


class Options:
    """What `torch.set_printoptions` sets."""

    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


def set_printoptions(
    precision: int | None = None,
    threshold: Any = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed."""
    if profile is not None:
        Options.precision, Options.threshold, Options.edgeitems, Options.linewidth = _PROFILES[profile]  # type: ignore[assignment]
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems)):
        if value is not None:
            setattr(Options, name, value)
    Options.linewidth = linewidth if linewidth is not None else Options.linewidth
    Options.sci_mode = sci_mode


class _Format:
    """How the numbers of a tensor are written, all to one width."""

    def __init__(self, numbers: Array) -> None:
        self.real = numbers.dtype.kind == "f"
        self.whole, self.scientific = True, False
        if self.real:
            found = numbers[np.isfinite(numbers) & (numbers != 0)].astype(float)
            if found.size:
                least, most = np.abs(found).min(), np.abs(found).max()
                self.whole = bool((found == np.ceil(found)).all())
                self.scientific = bool(most / least > 1000.0 or most > 1.0e8 or least < 1.0e-4)
                if Options.sci_mode is not None:
                    self.scientific = Options.sci_mode
        else:
            found = numbers.reshape(-1)
        # What is 0 or not finite does not count, and may stand out.
        self.width = max((len(self._text(v)) for v in found.tolist()), default=1)

    def _text(self, value: Any) -> str:
        if not self.real:
            return str(value)
        if self.scientific:
            return f"{value:.{Options.precision}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else str(value)
        return f"{value:.{Options.precision}f}"

    def __call__(self, value: Any) -> str:
        return self._text(value).rjust(self.width)


def tensor_text(x: Tensor) -> str:
    """Return a tensor as PyTorch prints it."""
    prefix = "tensor("
    parameter = type(x).__name__ == "Parameter"
    numbers = x._a[..., 0]
    suffixes = []
    if not numbers.size:
        if numbers.ndim != 1:
            suffixes.append(f"size={tuple(numbers.shape)}")
        if x.dtype is not default_dtype():
            suffixes.append(f"dtype={x.dtype}")
        body = "[]"
    else:
        if x.dtype not in (default_dtype(),) and x.dtype.name not in ("int64", "bool"):
            suffixes.append(f"dtype={x.dtype}")
        body = numbers_text(numbers, len(prefix))
    step = x._step
    if step is not None:
        suffixes.append(f"grad_fn=<{_step_name(step)}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    text = _with_suffixes(prefix + body, suffixes, len(prefix))
    return f"Parameter containing:\n{text}" if parameter else text


def _step_name(step: Step) -> str:
    return step.name().rpartition("::")[2]


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Add what stands behind the numbers, on a new line where a line would be too long."""
    last = len(text) - text.rfind("\n") + 1
    found = text
    for suffix in suffixes:
        if last + len(suffix) + 2 > Options.linewidth:
            found += f",\n{' ' * indent}{suffix}"
            last = indent + len(suffix)
        else:
            found += f", {suffix}"
            last += len(suffix) + 2
    return found + ")"


def numbers_text(numbers: Array, indent: int) -> str:
    """Return the numbers, in brackets, lines broken and long arrays shortened."""
    summarised = numbers.size > Options.threshold
    shown = _edges(numbers) if summarised else numbers
    return _nested(numbers, indent, summarised, _Format(shown))


def _edges(numbers: Array) -> Array:
    """Return the elements at the ends of each axis, which are all that is shown."""
    edge = Options.edgeitems
    for axis, n in enumerate(numbers.shape):
        if n > 2 * edge:
            numbers = np.take(numbers, [*range(edge), *range(n - edge, n)], axis=axis)
    return numbers


def _nested(numbers: Array, indent: int, summarised: bool, write: _Format) -> str:
    if not numbers.ndim:
        return write(numbers.item())
    n, edge = len(numbers), Options.edgeitems
    cut = summarised and n > 2 * edge
    if numbers.ndim == 1:
        return _vector(numbers, indent, cut, write)
    kept = [*range(edge), *range(n - edge, n)] if cut else range(n)
    parts = [_nested(numbers[i], indent + 1, summarised, write) for i in kept]
    if cut:
        parts.insert(edge, "...")
    gap = "," + "\n" * (numbers.ndim - 1) + " " * (indent + 1)
    return f"[{gap.join(parts)}]"


def _vector(numbers: Array, indent: int, cut: bool, write: _Format) -> str:
    edge = Options.edgeitems
    width = max(1, (Options.linewidth - indent) // (write.width + 2))
    values = numbers.tolist()
    if cut:
        texts = [write(v) for v in values[:edge]] + [" ..."] + [write(v) for v in values[-edge:]]
    else:
        texts = [write(v) for v in values]
    lines = [", ".join(texts[i : i + width]) for i in range(0, len(texts), width)]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"
