"""The numbers of an array at a moment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

FIRST = 3  # numbers of an array in its summary
_AT_ONCE = 2**18  # numbers of which the norm is computed in float64 at once
_EXACT = 1_000  # numbers that are converted by their decimals: a million would take a second


class Summary(NamedTuple):
    """What is known of an array: the 2-norm of its finite numbers, the least and the greatest one, and the first ones.

    `nan` and `inf` are how many numbers are not finite.  What is not known is None, as the least of complex numbers is.
    """

    norm: float | None = None
    least: float | None = None
    greatest: float | None = None
    nan: int = 0
    inf: int = 0
    first: tuple[complex, ...] = ()

    @classmethod
    def of(cls, a: Array) -> Summary:
        """Return the summary of an array.

        >>> Summary.of(np.array([3.0, -4.0, np.nan]))
        Summary(norm=5.0, least=nan, greatest=nan, nan=1, inf=0, first=(3.0, -4.0, nan))
        """
        has_order, can_be_nan = a.size and a.dtype.kind in "fiub", a.dtype.kind in "fc"
        return cls(
            _norm(a),
            a.min().item() if has_order else None,
            a.max().item() if has_order else None,
            int(np.isnan(a).sum()) if can_be_nan else 0,
            int(np.isinf(a).sum()) if can_be_nan else 0,
            tuple(a.reshape(-1)[:FIRST].tolist()),
        )


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of an array: `whole`, or None where only its shape, its dtype and a summary are known, or a `text`.

    >>> kept = Numbers.of(np.array([3.0, -4.0]))
    >>> kept == Numbers.of(np.array([3.0, -4.0])), kept == Numbers(None, (2,), "float64"), kept.is_finite, kept.is_zero
    (True, False, True, False)
    """

    whole: Array | None
    shape: tuple[int, ...]
    dtype: str
    text: str = ""
    known: Summary | None = None  # where they are not whole

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
    def is_known(self) -> bool:
        """Whether any number is known."""
        return self.whole is not None or self.known is not None

    @property
    def summary(self) -> Summary:
        """What is known of the numbers."""
        return self.known or (Summary() if self.whole is None else Summary.of(self.whole))

    @property
    def is_finite(self) -> bool:
        """Whether no number is known that is not finite."""
        if self.whole is not None:
            return self.whole.dtype.kind not in "fc" or bool(np.isfinite(self.whole).all())
        return self.known is None or not (self.known.nan or self.known.inf)

    @property
    def not_finite(self) -> str:
        """What there is that is not finite: "nan" before "inf"; "" where all numbers are finite."""
        return "" if self.is_finite else "nan" if self.summary.nan else "inf"

    @property
    def is_zero(self) -> bool:
        """Whether there are numbers, all of them 0."""
        if self.whole is not None:
            return bool(self.whole.size) and not self.whole.any()
        return self.is_finite and self.norm == 0

    @property
    def norm(self) -> float | None:
        """The 2-norm of the finite numbers; None where no number is known."""
        return self.summary.norm if self.whole is None else _norm(self.whole)

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.text, self.known

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers) or self._key() != other._key():
            return False
        if self.whole is None or other.whole is None:
            return self.whole is other.whole
        return bool(np.array_equal(self.whole, other.whole, equal_nan=self.whole.dtype.kind in "fc"))

    def __hash__(self) -> int:
        return hash(self._key())


def _norm(array: Array) -> float:
    flat = array.reshape(-1)
    return math.hypot(*(_norm_of_few(flat[k : k + _AT_ONCE]) for k in range(0, flat.size, _AT_ONCE)))


def _norm_of_few(array: Array) -> float:
    a = np.abs(array.astype(complex if array.dtype.kind == "c" else float))
    finite = a[np.isfinite(a)]
    largest = finite.max(initial=0)
    return float(largest * np.sqrt(np.sum((finite / largest) ** 2))) if largest else 0.0


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
