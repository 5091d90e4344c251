"""Names of normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gradcli.errors import InputError
from gradcli.graph.calls import call_with
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import size_of
from gradcli.vocabulary.register import flag, integers, named

_EPS = const(Decimal("0.00001"))  # PyTorch's default


@named("layer_norm", methods=())
def _layer_norm(
    input: Node,
    normalized_shape: int | Sequence[int],
    weight: Node | None = None,
    bias: Node | None = None,
    eps: Node = _EPS,
) -> Node:
    shape = _last_sizes(input, normalized_shape)
    return call_with("layer_norm", (shape,), (input,), weight=weight, bias=bias, eps=eps)


@named("rms_norm", methods=())
def _rms_norm(
    input: Node, normalized_shape: int | Sequence[int], weight: Node | None = None, eps: Node | None = None
) -> Node:
    return call_with("rms_norm", (_last_sizes(input, normalized_shape),), (input,), weight=weight, eps=eps)


def _last_sizes(x: Node, typed: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape of what is normalised, which an array's shape ends in."""
    shape = integers(typed, "`layer_norm(x, 3)` or `layer_norm(x, (2, 3))`")
    if not shape or x.shape[-len(shape) :] != shape:
        raise InputError(f"an array of shape {x.shape} does not end in the shape {shape} to be normalised")
    return shape


@named("group_norm", methods=())
def _group_norm(
    input: Node, num_groups: int, weight: Node | None = None, bias: Node | None = None, eps: Node = _EPS
) -> Node:
    channels = input.shape[1] if len(input.shape) > 1 else 0
    if type(num_groups) is not int or num_groups < 1 or not channels or channels % num_groups:
        raise InputError(
            f"{channels} channels do not form {num_groups} groups",
            hint="`group_norm(x, 2)` takes an array of shape (samples, channels, …), and two groups of channels",
        )
    if input.size // num_groups < 2:
        raise InputError("`group_norm` needs more than one value in a group")
    return call_with("group_norm", (num_groups,), (input,), weight=weight, bias=bias, eps=eps)


@named("instance_norm", methods=())
def _instance_norm(
    input: Node,
    running_mean: Node | None = None,
    running_var: Node | None = None,
    weight: Node | None = None,
    bias: Node | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: Node = _EPS,
) -> Node:
    if len(input.shape) < 3:
        raise InputError("`instance_norm` takes an array of shape (samples, channels, …)")
    of_input = flag("use_input_stats", use_input_stats)
    if (running_mean is None) != (running_var is None) or (running_mean is None and not of_input):
        raise InputError("`instance_norm` takes a running mean and a running variance, or those of its input")
    if of_input and size_of(input.shape[2:]) < 2:
        raise InputError("`instance_norm` needs more than one value in a channel")
    statistics = {"running_mean": running_mean, "running_var": running_var}
    return call_with("instance_norm", (of_input,), (input,), **statistics, weight=weight, bias=bias, eps=eps)


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
    is_fixed = running_mean is not None and not training
    axes = (0, *range(2, len(input.shape)))
    if not is_fixed and size_of(tuple(input.shape[i] for i in axes)) < 2:
        raise InputError("`batch_norm` needs more than one value in a channel")
    statistics = {"running_mean": running_mean, "running_var": running_var}
    return call_with("batch_norm", (training,), (input,), **statistics, weight=weight, bias=bias, eps=eps)
