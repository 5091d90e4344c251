"""What PyTorch computes in one kernel, with that kernel's roundings: operations of which the graph has several nodes.

The results are those of the nodes but for the last digits.  A kernel is given arrays whose last axis, that of points,
has one element, as all of them have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.kernels.activations import activation
from gradcli.kernels.convolutions import Convolution
from gradcli.kernels.mkl import sqrt
from gradcli.kernels.normalizations import Batch, Layer
from gradcli.kernels.products import products_of_stacks, sum_with_product
from gradcli.kernels.rounding import fused
from gradcli.kernels.sums import sums
from gradcli.kernels.vector_functions import OneByOne, exp, log1p

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Array]


def kernel(op: str, settings: Any, inputs: Sequence[Node], output: Node) -> Kernel | None:
    """Return what computes an operation on floating-point numbers, or None where the graph's nodes do."""
    if output.dtype not in ("float32", "float64") or inputs[0].dtype != output.dtype:
        return None
    shapes = [n.shape for n in inputs]
    if found := activation(op, settings, shapes):
        return found[0]
    return _KERNELS[op](settings, shapes) if op in _KERNELS else None


def _addmm(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    return lambda c, a, b: sum_with_product(c[..., 0], a[..., 0], b[..., 0])[..., None]


def _scaled(sign: int) -> Callable[..., Kernel | None]:
    """Return what makes a sum or a difference whose second operand is multiplied by a number, with one rounding."""

    def make(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
        if not isinstance(settings, tuple) or len(shapes) != 2 or not isinstance(settings[-1], str):
            return None
        factor = sign * float(settings[-1])
        return lambda a, b: fused(a.dtype.type(factor), b, a)

    return make


def _batches(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    if [len(s) for s in shapes] != [3, 3] or not math.prod(shapes[0]) * shapes[1][2]:
        return None
    return lambda a, b: products_of_stacks(a[..., 0], b[..., 0])[..., None]


def _classes(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    """Return the loss of classes: of logarithms of probabilities, as many samples in rows."""
    if len(settings) != 4 or settings[0] == "none" or len(shapes[0]) != 2 or not shapes[0][0]:
        return None
    how, total, _, ignored = settings

    def loss(x: Array, target: Array, *weight: Array) -> Array:
        kept = target[:, 0] != ignored
        places = np.flatnonzero(kept)
        terms = -x[places, target[places, 0].astype(int), 0]
        for w in weight:
            terms = terms * w[places, 0]
        found = _one_by_one(terms)
        return np.asarray(found / x.dtype.type(total) if how == "mean" else found, x.dtype).reshape(1)

    return loss


def _one_by_one(terms: Array) -> Any:
    """Return the sum of terms after the first, sixteen of them, and of sixteen such sums; and the first."""
    found, rest = 0, terms[1:]
    while len(rest):
        whole = len(rest) - len(rest) % 16
        left = np.add.accumulate(rest[whole:])[-1:] if whole < len(rest) else rest[:0]
        found = found + (left[0] if len(left) else 0)
        rest = np.add.accumulate(rest[:whole].reshape(-1, 16), axis=1)[:, -1]
    return found + terms[0] if len(terms) else found


def _spread(name: str) -> Callable[..., Kernel | None]:
    """Return what makes a variance or its root: of all elements from their mean on, else as Welford does."""

    def make(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
        if len(settings) != 3:
            return None
        axes, keepdim, less = settings
        count = math.prod(shapes[0][a] for a in axes)
        if count <= less or not math.prod(shapes[0]):
            return None
        of_all = len(axes) == len(shapes[0])

        def spread(x: Array) -> Array:
            wider = x.astype(np.float64)
            if of_all:
                far = wider - float(sums(axes, x)[0] / x.dtype.type(count))
                squares = np.add.accumulate((far * far).reshape(-1))[-1:]
            elif x.dtype == np.float64:
                squares = _welford(axes, x)
            else:
                squares = ((wider - wider.mean(axis=axes, keepdims=True)) ** 2).sum(axis=axes)
            found = squares / (count - less)
            found = (np.sqrt(found) if name == "std" else found).astype(x.dtype)
            return np.expand_dims(found, axes) if keepdim else found

        return spread

    return make


def _welford(axes: tuple[int, ...], x: Array) -> Array:
    """Return the sums of the squares of what differs from the mean, one number after the other."""
    rows = np.moveaxis(x, axes, range(len(axes)))
    rows = rows.reshape(-1, *rows.shape[len(axes) :])
    mean = squares = np.zeros(rows.shape[1:])
    for k, row in enumerate(rows, 1):
        far = row - mean
        mean = mean + far / k
        squares = squares + far * (row - mean)
    return squares


def _with_logits(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    how, is_plain, _, _ = settings if len(settings) == 4 else ("", False, None, None)
    if not is_plain or len(shapes) > 2 or shapes[0] != shapes[1]:
        return None

    def loss(x: Array, y: Array) -> Array:
        one = (1 - y) * x - (np.minimum(x, 0) - log1p(exp(-abs(x))))
        axes = tuple(range(x.ndim - 1))
        return one if how == "none" else _one(how, one, axes)

    return loss


def _of_probabilities(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    if len(settings) != 2 or len(shapes) > 2 or shapes[0] != shapes[1]:
        return None
    how = settings[0][3][1]

    def loss(p: Array, y: Array) -> Array:
        log, log_rest = OneByOne.log(p), OneByOne.log1p(-p)
        one = (y - 1) * np.maximum(log_rest, -100) - y * np.maximum(log, -100)
        return one if how == "none" else _one(how, one, tuple(range(p.ndim - 1)))

    return loss


def _one(how: str, x: Array, axes: tuple[int, ...]) -> Array:
    found = sums(axes, x)
    return found / x.dtype.type(x.size) if how == "mean" else found


def _batch_norm(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    call = Batch.of(settings)
    return None if call is None or not math.prod(shapes[0]) else call.forward


def _layer_norm(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    call = Layer.of(settings, shapes[0])
    return None if call is None else call.forward


def _convolution(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    call = Convolution.of(settings, shapes)
    return None if call is None else call.forward


def _power(settings: Any, shapes: Sequence[Any]) -> Kernel | None:
    return sqrt if settings and settings[-1] == "0.5" else None


_KERNELS: dict[str, Callable[..., Kernel | None]] = {
    "sqrt": lambda settings, shapes: sqrt,
    "pow": _power,
    "add": _scaled(1),
    "sub": _scaled(-1),
    "addmm": _addmm,
    "matmul": _batches,
    "nll_loss": _classes,
    "std": _spread("std"),
    "var": _spread("var"),
    "conv1d": _convolution,
    "conv2d": _convolution,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "binary_cross_entropy": _of_probabilities,
    "binary_cross_entropy_with_logits": _with_logits,
}
