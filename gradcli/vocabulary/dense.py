"""Names of dense layers, with PyTorch's signatures; dropout takes its mask."""

from __future__ import annotations

from decimal import Decimal

from gradcli.errors import InputError
from gradcli.graph.calls import call_of, call_with
from gradcli.graph.node import Exact, Node, const
from gradcli.graph.shapes import broadcast_shapes
from gradcli.vocabulary.register import named

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
