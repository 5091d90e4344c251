"""`torch.nn.functional`: activations and layers: compositions, or rows of tables by name; losses stand elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from gradcli.graph.construct import call
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, const, elementwise
from gradcli.pytorch.argument_checks import check_convolution, check_pooling, several
from gradcli.pytorch.calls import called, exact, named
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.functions import fact, table
from gradcli.pytorch.generator import DEFAULT
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.names import calling, row_named
from gradcli.pytorch.nn import losses
from gradcli.pytorch.nn.pooling import adaptive, indices_of
from gradcli.pytorch.operations.conversion import to
from gradcli.pytorch.operations.inplace import change, numbered
from gradcli.pytorch.operations.joining import broadcast_tensors
from gradcli.pytorch.operations.products import addmm, matmul
from gradcli.pytorch.operations.random import dropped
from gradcli.pytorch.operations.views import t
from gradcli.pytorch.record import apply
from gradcli.pytorch.signatures import signature
from gradcli.pytorch.tensor import Tensor, axis_of, new, of_array

# Functions of the vocabulary


def _activated(name: str, compute: Any, input: Tensor, *, inplace: bool = False, **more: Any) -> Tensor:
    return change(input, lambda x: numbered(compute(x, **more)), f"{name}_") if inplace else compute(input, **more)


def _bounded(name: str, compute: Any, input: Tensor, *, inplace: bool = False, **more: Any) -> Tensor:
    raise_if(not inplace and more.get("min_val", -1) > more.get("max_val", 1), "bounds of hardtanh")
    return _activated(name, compute, input, inplace=inplace, **more)


def _shrunk(name: str, compute: Any, input: Tensor, *, lambd: float = 0.5) -> Tensor:
    if input._a.dtype.kind == "f":
        most = float(np.finfo(input._a.dtype).max)
        raise_if(not 0 <= lambd <= most, "reach of softshrink", f"{most:g}", input.dtype.word, f"{lambd:g}")
    return _activated(name, compute, input, lambd=lambd)


def _pooled(
    name: str, compute: Any, input: Tensor, *, kernel_size: Any = None, stride: Any = None, **more: Any
) -> Any:  # fmt: skip
    raise_if(kernel_size is None, "argument that is missing", f"_{name}", "kernel_size")
    with_indices = more.pop("return_indices", False)
    steps = kernel_size if stride is None or stride == [] else stride
    settings = {"kernel_size": kernel_size, "stride": steps, "padding": more.get("padding", 0)}
    check_pooling(name, input, {**settings, "dilation": more.get("dilation", 1)}, more.get("ceil_mode", False))
    result = compute(input, kernel_size, None if steps == kernel_size else steps, **more)
    if not with_indices:
        return result
    return result, indices_of(name, input, result, int(name[-2]), {"dilation": 1} | settings | more)


def _convolved(
    name: str, compute: Any, input: Tensor, *, weight: Tensor, bias: Any = None, groups: int = 1, **more: Any
) -> Tensor:
    axes, settings = int(name[-2]), {"stride": 1, "padding": 0, "dilation": 1} | more
    check_convolution(axes, input, weight, bias, settings, groups)
    result = compute(input, weight, bias, groups=groups, **settings)
    return result if input.dim() == axes + 2 else called(result, "SqueezeBackward1")


# How each is called with its settings.
_ROWS: dict[str, Callable[..., Tensor]] = {
    **dict.fromkeys(("celu", "elu", "hardsigmoid", "hardswish", "leaky_relu"), _activated),
    **dict.fromkeys(("mish", "relu", "relu6", "selu", "silu", "threshold"), _activated),
    **dict.fromkeys(("hardshrink", "softplus"), _activated),
    "hardtanh": _bounded,
    "softshrink": _shrunk,
    **dict.fromkeys((f"{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)), _pooled),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolved),
}


def _of_row(name: str) -> Callable[..., Tensor]:
    """Return a function of the vocabulary with the settings, and the signature, that PyTorch's has."""
    run, compute = _ROWS[name], row_named(name, _HERE)
    known = signature(name, _HERE)
    names = [a.name for a in known.ordered[1:]]

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        known.check_tensors(name, [input])
        return run(name, compute, input, *args[len(names) :], **dict(zip(names, args, strict=False)), **kwargs)

    function.__name__ = function.__qualname__ = name
    function.row = compute.row  # type: ignore[attr-defined,union-attr]
    function.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(a.name, Parameter.POSITIONAL_OR_KEYWORD, default=a.default) for a in known.ordered]
    )
    return function


_HERE = "torch.nn.functional"

# Activations


@partial(calling, name="gelu")
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return named("gelu", input)
    scale, cubic = const(exact(float(np.sqrt(2 / np.pi)))), const(exact(0.044715))

    def build(x: Node) -> Node:
        return const(exact(0.5)) * x * (1 + call("tanh", scale * (x + cubic * x * x * x)))

    return apply("gelu", build, (input,), approximate)


@partial(calling, name="rrelu")
def rrelu(
    input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:  # fmt: skip
    """Return a leaky rectifier with a random slope for each negative element, or outside of a training their mean."""
    if not training:
        leaky = partial(named, "leaky_relu")
        result = _activated("leaky_relu", leaky, input, inplace=inplace, negative_slope=(lower + upper) / 2)
        return result if inplace else called(result, "RreluWithNoiseBackward0")  # type: ignore[no-any-return]
    slopes, is_low = np.ones_like(input._a), input._a <= 0
    slopes[is_low] = DEFAULT.between(lower, upper, int(is_low.sum()), np.float64)

    def compute(x: Any) -> Any:
        return called(x * new(slopes), "RreluWithNoiseBackward0")

    return change(input, compute, "rrelu_") if inplace else compute(input)


def glu(input: Any, dim: int = -1) -> Tensor:
    axis = axis_of(dim, input.dim())
    size = input.shape[axis]
    raise_if(size % 2, "half of an odd size", axis, size)

    def build(x: Node) -> Node:
        first, second = (take(x, axis, IndexArray.of(range(i, i + size // 2))) for i in (0, size // 2))
        return first * call("sigmoid", second)

    return apply("glu", build, (input,), axis)


@partial(calling, name="prelu")
def prelu(input: Tensor, weight: Any) -> Tensor:
    raise_if(weight.numel() > 1 and not input.dim(), "slopes of a number")
    slopes = weight.view(()) if weight.numel() == 1 else weight.view(-1, *(1,) * (input.dim() - 2))
    return named("prelu_kernel", input, slopes)


def _along(name: str) -> Callable[..., Tensor]:
    def function(input: Tensor, dim: int | None = None, *, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
        if dim is None:
            warn("implicit axis", name)
            dim = 0 if input.dim() in (0, 1, 3) else 1
        x = to(-input if name == "softmin" else input, dtype)
        return getattr(x, name.replace("min", "max"))(dim)  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name
    return function


softmax, log_softmax, softmin = map(_along, ("softmax", "log_softmax", "softmin"))


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    return input / input.norm(p, dim, True).clamp_min(eps).expand_as(input)


@partial(calling, name="cosine_similarity")
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    both = (to(x, result_dtype((x1, x2))) for x in broadcast_tensors(x1, x2))
    first, second = (x / x.norm(dim=dim, keepdim=True).clamp_min(eps) for x in both)
    return (first * second).sum(dim)


# Layers


@partial(calling, name="linear")
def linear(input: Any, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    ranks = (input.dim(), weight.dim())
    raise_if(0 in ranks, "product with a number", "linear", *ranks)
    transposed = t(weight)
    if bias is None:
        return matmul(input, transposed)
    if input.dim() == 2:
        return addmm(bias, input, transposed) if ranks[1] == 2 else bias.addmm(input, transposed)  # which is an error
    if Mode.transforms or weight.dim() == 1:
        return matmul(input, transposed) + bias
    *outer, inner = input.shape
    flat, shape = input.reshape(math.prod(outer), inner), (*outer, weight.shape[0])
    if input.is_contiguous():
        return addmm(bias, flat, transposed).view(*shape)
    result: Any = matmul(flat, transposed)
    return called(result.view(*shape), "UnsafeViewBackward0") + bias


@partial(calling, name="dropout")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return drop(input, p, training, inplace, input.shape)


@partial(calling, name="dropout2d")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    missing_if(input.dim() != 4, f"torch.nn.functional.dropout2d of {input.dim()} axes")
    return drop(input, p, training, inplace, (*input.shape[:2], 1, 1))


def drop(input: Tensor, p: float, training: bool, inplace: bool, shape: Sequence[int]) -> Tensor:
    """Return the input after dropout, with one draw for each element of a shape that broadcasts."""
    if not training or not input.numel():
        return input
    raise_if(input._a.dtype.kind != "f", "dtype of what is written", "Float", input.dtype.word)
    if not inplace:
        return dropped(input, p, tuple(shape))
    return change(input, lambda x: dropped(x, p, tuple(shape)), "dropout_")


@partial(calling, name="embedding")
def embedding(
    input: Tensor, weight: Tensor, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    ids = input._a[..., 0]
    if ids.dtype.kind != "i":
        raise torch_error("kind of indices", "CPUBoolType" if ids.dtype == bool else input.type())
    raise_if(ids.size and not 0 <= ids.min() <= ids.max() < weight.shape[0], "slice outside")
    for i in np.unique(ids) if max_norm is not None else ():
        row = weight.detach()[i]
        if (length := row.norm(norm_type).item()) > max_norm:
            row *= max_norm / (length + 1e-7)
    indices = IndexArray.of(ids)
    mask = [] if padding_idx is None else [(ids == padding_idx % weight.shape[0])[..., None, None]]

    def build(w: Node, *mask: Node) -> Node:
        result = take(w, 0, indices)
        return elementwise("where", mask[0], call("detach", result), result) if mask else result

    return apply("embedding", build, (weight, *mask), indices)


@partial(calling, name="layer_norm")
def layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    sizes = list(normalized_shape)
    if list(input.shape[-len(sizes) :]) != sizes:
        raise torch_error("shape for layer_norm", sizes, ", ".join(map(str, sizes)), list(input.shape))
    return named("layer_norm", input, tuple(normalized_shape), weight, bias, eps)


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    sizes = list(normalized_shape)
    fits = list(input.shape[-len(sizes) :]) == sizes
    raise_if(not fits, "shape for rms_norm", sizes, ", ".join(map(str, sizes)), list(input.shape))
    least = float(np.finfo(input._a.dtype).eps) if eps is None else eps
    result = input * (input.pow(2).mean(tuple(range(-len(sizes), 0)), True) + least).rsqrt()
    return result if weight is None else result * weight


@partial(calling, name="batch_norm")
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    size = input.numel() // input.shape[1]
    raise_if(training and size == 1, "single value in a batch", input.shape)
    vectors = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, x in vectors.items():
        if x is not None:
            raise_if(x.numel() != input.shape[1], "size of a statistic", name, input.shape[1], x.numel())
    if training and running_mean is not None and running_var is not None:
        axes = tuple(i for i in range(input.dim()) if i != 1)
        wide = input._a[..., 0].astype(np.float64)
        statistics = ((running_mean, wide.mean(axes)), (running_var, wide.var(axes, ddof=1)))
        for running, statistic in statistics:
            running._a[:, 0] = momentum * statistic + (1 - momentum) * running._a[:, 0]
            running._memory.version += 1
    fixed = (None, None) if training else (running_mean, running_var)
    return named("batch_norm", input, *fixed, weight, bias, training, eps=eps)


@partial(calling, name="instance_norm")
def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel of each sample is one of a single sample's."""
    count, channels, *rest = input.shape
    factor, summand = (None if p is None else p.repeat(count) for p in (weight, bias))
    flat = input.contiguous().view(1, count * channels, *rest)
    result: Any = batch_norm(flat, None, None, factor, summand, True, momentum, eps)
    return result.view(input.shape)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    count, channels, *rest = input.shape
    raise_if(channels % num_groups, "channels in groups", list(input.shape), num_groups)
    rows = (channels // num_groups, *rest)
    result = layer_norm(input.reshape(count, num_groups, *rows), rows, None, None, eps).reshape(input.shape)
    for p, step in ((weight, Tensor.__mul__), (bias, Tensor.__add__)):
        result = result if p is None else step(result, p.view(-1, *(1 for _ in rest)))
    return called(result, "NativeGroupNormBackward0")


# Windows


def _means(input: Any, extent: Sequence[int], counts: Sequence[int]) -> Any:
    """Return the means of windows of unequal sizes that cover the last axes, along one axis after the other."""
    for axis, (n, count) in enumerate(zip(extent, counts, strict=True), -len(counts)):
        ends = [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
        shares = np.array([[(a <= j < b) / (b - a) for j in range(n)] for a, b in ends], input._a.dtype)
        input = matmul(input.movedim(axis, -1), t(of_array(shares))).movedim(-1, axis)  # type: ignore[attr-defined]
    return input


def _adaptive(kind: str, axes: int) -> Callable[..., Tensor]:
    names = ("SqueezeBackward1", f"Adaptive{kind.capitalize()}Pool2DBackward0")

    def function(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        extent = input.shape[-axes:]
        counts = [n if k is None else k for n, k in zip(extent, several(output_size, axes), strict=True)]
        if kind == "avg" and counts == [1, 1]:
            return input.mean((-2, -1), keepdim=True)
        name, rows = f"adaptive_{kind}_pool{axes}d", [divmod(n, k) for n, k in zip(extent, counts, strict=True)]
        if any(rest for _, rest in rows):
            result, indices = (_means(input, extent, counts), None) if kind == "avg" else adaptive(input, counts)
            called(result, names[axes == 2])
            return (result, indices) if return_indices else result
        result = named(f"{kind}_pool{axes}d", input, tuple(n for n, _ in rows))
        called(result, names[axes == 2])
        if not return_indices:
            return result
        sizes = tuple(n for n, _ in rows)
        settings = {"kernel_size": sizes, "stride": sizes, "padding": 0, "dilation": 1}
        return result, indices_of(name, input, result, axes, settings)

    return function if kind == "max" else lambda input, output_size: function(input, output_size)


adaptive_avg_pool1d, adaptive_avg_pool2d = _adaptive("avg", 1), _adaptive("avg", 2)
adaptive_max_pool1d, adaptive_max_pool2d = _adaptive("max", 1), _adaptive("max", 2)


_PADDED = {"reflect": ("reflect", "Reflection"), "replicate": ("edge", "Replication"), "circular": ("wrap", "")}


@partial(calling, name="pad")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    if mode == "constant":
        fill_value = (value or 0) if input.is_floating_point() else int(value or 0)
        return named("pad", input, tuple(pad), mode, fill_value)
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


@partial(calling, name="pixel_shuffle")
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    *outer, channels, rows, columns = input.shape
    k = upscale_factor
    parts = input.view(*outer, channels // k**2, k, k, rows, columns)
    first = len(outer)
    order = (*range(first + 1), first + 3, first + 1, first + 4, first + 2)
    result = parts.permute(*order).reshape(*outer, channels // k**2, rows * k, columns * k)
    return called(result, "PixelShuffleBackward0")


ELSEWHERE = {
    "scaled_dot_product_attention": "nn.attention",
    "interpolate": "nn.interpolation",
    "one_hot": "operations.selection",
}
ELSEWHERE |= dict.fromkeys(("conv_transpose1d", "conv_transpose2d"), "nn.convolutions")
ELSEWHERE |= dict.fromkeys(("max_unpool1d", "max_unpool2d"), "nn.pooling")
ELSEWHERE |= dict.fromkeys(("affine_grid", "grid_sample"), "nn.grids")
ELSEWHERE |= dict.fromkeys(("fold", "unfold"), "nn.folding")
ELSEWHERE["embedding_bag"] = "nn.bags"
ELSEWHERE |= dict.fromkeys(("alpha_dropout", "dropout1d", "dropout3d", "gumbel_softmax"), "nn.channels")
ELSEWHERE |= dict.fromkeys(("bilinear", "channel_shuffle", "local_response_norm", "pixel_unshuffle"), "nn.channels")


def __getattr__(name: str) -> Any:
    if name in _ROWS:
        result: Any = _of_row(name)
    elif _ROWS.get(name.removesuffix("_")) and "inplace" in signature(name[:-1], _HERE).known:
        result = partial(__getattr__(name[:-1]), inplace=True)
    elif name in ELSEWHERE:
        result = getattr(import_module(f"gradcli.pytorch.{ELSEWHERE[name]}"), name)
    else:
        is_loss = name in table().functions[_HERE] and hasattr(losses, name)
        result = getattr(losses, name) if is_loss else row_named(name, _HERE)
    if result is None:
        raise AttributeError(name)
    is_row = name not in ELSEWHERE and not hasattr(losses, name)  # the others tell by themselves
    globals()[name] = result = calling(result, name) if is_row or fact("in_c", name) is not None else result
    return result


def __dir__() -> list[str]:
    return [*globals(), *_ROWS, *vars(losses)]
