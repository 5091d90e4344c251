"""Arrays of NumPy's, of any shape and any type of elements; and several of them by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.shapes import MAX_RANK

Array = np.ndarray[Any, Any]
Named = dict[str, Array]


def objects(elements: Sequence[object], shape: tuple[int, ...]) -> Array:
    """Return an array of that shape, whose elements NumPy is not to look into.

    >>> objects([{1, 2}, {3}], (2,))
    array([{1, 2}, {3}], dtype=object)
    """
    result = np.empty(len(elements), dtype=object)
    result[:] = elements
    return result.reshape(shape)


def json_array(value: Any) -> Array | None:
    """Return a number, or nested lists of numbers, out of JSON as float64; None for anything else.

    JSON has numbers that are not finite as strings.

    >>> json_array([[1, "NaN"], [2.5, 3]]), json_array([[1], [2, 3]]), json_array("3"), json_array([])
    (array([[1. , nan],
           [2.5, 3. ]]), None, None, None)
    """
    try:
        array = np.array(value, dtype=object)
        numbers = array.reshape(-1).tolist()
    except (ValueError, RuntimeError):  # ragged, or of more dimensions than NumPy has
        return None
    kinds = {type(n) for n in numbers}
    if not numbers or array.ndim > MAX_RANK or not kinds <= {int, float, str}:
        return None
    if str in kinds and any(isinstance(n, str) and n not in ("NaN", "Infinity", "-Infinity") for n in numbers):
        return None
    try:
        return array.astype(float)
    except OverflowError:  # an integer beyond float64
        return None
