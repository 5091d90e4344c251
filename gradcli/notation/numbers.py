"""Numbers and arrays of them as text.  No number is cut short: float64 is written with all the digits it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.graph.array import Array


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same float64.

    >>> number_text(26.0), number_text(0.1), number_text(float("nan")), number_text(1e22), number_text(-0.0)
    ('26', '0.1', 'nan', '1e+22', '-0.0')
    """
    text = repr(float(value))
    whole = math.isfinite(value) and value == int(value) and abs(value) < 1e16
    return str(int(value)) if whole and text != "-0.0" else text


def array_text(array: Array, element: Callable[[Any], str] = number_text) -> str:
    """Return an array as a nested list.

    >>> import numpy as np
    >>> array_text(np.array([[1.0, 2.5], [3.0, 4.0]]))
    '[[1, 2.5], [3, 4]]'
    """

    def text(nested: Any) -> str:
        return f"[{', '.join(map(text, nested))}]" if isinstance(nested, list) else element(nested)

    return text(array.tolist())


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as sizes: 2×3, and `5 numbers` of a vector.

    >>> shape_text((2, 3)), shape_text((5,))
    ('2×3', '5 numbers')
    """
    return "×".join(map(str, shape)) if len(shape) > 1 else f"{shape[0]} numbers"
