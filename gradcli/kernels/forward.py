"""What PyTorch computes in one kernel, with that kernel's roundings: operations of which the graph has several nodes.

The results are those of the nodes but for the last digits.  A kernel is given arrays whose last axis, that of points,
has one element, as all of them have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.kernels.activations import activation, logsigmoid
from gradcli.kernels.convolutions import Convolution
from gradcli.kernels.mkl import sqrt
from gradcli.kernels.moments import variance
from gradcli.kernels.normalizations import Batch, Layer
from gradcli.kernels.products import products_of_stacks, sum_with_product
from gradcli.kernels.rounding import fused
from gradcli.kernels.settings import given
from gradcli.kernels.sums import in_order, sums
from gradcli.kernels.vector_functions import OneByOne

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Array]
Shapes = Sequence[tuple[int, ...]]


def kernel(op: str, settings: Any, inputs: Sequence[Node], output: Node) -> Kernel | None:
    """Return what computes an operation on floating-point numbers, or None where the graph's nodes do."""
    if output.dtype not in ("float32", "float64") or inputs[0].dtype != output.dtype:
        return None
    shapes = [n.shape for n in inputs]
    if found := activation(op, settings, len(shapes)):
        return found[0]
    if layer := layer_of(op, settings, shapes):
        return layer.forward
    return _KERNELS[op](settings, shapes) if op in _KERNELS else None


def layer_of(op: str, settings: Any, shapes: Shapes) -> Batch | Layer | Convolution | None:
    """Return a call of a layer that knows what it computes and passes on; None for padding by name."""
    by_place, by_name = (given(settings) if op in _LAYERS and settings else None) or ([], {})
    if (not by_name and not by_place) or isinstance(by_name.get("padding"), str) or not math.prod(shapes[0]):
        return None
    return _LAYERS[op](by_place, by_name, shapes)


_LAYERS: dict[str, Callable[..., Batch | Layer | Convolution]] = {
    "batch_norm": Batch,
    "layer_norm": Layer,
    "conv1d": Convolution,
    "conv2d": Convolution,
}


def _scaled(sign: int, settings: Any, shapes: Shapes) -> Kernel | None:
    """Return a sum or a difference whose second operand is multiplied by a number, with one rounding."""
    if not isinstance(settings, tuple) or len(shapes) != 2 or not isinstance(settings[-1], str):
        return None
    factor = sign * float(settings[-1])
    return lambda a, b: fused(a.dtype.type(factor), b, a)


def _batches(settings: Any, shapes: Shapes) -> Kernel | None:
    if [len(s) for s in shapes] != [3, 3] or not math.prod(shapes[0]) * shapes[1][2]:
        return None
    return lambda a, b: products_of_stacks(a[..., 0], b[..., 0])[..., None]


def _spread(root: bool, settings: Any, shapes: Shapes) -> Kernel | None:
    """Return a variance or its root."""
    if len(settings) != 3:
        return None
    axes, keepdim, less = settings
    if math.prod(shapes[0][a] for a in axes) <= less or not math.prod(shapes[0]):
        return None

    def spread(x: Array) -> Array:
        found = variance(axes, less, x)
        found = (np.sqrt(found) if root else found).astype(x.dtype)
        return np.expand_dims(found, axes) if keepdim else found

    return spread


# Losses


def reduction(settings: Any) -> str:
    """Return how a loss is reduced."""
    return settings[0] if isinstance(settings[0], str) else (given(settings) or ([""],))[0][-1]


def _loss(each: Kernel, settings: Any, shapes: Shapes) -> Kernel | None:
    """Return a loss that a function gives for each element and its target, without weights."""
    how = reduction(settings)

    def loss(x: Array, y: Array) -> Array:
        one = each(x, y)
        if how == "none":
            return one
        found = sums(tuple(range(x.ndim - 1)), one)
        return found / x.dtype.type(x.size) if how == "mean" else found

    return loss if len(shapes) == 2 else None


def _of_probabilities(p: Array, y: Array) -> Array:
    log, log_rest = np.maximum(OneByOne.log(p), -100), np.maximum(OneByOne.log1p(-p), -100)
    return (y - 1) * log_rest - y * log  # type: ignore[no-any-return]


def _classes(settings: Any, shapes: Shapes) -> Kernel | None:
    """Return the loss of classes: of logarithms of probabilities, as many samples in rows."""
    if len(settings) != 4 or settings[0] == "none" or len(shapes[0]) != 2 or not shapes[0][0]:
        return None
    how, total, _, ignored = settings

    def loss(x: Array, target: Array, *weight: Array) -> Array:
        places = np.flatnonzero(target[:, 0] != ignored)
        terms = -x[places, target[places, 0].astype(int), 0]
        for w in weight:  # of each sample's class
            terms = terms * w[places, 0]
        found = _in_chunks(terms)
        return np.asarray(found / x.dtype.type(total) if how == "mean" else found, x.dtype).reshape(1)

    return loss


def _in_chunks(terms: Array) -> Any:
    """Return the sum of terms after the first, sixteen of them, and of sixteen such sums; and the first."""
    found: Any = 0
    rest = terms[1:]
    while len(rest):
        whole = len(rest) - len(rest) % 16
        found = found + (in_order(rest[whole:]) if whole < len(rest) else 0)
        rest = in_order(rest[:whole].reshape(-1, 16).T)
    return found + terms[0] if len(terms) else found


_KERNELS: dict[str, Callable[[Any, Shapes], Kernel | None]] = {
    "sqrt": lambda settings, shapes: sqrt,
    "pow": lambda settings, shapes: sqrt if settings and settings[-1] == "0.5" else None,
    "add": partial(_scaled, 1),
    "sub": partial(_scaled, -1),
    "addmm": lambda settings, shapes: lambda c, a, b: sum_with_product(c[..., 0], a[..., 0], b[..., 0])[..., None],
    "matmul": _batches,
    "nll_loss": _classes,
    "std": partial(_spread, True),
    "var": partial(_spread, False),
    "binary_cross_entropy": partial(_loss, _of_probabilities),
    "binary_cross_entropy_with_logits": partial(_loss, lambda x, y: (1 - y) * x - logsigmoid(None, x)),
}
