"""Names of layers with PyTorch's signatures: dense ones, attention, normalisations and recurrent ones.

Dropout takes its mask; recurrent layers take the arguments of `torch.lstm` and the like, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gradcli.errors import InputError
from gradcli.graph.calls import call_of, call_with
from gradcli.graph.node import Exact, Node, const
from gradcli.graph.operations.recurrent import KINDS, arguments_of, recurrent
from gradcli.graph.shapes import broadcast_shapes, size_of
from gradcli.vocabulary.register import each, flag, integers, named

_HALF = const(Decimal("0.5"))


@named("linear", methods=())
def _linear(input: Node, weight: Node, bias: Node | None = None) -> Node:
    if len(weight.shape) not in (1, 2) or input.shape[-1:] != weight.shape[-1:]:
        raise InputError(
            f"a weight of shape {weight.shape} does not fit an input of shape {input.shape}",
            hint="`linear(x, W, b)` is `x @ W.T + b`: the weight is (outputs, inputs), inputs are along the last axis",
        )
    outputs = weight.shape[:-1]
    if bias is not None and bias.shape not in (outputs, (1,), ()):
        raise InputError(f"the bias has a number for each output: its shape is {outputs}, not {bias.shape}")
    return call_with("linear", (), (input, weight), bias=bias)


@named("bilinear", methods=())
def _bilinear(input1: Node, input2: Node, weight: Node, bias: Node | None = None) -> Node:
    sizes = input1.shape[-1:] + input2.shape[-1:]
    if len(weight.shape) != 3 or weight.shape[1:] != sizes or input1.shape[:-1] != input2.shape[:-1]:
        raise InputError(
            f"a weight of shape {weight.shape} does not fit inputs of shapes {input1.shape} and {input2.shape}",
            hint="it is (outputs, first inputs, second inputs)",
        )
    if bias is not None and bias.shape not in (weight.shape[:1], (1,), ()):
        raise InputError(f"the bias has a number for each output: its shape is {weight.shape[:1]}, not {bias.shape}")
    return call_with("bilinear", (), (input1, input2, weight), bias=bias)


@named("embedding", methods=())
def _embedding(input: Node, weight: Node, padding_idx: int | None = None) -> Node:
    if len(weight.shape) != 2:
        raise InputError(f"`embedding` takes rows of a matrix, not of an array of shape {weight.shape}")
    count = weight.shape[0]
    for i in input.values:
        if type(i) is not int or not 0 <= i < count:
            raise InputError(f"there is no row {i} among {count}", hint=f"they are counted from 0 to {count - 1}")
    if padding_idx is not None and not (type(padding_idx) is int and -count <= padding_idx < count):
        raise InputError(f"`padding_idx` is the number of a row, from 0 to {count - 1}")
    return call_of("embedding", (None if padding_idx is None else padding_idx % count,), input, weight)


@named("dropout", methods=())
def _dropout(input: Node, mask: Node, p: Node = _HALF) -> Node:
    if any(value not in (0, 1) for value in mask.values) or broadcast_shapes([input.shape, mask.shape]) != input.shape:
        raise InputError(
            "the mask of `dropout` has 1 for each element that is kept, and 0 for the others",
            hint="it is an input, such as `--at mask=[1,0,1]`, or of a file: `dropout(x, mask, p)` is `x*mask/(1 - p)`",
        )
    if isinstance(p.value, Exact) and not 0 <= p.value <= 1:
        raise InputError("`p` is a probability, from 0 to 1")
    return call_of("dropout", (), input, mask, p)


@named("scaled_dot_product_attention", methods=())
def _attention(
    query: Node,
    key: Node,
    value: Node,
    attn_mask: Node | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Node | None = None,
    enable_gqa: bool = False,
) -> Node:
    if dropout_p:
        raise InputError("`scaled_dot_product_attention` is without dropout here", hint="`dropout(x, mask, p)` is one")
    rank = min(len(x.shape) for x in (query, key, value))
    grouped = flag("enable_gqa", enable_gqa)
    fits = rank >= 2 and query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2]
    if grouped:
        heads = [x.shape[-3] for x in (query, key, value)] if rank > 2 else [1, 0, 0]
        fits = fits and heads[1] == heads[2] and min(heads) > 0 and heads[0] % heads[1] == 0
    if not fits:
        raise InputError(
            f"queries, keys and values of shapes {query.shape}, {key.shape} and {value.shape} do not fit together",
            hint="queries are (…, queries, size), keys (…, keys, size), and values (…, keys, outputs)",
        )
    if flag("is_causal", is_causal) and attn_mask is not None:
        raise InputError("attention takes `is_causal` or a mask, not both")
    if attn_mask is not None:
        scores = (*query.shape[:-1], key.shape[-2])
        broadcast_shapes([attn_mask.shape, scores])
    return call_with(
        "scaled_dot_product_attention", (is_causal, grouped), (query, key, value), attn_mask=attn_mask, scale=scale
    )


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


MAX_STEPS = 10_000  # of all layers together


@each(*KINDS, methods=())
def _recurrent(
    op: str,
    input: Node,
    *states_and_weights: Node,
    num_layers: int = 1,
    bidirectional: bool = False,
    has_biases: bool = True,
    batch_first: bool = False,
    dropout: bool = False,
    result: int = 0,
) -> Node:
    args, states = (input, *states_and_weights), KINDS[op].states
    flags = {"bidirectional": bidirectional, "has_biases": has_biases, "batch_first": batch_first, "dropout": dropout}
    both, biased, turned, masked = (flag(name, value) for name, value in flags.items())
    if type(num_layers) is not int or not 1 <= num_layers <= MAX_STEPS:
        raise InputError(f"`num_layers` is a positive integer, {MAX_STEPS:,} at most")
    if type(result) is not int or not 0 <= result <= states:
        raise InputError(f"`result` is the number of a result of `{op}`: 0 is the outputs, {_numbers(states)}")
    count = num_layers * (1 + both)
    rest = len(args) - 1 - states - num_layers * masked
    each_layer = (2 + 2 * biased, 3 + 2 * biased)[:states]  # an LSTM may have a projection
    if rest not in [count * weights for weights in each_layer]:
        names = "W_ih, W_hh, b_ih, b_hh" if biased else "W_ih, W_hh"
        raise InputError(
            f"`{op}` takes its input, {'the first states h and c' if states > 1 else 'the first state'}, and the "
            f"weights of {count} layer{'s' * (count > 1)}",
            hint=f"for example `{op}(x, {'h, c' if states > 1 else 'h'}, {names})`",
        )
    _check(op, num_layers, both, biased, turned, masked, args)
    return recurrent(op, (num_layers, both, biased, turned, masked), *args)[result]


def _numbers(states: int) -> str:
    return "1 is the last h, 2 the last c" if states > 1 else "1 is the last state"


def _check(op: str, layers: int, both: bool, biased: bool, turned: bool, masked: bool, args: tuple[Node, ...]) -> None:
    """Check that the shapes of the arguments fit together.

    Errors: `InputError`.
    """
    x, states, weights, masks, _ = arguments_of(op, layers, both, masked, args)
    rank = len(x.shape)
    if rank not in (2, 3):
        raise InputError(f"`{op}` takes an input of shape (steps, batch, features), not {x.shape}")
    steps = x.shape[1 if turned and rank == 3 else 0]
    if not 0 < steps * len(weights) <= MAX_STEPS:
        raise InputError(f"`{op}` takes from 1 to {MAX_STEPS:,} steps, not {steps:,}")
    batch = () if rank == 2 else (x.shape[0 if turned else 1],)
    hidden = weights[0][1].shape[0] // KINDS[op].gates
    projected = len(weights[0]) % 2 == 1
    outputs = weights[0][-1].shape[0] if projected else hidden
    for s, size in zip(states, (outputs, hidden), strict=False):
        _expect(f"a state of `{op}`", s, (len(weights), *batch, size))
    for k, own in enumerate(weights):
        rows, features = hidden * KINDS[op].gates, x.shape[-1] if k < 1 + both else outputs * (1 + both)
        shapes = [(rows, features), (rows, outputs), *[(rows,)] * 2 * biased, *[(outputs, hidden)] * projected]
        for w, shape in zip(own, shapes, strict=True):
            _expect(f"a weight of `{op}`", w, shape)
    middle = (steps, *batch, outputs * (1 + both))
    for mask in masks:
        _expect("a mask between layers", mask, middle)


def _expect(what: str, x: Node, shape: tuple[int, ...]) -> None:
    if x.shape != shape:
        raise InputError(f"{what} has the shape {shape} here, not {x.shape}")
