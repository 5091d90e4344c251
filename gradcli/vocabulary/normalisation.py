"""Names of normalisations: definitions in simpler operations."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gradcli.errors import InputError
from gradcli.graph.construct import Axes, call, reduce, reshape
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import size_of
from gradcli.vocabulary.register import integers, kept, named

_EPS = const(Decimal("0.00001"))  # PyTorch's default


def _normalised(x: Node, mean: Node, variance: Node, eps: Node) -> Node:
    return (x - mean) / call("sqrt", variance + eps)


def _over(x: Node, axes: Axes, eps: Node) -> Node:
    """Return the array less its mean over the axes, divided by the root of its variance there."""
    mean, variance = reduce("mean", x, axes), reduce("var", x, axes, 0)
    return _normalised(x, kept(mean, x, axes, True), kept(variance, x, axes, True), eps)


def _scaled(x: Node, weight: Node | None, bias: Node | None) -> Node:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@named("layer_norm", methods=())
def _layer_norm(
    input: Node,
    normalized_shape: int | Sequence[int],
    weight: Node | None = None,
    bias: Node | None = None,
    eps: Node = _EPS,
) -> Node:
    shape = integers(normalized_shape, "`layer_norm(x, 3)` or `layer_norm(x, (2, 3))`")
    rank = len(input.shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise InputError(f"an array of shape {input.shape} does not end in the shape {shape} to be normalised")
    return _scaled(_over(input, tuple(range(rank - len(shape), rank)), eps), weight, bias)


@named("batch_norm", methods=())
def _batch_norm(
    input: Node,
    running_mean: Node | None = None,
    running_var: Node | None = None,
    weight: Node | None = None,
    bias: Node | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: Node = _EPS,
) -> Node:
    # Running statistics replace the batch's where nothing is trained; `momentum` only says how they are updated.
    if len(input.shape) < 2:
        raise InputError("`batch_norm` takes an array of shape (samples, channels) or (samples, channels, …)")
    if (running_mean is None) != (running_var is None):
        raise InputError("`batch_norm` takes a running mean and a running variance, or neither")
    channels = (input.shape[1], *(1,) * (len(input.shape) - 2))
    mean, variance, scale, shift = (
        None if a is None else reshape(a, channels) for a in (running_mean, running_var, weight, bias)
    )
    if mean is not None and variance is not None and not training:
        return _scaled(_normalised(input, mean, variance, eps), scale, shift)
    axes = (0, *range(2, len(input.shape)))
    if size_of(tuple(input.shape[i] for i in axes)) < 2:
        raise InputError("`batch_norm` needs more than one value in a channel")
    return _scaled(_over(input, axes, eps), scale, shift)
