"""The values in a model: numbers that are known while it is read, and nodes.

Integers, booleans and text are always known, so that shapes are; real numbers are known where they are initializers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gradcli.engine.evaluate import Evaluator, constant, evaluator
from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.array import Array, exact
from gradcli.graph.construct import LISTED, array_const
from gradcli.graph.dtypes import DTYPES, DType
from gradcli.graph.graph import Graph
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, const, leaf
from gradcli.graph.shapes import check_size

Value = Array | Node


DEPENDS = "its input `{}` depends on values of the model's inputs"
KNOWN = "it must be known while the model is read: an initializer, or computed from shapes"


def lift(value: Value, dtype: DType = "float64", listed: int = LISTED) -> Node:
    """Return a value as a node, known real numbers as a constant of that type.

    Of an array of more than `listed` elements it has the array itself.

    >>> lift(np.array([1, 2])).values, lift(np.zeros(100)).values, lift(np.array(True)).dtype
    ((1, 2), 100 numbers, 'bool')
    """
    return value if isinstance(value, Node) else array_const(value, dtype, listed)


_OWN: dict[str, DType] = {"bfloat16": "float32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


def own_leaf(value: Array) -> Node:
    """Return an input of the shape of known numbers, in their own type or in one that holds them."""
    name = value.dtype.name
    if value.dtype.kind not in "biuf" and name != "bfloat16":
        raise InputError(f"an array of `{name}` is not supported")
    return leaf(value.shape, next((d for d in DTYPES if d == name), _OWN.get(name, "float64")))


class Folded(NamedTuple):
    """What an operator makes of known inputs of some shapes: nodes, which are computed of numbers, and numbers."""

    results: Sequence[Value | None]
    run: Evaluator

    @classmethod
    def of(cls, inputs: Mapping[str, Node], results: Sequence[Value | None]) -> Folded:
        """Return the results of inputs, which are leaves."""
        nodes = [v for v in results if isinstance(v, Node)]
        return cls(results, evaluator(Graph.of(inputs, {str(k): n for k, n in enumerate(nodes)}), nodes))

    def numbers(self, values: Mapping[str, Array]) -> list[Array | None]:
        """Return the results as numbers."""
        found = self.run({name: v[..., None] for name, v in values.items()})
        return [
            np.broadcast_to(found[v][..., 0].astype(v.dtype, copy=False), v.shape) if isinstance(v, Node) else v
            for v in self.results
        ]


def number(value: float) -> Node:
    """Return an attribute as a constant: the shortest decimal that is the same float32.

    >>> number(float(np.float32(0.01))).value
    Decimal('0.01')
    """
    return const(exact(float(str(np.float32(value)))))


def integers(value: Array | None) -> tuple[int, ...]:
    """Return known integers as a tuple."""
    return () if value is None else tuple(int(n) for n in value.reshape(-1))


def axis_of(axis: int, rank: int) -> int:
    """Return an axis as counted from the front."""
    if not -rank <= axis < rank:
        raise InputError(f"there is no axis {axis} in an array of {rank} dimensions")
    return axis % rank


def gather(x: Value, axis: int, indices: Value) -> Value:
    """Return the slices at indices along an axis; negative ones count from its end.

    Indices may depend on the inputs where the array does not.
    """
    axis = axis_of(axis, len(x.shape))
    n = x.shape[axis]
    if isinstance(indices, Node):
        return _looked_up(lift(x), axis, indices)
    if indices.size and not (indices.min() >= -n and indices.max() < n):
        raise InputError(f"an index is outside of an axis of size {n}")
    check_size((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    if not isinstance(x, Node):
        return np.take(x, indices, axis=axis)
    if not indices.shape:
        return construct.sliced(x, axis, int(indices) % n)
    return take(x, axis, IndexArray.of(np.where(indices < 0, indices + n, indices)))


def _looked_up(x: Node, axis: int, indices: Node) -> Node:
    """Return the slices of a known array at indices that are computed: a product with a 1 for each index."""
    if not x.is_constant or not np.isfinite(constant(x)).all():
        raise InputError(DEPENDS.format("indices"), hint=KNOWN)
    n, whole = x.shape[axis], check_size((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    rest = [i for i in range(len(x.shape)) if i != axis]
    each = construct.reshape(indices, (indices.size, 1))
    rows = construct.reshape(construct.transpose(x, (axis, *rest)), (n, -1))
    hot = construct.where(construct.equal(construct.where(each < 0, each + n, each), lift(np.arange(n))), 1, 0)
    found = construct.reshape(construct.matmul(hot, rows), (*indices.shape, *(x.shape[i] for i in rest)))
    k = len(indices.shape)
    return construct.transpose(found, (*range(k, k + axis), *range(k), *range(k + axis, len(whole))))


def stack(parts: Sequence[Value | None], axis: int) -> Value:
    """Return arrays of one shape along a new axis.

    >>> stack([np.array([1, 2]), np.array([3, 4])], -1).tolist()
    [[1, 3], [2, 4]]
    """
    values = [p for p in parts if p is not None]
    shape = values[0].shape
    if len(values) < len(parts) or any(v.shape != shape for v in values):
        raise InputError("the rounds of a loop have results of different shapes")
    axis = axis_of(axis, len(shape) + 1)
    check_size((*shape, len(values)))
    known = [v for v in values if not isinstance(v, Node)]
    return np.stack(known, axis) if len(known) == len(values) else construct.stack([*map(lift, values)], axis)
