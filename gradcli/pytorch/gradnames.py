"""What PyTorch calls the `grad_fn` of each operation, and which tensors it keeps for the backward: facts, as a table.

An operation that is not listed is called after itself (`sin`: SinBackward0) and keeps what its pullback reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.pytorch.recipes import Pull, Recipe

# The name without `Backward0`, or all of it where the number differs.
_NAMES = {
    "log1p": "Log1P",
    "square": "Pow",
    "T": "Permute",
    "mT": "Transpose",
    "swapaxes": "Transpose",
    "swapdims": "Transpose",
    "movedim": "Permute",
    "arctan2": "Atan2",
    "tile": "Repeat",
    "norm": "LinalgVectorNorm",
    "det": "LinalgDet",
    "inv": "LinalgInvEx",
    "inverse": "LinalgInvEx",
    "solve": "LinalgSolveEx",
    "cross": "LinalgCross",
    "kron": "UnsafeView",
    "selu": "Elu",
    "relu6": "Hardtanh",
    "logsigmoid": "LogSigmoid",
    "softmin": "Softmax",
    "outer": "Mul",
    "ger": "Mul",
    "einsum": "View",
    "diag": "DiagEmbed",
    "cat": "Cat",
    "concat": "Cat",
    "concatenate": "Cat",
    "hstack": "Cat",
    "vstack": "Cat",
    "flatten": "View",
    "ravel": "View",
    "unflatten": "View",
    "repeat_interleave": "View",
    "cast": "ToCopy",
    "cross_entropy": "NllLoss",
    "absolute": "Abs",
    "negative": "Neg",
    "multiply": "Mul",
    "subtract": "Sub",
    "divide": "Div",
    "true_divide": "Div",
    "identity": "Clone",
    "clamp": "ClampBackward1",
    "clip": "ClampBackward1",
    "rsub": "RsubBackward1",
    "mean_dim": "MeanBackward1",
    "sum_dim": "SumBackward1",
    "prod_dim": "ProdBackward1",
    "max_dim": "MaxBackward0",
    "min_dim": "MinBackward0",
    "max": "MaxBackward1",
    "min": "MinBackward1",
    "median_dim": "MedianBackward1",
    "huber": "HuberLoss",
    "scatter": "SelectBackward",
    "copy_": "torch::autograd::CopyBackwards",
    "slices": "torch::autograd::CopySlices",
    "to_mm": "Mm",
    "dropout": "Mul",
    "layer_norm": "NativeLayerNorm",
    "batch_norm": "NativeBatchNorm",
    "conv1d": "Convolution",
    "conv2d": "Convolution",
    "max_pool1d": "SqueezeBackward1",
    "max_pool2d": "MaxPool2DWithIndices",
    "avg_pool1d": "SqueezeBackward1",
    "avg_pool2d": "AvgPool2D",
    "smooth_l1_loss": "SmoothL1Loss",
    "l1_loss": "Mean",
    "prod_others": "Mul",
    "swap": "Transpose",
    "broadcast": "Expand",
    "softsign": "Div",
    "tanhshrink": "Sub",
    "reshape": "View",
    "matmul": "Mm",
    "sech": "Div",
    "lt": "Lt",
    "put": "Put",
    "take": "Index",
    "take_flat": "Take",
    "deg2rad": "Deg2Rad",
    "rad2deg": "Rad2Deg",
    "heaviside": "torch::autograd::NotImplemented",
    "stack": "Stack",
    "transpose": "Transpose",
    "view_as": "View",
    "expand_as": "Expand",
    "broadcast_to": "Expand",
    **{f"arc{name}": f"A{name}" for name in ("tan", "sin", "cos", "tanh", "sinh", "cosh")},
    "where": "Where",
    "corner": "Where",
}


def grad_name(op: str) -> str:
    """Return what PyTorch calls the `grad_fn` of an operation.

    >>> grad_name("sin"), grad_name("log_softmax"), grad_name("max"), grad_name("slices")
    ('SinBackward0', 'LogSoftmaxBackward0', 'MaxBackward1', 'torch::autograd::CopySlices')
    """
    name = _NAMES.get(op) or "".join(part[:1].upper() + part[1:] for part in op.split("_") if part)
    return name if "Backward" in name or "::" in name else f"{name}Backward0"


_RESULT = "y"

# What PyTorch keeps where its own rule reads something else than ours: inputs by number, `y` the result.  Of what is
# kept, a change in place is an error.  For each input that requires a gradient, its own string;
# `-` is something that no script can change.
_SAVED: dict[str, tuple[str, ...]] = {
    "div": ("1", "01"),
    "relu": ("y",),
    "sigmoid": ("y",),
    "tanh": ("y",),
    "tan": ("y",),
    "exp": ("y",),
    "expm1": ("y",),
    "sqrt": ("y",),
    "reciprocal": ("y",),
    "rsqrt": ("y",),
    "softmax": ("y",),
    "log_softmax": ("y",),
    "max_dim": ("-",),
    "min_dim": ("-",),
    "median_dim": ("-",),
    **dict.fromkeys(("sort", "topk", "index_places", "index_select", "gather", "masked_select", "take_flat"), ("-",)),
    **dict.fromkeys(("embedding", "tanhshrink"), ("-",)),
    **dict.fromkeys(("cummax", "cummin"), ("0",)),
    "cumsum": ("",),
    "mean": ("",),
    "sum": ("",),
    "norm": ("0y",),
    "std": ("0y",),
    "logsumexp": ("0y",),
    "prod": ("0y",),
    "amax": ("0y",),
    "amin": ("0y",),
    "max": ("0y",),
    "min": ("0y",),
    "median": ("0y",),
    "cumprod": ("0y",),
    "PowBackward1": ("01y",),
    "PowBackward2": ("", "1y"),
    "hypot": ("01y", "01y"),
    "logaddexp": ("01", "01"),
    "cross_entropy": ("y",),
}


def saved(recipe: Recipe, pull: Pull) -> tuple[list[int], bool, bool]:
    """Return which inputs PyTorch keeps for the backward, whether it keeps the result, and whether anything at all."""
    own = _SAVED.get(recipe.name) or _SAVED.get(recipe.op)
    if own is None:
        return sorted(pull.reads), pull.reads_result, bool(pull.reads) or pull.reads_result
    found = "".join(own[min(i, len(own) - 1)] for i in pull.active)
    if any(c.isdigit() and int(c) >= len(recipe.inputs) for c in found):  # of constants, which are no inputs
        return sorted(pull.reads), pull.reads_result, bool(pull.reads) or pull.reads_result
    return sorted({int(c) for c in found if c.isdigit()}), _RESULT in found, bool(found)
