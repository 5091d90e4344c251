"""Arrays of NumPy's, of any shape and any type of elements; and several of them by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
