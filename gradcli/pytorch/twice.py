"""Gradients of gradients: what PyTorch calls the step that makes a gradient which has a history itself.

A step that is not listed is made of others, whose last one gives the name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.node import Node, const, elementwise
from gradcli.pytorch.calls import called
from gradcli.pytorch.record import Leaf, Step, apply, leading
from gradcli.pytorch.tensor import Tensor

# What depends on the input, though the derivative does not change with it.
_TIED = ("AvgPool2D", "Convolution", "Hardtanh", "LeakyRelu", "MaxPool2DWithIndices", "NllLoss")
# Those whose gradient's step is called after them: `TanhBackward`.
_OWN = (
    *("Diagonal", "Elu", "Gelu", "LogSigmoid", "NativeLayerNorm", "NativeBatchNorm", "Select", "Sigmoid", "Slice"),
    *("Softplus", "Tanh", *_TIED),
)
# For each name without `Backward0`, the steps whose gradients have it; several names are those of the inputs in their
# order, and a star is for all of them.
_GRADIENTS = {
    ",Mm,Mm": "Addmm", ",Mul": "Div", "*Select": "Stack", "*Slice": "Cat", "Cat": "Split",
    "ConstantPadNd": "ConstantPadNd", "DiagonalBackward": "DiagonalBackward0_copy", "Diagonal": "DiagEmbed",
    "Div": "Hypot Logaddexp Cumprod", "DivBackward1": "MeanBackward0 MeanBackward1",
    "BinaryCrossEntropyBackward,DivBackward1": "BinaryCrossEntropy",
    "*DivBackward1": "BinaryCrossEntropyWithLogits", "*MseLossBackward": "MseLoss", "*HuberLossBackward": "HuberLoss",
    "*SmoothL1LossBackward": "SmoothL1Loss", "*Bmm": "Bmm",
    "EmbeddingDenseBackward": "Embedding", "Flip": "Flip Cumsum", "IndexAdd": "IndexSelect", "IndexPutImpl": "Index",
    "LogSoftmaxBackwardData": "LogSoftmax", "MaskedFill": "MaskedFill", "MaskedFill,MaskedFill": "Maximum Minimum",
    "MaskedFillBackward1": "MaxBackward1 MinBackward1 MedianBackward0", "MaskedScatter": "MaskedSelect",
    "Mul": "Acos Asin Cos Amax Amin Erf Rsqrt Var", "Mul,Mul": "Reciprocal", "Mul,Mv": "Mv",
    "MulBackward1": "Deg2Rad Exp2", "MulBackward1,MulBackward1": "Lerp", "Permute": "Permute", "Put": "Take",
    "Roll": "Roll", "Scatter": "MaxBackward0 MinBackward0 MedianBackward1 Sort Topk", "ScatterAdd": "Gather",
    "SoftmaxBackwardData": "Softmax", "SqueezeBackward1": "Unsqueeze", "Stack": "Unbind", "SumBackward1": "Repeat",
    "T": "T", "ThresholdBackward": "Relu", "View": "Trace",
    "Unsqueeze": "Squeeze SqueezeBackward1 SqueezeBackward2 SqueezeBackward3 SqueezeBackward4",
}  # fmt: skip
_NAMES = {step: names for names, steps in _GRADIENTS.items() for step in steps.split()}
_NAMES |= {name: f"{name}Backward" for name in _OWN}


def renamed(step: Step, g: Tensor, passed: Sequence[Any]) -> Sequence[Any]:
    """Return what a step passed on, as tensors, under PyTorch's names for what made them."""
    name = step.name()
    root = name.removesuffix("Backward0")
    known = _NAMES.get(root) or _NAMES.get(name) or ""
    names = [known[1:]] * len(passed) if known.startswith("*") else known.split(",")
    if step.recipe.op == "l1_loss" or (root.endswith("Logits") and "mean" not in repr(step.recipe.settings)):
        names = ["Mul"]
    found = list(passed)
    for i, own in enumerate(passed):
        if not isinstance(own, Tensor) or own is g:
            continue
        wanted = names[i] if i < len(names) else ""
        if own._fn is None and root in (*_TIED, "Relu") and not own._requires:
            found[i] = own = _tied(own, step, i)
        if own._fn is None or own._fn.seq < step.seq:
            continue
        if not wanted and own._fn.name() == "SumBackward1" and g.dim() > own.dim():
            wanted = "View"  # of axes that broadcasting added
        if wanted and (wanted == "View" or not own._fn.name().startswith("Sum")):
            called(own, wanted if wanted.endswith(("Backward1", "Backward4")) else f"{wanted}Backward0")
    return found


def _tied(own: Tensor, step: Step, i: int) -> Tensor:
    """Return a gradient that depends on the input, with a derivative of 0, as PyTorch's does."""
    edge = step.edges[i]
    if edge is None:
        return own
    x = edge.variable if isinstance(edge, Leaf) else leading(np.zeros_like(own._a), edge)

    def build(g: Node, old: Node) -> Node:
        return elementwise("where", const(0, (), "bool"), old, g)

    return apply("tied", build, (own, x))
