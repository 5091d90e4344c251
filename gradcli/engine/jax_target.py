"""JAX as a target: the function of each operation, of arrays whose last axis counts the points, as for NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from gradcli.engine.linear_algebra import points_in_front, stacked_matmul
from gradcli.engine.products import FAR
from gradcli.errors import InputError
from gradcli.graph.construct import Axes
from gradcli.graph.einsum import parts
from gradcli.graph.index_arrays import IndexArray
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.movement import basic

Array = Any  # JAX's or NumPy's


def _at_most(x: Array, high: Array) -> Array:
    return jnp.where((x > high) | jnp.isnan(high), high, x)


# Elementwise operations that JAX's NumPy does not have, or has otherwise.
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "where": jnp.where,
    # XLA would rewrite sqrt(x*x) as |x|, which does not overflow: the barrier hides the argument from it.
    "sqrt": lambda x: jnp.sqrt(jax.lax.optimization_barrier(x)),
    "clamp": lambda x, low, high: _at_most(-_at_most(-x, -low), high),  # a zero keeps its sign
    "sign": lambda x: jnp.where(jnp.isnan(x), 0.0, jnp.sign(x)),
    "softplus": lambda x: jnp.logaddexp(0.0, x),
    "identity": jnp.copy,
    "polygamma": lambda n, x: jax.scipy.special.polygamma(n.astype(int), x),
}


def _prod(axes: Axes, x: Array) -> Array:
    """Return the product, of mantissas and exponents apart: nothing overflows on the way."""
    mantissas, exponents = jnp.frexp(x)
    return _number(mantissas.prod(axis=axes), exponents.sum(axis=axes))


def _product_of_others(axes: Axes, x: Array) -> Array:
    """Return the products of all other elements: of those before each times those after it."""
    rest = [a for a in range(x.ndim) if a not in axes]
    order = [*axes, *rest]
    lines = x.transpose(order)
    shape = lines.shape
    mantissas, exponents = jnp.frexp(lines.reshape(-1, *shape[len(axes) :]))
    ones = jnp.ones_like(mantissas[:1])
    before = jnp.cumprod(jnp.concatenate([ones, mantissas[:-1]]), axis=0)
    behind = jnp.flip(jnp.cumprod(jnp.concatenate([ones, jnp.flip(mantissas[1:], 0)]), axis=0), 0)
    result = _number(before * behind, exponents.sum(axis=0) - exponents)
    return result.reshape(shape).transpose(np.argsort(order))


def _number(mantissas: Array, exponents: Array) -> Array:
    half = jnp.clip(exponents, -FAR, FAR) // 2
    return jnp.ldexp(jnp.ldexp(mantissas, half), jnp.clip(exponents, -FAR, FAR) - half)


def _recurrence(axis: int, a: Array, b: Array) -> Array:
    a, b = jnp.moveaxis(a, axis, 0), jnp.moveaxis(b, axis, 0)
    rest = jnp.broadcast_shapes(a.shape[1:], b.shape[1:])
    a, b = (jnp.broadcast_to(x, (len(x), *rest)) for x in (a, b))

    def step(before: Array, factors: tuple[Array, Array]) -> tuple[Array, Array]:
        result = factors[1] + factors[0] * before
        return result, result

    _, later = jax.lax.scan(step, b[0], (a, b[1:]))
    return jnp.moveaxis(jnp.concatenate([b[:1], later]), 0, axis)


def _is_at(axis: int, index: Array, x: Array) -> Array:
    indices = jnp.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    return indices == jnp.expand_dims(index, axis)


def _argsort(axis: int, descending: bool, x: Array) -> Array:
    if not descending:
        return jnp.argsort(x, axis=axis, stable=True)
    # A stable ascending order from the other end: equal elements keep their order, as in PyTorch.
    reversed_order = jnp.argsort(jnp.flip(x, axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - jnp.flip(reversed_order, axis)


def _median_index(axis: int, x: Array) -> Array:
    middle = jnp.take(_argsort(axis, False, x), (x.shape[axis] - 1) // 2, axis=axis)
    lost = jnp.isnan(x)
    return jnp.where(lost.any(axis=axis), lost.argmax(axis=axis), middle)


def _median(axes: Axes, ties: str, x: Array) -> Array:
    rest = [a for a in range(x.ndim) if a not in axes]
    lines = x.transpose(*axes, *rest).reshape(-1, *(x.shape[a] for a in rest))
    result = jnp.sort(lines, axis=0)[(len(lines) - 1) // 2]
    return jnp.where(jnp.isnan(lines).any(axis=0), jnp.nan, result)


def _take_along(axis: int, x: Array, order: Array) -> Array:
    x, order = jnp.broadcast_arrays(x, order)
    return jnp.take_along_axis(x, order.astype(int), axis)


def _einsum(subscripts: str, a: Array, b: Array) -> Array:
    first, second, result = parts(subscripts)
    return jnp.einsum(f"{first}...,{second}...->{result}...", a, b)


def _matmul(a: Array, b: Array) -> Array:
    rows, columns = "i" * (a.ndim > 2), "k" * (b.ndim > 2)
    if max(a.ndim, b.ndim) <= len(("row", "column", "point")):
        return jnp.einsum(f"{rows}j...,j{columns}...->{rows}{columns}...", a, b)
    return stacked_matmul(jnp.matmul, a, b)


def _stacked(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function of stacks of matrices to arrays whose last axis is the batch."""
    fronts = points_in_front(*arrays)
    stack = jnp.broadcast_shapes(*(x.shape[:-2] for x in fronts))
    result = function(*(jnp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in fronts))
    return jnp.moveaxis(result, 0, -1)


def _cofactors(x: Array) -> Array:
    """Return the cofactors: the derivatives of the determinants, each the determinant of a minor."""
    n = x.shape[-1]
    rest = np.array([[k for k in range(n) if k != i] for i in range(n)])
    minors = x[..., rest[:, None, :, None], rest[None, :, None, :]]
    return jnp.linalg.det(minors) * (-1.0) ** np.add.outer(np.arange(n), np.arange(n))


def _scatter(shape: tuple[int, ...], keys: tuple[Any, ...], *arrays: Array) -> Array:
    result = jnp.zeros((*shape, max(p.shape[-1] for p in arrays)))
    for key, part in zip(keys, arrays, strict=True):
        result = result.at[basic(key)].add(part)
    return result


def _scatter_add(axis: int, indices: IndexArray, size: int, x: Array) -> Array:
    shape = (*x.shape[:axis], size, *x.shape[axis + len(indices.shape) :])
    return jnp.zeros(shape).at[(*(slice(None),) * axis, indices.numbers)].add(x)


def _from_diagonal(shape: tuple[int, ...], x: Array) -> Array:
    indices = np.arange(min(shape[:2]))
    return jnp.zeros((*shape, x.shape[-1])).at[indices, indices].set(x)


def _triangle(keep: Callable[..., Any], diagonal: int, x: Array) -> Array:
    return jnp.where(keep(np.ones(x.shape[-3:-1], dtype=bool), diagonal)[..., None], x, 0.0)


def _joined(join: Callable[..., Array], axis: int, *arrays: Array) -> Array:
    points = max(x.shape[-1] for x in arrays)
    return join([jnp.broadcast_to(x, (*x.shape[:-1], points)) for x in arrays], axis=axis)


# On a CPU, XLA's maximum over an axis of long rows loses a NaN, so NaNs are looked for.
JAX: dict[str, Any] = {
    "sum": lambda axes, x: x.sum(axis=axes),
    "prod": _prod,
    "product_of_others": _product_of_others,
    "max": lambda axes, ties, x: jnp.where(jnp.isnan(x).any(axis=axes), jnp.nan, x.max(axis=axes)),
    "min": lambda axes, ties, x: jnp.where(jnp.isnan(x).any(axis=axes), jnp.nan, x.min(axis=axes)),
    "recurrence": _recurrence,
    "argmax_mask": lambda axis, x: _is_at(axis, x.argmax(axis=axis), x),
    "argmin_mask": lambda axis, x: _is_at(axis, x.argmin(axis=axis), x),
    "argmedian_mask": lambda axis, x: _is_at(axis, _median_index(axis, x), x),
    "argmax": lambda axis, x: x.argmax(axis=axis).astype(float),
    "argmin": lambda axis, x: x.argmin(axis=axis).astype(float),
    "sort": lambda axis, descending, x: jnp.take_along_axis(x, _argsort(axis, descending, x), axis),
    "argsort": lambda axis, descending, x: _argsort(axis, descending, x).astype(float),
    "take_along": _take_along,
    "put_along": lambda axis, x, order: _take_along(axis, x, jnp.argsort(order, axis=axis)),
    "median": _median,
    "matmul": _matmul,
    "einsum": _einsum,
    "cofactors": partial(_stacked, _cofactors),
    "eigvalsh": partial(_stacked, jnp.linalg.eigvalsh),
    "eigvecsh": partial(_stacked, lambda x: jnp.linalg.eigh(x)[1]),
    "svd_u": lambda full, x: _stacked(lambda m: jnp.linalg.svd(m, full)[0], x),
    "svd_vh": lambda full, x: _stacked(lambda m: jnp.linalg.svd(m, full)[2], x),
    "cast": lambda dtype, x: x.astype(dtype),
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "from_diagonal": _from_diagonal,
    "triu": partial(_triangle, np.triu),
    "tril": partial(_triangle, np.tril),
    "concatenate": partial(_joined, jnp.concatenate),
    "stack": partial(_joined, jnp.stack),
    # These call an array's own methods.
    **{op: OPERATIONS[op].move for op in ("transpose", "reshape", "index", "diagonal", "take")},
    "broadcast": lambda shape, x: jnp.broadcast_to(
        x.reshape((1,) * (len(shape) + 1 - x.ndim) + x.shape), (*shape, x.shape[-1])
    ),
}


def function_of(node: Node) -> Callable[..., Array]:
    """Return the JAX function of a node, which takes the arrays of its arguments."""
    row = OPERATIONS[node.op]
    own = (FUNCTIONS if row.broadcasts else JAX).get(node.op)
    if own is None:
        own = _of_library(node.op)
        own = own if row.broadcasts else partial(_stacked, own) if row.kind == "matrix" else _along(own)
    return own if row.broadcasts else partial(own, *node.settings)


def _of_library(op: str) -> Callable[..., Array]:
    """Return JAX's own function by its name on the row, which is that of its NumPy unless it begins with `jax.`.

    Errors: `InputError` where the row has none.
    """
    name = OPERATIONS[op].spelling_in("jax")
    if not name:
        raise InputError(f"the JAX engine has no function for `{op}`")
    function: Callable[..., Array] = attrgetter(name.removeprefix("jax."))(jax if name.startswith("jax.") else jnp)
    return function


def _along(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function along the axis that is the first setting."""
    return lambda axis, *more: function(more[-1], axis=axis)
