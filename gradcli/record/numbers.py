"""The numbers of an array at a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_EXACT = 1_000  # numbers that are converted by their decimals: a million would take a second


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of an array: `whole`, or None where only its shape and dtype are known, or it is a `text`.

    >>> kept = Numbers.of(np.array([3.0, -4.0]))
    >>> kept == Numbers.of(np.array([3.0, -4.0])), kept == Numbers(None, (2,), "float64"), kept.is_finite, kept.is_zero
    (True, False, True, False)
    """

    whole: Array | None
    shape: tuple[int, ...]
    dtype: str
    text: str = ""
    nan: int = 0  # how many are nan, where that alone is known

    @classmethod
    def of(cls, a: Array) -> Numbers:
        """Return all numbers of an array, which nothing may change any more."""
        return cls(a, a.shape, a.dtype.name)

    @property
    def array(self) -> Array:
        """All numbers, which are known."""
        assert self.whole is not None
        return self.whole

    @property
    def is_finite(self) -> bool:
        """Whether no number is known that is not finite."""
        if self.whole is None or self.whole.dtype.kind not in "fc":
            return not self.nan
        return bool(np.isfinite(self.whole).all())

    @property
    def not_finite(self) -> str:
        """What there is that is not finite: "nan" before "inf"; "" where all numbers are finite."""
        return "" if self.is_finite else "nan" if self.whole is None or np.isnan(self.whole).any() else "inf"

    @property
    def is_zero(self) -> bool:
        """Whether there are numbers, all of them 0."""
        return self.whole is not None and bool(self.whole.size) and not self.whole.any()

    @property
    def norm(self) -> float | None:
        """The 2-norm of the finite numbers; None where no number is known."""
        if self.whole is None:
            return None
        a = np.abs(self.whole.astype(complex if self.whole.dtype.kind == "c" else float).reshape(-1))
        finite = a[np.isfinite(a)]
        largest = finite.max(initial=0)
        return float(largest * np.sqrt(np.sum((finite / largest) ** 2))) if largest else 0.0

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.text, self.nan

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers) or self._key() != other._key():
            return False
        if self.whole is None or other.whole is None:
            return self.whole is other.whole
        return bool(np.array_equal(self.whole, other.whole, equal_nan=self.whole.dtype.kind in "fc"))

    def __hash__(self) -> int:
        return hash(self._key())


def decimal(array: Array) -> Array:
    """Return float32 numbers as the decimals that they were typed as, in float64; many of them as they are.

    >>> decimal(np.array([0.1], np.float32))
    array([0.1])
    """
    if array.dtype == np.float32 and array.size <= _EXACT:
        return np.array([float(str(v)) for v in array.reshape(-1)]).reshape(array.shape)
    return array.astype(float)


def size_text(shape: tuple[int, ...]) -> str:
    """Return a shape in words.

    >>> size_text((2, 3)), size_text(())
    ('2×3', 'scalar')
    """
    return "×".join(map(str, shape)) or "scalar"
