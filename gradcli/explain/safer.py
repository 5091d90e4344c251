"""A stable formula in place of an operation that is not finite at a point of its domain, in one line."""

from __future__ import annotations

# By operation; {} is its input.
_SAFER = {
    "sqrt": "`sqrt({} + eps)` with a small eps such as 1e-12",
    "rsqrt": "`rsqrt({} + eps)` with a small eps such as 1e-12",
    "norm": "`sqrt(sum({}**2) + eps)` with a small eps such as 1e-12",
    "log": "`log(clamp({}, min=eps))` with a small eps such as 1e-12, or `log1p` for log(1 + …)",
    "log1p": "`log1p(clamp({}, min=eps - 1))` with a small eps such as 1e-12",
    "log2": "`log2(clamp({}, min=eps))` with a small eps such as 1e-12",
    "log10": "`log10(clamp({}, min=eps))` with a small eps such as 1e-12",
    "div": "keep the divisor away from 0: add a small eps, or use `clamp(…, min=eps)`",
    "pow": "`clamp({}, min=eps)` before the power, with a small eps such as 1e-12",
    "arcsin": "`clamp({}, -1 + eps, 1 - eps)` before it, with a small eps such as 1e-6",
    "arccos": "`clamp({}, -1 + eps, 1 - eps)` before it, with a small eps such as 1e-6",
    "exp": "`clamp({}, max=80)` before it; `logsumexp` or `log_softmax` for sums of exponentials",
}
_GENERAL = "keep its input away from that point, with `clamp` or a small eps"


def safer(op: str, name: str, chosen: bool = False) -> str:
    """Return a fix for an operation on an input of that name; `chosen` is whether a `where` follows it.

    >>> safer("sqrt", "x"), safer("sqrt", "x", chosen=True)[:31]
    ('`sqrt(x + eps)` with a small eps such as 1e-12', '`where` on the input of `sqrt`,')
    """
    if chosen:
        safe = f"`where` on the input of `{op}`, as in `{op}(where({name} > 0, {name}, 1))`"
        return f"{safe}: a `where` on the result is too late"
    return _SAFER.get(op, _GENERAL).format(name)
