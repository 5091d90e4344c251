"""Linear algebra on arrays whose last axis counts the points: a singular matrix gives nan, not an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

from gradcli.engine.functions import into
from gradcli.engine.products import product_of_others
from gradcli.graph.array import Array
from gradcli.graph.einsum import parts

POINTS = 51  # the label of the points' axis in `numpy.einsum`: the last one that it has
_FAR = 2.0**250  # four such factors are a normal number


def einsum(subscripts: str, a: Array, b: Array, out: Array | None = None) -> Array:
    """Return a contraction at all points: by products of matrices where a factor is the same at all of them.

    >>> einsum("ij,j->i", np.ones((2, 3, 1)), np.ones((3, 1)))
    array([[3.],
           [3.]])
    """
    varying = [x.shape[-1] > 1 for x in (a, b)]
    terms = zip(numbered(parts(subscripts)), (*varying, any(varying)), strict=True)
    labels = [[*term, *[POINTS] * many] for term, many in terms]
    a, b = (x if many else x[..., 0] for x, many in zip((a, b), varying, strict=True))
    by_matrices = not all(varying) and object not in (a.dtype, b.dtype)
    total = np.einsum(a, labels[0], b, labels[1], labels[2], optimize=by_matrices)
    return into(out, total if any(varying) else np.asarray(total)[..., None])


def numbered(axes: Sequence[Sequence[object]]) -> Iterator[list[int]]:
    """Yield the labels of the axes of factors and result as numbers, which `numpy.einsum` takes.

    >>> list(numbered(("ij", "j", "i")))
    [[0, 1], [1], [0]]
    """
    numbers = {label: i for i, label in enumerate(dict.fromkeys(chain(*axes)))}
    return ([numbers[label] for label in labels] for labels in axes)


def det(x: Array, out: Array | None = None) -> Array:
    """Return the determinants of the matrices along the two axes before the last one.

    >>> det(np.array([[1.0, 2.0], [3.0, 4.0]])[..., None])
    array([-2.])
    """
    return into(out, _stacked(partial(_exact, _written_det, np.linalg.det), x))


def inv(x: Array, out: Array | None = None) -> Array:
    """Return the inverses of matrices.

    >>> inv(np.array([[4.0, 0.0], [0.0, 0.0]])[..., None])[..., 0]
    array([[nan, nan],
           [nan, nan]])
    """
    return into(out, _stacked(partial(_exact, _written_inv, partial(_each, np.linalg.inv)), x))


def solve(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return the solutions of the systems `a @ x = b`."""
    return into(out, _stacked(partial(_exact, _written_solve, partial(_each, np.linalg.solve)), a, b))


def cofactors(x: Array, out: Array | None = None) -> Array:
    """Return the derivatives of the determinants by each element.

    Those of a diagonal matrix are products of its other elements, and orthogonal factors transform them.  So they are
    found from the singular values, for singular matrices too.  Source: N. Higham, "What Is the Adjugate of a Matrix?"
    (2020).

    >>> cofactors(np.diag([2.0, 3.0, 5.0, 0.0])[..., None]).diagonal()[0].round(12)
    array([ 0.,  0.,  0., 30.])
    """
    return into(out, _stacked(partial(_each, _cofactors), x))


def _cofactors(x: Array) -> Array:
    """Return det(x)·x⁻ᵀ by the singular values, also for a singular x: det(u)·det(v)·u·diag(Π of the others)·v."""
    u, s, v = np.linalg.svd(x)
    signs = np.sign(np.linalg.det(u) * np.linalg.det(v))
    weights = (signs * product_of_others((0,), s.T)).T
    return np.asarray(u * weights[:, None, :] @ v)


def eigvalsh(x: Array, out: Array | None = None) -> Array:
    """Return the eigenvalues of the symmetric parts of matrices, in ascending order.

    >>> eigvalsh(np.array([[0.0, 1.0], [1.0, 0.0]])[..., None])[..., 0]
    array([-1.,  1.])
    """
    return into(out, _stacked(partial(_each, lambda m: np.linalg.eigvalsh(symmetric(m))), x))


def eigvecsh(x: Array, out: Array | None = None) -> Array:
    """Return the eigenvectors of the symmetric parts of matrices, in columns, with LAPACK's signs."""
    return into(out, _stacked(partial(_each, lambda m: np.linalg.eigh(symmetric(m))[1]), x))


def symmetric(x: Array) -> Array:
    """Return the symmetric parts of the matrices along the last two axes."""
    return (x + x.swapaxes(-1, -2)) / 2


def svdvals(x: Array, out: Array | None = None) -> Array:
    """Return the singular values of matrices, in descending order.

    >>> svdvals(np.array([[0.0, 1.0], [-2.0, 0.0]])[..., None])[..., 0]
    array([2., 1.])
    """
    return into(out, _stacked(partial(_each, np.linalg.svdvals), x))


def svd_u(full: bool, x: Array, out: Array | None = None) -> Array:
    """Return the left singular vectors of matrices, in columns, with LAPACK's signs."""
    return into(out, _stacked(partial(_each, lambda m: np.linalg.svd(m, full)[0]), x))


def svd_vh(full: bool, x: Array, out: Array | None = None) -> Array:
    """Return the right singular vectors of matrices, in rows, with LAPACK's signs."""
    return into(out, _stacked(partial(_each, lambda m: np.linalg.svd(m, full)[2]), x))


# Small matrices: the textbook's formulas are exact for small integers, and elimination is not.


def _exact(written: Callable[..., Array | None], general: Callable[..., Array], *stacks: Array) -> Array:
    """Return the formula `written` of small matrices, and `general` where there is none or a product might overflow.

    This is decided for each matrix alone, so that a point has the same numbers among any others.
    """
    result = written(*stacks)
    if result is None:
        return general(*stacks)
    sizes = map(np.abs, stacks)
    tame = np.all([((s == 0) | ((s > 1 / _FAR) & (s < _FAR))).all(axis=(1, 2)) for s in sizes], axis=0)
    if not tame.all():
        result[~tame] = general(*(x[~tame] for x in stacks))
    return result


def _written_det(x: Array) -> Array | None:
    if x.shape[-1] == 2:
        return _det_of_two(x)
    if x.shape[-1] == 3:
        products = [(x[:, 1, i - 2] * x[:, 2, i - 1] - x[:, 1, i - 1] * x[:, 2, i - 2]) for i in range(3)]
        return np.asarray(x[:, 0, 0] * products[0] + x[:, 0, 1] * products[1] + x[:, 0, 2] * products[2])
    return None


def _det_of_two(x: Array) -> Array:
    return np.asarray(x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0])


def _written_inv(x: Array) -> Array | None:
    if x.shape[-1] != 2:
        return None
    adjugates = np.stack([x[:, 1, 1], -x[:, 0, 1], -x[:, 1, 0], x[:, 0, 0]], axis=-1).reshape(x.shape)
    return _over(adjugates, _det_of_two(x))


def _written_solve(a: Array, b: Array) -> Array | None:
    # Cramer's rule, which is as good as elimination for two equations: N. Higham, "Accuracy and Stability of Numerical
    # Algorithms" (SIAM, 2002), section 1.10.1.
    if a.shape[-1] != 2:
        return None
    first = b[:, 0] * a[:, 1, 1, None] - b[:, 1] * a[:, 0, 1, None]
    second = b[:, 1] * a[:, 0, 0, None] - b[:, 0] * a[:, 1, 0, None]
    return _over(np.stack([first, second], axis=1), _det_of_two(a))


def _over(numerators: Array, whole: Array) -> Array:
    """Return the quotients by determinants; nan for a singular matrix, as elimination gives it."""
    return np.asarray(numerators / np.where(whole == 0, np.nan, whole)[:, None, None])


# Stacks


def _points_in_front(*arrays: Array) -> list[Array]:
    """Return arrays of matrices with the points as their first axis, and of one rank."""
    rank = max(x.ndim for x in arrays)
    fronts = [np.moveaxis(x, -1, 0) for x in arrays]
    return [x.reshape(x.shape[0], *(1,) * (rank - x.ndim), *x.shape[1:]) for x in fronts]


def stacked_matmul(a: Array, b: Array) -> Array:
    """Return the matrix products of stacks, with the batch axis first for NumPy."""
    row, column = a.ndim == 2, b.ndim == 2  # a vector at each point
    result = np.matmul(*_points_in_front(a[None] if row else a, b[:, None] if column else b))
    result = np.moveaxis(result[..., 0, :] if row else result, 0, -1)
    return result[..., 0, :] if column else result


def _stacked(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function of stacks of matrices, with the batch axis first for it."""
    fronts = _points_in_front(*arrays)
    stack = np.broadcast_shapes(*(x.shape[:-2] for x in fronts))
    result = function(*(np.broadcast_to(x, (*stack, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in fronts))
    return np.asarray(np.moveaxis(result.reshape(*stack, *result.shape[1:]), 0, -1))


def _each(function: Callable[..., Array], *stacks: Array) -> Array:
    """Return a function's result for each matrix of a stack, nan for a matrix at which it raises `LinAlgError`.

    NumPy raises it for the whole stack, whose halves are then tried.
    """
    try:
        return function(*stacks)
    except np.linalg.LinAlgError:
        count = len(stacks[0])
        if count == 1:
            regular = [np.broadcast_to(np.eye(*x.shape[-2:]), x.shape) for x in stacks]
            return np.full_like(function(*regular), np.nan)
        halves = [[x[: count // 2] for x in stacks], [x[count // 2 :] for x in stacks]]
        return np.concatenate([_each(function, *half) for half in halves])
