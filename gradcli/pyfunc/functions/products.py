"""NumPy's products of arrays: `dot`, `tensordot`, `einsum` and the like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import call, reshape
from gradcli.graph.node import Node
from gradcli.pyfunc.functions.arguments import number, rule
from gradcli.pyfunc.functions.movement import diagonal
from gradcli.vocabulary import FUNCTIONS


@rule(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Node:
    x, y = number(a), number(b)
    if not x.shape or not y.shape:
        return call("mul", x, y)
    if len(x.shape) <= 2 and len(y.shape) <= 2:
        return construct.matmul(x, y)
    return _tensordot(x, y, ([len(x.shape) - 1], [max(len(y.shape) - 2, 0)]))


@rule(np.inner)
def _inner(a: Any, b: Any) -> Node:
    x, y = number(a), number(b)
    if not x.shape or not y.shape:
        return call("mul", x, y)
    return _tensordot(x, y, ([len(x.shape) - 1], [len(y.shape) - 1]))


@rule(np.vdot)
def _vdot(a: Any, b: Any) -> Node:
    x, y = number(a), number(b)
    return construct.matmul(reshape(x, (x.size,)), reshape(y, (y.size,)))


@rule(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Node:
    x, y = number(a), number(b)
    return construct.outer(reshape(x, (x.size,)), reshape(y, (y.size,)))


@rule(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Node:
    x, y = number(a), number(b)
    if isinstance(axes, int | np.integer):
        first, second = list(range(len(x.shape) - int(axes), len(x.shape))), list(range(int(axes)))
    else:
        first, second = ([int(side)] if isinstance(side, int | np.integer) else [int(i) for i in side] for side in axes)
    first, second = [i % len(x.shape) for i in first], [i % len(y.shape) for i in second]
    left, right = ([i for i in range(len(n.shape)) if i not in side] for n, side in ((x, first), (y, second)))
    rows, columns = [x.shape[i] for i in left], [y.shape[i] for i in right]
    inner = math.prod(x.shape[i] for i in first)
    one = reshape(construct.transpose(x, (*left, *first)), (math.prod(rows), inner))
    other = reshape(construct.transpose(y, (*second, *right)), (inner, math.prod(columns)))
    return reshape(construct.matmul(one, other), (*rows, *columns))


@rule(np.einsum)
def _einsum(subscripts: Any, *operands: Any, **_: Any) -> Node:
    if not isinstance(subscripts, str):
        subscripts, operands = _listed([subscripts, *operands])
    nodes = [number(x) for x in operands]
    return FUNCTIONS["einsum"](subscripts, *nodes)


def _listed(operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the subscripts as text, and the operands, of `np.einsum(a, [0, 1], b, [1, 2], [0, 2])`."""

    def text(labels: Sequence[Any]) -> str:
        return "".join("..." if k is Ellipsis else chr(ord("a") + int(k)) for k in labels)

    terms = ",".join(map(text, operands[1 : len(operands) // 2 * 2 : 2]))
    result = f"->{text(operands[-1])}" if len(operands) % 2 else ""
    return terms + result, tuple(operands[: len(operands) // 2 * 2 : 2])


@rule(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Node:
    x = diagonal(a, offset, axis1, axis2)
    return construct.reduce("sum", x, (len(x.shape) - 1,))
