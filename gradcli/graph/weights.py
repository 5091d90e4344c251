"""The numbers of a large constant: an array that is not copied, such as the weights of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from gradcli.graph.array import Array


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
