"""What PyTorch calls the `grad_fn` of each operation, and which tensors it keeps for the backward: facts, as a table.

An operation that is not listed is called after itself (`sin`: SinBackward0) and keeps what its pullback reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.pytorch.recipes import Pull

# For each name, without `Backward0` or whole where the number differs, the operations that have it.
_OPERATIONS = {
    "Abs": "absolute", "Acos": "arccos", "Acosh": "arccosh", "Asin": "arcsin", "Asinh": "arcsinh", "Atan": "arctan",
    "Atan2": "arctan2", "Atanh": "arctanh", "AvgPool2D": "avg_pool2d", "ClampBackward1": "clamp clip",
    "Clone": "identity", "ConstantPadNd": "pad",
    "Convolution": "conv1d conv2d", "Deg2Rad": "deg2rad", "Div": "softsign sech", "Elu": "selu",
    "Expand": "broadcast", "Hardtanh": "relu6", "HuberLoss": "huber", "Index": "take", "LinalgCross": "cross",
    "LinalgDet": "det", "LinalgInvEx": "inv inverse", "LinalgSolveEx": "solve", "LinalgVectorNorm": "norm",
    "Log1P": "log1p", "LogSigmoid": "logsigmoid", "MaxBackward1": "max", "MaxPool2DWithIndices": "max_pool2d",
    "MeanBackward1": "mean_dim", "MinBackward1": "min", "Mm": "matmul", "Mul": "prod_others rmul",
    "NativeBatchNorm": "batch_norm", "NativeLayerNorm": "layer_norm", "ProdBackward1": "prod_dim",
    "Rad2Deg": "rad2deg", "Repeat": "tile", "SelectBackward": "scatter", "SqueezeBackward1": "max_pool1d avg_pool1d",
    "Sub": "tanhshrink", "SumBackward1": "sum_dim", "Take": "take_flat", "ToCopy": "cast", "Trunc": "fix",
    "UnsafeView": "kron",
    "View": "repeat_interleave reshape", "Where": "corner", "torch::autograd::CopySlices": "slices",
    "torch::autograd::NotImplemented": "heaviside remainder",
}  # fmt: skip
_NAMES = {op: name for name, ops in _OPERATIONS.items() for op in ops.split()}


def grad_name(op: str) -> str:
    """Return what PyTorch calls the `grad_fn` of an operation.

    >>> grad_name("sin"), grad_name("log_softmax"), grad_name("max"), grad_name("slices")
    ('SinBackward0', 'LogSoftmaxBackward0', 'MaxBackward1', 'torch::autograd::CopySlices')
    """
    name = _NAMES.get(op) or capitals(op)
    return name if "Backward" in name or "::" in name else f"{name}Backward0"


def capitals(op: str) -> str:
    """Return a name as PyTorch's C++ writes it.

    >>> capitals("index_put")
    'IndexPut'
    """
    return "".join(part[:1].upper() + part[1:] for part in op.split("_"))


# For each order of a step's operands in which PyTorch has its edges, the steps that have it; the rest have all.
_ORDERS = {
    "0": "FillBackward2 FmodBackward0 IndexFillBackward0 MaskedFillBackward0 NllLossBackward0 RemainderBackward0 "
    "ScatterBackward1",
    "1": "RsubBackward1 PowBackward2 remainder",
    "10": "RsubBackward0 rmul",
    "01": "BinaryCrossEntropyWithLogitsBackward0",
    "02": "MaskedFillBackward1",
    "12": "WhereBackward0",
    "012": "ClampBackward0 ConvolutionBackward0 NativeBatchNormBackward0 NativeGroupNormBackward0 "
    "NativeLayerNormBackward0",
}
_EDGES = {name: [int(i) for i in order] for order, names in _ORDERS.items() for name in names.split()}


def edges_shown(op: str, name: str, count: int) -> Sequence[int]:
    """Return which operands PyTorch shows as those that a step's gradient flows to, in its order."""
    return _EDGES.get(op) or _EDGES.get(name) or range(count)


_RESULT = "y"

# What PyTorch keeps where its own rule reads something else than ours: inputs by number, `y` the result.  Of what is
# kept, a change in place is an error.  For each input that requires a gradient, its own part, between commas; `-` is
# something that no script can change.
_KEPT = {
    "": "cumsum mean sum", "0": "avg_pool1d cummax cummin gather var",
    "y": "relu sigmoid tanh tan exp exp2 expm1 sqrt rsqrt softmax log_softmax cross_entropy ReciprocalBackward0",
    "0y": "norm std logsumexp prod amax amin max min median cumprod", "1,01": "div",
    "01,01": "logaddexp binary_cross_entropy binary_cross_entropy_with_logits", "1,0": "matmul", ",2,1": "addmm",
    "0y,y": "copysign", "01y": "PowBackward1", "0y,1y": "hypot", ",1y": "PowBackward2", "01,0,": "layer_norm",
    "-": "max_dim min_dim median_dim sort topk index_places index_select masked_select take_flat embedding "
    "tanhshrink l1_loss",
}  # fmt: skip
_SAVED = {op: kept.split(",") for kept, ops in _KEPT.items() for op in ops.split()}


def saved(op: str, name: str, pull: Pull) -> tuple[list[int], bool]:
    """Return the places of what PyTorch keeps for the backward, the result behind the inputs; and whether anything."""
    own = _SAVED.get(name) or _SAVED.get(op)
    if own is None:
        return sorted(pull.reads), bool(pull.reads)
    found = "".join(own[min(i, len(own) - 1)] for i in pull.active)
    count = len(pull.inputs) - 2  # constants are none of them
    places = {int(c) for c in found if c.isdigit() and int(c) < count} | ({count} if _RESULT in found else set())
    return sorted(places), bool(found)
