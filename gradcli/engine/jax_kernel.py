"""The JAX engine: a schedule as one function of arrays, which XLA compiles, for a GPU where JAX has one.

Each operation is a function of arrays whose last axis counts the points, as for NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from gradcli.engine.blocks import Arrays, Work, new_arrays, on_views
from gradcli.engine.products import FAR
from gradcli.engine.schedule import Schedule
from gradcli.errors import InputError
from gradcli.graph.construct import Axes
from gradcli.graph.einsum import parts
from gradcli.graph.index_arrays import IndexArray
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.movement import basic
from gradcli.graph.rewrite import interpret

Array = Any  # JAX's or NumPy's

_LONGEST, _MEMORY = 2**17, 2**26  # points in a block, and numbers that it holds


class JaxKernel:
    """A schedule as a function that XLA compiles once for each number of points; these are powers of two."""

    def __init__(self, schedule: Schedule) -> None:
        jax.config.update("jax_enable_x64", True)
        self._schedule, self.new = schedule, partial(new_arrays, schedule.shapes)
        self._run = jax.jit(self._function)
        live = max(1, sum(n.size for n in schedule.steps))
        longest = max(1, min(_LONGEST, _MEMORY // live))
        self.block = self.fewest = 1 << (longest.bit_length() - 1)  # XLA has threads of its own

    def _function(self, inputs: Mapping[str, Array]) -> list[Array]:
        result = {n: jnp.asarray(value) for n, value in self._schedule.same.items()}
        result |= {node: inputs[name] for name, node in self._schedule.inputs.items()}
        interpret(self._schedule.steps, lambda node, args: function_of(node)(*args), result)
        return [result[n] for n in self._schedule.outputs.values()]

    def buffers(self, count: int) -> list[np.ndarray[Any, Any]]:
        """Return nothing: XLA has memory of its own."""
        return []

    def begin(self, points: Arrays, results: Arrays) -> Work | None:
        """Return the work that computes the results at a block of points; None unless they are contiguous float64."""
        return on_views(self.run, points, results)

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute results at a block of points; its last repeats up to a power of two."""
        count = max((a.shape[-1] for a in points.values()), default=1)
        filled = 1 << (count - 1).bit_length()
        inputs = {
            name: a if a.shape[-1] == filled else np.pad(a, [*[(0, 0)] * (a.ndim - 1), (0, filled - count)], "edge")
            for name, a in points.items()
            if name in self._schedule.inputs
        }
        for (name, node), value in zip(self._schedule.outputs.items(), self._run(inputs), strict=True):
            results[name][...] = np.broadcast_to(np.asarray(value), (*node.shape, filled))[..., :count]


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
    lines = _lines(axes, x)
    mantissas, exponents = jnp.frexp(lines)
    ones = jnp.ones_like(mantissas[:1])
    before = jnp.cumprod(jnp.concatenate([ones, mantissas[:-1]]), axis=0)
    behind = jnp.flip(jnp.cumprod(jnp.concatenate([ones, jnp.flip(mantissas[1:], 0)]), axis=0), 0)
    result = _number(before * behind, exponents.sum(axis=0) - exponents)
    front = range(len(axes))
    return jnp.moveaxis(result.reshape(jnp.moveaxis(x, axes, front).shape), front, axes)


def _lines(axes: Axes, x: Array) -> Array:
    """Return an array with these axes as one, the first."""
    return jnp.moveaxis(x, axes, range(len(axes))).reshape(-1, *(n for k, n in enumerate(x.shape) if k not in axes))


def _number(mantissas: Array, exponents: Array) -> Array:
    half = jnp.clip(exponents, -FAR, FAR) // 2
    return jnp.ldexp(jnp.ldexp(mantissas, half), jnp.clip(exponents, -FAR, FAR) - half)


def _recurrence(axis: int, a: Array, b: Array) -> Array:
    a, b = (jnp.moveaxis(x, axis, 0) for x in _spread(a, b))

    def step(before: Array, factors: tuple[Array, Array]) -> tuple[Array, Array]:
        result = factors[1] + factors[0] * before
        return result, result

    _, later = jax.lax.scan(step, b[0], (a, b[1:]))
    return jnp.moveaxis(jnp.concatenate([b[:1], later]), 0, axis)


def _mask(index: Callable[..., Array], axis: int, x: Array) -> Array:
    return jax.nn.one_hot(index(x, axis=axis), x.shape[axis], axis=axis, dtype=bool)


def _median_index(x: Array, axis: int) -> Array:
    middle = jnp.take(jnp.argsort(x, axis=axis), (x.shape[axis] - 1) // 2, axis=axis)
    lost = jnp.isnan(x)
    return jnp.where(lost.any(axis=axis), lost.argmax(axis=axis), middle)


def _median(axes: Axes, ties: str, x: Array) -> Array:
    lines = _lines(axes, x)
    result = jnp.sort(lines, axis=0)[(len(lines) - 1) // 2]
    return jnp.where(jnp.isnan(lines).any(axis=0), jnp.nan, result)


def _take_along(axis: int, x: Array, order: Array) -> Array:
    return jnp.take_along_axis(*jnp.broadcast_arrays(x, order), axis)


def _cofactors(x: Array) -> Array:
    """Return the cofactors: the derivatives of the determinants, each the determinant of a minor."""
    n = x.shape[-1]
    rest = np.array([[k for k in range(n) if k != i] for i in range(n)])
    minors = x[..., rest[:, None, :, None], rest[None, :, None, :]]
    return jnp.linalg.det(minors) * (-1.0) ** np.add.outer(np.arange(n), np.arange(n))


def _spread(*arrays: Array) -> list[Array]:
    """Return arrays that all have the points' axis in full length."""
    points = max(x.shape[-1] for x in arrays)
    return [jnp.broadcast_to(x, (*x.shape[:-1], points)) for x in arrays]


def _each(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function of arrays, such as matrices, at each point."""
    return jax.vmap(function, -1, -1)(*_spread(*arrays))


def _einsum(subscripts: str, a: Array, b: Array) -> Array:
    first, second, result = parts(subscripts)
    return jnp.einsum(f"{first}...,{second}...->{result}...", a, b)


def _matmul(a: Array, b: Array) -> Array:
    rows, columns = "i" * (a.ndim > 2), "k" * (b.ndim > 2)
    if max(a.ndim, b.ndim) <= len(("row", "column", "point")):
        return jnp.einsum(f"{rows}j...,j{columns}...->{rows}{columns}...", a, b)
    return _each(jnp.matmul, a, b)


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


# On a CPU, XLA's maximum over an axis of long rows loses a NaN, so NaNs are looked for.
JAX: dict[str, Any] = {
    "sum": lambda axes, x: x.sum(axis=axes),
    "prod": _prod,
    "product_of_others": _product_of_others,
    "max": lambda axes, ties, x: jnp.where(jnp.isnan(x).any(axis=axes), jnp.nan, x.max(axis=axes)),
    "min": lambda axes, ties, x: jnp.where(jnp.isnan(x).any(axis=axes), jnp.nan, x.min(axis=axes)),
    "recurrence": _recurrence,
    "argmax_mask": partial(_mask, jnp.argmax),
    "argmin_mask": partial(_mask, jnp.argmin),
    "argmedian_mask": partial(_mask, _median_index),
    "argmax": lambda axis, x: x.argmax(axis=axis).astype(float),
    "argmin": lambda axis, x: x.argmin(axis=axis).astype(float),
    "sort": lambda axis, descending, x: jnp.sort(x, axis, descending=descending),
    "argsort": lambda axis, descending, x: jnp.argsort(x, axis, descending=descending).astype(float),
    "take_along": lambda axis, x, order: _take_along(axis, x, order.astype(int)),
    "put_along": lambda axis, x, order: _take_along(axis, x, jnp.argsort(order, axis)),
    "median": _median,
    "matmul": _matmul,
    "einsum": _einsum,
    "cofactors": partial(_each, _cofactors),
    "eigvalsh": partial(_each, jnp.linalg.eigvalsh),
    "eigvecsh": partial(_each, lambda x: jnp.linalg.eigh(x)[1]),
    "svd_u": lambda full, x: _each(lambda m: jnp.linalg.svd(m, full)[0], x),
    "svd_vh": lambda full, x: _each(lambda m: jnp.linalg.svd(m, full)[2], x),
    "cast": lambda dtype, x: x.astype(dtype),
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "from_diagonal": _from_diagonal,
    "triu": lambda diagonal, x: _each(partial(jnp.triu, k=diagonal), x),
    "tril": lambda diagonal, x: _each(partial(jnp.tril, k=diagonal), x),
    "concatenate": lambda axis, *arrays: jnp.concatenate(_spread(*arrays), axis),
    "stack": lambda axis, *arrays: jnp.stack(_spread(*arrays), axis),
    # These call an array's own methods.
    **{op: OPERATIONS[op].move for op in ("transpose", "reshape", "index", "diagonal", "take")},
    "broadcast": lambda shape, x: jnp.broadcast_to(
        x.reshape((1,) * (len(shape) + 1 - x.ndim) + x.shape), (*shape, x.shape[-1])
    ),
}


def function_of(node: Node) -> Callable[..., Array]:
    """Return the JAX function of a node, which takes the arrays of its arguments."""
    row = OPERATIONS[node.op]
    own = FUNCTIONS.get(node.op) or JAX.get(node.op) or _of_library(node.op)
    return own if row.broadcasts else partial(own, *node.settings)


def _of_library(op: str) -> Callable[..., Array]:
    """Return JAX's own function by its name on the row, which is that of its NumPy unless it begins with `jax.`.

    Errors: `InputError` where the row has none.
    """
    row = OPERATIONS[op]
    name = row.spelling_in("jax")
    if not name:
        raise InputError(f"the JAX engine has no function for `{op}`")
    function: Callable[..., Array] = attrgetter(name.removeprefix("jax."))(jax if name.startswith("jax.") else jnp)
    if row.kind == "matrix":
        return partial(_each, function)
    return (lambda axis, x: function(x, axis=axis)) if row.kind == "scan" else function
