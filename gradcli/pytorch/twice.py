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

# Names of steps without `Backward0`; several, for the inputs in their order.
_OWN = (
    *("BinaryCrossEntropy", "Diagonal", "Elu", "Gelu", "HuberLoss", "LogSigmoid", "MseLoss", "NativeLayerNorm"),
    *("NativeBatchNorm", "Select", "Sigmoid", "Slice", "SmoothL1Loss", "Softplus", "Tanh"),
)
# What depends on the input, though the derivative does not change with it.
_TIED = ("AvgPool2D", "Convolution", "Hardtanh", "LeakyRelu", "MaxPool2DWithIndices", "NllLoss")
_NAMES: dict[str, tuple[str, ...]] = {name: (f"{name}Backward",) for name in (*_OWN, *_TIED)}
_NAMES |= {
    "Squeeze": ("Unsqueeze",),
    "DiagonalBackward0_copy": ("DiagonalBackward",),
    "Relu": ("ThresholdBackward",),
    "Softmax": ("SoftmaxBackwardData",),
    "LogSoftmax": ("LogSoftmaxBackwardData",),
    "BinaryCrossEntropyWithLogits": ("DivBackward1",),
    "MeanBackward0": ("DivBackward1",),
    "MeanBackward1": ("DivBackward1",),
    "Lerp": ("MulBackward1", "MulBackward1"),
    "Deg2Rad": ("MulBackward1",),
    "Exp2": ("MulBackward1",),
    "MaxBackward1": ("MaskedFillBackward1",),
    "MinBackward1": ("MaskedFillBackward1",),
    "MedianBackward0": ("MaskedFillBackward1",),
    "Div": ("", "Mul"),
    "Reciprocal": ("Mul", "Mul"),
    **{f"SqueezeBackward{n}": ("Unsqueeze",) for n in range(5)},
    "Mv": ("Mul", "Mv"),
    "Addmm": ("", "Mm", "Mm"),
    "Cat": ("Slice",) * 64,
    "Stack": ("Select",) * 64,
    "Maximum": ("MaskedFill", "MaskedFill"),
    "Minimum": ("MaskedFill", "MaskedFill"),
    "Unsqueeze": ("SqueezeBackward1",),
    "Repeat": ("SumBackward1",),
    "Embedding": ("EmbeddingDenseBackward",),
    "Index": ("IndexPutImpl",),
    **dict.fromkeys(("Acos", "Asin", "Cos", "Amax", "Amin", "Erf", "Rsqrt", "Var"), ("Mul",)),
    **dict.fromkeys(("MaxBackward0", "MinBackward0", "MedianBackward1", "Sort", "Topk"), ("Scatter",)),
    **{n: (n,) for n in ("ConstantPadNd", "Flip", "MaskedFill", "Permute", "Roll", "T")},
    **dict.fromkeys(("Hypot", "Logaddexp", "Cumprod"), ("Div",)),
    **{"Cumsum": ("Flip",), "DiagEmbed": ("Diagonal",), "Trace": ("View",), "Unbind": ("Stack",), "Split": ("Cat",)},
    **{"Gather": ("ScatterAdd",), "IndexSelect": ("IndexAdd",), "MaskedSelect": ("MaskedScatter",), "Take": ("Put",)},
}


def renamed(step: Step, g: Tensor, passed: Sequence[Any]) -> Sequence[Any]:
    """Return what a step passed on, as tensors, under PyTorch's names for what made them."""
    name = step.name()
    root = name.removesuffix("Backward0")
    names = _NAMES.get(root) or _NAMES.get(name) or ()
    if step.recipe.op == "l1_loss" or (root.endswith("Logits") and "mean" not in repr(step.recipe.settings)):
        names = ("Mul",)
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
