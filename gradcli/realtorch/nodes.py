"""Nodes of PyTorch's graph that no recorded call has made, as operations of the table: by name, and what they save."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from gradcli.graph.construct import scatter
from gradcli.pytorch import dtypes
from gradcli.pytorch import torch as emulated_torch
from gradcli.pytorch.calls import call_function
from gradcli.pytorch.linalg import solve_triangular
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor
from gradcli.realtorch.values import tensors_in

_REDUCTIONS = ("none", "mean", "sum")
_SIGNED = 2**63  # of the integers that PyTorch saves without their sign, from here on those below 0


@dataclass
class Saved:
    """What a node saves, and the shape and dtype of its result; a missing attribute raises `LookupError`."""

    node: Any
    shape: tuple[int, ...]
    dtype: str

    def requires(self, k: int) -> bool:
        """Return whether a gradient goes on to an operand."""
        return self.node.next_functions[k][0] is not None

    def __getattr__(self, name: str) -> Any:
        try:
            return signed(getattr(self.node, f"_saved_{name}"))
        except (AttributeError, RuntimeError):
            raise LookupError(name) from None


def signed(x: Any) -> Any:
    """Return integers with their signs.

    >>> signed((3, 2**64 - 1, 0.5))
    (3, -1, 0.5)
    """
    if isinstance(x, tuple | list):
        return tuple(map(signed, x))
    return x - 2 * _SIGNED if isinstance(x, int) and x >= _SIGNED else x


def _method(name: str, *saved: str) -> Callable[..., Any]:
    """Return what calls a method of the operand with what the node saves under these names."""
    return lambda s, x, *_: getattr(x, name)(*(getattr(s, each) for each in saved))


def _function(name: str, *saved: str) -> Callable[..., Any]:
    return lambda s, x, *_: getattr(F, name)(x, **{each: getattr(s, each) for each in saved})


def _product(s: Saved, a: Any, b: Any) -> Any:
    """Return the product of two operands: PyTorch's backwards write a number as the second one, formulas first."""
    return b * a if isinstance(b, Tensor) and not b.dim() and not s.requires(1) else a * b


def _power(s: Saved, x: Any) -> Any:
    if s.exponent == 1:
        return x.clone()
    return x ** (int(s.exponent) if float(s.exponent).is_integer() else s.exponent)


def _shaped(s: Saved, x: Any, *_: Any) -> Any:
    return x.reshape(s.shape)


def _of_selected(s: Saved, v: Any) -> Any:
    """Return the gradient of a tensor of which an element along an axis was selected: 0 elsewhere."""
    axis = signed(s.dim) % len(s.shape)
    key = tuple(signed(s.index) % n if i == axis else range(n) for i, n in enumerate(s.shape))
    return apply("scatter", lambda g: scatter(s.shape, [(key, g)]), (v,), (s.shape, key))


def _convolution(s: Saved, x: Any, w: Any, b: Any = None) -> Any:
    if s.transposed:
        raise LookupError("transposed")
    return getattr(F, f"conv{len(s.stride)}d")(x, w, b, s.stride, s.padding, s.dilation, s.groups)


def _nll_loss(s: Saved, x: Any, *_: Any) -> Any:
    return F.nll_loss(x, _emulated(s.target), ignore_index=s.ignore_index, reduction=_REDUCTIONS[s.reduction])


def _emulated(x: Any) -> Any:
    """Return a saved tensor of PyTorch's as one of the emulation."""
    from gradcli.pytorch.tensor import of_array

    (tensor,) = tensors_in(x)
    return of_array(tensor.detach().cpu().numpy())


_UNARY = (
    *("abs", "acos", "asin", "atan", "cos", "cosh", "erf", "exp", "expm1", "log", "log10", "log2", "neg", "reciprocal"),
    *("relu", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "clone", "t"),
)  # fmt: skip
# By a node's name without `Backward`: what the operand at each edge is saved as, and what computes the result.
NODES: dict[str, tuple[Sequence[str], Callable[..., Any]]] = {
    **{f"{name[:1].upper()}{name[1:]}0": (("self",), _method(name)) for name in _UNARY},
    "Log1P0": (("self",), _method("log1p")),
    **dict.fromkeys(("Alias0", "CopyBackwards"), ((), lambda s, *xs: xs[-1].clone())),
    "SpecialZeta0": (("self", "other"), lambda s, a, b: call_function("zeta", a, b)),
    "Mul0": (("self", "other"), _product),
    "Mul1": (("self",), lambda s, x: s.other * x),
    "Div1": (("self",), lambda s, x: x / s.other),
    "Div0": (("self", "other"), lambda s, a, b: a / b),
    "Add0": (("self", "other"), lambda s, a, b: a + b if s.alpha == 1 else a + s.alpha * b),
    "Sub0": (("self", "other"), lambda s, a, b: a - b if s.alpha == 1 else a - s.alpha * b),
    "Pow0": (("self",), _power),
    "Pow1": (("self", "exponent"), lambda s, a, b: a**b),
    "Maximum0": (("self", "other"), lambda s, a, b: emulated_torch.maximum(a, b)),
    "Minimum0": (("self", "other"), lambda s, a, b: emulated_torch.minimum(a, b)),
    "Clamp1": (("self",), _method("clamp", "min", "max")),
    "LogSigmoid0": (("self",), _function("logsigmoid")),
    "Silu0": (("self",), _function("silu")),
    "Gelu0": (("self",), _function("gelu", "approximate")),
    "LeakyRelu0": (("self",), _function("leaky_relu", "negative_slope")),
    "Softplus0": (("self",), _function("softplus", "beta", "threshold")),
    "Sum0": (("self",), _method("sum")),
    "Sum1": (("self",), _method("sum", "dim", "keepdim")),
    "Mean0": (("self",), _method("mean")),
    "Mean1": (("self",), _method("mean", "dim", "keepdim")),
    "Prod0": (("self",), _method("prod")),
    "Max1": (("self",), _method("max")),
    "Min1": (("self",), _method("min")),
    "Logsumexp0": (("self",), _method("logsumexp", "dim", "keepdim")),
    "Amax0": (("self",), _method("amax", "dim", "keepdim")),
    "Amin0": (("self",), _method("amin", "dim", "keepdim")),
    "Cumsum0": (("self",), _method("cumsum", "dim")),
    "Softmax0": (("self",), _method("softmax", "dim")),
    "LogSoftmax0": (("self",), _method("log_softmax", "dim")),
    "Mm0": (("self", "mat2"), lambda s, a, b: a @ b),
    "Bmm0": (("self", "mat2"), lambda s, a, b: a @ b),
    "Mv0": (("self", "vec"), lambda s, a, b: a @ b),
    "Dot0": (("self", "tensor"), lambda s, a, b: a @ b),
    "Addmm0": (("self", "mat1", "mat2"), lambda s, b, x, w: emulated_torch.addmm(b, x, w, beta=s.beta, alpha=s.alpha)),
    "Transpose0": (("self",), _method("transpose", "dim0", "dim1")),
    "Permute0": (("self",), _method("permute", "dims")),
    "Unsqueeze0": (("self",), _method("unsqueeze", "dim")),
    **{f"{name}0": (("self",), _shaped) for name in ("View", "UnsafeView", "ReshapeAlias")},
    **{f"Squeeze{k}": (("self",), _shaped) for k in range(3)},
    "Expand0": (("self",), lambda s, x: x.expand(s.shape)),
    "Repeat0": (("self",), _method("repeat", "repeats")),
    "Select0": (("self",), _method("select", "dim", "index")),
    "Slice0": (("self",), lambda s, x: x[(slice(None),) * s.dim + (slice(s.start, s.end, s.step),)]),
    "Cat0": ((), lambda s, *xs: emulated_torch.cat(xs, s.dim)),
    "Stack0": ((), lambda s, *xs: emulated_torch.stack(xs, s.dim)),
    **{f"{name}0": (("self",), _method(name.lower(), "diagonal")) for name in ("Tril", "Triu")},
    "LinalgSolveTriangular0": (
        ("self", "B"),
        lambda s, a, b: solve_triangular(a, b, upper=s.upper, left=s.left, unitriangular=s.unitriangular),
    ),
    "Where0": (("self", "other"), lambda s, a, b: emulated_torch.where(_emulated(s.condition), a, b)),
    "ToCopy0": (("self",), lambda s, x: x.to(getattr(dtypes, s.dtype.replace("bfloat16", "float32")))),
    # Of a gradient that `create_graph` records.
    "TanhBackward0": (("grad_output", "result"), lambda s, v, y: v * (1 - y**2)),
    "SoftplusBackward0": (("grad_output", "self"), lambda s, v, x: v * (s.beta * x).sigmoid()),
    "SelectBackward0": ((), _of_selected),
    "SigmoidBackward0": (("grad_output", "result"), lambda s, v, y: v * y * (1 - y)),
    "MseLossBackward0": (
        ("grad_output", "self", "target"),
        lambda s, v, a, b: v * (2 / (a.numel() if s.reduction == 1 else 1)) * (a - b),
    ),
    "MseLoss0": (("self", "target"), lambda s, a, b: F.mse_loss(a, b, reduction=_REDUCTIONS[s.reduction])),
    "NllLoss0": (("self",), _nll_loss),
    "Embedding0": (("weight",), lambda s, w: F.embedding(_emulated(s.indices), w)),
    "Convolution0": (("input", "weight", "bias"), _convolution),
}


def name_of(node: Any) -> str:
    """Return the name of a node without its last `Backward`: Mul0; that of a custom function as it is."""
    return re.sub(r"Backward(\d*)$", r"\1", str(node.name()).rpartition("::")[2])


def computing(node: Any, shape: tuple[int, ...], dtype: str) -> tuple[Sequence[str], Callable[..., Any]] | None:
    """Return what the operands of a node are saved as, and what computes its result of them; None for another node."""
    known = NODES.get(name_of(node))
    return None if known is None else (known[0], partial(known[1], Saved(node, shape, dtype)))


def saved_tensor(node: Any, name: str) -> torch.Tensor | None:
    """Return a tensor that a node saves; None where it saves none under the name."""
    try:
        x = getattr(node, f"_saved_{name}")
    except (AttributeError, RuntimeError):
        return None
    return x if isinstance(x, torch.Tensor) else None
