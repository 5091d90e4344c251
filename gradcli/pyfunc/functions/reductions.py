"""NumPy's reductions, running sums, sorting and indices of extrema."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import axes_of, call, one_axis, reshape
from gradcli.graph.node import Node, cast, compare, const
from gradcli.graph.operations import OPERATIONS
from gradcli.pyfunc.functions.arguments import UNSET, Axis, axes_in, boolean, number, rule
from gradcli.pyfunc.tracer import RULES
from gradcli.vocabulary.register import kept


def reduced(op: str, *more: int | str) -> Callable[..., Node]:
    """Return the rule of a reduction, with the parameters that NumPy's have."""

    def build(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = UNSET,
        where: Any = UNSET,
    ) -> Node:
        if initial is not UNSET or (where is not UNSET and where is not True):
            raise InputError(f"`np.{op}` is traced without `initial` and `where`", hint="`np.where(mask, x, 0)`")
        x = number(a)
        axes = axes_in(axis, len(x.shape))
        if not axes and not x.shape:
            return call("identity", x)
        return kept(construct.reduce(op, x, axes, *more), x, axes, keepdims is True)

    return build


RULES[np.sum] = reduced("sum")
RULES[np.prod] = reduced("prod")
RULES[np.mean] = reduced("mean")


def _extremum(op: str) -> Callable[..., Node]:
    # autograd, JAX and PyTorch's amax share the gradient of a tie.
    build = reduced(op, "even")
    return lambda a, axis=None, out=None, keepdims=False, **rest: build(a, axis, None, out, keepdims, **rest)


RULES |= dict.fromkeys((np.max, np.amax), _extremum("max"))
RULES |= dict.fromkeys((np.min, np.amin), _extremum("min"))


def _spread(op: str) -> Callable[..., Node]:
    def build(
        a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = False, **rest: Any
    ) -> Node:
        ddof = rest.get("correction", ddof)
        x = number(a)
        axes = axes_in(axis, len(x.shape))
        return kept(construct.reduce(op, x, axes, int(ddof)), x, axes, keepdims is True)

    return build


RULES[np.var], RULES[np.std] = _spread("var"), _spread("std")


def _line(a: Any, axis: int | None) -> tuple[Node, int]:
    """Return an array and one of its axes; without an axis, the flattened array."""
    x = number(a)
    x = reshape(x, (x.size,)) if axis is None else x
    return x, one_axis(int(axis or 0), len(x.shape))


def _cumulative(op: str, usual: int | None) -> Callable[..., Node]:
    def build(a: Any, axis: int | None = usual, dtype: Any = None, out: Any = None) -> Node:
        return construct.cumulative(op, *_line(a, axis))

    return build


for _op, _row in OPERATIONS.items():
    if _row.kind == "scan" and (_path := _row.spelling.get("numpy", "")):  # cumsum, or maximum.accumulate
        RULES[attrgetter(_path)(np)] = _cumulative(_op, 0 if "." in _path else None)


def _count(a: Any, axis: Axis, keepdims: Any) -> Node:
    return reduced("sum")(cast(boolean(a), "float64"), axis, keepdims=keepdims)


RULES[np.any] = lambda a, axis=None, out=None, keepdims=False, **_: compare("gt", _count(a, axis, keepdims), const(0))
RULES[np.all] = lambda a, axis=None, out=None, keepdims=False, **_: compare(
    "eq", _count(compare("not", boolean(a)), axis, keepdims), const(0)
)
RULES[np.count_nonzero] = lambda a, axis=None, *, keepdims=False: _count(a, axis, keepdims)


def _ordered(op: str, a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, **_: Any) -> Node:
    return construct.ordered(op, *_line(a, axis), False)


RULES[np.sort], RULES[np.argsort] = partial(_ordered, "sort"), partial(_ordered, "argsort")


@rule(np.median)
def _median(a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Node:
    x = number(a)
    axes = axes_in(axis, len(x.shape))
    rest = [i for i in range(len(x.shape)) if i not in axes]
    moved = construct.transpose(x, (*rest, *axes))
    flat = reshape(moved, (*(x.shape[i] for i in rest), -1))
    n = flat.shape[-1]
    ordered = construct.ordered("sort", flat, len(rest), False)
    low, high = (construct.sliced(ordered, len(rest), k) for k in ((n - 1) // 2, n // 2))
    return kept(low if n % 2 else (low + high) / 2, x, axes, keepdims is True)


def _argument(op: str, a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Node:
    x, (flat, i) = number(a), _line(a, axis)
    axes = axes_of(None if axis is None else i, len(x.shape))
    return kept(construct.argument(op, flat, i), x, axes, keepdims is True)


RULES[np.argmax], RULES[np.argmin] = partial(_argument, "argmax"), partial(_argument, "argmin")
