"""The numbers of an array at a moment: whole, or summarised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_FIRST = 8  # entries that a summary keeps


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of an array: `whole`, or None where only their summary is kept.

    `norm`, `least` and `greatest` are those of the finite numbers; `nan` and `inf` count the others.

    >>> kept = Numbers.of(np.array([3.0, -4.0]))
    >>> kept == Numbers.of(np.array([3.0, -4.0])), kept.summary().norm, kept.summary() == kept
    (True, 5.0, False)
    """

    whole: Array | None
    shape: tuple[int, ...]
    dtype: str
    norm: float | None = None
    least: float | None = None
    greatest: float | None = None
    nan: int = 0
    inf: int = 0
    first: tuple[Any, ...] = ()

    @classmethod
    def of(cls, a: Array) -> Numbers:
        """Return all numbers of an array, which nothing may change any more."""
        return cls(a, a.shape, a.dtype.name)

    def summary(self) -> Numbers:
        """Return the same numbers without the array."""
        if self.whole is None:
            return self
        first = tuple(self.whole.reshape(-1)[:_FIRST].tolist())
        if self.whole.dtype.kind not in "fiub" or not self.whole.size:
            return Numbers(None, self.shape, self.dtype, first=first)
        a = self.whole.astype(float)
        finite = a[np.isfinite(a)]
        nan, some = int(np.isnan(a).sum()), bool(finite.size)
        return Numbers(
            None,
            self.shape,
            self.dtype,
            float(np.sqrt(np.vdot(finite, finite))),
            float(finite.min()) if some else None,
            float(finite.max()) if some else None,
            nan,
            a.size - finite.size - nan,
            first,
        )

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.norm, self.least, self.greatest, self.nan, self.inf, repr(self.first)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers) or self._key() != other._key():
            return False
        if self.whole is None or other.whole is None:
            return self.whole is other.whole
        return bool(np.array_equal(self.whole, other.whole, equal_nan=self.whole.dtype.kind in "fc"))

    def __hash__(self) -> int:
        return hash(self._key())
