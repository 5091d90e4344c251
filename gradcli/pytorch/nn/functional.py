"""`torch.nn.functional`: activations and layers: compositions, or rows of tables by name; losses stand elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from gradcli.graph.construct import call, reshape
from gradcli.graph.node import Node, const, elementwise
from gradcli.graph.places import Places, take
from gradcli.kernels.moments import of_channels
from gradcli.pytorch.calls import called, exact, named
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.lookup import functional_named
from gradcli.pytorch.messages import refusal, told, warn
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.modes import no_grad
from gradcli.pytorch.nn import losses
from gradcli.pytorch.operations.conversion import to
from gradcli.pytorch.operations.gathering import one_hot
from gradcli.pytorch.operations.inplace import change, numbered
from gradcli.pytorch.operations.joining import broadcast_tensors
from gradcli.pytorch.operations.products import addmm, einsum, matmul, mv
from gradcli.pytorch.operations.random import dropped
from gradcli.pytorch.operations.views import t
from gradcli.pytorch.record import apply
from gradcli.pytorch.refusals import check_convolution, check_pooling
from gradcli.pytorch.registry import check_tensors
from gradcli.pytorch.tensor import Tensor, axis_of
from gradcli.vocabulary import FUNCTIONS


def _activation(name: str) -> Callable[..., Tensor]:
    def activate(input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        if args and isinstance(args[-1], bool):
            *args, inplace = args  # type: ignore[assignment]
        check_tensors(activate, name, [input])
        if name == "relu" and input._a.dtype == bool:
            raise RuntimeError("Boolean inputs not supported for relu")
        made = functional_named(name)
        assert made is not None
        if not inplace:
            return made(input, *args, **kwargs)  # type: ignore[no-any-return]
        return change(input, lambda x: numbered(made(x, *args, **kwargs)), f"{name}_")

    activate.__name__ = name
    return activate


for _name in "relu relu6 selu silu mish hardswish hardsigmoid elu celu leaky_relu hardtanh threshold".split():  # noqa: SIM905
    globals()[_name] = _activation(_name)
    globals()[f"{_name}_"] = partial(globals()[_name], inplace=True)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return named("gelu", input)
    scale, cubic = const(exact(float(np.sqrt(2 / np.pi)))), const(exact(0.044715))

    def build(x: Node) -> Node:
        return const(exact(0.5)) * x * (1 + call("tanh", scale * (x + cubic * x * x * x)))

    return apply("gelu", build, (input,), approximate)


def glu(input: Any, dim: int = -1) -> Tensor:
    axis = axis_of(dim, input.dim())
    size = input.shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")

    def build(x: Node) -> Node:
        first, second = (take(x, axis, Places.of(range(i, i + size // 2))) for i in (0, size // 2))
        return first * call("sigmoid", second)

    return apply("glu", build, (input,), axis)


def prelu(input: Tensor, weight: Any) -> Tensor:
    own = weight if weight.numel() == 1 else weight.view(-1, *(1,) * (input.dim() - 2))
    return functional_named("prelu_kernel")(input, own)  # type: ignore[misc,no-any-return]


def _along(name: str) -> Callable[..., Tensor]:
    def made(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
        if dim is None:
            warnings.warn(_IMPLICIT.format(name), UserWarning, stacklevel=2)
            dim = 0 if input.dim() in (0, 1, 3) else 1
        x = to(input, dtype)
        return named(name.replace("min", "max"), -x if name == "softmin" else x, axis_of(dim, x.dim()))

    made.__name__ = name
    return made


_IMPLICIT = "Implicit dimension choice for {} has been deprecated. Change the call to include dim=X as an argument."
softmax, log_softmax, softmin = map(_along, ("softmax", "log_softmax", "softmin"))


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    soft: Any = softmax((logits - logits.detach().clone().exponential_().log()) / tau, dim)
    if not hard:
        return soft  # type: ignore[no-any-return]
    places = soft.max(dim, keepdim=True)[1]
    chosen = soft.detach().new_zeros(soft.shape).scatter(dim, places, 1.0)
    return chosen - soft.detach() + soft  # type: ignore[no-any-return]


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    return input / input.norm(p, dim, True).clamp_min(eps).expand_as(input)  # type: ignore[no-any-return]


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    both = (to(x, result_dtype((x1, x2))) for x in broadcast_tensors(x1, x2))
    first, second = (x / x.norm(dim=dim, keepdim=True).clamp_min(eps) for x in both)  # type: ignore[attr-defined]
    return (first * second).sum(dim)  # type: ignore[no-any-return]


# Layers


def linear(input: Any, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    check_tensors(linear, "linear", [input])
    columns = input.shape[-1]
    if weight.dim() == 1 and bias is None:
        return matmul(input, weight)
    if input.dim() == 1 and bias is None and columns != weight.shape[-1]:
        return mv(weight, input)  # which says, as PyTorch does, that they do not fit
    turned = t(weight)
    if bias is None:
        return matmul(input, turned)
    if input.dim() == 2:
        return addmm(bias, input, turned)
    flat, shape = input.reshape(-1, columns), (*input.shape[:-1], weight.shape[0])
    if input.is_contiguous():
        return addmm(bias, flat, turned).view(*shape)  # type: ignore[attr-defined,no-any-return]
    found: Any = matmul(flat, turned)
    return called(found.view(*shape), "UnsafeViewBackward0") + bias  # type: ignore[no-any-return]


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    one, other = (x if x.dim() == 2 else x.reshape(-1, x.shape[-1]) for x in (input1, input2))
    found: Any = einsum("bi,oij,bj->bo", one, weight, other)
    if input1.dim() != 2:
        found = found.view(*input1.shape[:-1], weight.shape[0])
    return found if bias is None else found + bias  # type: ignore[no-any-return]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _dropped(input, p, training, inplace, input.shape)


def _dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: Sequence[int]) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or not input.numel():
        return input
    if input._a.dtype.kind != "f":
        word = input.dtype.word
        raise RuntimeError(f"result type Float can't be cast to the desired output type {word}")
    if not inplace:
        return dropped(input, p, tuple(shape))
    return change(input, lambda x: dropped(x, p, tuple(shape)), "dropout_")


def _of_channels(axes: int) -> Callable[..., Tensor]:
    name = f"dropout{axes}d"

    def drop(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        """Return the channels, some of them 0 by chance."""
        rank = input.dim()
        if rank not in (axes + 1, axes + 2):
            wish = told("purpose of a dropout", name, axes, "s" * (axes > 1), axes + 1, axes + 2)
            if axes == 1:
                raise RuntimeError(f"{name}: Expected 2D or 3D input, but received a {rank}D input. {wish}")
            warn("rank for a dropout", name, rank, wish)
        if axes == 2 and rank == 3:
            warn("rank for dropout2d")
        if rank < 2 and training and input.numel():
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        alone = axes != 2 and rank == axes + 1
        x = (input.unsqueeze_(0) if inplace else input.unsqueeze(0)) if alone else input
        found: Any = _dropped(x, p, training, inplace, (*x.shape[:2], *(1,) * (x.dim() - 2)))
        return (found.squeeze_(0) if inplace else found.squeeze(0)) if alone else found

    drop.__name__ = name
    return drop


dropout1d, dropout2d, dropout3d = map(_of_channels, (1, 2, 3))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: Any = None,
    norm_type: Any = 2,
    **more: Any,
) -> Tensor:
    own = input._a[..., 0]
    if own.size and not 0 <= own.min() <= own.max() < weight.shape[0]:
        raise IndexError("index out of range in self")
    if any(more.values()):
        raise MissingError(f"torch.nn.functional.embedding({next(k for k, v in more.items() if v)}=…)")
    if max_norm is not None:
        _shorten(weight, np.unique(own), max_norm, norm_type)
    places = Places.of(own)
    padding = None if padding_idx is None else padding_idx % weight.shape[0]

    def build(w: Node, *mask: Node) -> Node:
        found = take(w, 0, places)
        return elementwise("where", mask[0], call("detach", found), found) if mask else found

    mask = [] if padding is None else [(own == padding)[..., None, None]]
    return apply("embedding", build, (weight, *mask), places)


def _shorten(weight: Tensor, rows: Any, most: float, p: float) -> None:
    """Scale rows of a table in place that are longer than allowed."""
    with no_grad():
        for i in rows:
            length = weight[i].norm(p).item()
            if length > most:
                weight[i] *= most / (length + 1e-7)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return named("layer_norm", input, tuple(normalized_shape), weight, bias, eps)


def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    n, channels = input.shape[:2]
    if channels % num_groups:
        raise refusal("channels in groups", list(input.shape), num_groups)
    size = input.numel() // (n * num_groups)
    rest = (1,) * (input.dim() - 2)

    def build(x: Node, *scale: Node) -> Node:
        rows = reshape(x, (n, num_groups, size))
        found = reshape(FUNCTIONS["layer_norm"](rows, (size,), None, None, const(exact(eps))), x.shape)
        own = [reshape(s, (channels, *rest)) for s in scale]
        found = found * own.pop(0) if weight is not None else found
        return found + own.pop(0) if bias is not None else found

    given = [x for x in (weight, bias) if x is not None]
    settings = (num_groups, eps, weight is None)
    return apply("group_norm", build, (input, *given), settings, "NativeGroupNormBackward0")


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    axes = tuple(range(-len(tuple(normalized_shape)), 0))
    least = float(np.finfo(input._a.dtype).eps) if eps is None else eps
    found = input * (input.pow(2).mean(axes, keepdim=True) + least).rsqrt()
    return found if weight is None else found * weight  # type: ignore[no-any-return]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    size = input.numel() // input.shape[1]
    if training and size == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if training and running_mean is not None and running_var is not None:
        mean, squares = of_channels(input._a[..., 0])
        share, rest = (running_mean._a.dtype.type(m) for m in (momentum, 1 - momentum))
        running_mean._a[:, 0] = share * mean + rest * running_mean._a[:, 0]
        running_var._a[:, 0] = np.float64(share) * (squares / (size - 1)) + rest * running_var._a[:, 0]
        for running in (running_mean, running_var):
            running._memory.version += 1
    given = (None, None) if training else (running_mean, running_var)
    return named("batch_norm", input, *given, weight, bias, training, eps=eps)


# Windows


def _pooled(name: str) -> Callable[..., Tensor]:
    def pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, *args: Any, **kwargs: Any
    ) -> Tensor:
        if kwargs.pop("return_indices", False):
            raise MissingError(f"{name}(return_indices=True)")
        largest = name.startswith("max")
        given = {**dict(zip(("dilation", "ceil_mode") if largest else ("ceil_mode",), args, strict=False)), **kwargs}
        steps = kernel_size if stride is None or stride == [] else stride
        settings = {"kernel_size": kernel_size, "stride": steps, "padding": padding}
        check_pooling(name, input, {**settings, "dilation": given.get("dilation", 1)}, given.get("ceil_mode", False))
        return named(name, input, kernel_size, None if steps == kernel_size else steps, padding, *args, **kwargs)

    pool.__name__ = name
    return pool


max_pool1d, max_pool2d, avg_pool1d, avg_pool2d = map(_pooled, ("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d"))


def _adaptive(name: str, axes: int, windows: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return pooling to a given size, of windows that divide the axes evenly."""

    def pool(input: Any, output_size: Any) -> Tensor:
        sizes = output_size if isinstance(output_size, tuple | list) else (output_size,) * axes
        own = [n if k is None else k for n, k in zip(input.shape[-axes:], sizes, strict=True)]
        if name == "avg" and set(own) == {1} and axes == 2:
            return input.mean((-2, -1), keepdim=True)  # type: ignore[no-any-return]
        if any(n % k for n, k in zip(input.shape[-axes:], own, strict=True)):
            raise MissingError(f"adaptive_{name}_pool{axes}d(output_size={output_size}) of {list(input.shape)}")
        found = windows(input, tuple(n // k for n, k in zip(input.shape[-axes:], own, strict=True)))
        return called(found, f"Adaptive{name.capitalize()}Pool2DBackward0") if axes == 2 else found  # type: ignore[no-any-return]

    return pool


adaptive_avg_pool1d, adaptive_avg_pool2d = _adaptive("avg", 1, avg_pool1d), _adaptive("avg", 2, avg_pool2d)
adaptive_max_pool1d, adaptive_max_pool2d = _adaptive("max", 1, max_pool1d), _adaptive("max", 2, max_pool2d)


def _convolution(name: str) -> Callable[..., Tensor]:
    axes = int(name[-2])

    def convolve(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        settings = {"stride": stride, "padding": padding, "dilation": dilation}
        check_convolution(axes, input, weight, bias, settings, groups)
        found = named(name, input, weight, bias, groups=groups, **settings)
        return found if input.dim() == axes + 2 else called(found, "SqueezeBackward1")  # type: ignore[no-any-return]

    return convolve


conv1d, conv2d = _convolution("conv1d"), _convolution("conv2d")
_PADS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_NAMES = {
    "reflect": "ReflectionPad{}DBackward0",
    "replicate": "ReplicationPad{}DBackward0",
    "circular": "torch::autograd::CopySlices",
}


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    if mode == "constant":
        return named("pad", input, tuple(pad), mode, value or 0)
    axes = len(pad) // 2
    ends = [(0, 0)] * (input.dim() - axes) + [(pad[i], pad[i + 1]) for i in range(2 * axes - 2, -1, -2)]
    places = [np.pad(np.arange(n), e, _PADS[mode]) for n, e in zip(input.shape, ends, strict=True)]  # type: ignore[call-overload]

    def build(x: Node) -> Node:
        for axis, own in enumerate(places):
            x = take(x, axis, Places.of(own)) if any(ends[axis]) else x
        return x

    return apply("pad", build, (input,), (mode, tuple(ends)), _NAMES[mode].format(axes))


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False
) -> Tensor:
    scores = query @ key.transpose(-2, -1) * (1 / float(np.sqrt(query.shape[-1])))
    if is_causal:
        scores = scores.masked_fill(scores.detach().mul(0).add(1).triu(1).ne(0), -np.inf)
    if attn_mask is not None:
        masked = attn_mask._a.dtype == bool
        scores = scores.masked_fill(attn_mask.logical_not(), -np.inf) if masked else scores + attn_mask
    return dropout(softmax(scores, -1), dropout_p, dropout_p > 0) @ value


ELSEWHERE = dict.fromkeys(("conv_transpose1d", "conv_transpose2d"), "nn.convolutions")
ELSEWHERE |= dict.fromkeys(("fold", "interpolate", "unfold"), "nn.patches")
_LOSSES = ("_loss", "_entropy", "_logits", "_div", "_distance")


def __getattr__(name: str) -> Any:
    if name == "one_hot":
        return one_hot
    if name in ELSEWHERE:
        found = getattr(import_module(f"gradcli.pytorch.{ELSEWHERE[name]}"), name)
    else:
        found = getattr(losses, name, None) if name.endswith(_LOSSES) else functional_named(name)
    if found is None:
        raise AttributeError(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *vars(losses)]
