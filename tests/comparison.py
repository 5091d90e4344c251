"""Compares what two programs print: every character outside floating-point numbers, and those to their last digits.

The last digits of PyTorch's float32 numbers depend on the processor, its vendor and the number of threads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

TOLERANCE = 2e-6  # of the largest number of the same printed array
_FLOAT = re.compile(r"-?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)")
_NUMBER = r"-?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|inf|nan)"
_ARRAY = re.compile(rf"{_NUMBER}(?:[\s\]]*,[\s\[]*(?:\.\.\.,[\s\[]*)?{_NUMBER})*")  # numbers with commas between them


def difference(printed: str, expected: str) -> str:
    """Return the first difference that is not one of last digits, with its line, or nothing.

    >>> difference("tensor([1.0000, 2.0001])", "tensor([1.0000, 2.0000])")
    ''
    >>> difference("loss 0.30000001192092896", "loss 0.30000004172325134")
    ''
    >>> difference("loss 0.5", "loss 0.6")
    "0.5, expected 0.6: line 1: 'loss 0.5', expected 'loss 0.6'"
    >>> difference("x 1", "x 2")
    "text: line 1: 'x 1', expected 'x 2'"
    """
    mine, theirs = list(_numbers(printed)), list(_numbers(expected))
    if _FLOAT.sub("#", printed) != _FLOAT.sub("#", expected):
        lines = zip([*printed.split("\n"), ""], [*expected.split("\n"), ""], strict=False)
        where = next((i for i, (a, b) in enumerate(lines) if _FLOAT.sub("#", a) != _FLOAT.sub("#", b)), 0)
        return f"text: {_line(where, printed, expected)}"
    for (at, number, _), (_, other, size) in zip(mine, theirs, strict=True):
        if not _close(number, other, size):
            return f"{number}, expected {other}: {_line(printed.count(chr(10), 0, at), printed, expected)}"
    return ""


def _line(k: int, printed: str, expected: str) -> str:
    mine, theirs = (([*text.split("\n"), *[""] * (k + 1)])[k] for text in (printed, expected))
    return f"line {k + 1}: {mine!r}, expected {theirs!r}"


def _numbers(text: str) -> Iterator[tuple[int, str, float]]:
    """Return the position of each number, its text, and the size of the largest of its printed array."""
    for array in _ARRAY.finditer(text):
        numbers = list(_FLOAT.finditer(text, array.start(), array.end()))
        size = max((abs(float(m[0])) for m in numbers), default=0.0)
        yield from ((m.start(), m[0], size) for m in numbers)


def _close(number: str, other: str, size: float) -> bool:
    if number == other:
        return True
    a, b = float(number), float(other)
    return math.isfinite(a) and abs(a - b) <= max(TOLERANCE * size, 1.01 * _unit(other))


def _unit(number: str) -> float:
    """Return one unit of the last digit of a number that is printed with a fixed number of digits, else 0."""
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if 4 <= decimals <= 6 else 0.0


def titled(path: Path) -> dict[str, str]:
    """Return the texts of a file that lines `# --- title` part, by their titles."""
    parts = re.split(r"^# --- (.+)\n", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
    titles = parts[::2]
    assert len({*titles}) == len(titles)
    return dict(zip(titles, parts[1::2], strict=True))
