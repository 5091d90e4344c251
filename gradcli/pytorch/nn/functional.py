"""`torch.nn.functional`: activations, linear maps, dropout, embeddings; the rest stands in files of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from gradcli.graph.calls import call_of
from gradcli.graph.construct import call
from gradcli.graph.index_arrays import IndexArray, gather, take
from gradcli.graph.node import Node, const, elementwise
from gradcli.pytorch.calls import call_function, exact, set_grad_fn_name
from gradcli.pytorch.chains import chain
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.functions import fact, find, table
from gradcli.pytorch.generator import DEFAULT
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.names import function, function_named, implementation
from gradcli.pytorch.operations.conversion import to
from gradcli.pytorch.operations.indexing import integers
from gradcli.pytorch.operations.inplace import change, set_in_place_name
from gradcli.pytorch.operations.joining import broadcast_tensors
from gradcli.pytorch.operations.products import matmul
from gradcli.pytorch.operations.random import drop_elements
from gradcli.pytorch.operations.views import t
from gradcli.pytorch.running import apply
from gradcli.pytorch.tables import pytorch_names
from gradcli.pytorch.tensor import Tensor, axis_of, new

# Functions of the vocabulary


@function("celu", "elu", "hardsigmoid", "hardswish", "leaky_relu", "mish", module=NN)
@function("relu", "relu6", "selu", "silu", "threshold", module=NN)
def _activated(input: Tensor, inplace: bool, op: str, **settings: Any) -> Tensor:
    if not inplace:
        return call_function(op, input, **settings)  # type: ignore[no-any-return]
    return change(input, lambda x: set_in_place_name(call_function(op, x, **settings)), f"{op}_")


@function("hardtanh", module=NN)
def _bounded(input: Tensor, inplace: bool, op: str, **bounds: Any) -> Tensor:
    raise_if(not inplace and bounds.get("min_val", -1) > bounds.get("max_val", 1), "bounds of hardtanh")
    return _activated(input, inplace, op, **bounds)


@function("softshrink", module=NN)
def _shrunk(input: Tensor, lambd: float) -> Tensor:
    if input._a.dtype.kind == "f":
        most = float(np.finfo(input._a.dtype).max)
        raise_if(not 0 <= lambd <= most, "reach of softshrink", lambd)
    return call_function("softshrink", input, lambd)  # type: ignore[no-any-return]


# Activations


@function("gelu", module=NN)
def _gelu(input: Tensor, approximate: str) -> Tensor:
    raise_if(approximate not in ("none", "tanh"), "kind of gelu")
    if approximate == "none":
        return call_function("gelu", input)
    scale, cubic = const(exact(float(np.sqrt(2 / np.pi)))), const(exact(0.044715))

    def build(x: Node) -> Node:
        return const(exact(0.5)) * x * (1 + call("tanh", scale * (x + cubic * x * x * x)))

    return apply("gelu", build, (input,), approximate)


@function("rrelu", module=NN)
def _rrelu(input: Any, lower: float, upper: float, training: bool, inplace: bool) -> Tensor:
    """Return a leaky rectifier with a random slope for each negative element, or outside of a training their mean."""
    if not training:
        result = _activated(input, inplace, "leaky_relu", negative_slope=(lower + upper) / 2)
        return result if inplace else set_grad_fn_name(result, "RreluWithNoiseBackward0")  # type: ignore[no-any-return]
    slopes, is_low = np.ones_like(input._a), input._a <= 0
    slopes[is_low] = DEFAULT.between(lower, upper, int(is_low.sum()), np.float64)

    def compute(x: Any) -> Any:
        return set_grad_fn_name(x * new(slopes), "RreluWithNoiseBackward0")

    return change(input, compute, "rrelu_") if inplace else compute(input)


@function("glu", module=NN)
def _glu(input: Any, dim: int) -> Tensor:
    axis = axis_of(dim, input.dim())
    size = input.shape[axis]
    raise_if(size % 2, "half of an odd size", axis, size)

    def build(x: Node) -> Node:
        first, second = (take(x, axis, IndexArray.of(range(i, i + size // 2))) for i in (0, size // 2))
        return first * call("sigmoid", second)

    return apply("glu", build, (input,), axis)


@function("prelu", module=NN)
def _prelu(input: Tensor, weight: Any) -> Tensor:
    raise_if(weight.numel() > 1 and not input.dim(), "slopes of a number")
    slopes = weight.view(()) if weight.numel() == 1 else weight.view(-1, *(1,) * (input.dim() - 2))
    return call_function("prelu_kernel", input, slopes)


@function("softmax", "log_softmax", "softmin", module=NN)
def _along(input: Tensor, dim: int | None, dtype: Any, op: str) -> Tensor:
    if dim is None:
        warn("implicit axis", op)
        dim = 0 if input.dim() in (0, 1, 3) else 1
    x = to(-input if op == "softmin" else input, dtype)
    return getattr(x, op.replace("min", "max"))(dim)  # type: ignore[no-any-return]


@function("normalize", module=NN)
def _normalize(input: Any, p: float, dim: int, eps: float) -> Tensor:
    return input / input.norm(p, dim, True).clamp_min(eps).expand_as(input)


@function("cosine_similarity", module=NN)
def _cosine_similarity(x1: Any, x2: Any, dim: int, eps: float) -> Tensor:
    both = (to(x, result_dtype((x1, x2))) for x in broadcast_tensors((x1, x2)))
    first, second = (x / x.norm(dim=dim, keepdim=True).clamp_min(eps) for x in both)
    return (first * second).sum(dim)


# Layers


@function("linear", module=NN)
def _linear(input: Any, weight: Tensor, bias: Tensor | None) -> Tensor:
    x, w, b = input._a, weight._a, None if bias is None else bias._a
    fits = w.ndim == 3 and x.ndim > 1 and x.shape[-2] == w.shape[1] and x.dtype == w.dtype and x.dtype.kind == "f"
    if not fits or (b is not None and (b.shape != (len(w), 1) or b.dtype != w.dtype)):
        return _product(input, weight, bias)
    operands, given = ((input, weight), ()) if bias is None else ((input, weight, bias), ("bias",))
    name = _chain_of_linear(input, bias is not None)
    return apply("linear", partial(call_of, "linear", (given,)), operands, given, name)


def _chain_of_linear(x: Tensor, has_bias: bool) -> str:
    """Return what PyTorch makes of a linear map: it multiplies matrices alone."""
    rank, is_contiguous = x._a.ndim - 1, x._a.flags.c_contiguous
    kind = "matrix" if rank == 2 else "vector" if rank == 1 else "stack" if is_contiguous else "transposed_stack"
    if not has_bias:
        return chain(f"linear_of_{kind}")
    if rank != 2 and (Mode.transforms or not is_contiguous):
        return f"Add({chain(f'linear_of_{kind}')},2)"
    return chain("addmm_of_matrix" if rank == 2 else "addmm_of_rows")


def _product(input: Any, weight: Tensor, bias: Any) -> Any:
    """Return a linear map by one row of weights, or of another bias than one for each output; others are errors."""
    ranks = (input.dim(), weight.dim())
    raise_if(0 in ranks, "product with a number", "linear", *ranks)
    if bias is None:
        return matmul(input, t(weight))
    if ranks[0] == 2:
        return bias.addmm(input, t(weight))  # type: ignore[no-any-return]
    if ranks[1] == 1:
        return matmul(input, t(weight)) + bias  # type: ignore[no-any-return]
    *outer, inner = input.shape
    rows: Any = bias.addmm(input.reshape(math.prod(outer), inner), t(weight))
    return rows.view(*outer, weight.shape[0])  # type: ignore[no-any-return]


@function("dropout", module=NN)
def _dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return drop(input, p, training, inplace, input.shape)


@function("dropout1d", "dropout2d", "dropout3d", module=NN)
def _dropout_of_channels(input: Any, p: float, training: bool, inplace: bool, op: str) -> Any:
    """Leave out whole channels of sequences, pictures or volumes."""
    axes = int(op[-2])
    missing_if(axes == 2 and input.dim() != 4, f"torch.nn.functional.dropout2d of {input.dim()} axes")
    batch = input if input.dim() == axes + 2 else input.unsqueeze(0)
    result: Any = drop(batch, p, training, inplace, (*batch.shape[:2], *(1,) * axes))
    return result if batch is input else result.squeeze(0)


def check_probability(p: float) -> None:
    """Check that the probability of a dropout is one.

    Errors: `ValueError`.
    """
    raise_if(p < 0.0 or p > 1.0, "probability of a dropout", p)


def drop(input: Tensor, p: float, training: bool, inplace: bool, shape: Sequence[int]) -> Tensor:
    """Return the input after dropout, with one draw for each element of a shape that broadcasts."""
    check_probability(p)
    if not training or not input.numel():
        return input
    raise_if(input._a.dtype.kind != "f", "dtype of what is written", "Float", input.dtype.word)
    if not inplace:
        return drop_elements(input, p, tuple(shape))
    return change(input, lambda x: drop_elements(x, p, tuple(shape)), "dropout_")


@function("embedding", module=NN)
def _embedding(
    input: Tensor, weight: Tensor, padding_idx: Any, max_norm: Any, norm_type: float, scale_grad_by_freq: bool,
    sparse: bool,
) -> Tensor:  # fmt: skip
    raise_if(weight.dim() != 2, "axes of an embedding")
    missing_if(scale_grad_by_freq, "torch.nn.functional.embedding(scale_grad_by_freq=…)")
    missing_if(sparse, "torch.nn.functional.embedding(sparse=…)")
    ids = input._a[..., 0]
    if ids.dtype.kind != "i":
        raise torch_error("kind of indices", "CPUBoolType" if ids.dtype == bool else input.type())
    bad = ids[(ids < 0) | (ids >= weight.shape[0])]
    raise_if(bad.size, "slice outside", about=(bad, weight.shape[0]))
    for i in np.unique(ids) if max_norm is not None else ():
        row = weight.detach()[i]
        if (length := row.norm(norm_type).item()) > max_norm:
            row *= max_norm / (length + 1e-7)
    is_padding = np.equal(ids, -1 if padding_idx is None else padding_idx % weight.shape[0])
    mask = [is_padding[..., None, None]] if is_padding.any() else []

    def build(w: Node, *mask_and_indices: Node) -> Node:
        *mask, indices = mask_and_indices
        result = gather(w, 0, indices)
        return elementwise("where", mask[0], call("detach", result), result) if mask else result

    return apply("embedding", build, (weight, *mask), (), None, (integers(ids.copy()),))


# Padding


_PADDED = {"reflect": ("reflect", "Reflection"), "replicate": ("edge", "Replication"), "circular": ("wrap", "")}


@function("pad", module=NN)
def _pad(input: Tensor, pad: Sequence[int], mode: str, value: float | None) -> Tensor:
    if mode == "constant":
        fill_value = (value or 0) if input.is_floating_point() else int(value or 0)
        return call_function("pad", input, tuple(pad), mode, fill_value)
    if mode not in _PADDED:
        raise torch_error("mode of a padding", mode)
    how, name = _PADDED[mode]
    axes, rank = len(pad) // 2, input.dim()
    missing_if(rank - axes not in (1, 2), f"torch.nn.functional.pad(mode={mode!r}) of {rank} axes")
    ends = [(rank - 1 - i, *pad[2 * i : 2 * i + 2]) for i in range(axes)]
    for i, (axis, *more) in enumerate(ends):
        size = input.shape[axis]
        around = "{}, {}".format(*more), axis, list(input.shape)
        raise_if(mode == "reflect" and max(more) >= size, "size of a reflection", 2 * i + 4, *around)
        raise_if(mode == "circular" and max(more) > size, "several rounds")

    def build(x: Node) -> Node:
        for axis, *more in ends:
            left = np.arange(x.shape[axis])[max(0, -more[0]) : x.shape[axis] + min(0, more[1])]
            added = [max(0, n) for n in more]
            x = take(x, axis, IndexArray.of(np.pad(left, added, how)))  # type: ignore[call-overload]
        return x

    return apply("pad", build, (input,), (mode, *pad), f"{name}Pad{axes}DBackward0" if name else "CopySlices")


@function("alpha_dropout", module=NN)
def _alpha_dropout(input: Any, p: float, training: bool, inplace: bool) -> Any:
    """Replace numbers so that mean and variance stay: Klambauer et al., "Self-normalizing neural networks" (2017)."""
    if not training or not p:
        return input
    lowest = 1.7580993408473766
    scale = 1 / math.sqrt((lowest**2 * p + 1) * (1 - p))
    kept = drop_elements(input.new_ones(input.shape), p) * (1 - p)
    return input * (kept * scale) + ((kept - 1) * (lowest * scale) + lowest * scale * p)


@function("bilinear", module=NN)
def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    """Return the products x₁ᵀ W x₂ for each matrix W of the weights."""
    name = "View(Trilinear(View(0),2,View(1)))"
    result = call_function("bilinear", input1, input2, weight, bias)
    return set_grad_fn_name(result, name if bias is None else f"Add({name},3)")


@function("gumbel_softmax", module=NN)
def _gumbel_softmax(logits: Any, tau: float, hard: bool, eps: float, dim: int) -> Any:
    """Sample by Gumbel's trick: Jang et al., "Categorical reparameterization with Gumbel-softmax" (2017)."""
    noise = -logits.detach().clone().exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return logits.detach().new_zeros(logits.shape).scatter(dim, index, 1.0) - soft.detach() + soft


def __getattr__(name: str) -> Any:
    if name in table().functions[NN]:
        import_module(f"gradcli.pytorch.{fact('module', name) or 'nn.losses'}")
        result = function_named(name, NN)
    elif name[-1] == "_" and "inplace" in getattr(find(name[:-1], NN), "arguments", ()):
        result = partial(__getattr__(name[:-1]), inplace=True)
    else:
        result = function_named(name, NN)
    if result is None:
        raise AttributeError(name)
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    return [n for n in pytorch_names()[NN] if n in table().functions[NN] or implementation(n, NN)]
