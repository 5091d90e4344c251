"""Names of recurrent layers: the arguments of PyTorch's `torch.lstm` and the like, one after the other."""

from __future__ import annotations

from gradcli.errors import InputError
from gradcli.graph.node import Node
from gradcli.graph.operations.recurrent import KINDS, arguments_of, recurrent
from gradcli.vocabulary.register import each, flag

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
