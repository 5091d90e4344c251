"""Arrays of NumPy's, of any shape and any type of elements, several of them by name, and those of large constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
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


class Weights(Sequence[Any]):
    """An array as the value of a constant, in place of a tuple of numbers; equal to itself alone.

    Its elements are exact: integers, decimals, or the floats inf and nan.

    >>> weights = Weights(np.array([[0.5, 2]]))
    >>> len(weights), weights[0], weights[1], weights
    (2, Decimal('0.5'), 2, 1×2 numbers)
    """

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return self.array.size

    def __getitem__(self, k: Any) -> Any:
        flat = self.array.reshape(-1)[k]
        return tuple(map(exact, flat.tolist())) if isinstance(k, slice) else exact(flat.item())

    def __iter__(self) -> Iterator[Any]:
        return (exact(number) for number in self.array.flat)

    def __repr__(self) -> str:
        return f"{'×'.join(map(str, self.array.shape))} numbers"

    def __reduce__(self) -> tuple[Any, ...]:
        return Weights, (self.array,)


def exact(number: Any) -> int | Decimal | float:
    """Return a number of an array as the value of a constant.

    >>> exact(np.float32(0.1)), exact(True), exact(float("inf"))
    (Decimal('0.10000000149011612'), 1, inf)
    """
    number = float(number) if not isinstance(number, int | np.integer | np.bool_) else int(number)
    if isinstance(number, int) or number.is_integer():
        return Decimal("-0.0") if number == 0 and str(number)[0] == "-" else int(number)
    return Decimal(repr(number)) if np.isfinite(number) else number
