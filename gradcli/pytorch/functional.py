"""`torch.nn.functional`: activations, losses and layers: compositions, or rows of the vocabulary by name."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.construct import reduce, scatter
from gradcli.graph.node import Node, const, elementwise
from gradcli.graph.places import Places, take
from gradcli.pytorch.calls import exact, vocabulary_call
from gradcli.pytorch.conversion import to
from gradcli.pytorch.dtypes import WORDS
from gradcli.pytorch.gathering import one_hot
from gradcli.pytorch.gradnames import grad_name
from gradcli.pytorch.lookup import absent, functional_named
from gradcli.pytorch.products import addmm, matmul
from gradcli.pytorch.random import dropped
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor, axis_of
from gradcli.pytorch.views import t
from gradcli.vocabulary import FUNCTIONS


def _named(name: str, *args: Any, **kwargs: Any) -> Tensor:
    return vocabulary_call(name, FUNCTIONS[name], args, kwargs)


def _maybe_inplace(name: str, x: Tensor, inplace: bool, *args: Any) -> Tensor:
    if not inplace:
        return _named(name, x, *args)
    from gradcli.pytorch.inplace import change

    return change(x, lambda own: _named(name, own, *args), f"{name}_")


# Activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the numbers, with 0 for what is below 0."""
    return _maybe_inplace("relu", input, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return the numbers, those below 0 made small."""
    return _maybe_inplace("leaky_relu", input, inplace, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the numbers, those below 0 bent towards -alpha."""
    return _maybe_inplace("elu", input, inplace, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x·sigmoid(x)."""
    return _maybe_inplace("silu", input, inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the scaled elu."""
    return _maybe_inplace("selu", input, inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the numbers, from 0 to 6."""
    low, high = const(0), const(6)
    return apply("relu6", lambda x: elementwise("hardtanh", x, low, high), (input,))


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta·x))/beta."""
    b = const(exact(beta))

    def build(x: Node) -> Node:
        scaled = x if beta == 1 else elementwise("mul", b, x)
        found = elementwise("where", _above(scaled, threshold), scaled, elementwise("softplus", scaled))
        return found if beta == 1 else elementwise("div", found, b)

    return apply("softplus", build, (input,), (beta, threshold))


def _above(x: Node, threshold: float) -> Node:
    from gradcli.graph.node import compare

    return compare("gt", x, const(exact(threshold)))


def sigmoid(input: Tensor) -> Tensor:
    """Return 1/(1 + exp(-x))."""
    return _named("sigmoid", input)


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return _named("tanh", input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x·Φ(x)."""
    if approximate != "none":
        from gradcli.pytorch.missing import MissingError

        raise MissingError(f"gelu(approximate={approximate!r})")
    return _named("gelu", input)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return exp(x) over its sum along an axis."""
    dim = _implicit("softmax", dim, input)
    return _named("softmax", input if dtype is None else to(input, dtype), dim)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of the softmax along an axis."""
    dim = _implicit("log_softmax", dim, input)
    return _named("log_softmax", input if dtype is None else to(input, dtype), dim)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the softmax of the negative numbers."""
    dim = _implicit("softmin", dim, input)
    return _named("softmax", -input, dim)


def _implicit(name: str, dim: int | None, x: Tensor) -> int:
    if dim is not None:
        return axis_of(dim, x.dim())
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=4,
    )
    return 0 if x.dim() in (0, 1, 3) else 1


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Return the vectors along an axis, over their lengths."""
    length = input.norm(p, dim, True).clamp_min(eps)  # type: ignore[attr-defined]
    return input / length.expand_as(input)  # type: ignore[operator]


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along an axis."""
    lengths = [x.norm(dim=dim, keepdim=True).clamp_min(eps) for x in (x1, x2)]  # type: ignore[attr-defined]
    return ((x1 / lengths[0]) * (x2 / lengths[1])).sum(dim)  # type: ignore[no-any-return,operator]


# Layers


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input @ weight.T + bias`."""
    if input.shape[-1] != weight.shape[-1]:
        rows = int(np.prod(input.shape[:-1], dtype=int))
        columns = input.shape[-1]
        if input.dim() == 1 and bias is None:
            raise RuntimeError(
                f"size mismatch, got input ({weight.shape[0]}), mat ({weight.shape[0]}x{weight.shape[1]}), vec "
                f"({columns})"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{columns} and {weight.shape[1]}x{weight.shape[0]})"
        )
    turned = t(weight)
    if bias is None:
        return matmul(input, turned)
    if input.dim() == 2:
        if input._a.dtype != weight._a.dtype:
            first, second = (WORDS[x.dtype.name] for x in (input, weight))
            raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {first} and {second}")
        return addmm(bias, input, turned)
    rows = input.reshape(-1, input.shape[-1])  # type: ignore[attr-defined]
    return addmm(bias, rows, turned).view(*input.shape[:-1], weight.shape[0])  # type: ignore[attr-defined,no-any-return]


def bilinear(*_: Any) -> Tensor:
    """Refuse."""
    from gradcli.pytorch.missing import MissingError

    raise MissingError("torch.nn.functional.bilinear")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return the numbers, some of them 0 by chance."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return dropped(input, p) if training else input


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return the channels, some of them 0 by chance."""
    return dropped(input, p, (*input.shape[:2], *(1,) * (input.dim() - 2))) if training else input


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, **_: Any) -> Tensor:
    """Return the rows of a table at places."""
    own = input._a[..., 0]
    if own.size and not 0 <= own.min() <= own.max() < weight.shape[0]:
        raise IndexError("index out of range in self")
    places = Places.of(own)
    return apply("embedding", lambda w: take(w, 0, places), (weight,), places)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Return the numbers with mean 0 and variance 1 along the last axes."""
    return _named("layer_norm", input, tuple(normalized_shape), weight, bias, eps)


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
    """Return the numbers with mean 0 and variance 1 in each channel."""
    size = input.numel() // input.shape[1]
    if training and size == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if training and running_mean is not None and running_var is not None:
        axes = (0, *range(2, input.dim()), input.dim())
        mean = input._a.mean(axis=axes)[:, None]
        spread = input._a.var(axis=axes, ddof=1)[:, None]
        for running, now in ((running_mean, mean), (running_var, spread)):
            running._a[...] = (1 - momentum) * running._a + momentum * now
            running._memory.version += 1
    given = (None, None) if training else (running_mean, running_var)
    return _named("batch_norm", input, *given, weight, bias, training, eps=eps)


def _pooled(name: str, padded: bool = False) -> Any:
    def pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, *args: Any, **kwargs: Any
    ) -> Tensor:
        kwargs.pop("return_indices", None)
        return _named(name, input, kernel_size, stride, padding, *args, **kwargs)

    pool.__name__ = name
    return pool


max_pool1d, max_pool2d = _pooled("max_pool1d"), _pooled("max_pool2d")
avg_pool1d, avg_pool2d = _pooled("avg_pool1d"), _pooled("avg_pool2d")


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of the whole image."""
    if output_size not in (1, (1, 1)):
        from gradcli.pytorch.missing import MissingError

        raise MissingError(f"adaptive_avg_pool2d(output_size={output_size})")
    return input.mean((-2, -1), keepdim=True)  # type: ignore[attr-defined,no-any-return]


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Return the sums of products of a window's elements and weights, along one axis."""
    return _convolved("conv1d", input, weight, bias, args, kwargs)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Return the sums of products of a window's elements and weights, along two axes."""
    return _convolved("conv2d", input, weight, bias, args, kwargs)


def _convolved(
    name: str, x: Tensor, w: Tensor, b: Tensor | None, args: Sequence[Any], kwargs: dict[str, Any]
) -> Tensor:
    return _named(name, x, w, *([b] if b is not None or args or kwargs else []), *args, **kwargs)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return the array with more elements at its ends."""
    if mode != "constant" or min(pad) < 0:
        from gradcli.pytorch.missing import MissingError

        raise MissingError(f"pad(mode={mode!r})")
    ends = [(0, 0)] * (input.dim() - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    shape = tuple(a + n + b for (a, b), n in zip(ends, input.shape, strict=True))
    key = tuple(range(a, a + n) for (a, _), n in zip(ends, input.shape, strict=True))
    fill = exact(value or 0)

    def build(x: Node) -> Node:
        found = scatter(shape, [(key, x)])
        if not fill:
            return found
        inside = scatter(shape, [(key, const(1, x.shape, x.dtype))])
        return elementwise("where", _above(inside, 0.5), found, const(fill, (), x.dtype))

    return apply("pad", build, (input,), (key, shape, repr(fill)), "ConstantPadNdBackward0")


# Losses


def _warn_of_shapes(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This "
            "will likely "
            "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=4,
        )


def _reduction(name: str, size_average: Any, reduce_: Any, reduction: str) -> str:
    if size_average is not None or reduce_ is not None:
        found = "none" if reduce_ is False else "mean" if size_average in (None, True) else "sum"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
            UserWarning,
            stacklevel=4,
        )
        return found
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _regression(name: str, *, warns: bool = True, setting: str | None = None) -> Any:
    def loss(
        input: Tensor,
        target: Tensor,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        **more: Any,
    ) -> Tensor:
        _warn_of_shapes(input, target)
        how = _reduction(name, size_average, reduce, reduction)
        if target._a.dtype != input._a.dtype:
            from gradcli.pytorch.dtypes import result_dtype

            dtype = result_dtype((input, target))
            input, target = to(input, dtype), to(target, dtype)
        grad = grad_name(name)
        if name == "l1_loss":
            grad = {"mean": "MeanBackward0", "sum": "SumBackward0", "none": "AbsBackward0"}[how]
        try:
            return apply(
                name,
                lambda x, y: FUNCTIONS[name](x, y, reduction=how, **{k: const(exact(v)) for k, v in more.items()}),
                (input, target),
                (how, tuple(more.items())),
                grad,
            )
        except InputError as error:
            from gradcli.pytorch.calls import _refused

            raise _refused(name, error, (input, target)) from None

    loss.__name__ = name
    return loss


mse_loss, l1_loss = _regression("mse_loss"), _regression("l1_loss")


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """Return squares of small differences and multiples of large ones."""
    return _regression("huber_loss")(input, target, reduction=reduction, delta=delta)  # type: ignore[no-any-return]


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return squares of small differences and sizes of large ones."""
    return _regression("smooth_l1_loss")(input, target, size_average, reduce, reduction, beta=beta)  # type: ignore[no-any-return]


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the log loss of probabilities."""
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if ((input._a < 0) | (input._a > 1)).any():
        raise RuntimeError("all elements of input should be between 0 and 1")
    if target._a.dtype != input._a.dtype:
        found, wanted = WORDS[target.dtype.name], WORDS[input.dtype.name]
        raise RuntimeError(f"Found dtype {found} but expected {wanted}")
    how = _reduction("binary_cross_entropy", size_average, reduce, reduction)
    return _named("binary_cross_entropy", input, target, weight, how)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the log loss of logits."""
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    how = _reduction("bce", size_average, reduce, reduction)
    target = to(target, input.dtype) if target._a.dtype.kind == "f" else target
    return _named("binary_cross_entropy_with_logits", input, target, weight, how, pos_weight)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the negative logarithm of the probability of each target's class, from scores."""
    how = _reduction("cross_entropy", size_average, reduce, reduction)
    if target.shape == input.shape and target._a.dtype.kind == "f":
        given = (input, target, weight) if weight is not None else (input, target)
        return apply(
            "cross_entropy_soft",
            lambda x, y, *w: FUNCTIONS["cross_entropy"](
                x, y, *w, reduction=how, label_smoothing=const(exact(label_smoothing))
            ),
            given,
            (how, label_smoothing),
            "DivBackward1" if how == "mean" else "NegBackward0",
        )
    scores = log_softmax(input, 1 if input.dim() > 1 else 0)
    return _of_classes(scores, target, weight, ignore_index, how, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative logarithm of the probability of each target's class, from logarithms."""
    return _of_classes(
        input, target, weight, ignore_index, _reduction("nll_loss", size_average, reduce, reduction), 0.0
    )


def _of_classes(
    scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int, how: str, smoothing: float
) -> Tensor:
    """Return the loss of logarithms of probabilities: those of the targets' classes, weighted and averaged."""
    if target._a.dtype.kind == "f":
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {WORDS[target.dtype.name]}")
    axis = min(1, scores.dim() - 1)
    count = scores.shape[axis]
    own = target._a[..., 0]
    if scores.dim() > 1 and own.shape[:1] != scores.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({scores.shape[0]}) to match target batch_size "
            f"({own.shape[0] if own.ndim else 1})."
        )
    bad = (own != ignored) & ((own < 0) | (own >= count))
    if bad.any():
        raise IndexError(f"Target {own[bad].reshape(-1)[0]} is out of bounds.")
    kept = own != ignored
    at: list[Any] = list(np.indices(own.shape))
    at.insert(axis, np.where(kept, own, 0))
    places = Places.of(np.ravel_multi_index(tuple(np.asarray(a) for a in at), tuple(scores.shape)))
    share = kept.astype(scores._a.dtype)
    if weight is not None:
        share = share * weight._a[np.where(kept, own, 0), 0]
    total = float(share.sum())
    weights = share.reshape(own.shape)

    def build(x: Node, w: Node) -> Node:
        flat = Node("reshape", (x,), (x.size,), ((x.size,),)) if len(x.shape) > 1 else x
        chosen = take(flat, 0, places)
        loss = -elementwise("mul", w, chosen)
        if smoothing:
            even = -reduce("sum", x, (axis,)) / count
            loss = loss * (1 - exact(smoothing)) + even * exact(smoothing)
        if how == "none":
            return loss
        summed = reduce("sum", loss, tuple(range(len(loss.shape)))) if loss.shape else loss
        return summed / const(exact(total)) if how == "mean" else summed

    from gradcli.pytorch.tensor import of_array

    name = "NllLossBackward0" if scores.dim() <= 2 else "NllLoss2DBackward0"
    return apply("nll_loss", build, (scores, of_array(weights)), (places, how, total, smoothing, axis), name)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return how far one distribution is from another."""
    from gradcli.pytorch.operators import where

    if log_target:
        loss = target.exp() * (target - input)  # type: ignore[attr-defined,operator]
    else:
        positive: Any = target > 0
        safe = where(positive, target, 1.0)
        loss = where(positive, target * (safe.log() - input), 0.0)  # type: ignore[attr-defined]
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]  # type: ignore[no-any-return]
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss  # type: ignore[no-any-return]


_OTHER = {"one_hot": one_hot}


def __getattr__(name: str) -> Any:
    found = _OTHER.get(name) or functional_named(name)
    if found is None:
        raise absent("torch.nn.functional", name, globals())
    globals()[name] = found
    return found
