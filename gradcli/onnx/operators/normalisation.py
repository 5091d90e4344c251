"""Normalizations: definitions in simpler operations."""

from __future__ import annotations

from functools import partial

from gradcli.errors import InputError
from gradcli.graph.calls import call_with
from gradcli.graph.construct import call, channels, corner, equal, kept, reduce, reshape, swap
from gradcli.graph.node import Node
from gradcli.graph.windows import Window, average
from gradcli.onnx.register import add, operator
from gradcli.onnx.values import axis_of, number


def _kept(op: str, x: Node, axes: tuple[int, ...], *settings: int) -> Node:
    return kept(reduce(op, x, axes, *settings), x, axes)


def _standard(x: Node, axes: tuple[int, ...], epsilon: float) -> Node:
    """Return an array less its mean over axes, over the root of its variance there."""
    return (x - _kept("mean", x, axes)) / call("sqrt", _kept("var", x, axes, 0) + number(epsilon))


@operator("BatchNormalization", since=7)
def _batch(
    x: Node, scale: Node, bias: Node, mean: Node, var: Node, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0, is_test: int = 1, spatial: int = 1,
) -> tuple[Node, ...]:  # fmt: skip
    given, training = (mean, var, scale, bias), training_mode or not is_test
    if not training and len(x.shape) > 1 and all(v.shape == x.shape[1:2] for v in given):
        names = ("running_mean", "running_var", "weight", "bias")
        return (call_with("batch_norm", (False,), (x,), **dict(zip(names, given, strict=True)), eps=number(epsilon)),)
    scale, bias, mean, var = (channels(v, x) for v in (scale, bias, mean, var))
    if not training:
        return ((x - mean) / call("sqrt", var + number(epsilon)) * scale + bias,)
    axes = (0, *range(2, len(x.shape)))
    kept = number(momentum)
    now = [(reduce("mean", x, axes), mean), (reduce("var", x, axes, 0), var)]
    running = [reshape(old, (old.size,)) * kept + new * (1 - kept) for new, old in now]
    return (_standard(x, axes, epsilon) * scale + bias, *running)


add(partial(_batch, is_test=0), "BatchNormalization")


@operator("InstanceNormalization")
def _instance(x: Node, scale: Node, bias: Node, *, epsilon: float = 1e-5) -> Node:
    if len(x.shape) > 2 and scale.shape == bias.shape == x.shape[1:2]:
        return call_with("instance_norm", (True,), (x,), weight=scale, bias=bias, eps=number(epsilon))
    return _standard(x, tuple(range(2, len(x.shape))), epsilon) * channels(scale, x) + channels(bias, x)


@operator("LayerNormalization")
def _layer(
    x: Node, scale: Node, bias: Node | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Node, ...]:
    axes = tuple(range(axis_of(axis, len(x.shape)), len(x.shape)))
    shape = tuple(x.shape[i] for i in axes)
    if scale.shape == shape and (bias is None or bias.shape == shape):
        y = call_with("layer_norm", (shape,), (x,), weight=scale, bias=bias, eps=number(epsilon))
    else:
        y = _standard(x, axes, epsilon) * scale
        y = y if bias is None else y + bias
    inverse = 1 / call("sqrt", _kept("var", x, axes, 0) + number(epsilon))
    return y, _kept("mean", x, axes), inverse


@operator("GroupNormalization", since=18)
def _group(x: Node, scale: Node, bias: Node, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1) -> Node:
    count = x.shape[1]
    if num_groups < 1 or count % num_groups:
        raise InputError(f"{count} channels do not form {num_groups} groups")
    if scale.shape == bias.shape == (count,):
        return call_with("group_norm", (num_groups,), (x,), weight=scale, bias=bias, eps=number(epsilon))
    groups = reshape(x, (x.shape[0], num_groups, -1))
    y = _standard(groups, (2,), epsilon)
    if scale.size == count:
        return reshape(y, x.shape) * channels(scale, x) + channels(bias, x)
    return reshape(y * reshape(scale, (-1, 1)) + reshape(bias, (-1, 1)), x.shape)


@operator("LpNormalization")
def _lp(x: Node, *, axis: int = -1, p: int = 2) -> Node:
    axes = (axis_of(axis, len(x.shape)),)
    size = _kept("norm", x, axes) if p == 2 else _kept("sum", call("abs", x), axes)
    return corner(equal(size, 0), 0, x / size)


@operator("LRN")
def _lrn(x: Node, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Node:
    if size < 1:
        raise InputError(f"there is no window of {size} channels")
    # The window is one along the channels, which come last.
    flat = reshape(x**2, (*x.shape[:2], -1))
    before = (size - 1) // 2
    window = Window(size, padding=before, more=size - 1 - 2 * before)
    sums = reshape(swap(average(swap(flat), [window], True, 1)), x.shape)
    return x / (number(bias) + number(alpha) / size * sums) ** number(beta)
