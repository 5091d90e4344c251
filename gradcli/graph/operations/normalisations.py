"""Normalisations of arrays, defined in simpler operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import numpy as np

from gradcli.graph.construct import Axes, call, channels, kept, reduce, reshape, sum_to
from gradcli.graph.node import Exact, Node, const
from gradcli.graph.operation import Operation, defined


def _last_axes(x: Node, shape: Sequence[int]) -> Axes:
    return tuple(range(len(x.shape) - len(shape), len(x.shape)))


def _layer_norm(shape: Sequence[int], x: Node, *, eps: Node, **scale: Node) -> Node:
    return _scaled(_over(x, _last_axes(x, shape), eps), **scale)


def _layer_norm_pullback(g: Node, y: Node, shape: Sequence[int], x: Node, **known: Node) -> Sequence[Node]:
    normalised = y if [*known] == ["eps"] else _standard(x, shape, known["eps"])
    return _through_norm(g, normalised, x, _last_axes(x, shape), known, lambda a: a)


def _layer_norm_residuals(shape: Sequence[int], x: Node, *, eps: Node, **scale: Node) -> list[Node]:
    return [*([_standard(x, shape, eps)] if scale else []), _deviation(x, _last_axes(x, shape), eps)]


def _batch_norm(training: bool, x: Node, **known: Node) -> Node:
    rows = {name: channels(a, x) for name, a in known.items() if name != "eps"}
    if "running_mean" in rows and not training:
        normalised = (x - rows["running_mean"]) / call("sqrt", rows["running_var"] + known["eps"])
    else:
        normalised = _over(x, (0, *range(2, len(x.shape))), known["eps"])
    return _scaled(normalised, rows.get("weight"), rows.get("bias"))


def _batch_norm_pullback(g: Node, y: Node, training: bool, x: Node, **known: Node) -> Sequence[Node] | None:
    if "running_mean" in known:
        return None
    normalised = y if [*known] == ["eps"] else _standard_batch(x, known["eps"], training)
    axes = (0, *range(2, len(x.shape)))
    return _through_norm(g, normalised, x, axes, known, lambda a: channels(a, x))


def _batch_norm_residuals(training: bool, x: Node, *, eps: Node, **scale: Node) -> list[Node]:
    normalised = [_standard_batch(x, eps, training)] if scale else []
    return [*normalised, _deviation(x, (0, *range(2, len(x.shape))), eps)]


def _standard_batch(x: Node, eps: Node, training: bool) -> Node:
    return Node("batch_norm", (x, eps), x.shape, (("eps",), training), x.dtype)


def _group_norm(groups: int, x: Node, *, eps: Node, **scale: Node) -> Node:
    rows = reshape(x, (x.shape[0], groups, x.size // max(1, x.shape[0] * groups)))
    return _of_channels(reshape(_standard(rows, rows.shape[-1:], eps), x.shape), scale)


def _instance_norm(of_input: bool, x: Node, **known: Node) -> Node:
    if not of_input:
        return Node("batch_norm", (x, *known.values()), x.shape, (tuple(known), False), x.dtype)
    return _of_channels(_standard(x, x.shape[2:], known["eps"]), known)


def _rms_norm(shape: Sequence[int], x: Node, *, weight: Node | None = None, eps: Node | None = None) -> Node:
    axes = _last_axes(x, shape)
    eps = eps or const(Decimal(float(np.finfo(x.dtype).eps)), (), x.dtype)
    return _scaled(x / call("sqrt", kept(reduce("mean", x**2, axes), x, axes) + eps), weight)


def _standard(x: Node, shape: Sequence[int], eps: Node) -> Node:
    """Return the array less its mean over the last axes, of this shape, over the root of its variance, as a call."""
    return Node("layer_norm", (x, eps), x.shape, (("eps",), tuple(shape)), x.dtype)


def _of_channels(x: Node, known: Mapping[str, Node]) -> Node:
    """Return an array times the weights of its channels, plus their biases."""
    return _scaled(x, *(channels(known[name], x) if name in known else None for name in ("weight", "bias")))


def _through_norm(
    g: Node, normalised: Node, x: Node, axes: Axes, known: Mapping[str, Node], factor: Callable[[Node], Node]
) -> Sequence[Node]:
    """Return the adjoints of what was normalised over the axes, and of the options: a weight, a bias, and eps.

    `factor` returns a weight in a shape that broadcasts to that of x.
    """
    deviation = _deviation(x, axes, known["eps"])
    passed = g * factor(known["weight"]) if "weight" in known else g
    shift, share = (kept(reduce("mean", a, axes), x, axes) for a in (passed, passed * normalised))
    parts = {"weight": g * normalised, "bias": g, "eps": -(passed * normalised) / (2 * deviation**2)}
    of_options = (reshape(sum_to(parts[k], factor(a).shape if k != "eps" else ()), a.shape) for k, a in known.items())
    return [(passed - shift - normalised * share) / deviation, *of_options]


def _deviation(x: Node, axes: Axes, eps: Node) -> Node:
    """Return the root of the variance over the axes plus eps."""
    return call("sqrt", kept(reduce("var", x, axes, 0), x, axes) + eps)


def _over(x: Node, axes: Axes, eps: Node) -> Node:
    """Return the array less its mean over the axes, divided by the root of its variance there."""
    return (x - kept(reduce("mean", x, axes), x, axes)) / _deviation(x, axes, eps)


def _scaled(x: Node, weight: Node | None = None, bias: Node | None = None) -> Node:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


_EPS = {"eps": Decimal("0.00001")}  # PyTorch's default
_SCALED: dict[str, Exact | None] = {"weight": None, "bias": None, **_EPS}
_RUNNING: dict[str, Exact | None] = {"running_mean": None, "running_var": None, **_SCALED}

ROWS: dict[str, Operation] = {
    "layer_norm": defined(
        _layer_norm,
        "given",
        "normalized_shape",
        pullback=_layer_norm_pullback,
        residuals=_layer_norm_residuals,
        options=_SCALED,
    ),
    "group_norm": defined(_group_norm, "given", "num_groups", options=_SCALED),
    "instance_norm": defined(_instance_norm, "given", "use_input_stats", options=_RUNNING),
    "rms_norm": defined(_rms_norm, "given", "normalized_shape", options={"weight": None, "eps": None}),
    "batch_norm": defined(
        _batch_norm,
        "given",
        "training",
        pullback=_batch_norm_pullback,
        residuals=_batch_norm_residuals,
        options=_RUNNING,
    ),
}
