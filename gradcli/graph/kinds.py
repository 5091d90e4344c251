"""Kinds of inputs, such as symmetric, positive or one-hot ones, as `input P symmetric = …` declares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gradcli.graph.array import Array, Named
from gradcli.graph.shapes import Shape

_CLOSE = 1e-9  # how far, relative to the largest element, an input may be off what it is declared to be


@dataclass(frozen=True)
class Kind:
    """A kind of inputs: `fits` tests a shape, `holds` tests values, and `nearest` returns near values of the kind.

    Values have the points along the last axis.
    """

    what: str
    fits: Callable[[Shape], bool]
    holds: Callable[[Array], Array]
    nearest: Callable[[Array], Array]


def _is_square(shape: Shape) -> bool:
    return len(shape) == 2 and shape[0] == shape[1]


def _is_matrix(x: Array) -> bool:
    return x.ndim == len(("row", "column", "point"))


def _is_near(x: Array, y: Array) -> Array:
    """Return the mask of the points at which two stacks of matrices are finite, and equal up to rounding."""
    size = np.maximum(np.abs(x), np.abs(y)).max(axis=(0, 1), initial=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(size) & (np.abs(x - y).max(axis=(0, 1), initial=0) <= _CLOSE * size))


def _is_symmetric(x: Array) -> Array:
    return _is_near(x, x.swapaxes(0, 1))


def _mirrored(x: Array) -> Array:
    """Return matrices with the elements above their diagonals below them, too."""
    upper = np.triu(np.ones(x.shape[:2], dtype=bool))[..., None]
    return np.where(upper, x, x.swapaxes(0, 1))


def _is_positive(x: Array) -> Array:
    if not _is_matrix(x):
        return np.asarray((x > 0).reshape(-1, x.shape[-1]).all(axis=0))
    finite = np.isfinite(x).all(axis=(0, 1))
    values = np.linalg.eigvalsh(np.moveaxis(np.where(finite, x, 0), -1, 0))
    return np.asarray(_is_symmetric(x) & finite & (values > 0).all(axis=-1))


def _positive(x: Array) -> Array:
    """Return the sizes of numbers; of a matrix, a symmetric one whose diagonal is larger than the rest of each row."""
    if not _is_matrix(x):
        return np.abs(x)
    mirrored = _mirrored(x)
    diagonal = np.eye(len(x), dtype=bool)[..., None]
    rest = np.where(diagonal, 0, np.abs(mirrored)).sum(axis=1, keepdims=True)
    return np.where(diagonal, np.abs(mirrored) + rest, mirrored)


def _is_orthogonal(x: Array) -> Array:
    return _is_near(np.einsum("kip,kjp->ijp", x, x), np.broadcast_to(np.eye(len(x))[..., None], x.shape))


def _orthogonal(x: Array) -> Array:
    """Return the orthogonal factors of matrices."""
    finite = np.isfinite(x).all(axis=(0, 1))
    return np.moveaxis(np.linalg.qr(np.moveaxis(np.where(finite, x, 0), -1, 0))[0], 0, -1)


def _has_rows(shape: Shape) -> bool:
    return len(shape) > 0 and shape[-1] > 0


def _is_simplex(x: Array) -> Array:
    off = np.abs(x.sum(axis=-2) - 1)
    return np.asarray((x >= 0).all(axis=tuple(range(x.ndim - 1))) & (off <= _CLOSE).all(axis=tuple(range(x.ndim - 2))))


def _simplex(x: Array) -> Array:
    """Return sizes, divided by their sum along each row: numbers of few digits, and 0 only where there was a 0."""
    count = x.shape[-2]
    digits = 2 + int(2 * np.log10(count))
    sizes = np.where(np.isfinite(x), np.abs(x), 1)
    sizes = np.where((sizes == 0).all(axis=-2, keepdims=True), 1, sizes)
    sizes = sizes / sizes.max(axis=-2, keepdims=True)  # whose sum does not overflow
    shares = np.maximum(np.round(sizes / sizes.sum(axis=-2, keepdims=True), digits), 10.0**-digits)
    shares = np.where(sizes == 0, 0, shares)
    largest = np.arange(count)[:, None] == shares.argmax(axis=-2)[..., None, :]
    rest = 1 - np.where(largest, 0, shares).sum(axis=-2, keepdims=True)
    return np.where(largest, np.round(rest, digits), shares)


def _is_onehot(x: Array) -> Array:
    return np.asarray(_is_simplex(x) & ((x == 0) | (x == 1)).all(axis=tuple(range(x.ndim - 1))))


def _onehot(x: Array) -> Array:
    """Return a 1 in the place of the largest number of each row, and 0 elsewhere."""
    return np.asarray(np.arange(x.shape[-2])[:, None] == x.argmax(axis=-2)[..., None, :], dtype=float)


KINDS: Mapping[str, Kind] = {
    "symmetric": Kind("a square matrix that equals its transpose", _is_square, _is_symmetric, _mirrored),
    "positive": Kind(
        "a number or a vector above 0, or a symmetric matrix whose eigenvalues are above 0",
        lambda shape: len(shape) < 2 or _is_square(shape),
        _is_positive,
        _positive,
    ),
    "orthogonal": Kind("a square matrix Q with Q.T @ Q = 1", _is_square, _is_orthogonal, _orthogonal),
    "onehot": Kind("an array with one 1 in each row, and 0 elsewhere", _has_rows, _is_onehot, _onehot),
    "simplex": Kind(
        "an array without negative elements, each row of which sums to 1", _has_rows, _is_simplex, _simplex
    ),
}


def is_symmetric_matrix(kind: str | None, shape: Shape) -> bool:
    """Return whether an input of a kind is a symmetric matrix.

    >>> is_symmetric_matrix("positive", (2, 2)), is_symmetric_matrix("positive", (2,))
    (True, False)
    >>> is_symmetric_matrix("orthogonal", (2, 2))
    False
    """
    return kind in ("symmetric", "positive") and _is_square(shape)


def is_of_kind(kind: str, value: Array) -> bool:
    """Return whether a value is of a kind.

    >>> is_of_kind("symmetric", np.array([[2.0, 1.0], [1.0, 3.0]])), is_of_kind("positive", np.array(-1.0))
    (True, False)
    >>> is_of_kind("simplex", np.array([0.25, 0.75])), is_of_kind("onehot", np.array([[0.0, 1.0], [1.0, 1.0]]))
    (True, False)
    """
    return KINDS[kind].fits(value.shape) and bool(KINDS[kind].holds(value[..., None])[0])


def holds(kinds: Mapping[str, str], points: Named) -> Array:
    """Return the mask of the points, along the last axis, at which all inputs have their declared kinds."""
    count = next(iter(points.values())).shape[-1]
    masks = [KINDS[k].holds(points[n]) for n, k in kinds.items() if n in points]
    return np.asarray(np.all(masks, axis=0)) if masks else np.ones(count, dtype=bool)


def of_kinds(kinds: Mapping[str, str], points: Named) -> Named:
    """Return points with values near theirs that are of the kinds that the inputs are declared to be."""
    return {n: KINDS[kinds[n]].nearest(x) if n in kinds else x for n, x in points.items()}


def one_kind(words: Sequence[str]) -> str | None:
    """Return the kind that some words mean together: a symmetric positive matrix is a positive one; None for others.

    >>> one_kind(["symmetric", "positive"]), one_kind(["orthogonal", "positive"])
    ('positive', None)
    """
    kinds = set(words)
    if "positive" in kinds:
        kinds.discard("symmetric")
    return kinds.pop() if len(kinds) == 1 else None
