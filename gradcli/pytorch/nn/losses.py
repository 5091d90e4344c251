"""Losses: of the difference between numbers, of probabilities, of classes, and of pairs of vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.calls import call_of, call_with
from gradcli.graph.node import Node, cast, const
from gradcli.pytorch.calls import call_function, check_numbers, number, set_grad_fn_name
from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.functions import fact, grad_name
from gradcli.pytorch.messages import raise_if, torch_error, warn
from gradcli.pytorch.names import function
from gradcli.pytorch.operations.conversion import to
from gradcli.pytorch.operations.joining import broadcast_tensors
from gradcli.pytorch.operations.operators import where
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor
from gradcli.vocabulary import FUNCTIONS


def reduction_of(size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> str:
    """Return how a loss of many samples becomes one, from the arguments of today or of old.

    Errors: `ValueError` for a way that is none.
    """
    if size_average is not None or reduce is not None:
        whole, single = (flag is None or bool(flag) for flag in (size_average, reduce))
        result = "mean" if whole and single else "sum" if single else "none"
        warn("old reduction", result)
        return result
    if reduction == "elementwise_mean":
        warn("oldest reduction")
        return "mean"
    raise_if(reduction not in ("mean", "sum", "none"), "unknown reduction", reduction)
    return reduction


def _one(loss: Any, how: str) -> Any:
    """Return the mean or the sum of the losses of samples, or these."""
    return loss.mean() if how == "mean" else loss.sum() if how == "sum" else loss


# Of the difference between numbers


@function("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", module=NN)
def difference_loss(input: Tensor, target: Tensor, op: str, **options: Any) -> Tensor:
    weight = options.pop("weight", None)
    bounds = {"delta": options.pop("delta", 1.0)} if op == "huber_loss" else {}
    bounds |= {"beta": options.pop("beta", 1.0)} if op == "smooth_l1_loss" else {}
    raise_if(bounds.get("delta", 1) <= 0, "delta of a huber loss")
    how, is_l1 = reduction_of(**options), bounds.get("beta") == 0
    return _compared("l1_loss" if is_l1 else op, input, target, how, weight, **{} if is_l1 else bounds)


_OF_L1 = {"mean": "MeanBackward0", "sum": "SumBackward0", "none": "AbsBackward0"}


def _compared(name: str, input: Any, target: Any, how: str, weight: Tensor | None, **more: float) -> Tensor:
    """Return the loss of the vocabulary, weighted as PyTorch weights it."""
    if target.size() != input.size():
        warn("size of the target", target.shape, input.shape)
        input, target = broadcast_tensors((input, target))
    if weight is not None:
        loss = _compared(name, input, target, "none", None, **more)
        raise_if(weight.shape != loss.shape, "size of weights")
        loss = loss * weight
        return loss.sum() / weight.sum() if how == "mean" and name != "huber_loss" else _one(loss, how)
    kind = result_dtype((input, target))
    check_numbers(name, kind)
    if how == "mean" and not kind.is_floating_point:
        return (input - target).mean()

    def build(x: Node, y: Node, *numbers: Node) -> Node:
        settings = dict(zip(more, numbers, strict=True))
        return FUNCTIONS[name](cast(x, kind.name), cast(y, kind.name), reduction=how, **settings)

    grad = grad_name(name) if fact("composed", name) is None else _OF_L1[how]
    return apply(name, build, (input, target), (how,), grad, [number(v, kind) for v in more.values()])


# Of probabilities


@function("binary_cross_entropy", module=NN)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None, **options: Any) -> Tensor:
    raise_if(target.size() != input.size(), "size of the target, an error", target.shape, input.shape)
    raise_if(target._a.dtype != input._a.dtype, "dtype of a target", target.dtype.word, input.dtype.word)
    for what, array in (("input", input._a), ("target", target._a)):
        raise_if(((array < 0) | (array > 1)).any(), f"{what} without probabilities")
    return call_function("binary_cross_entropy", input, target, weight, reduction=reduction_of(**options))


@function("binary_cross_entropy_with_logits", module=NN)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, **options: Any
) -> Tensor:
    raise_if(target.size() != input.size(), "size of the target of logits", target.shape, input.shape)
    name, how = "binary_cross_entropy_with_logits", reduction_of(**options)
    check_numbers(name, input.dtype)
    raise_if(target._a.dtype.kind != "f", "dtype of what is written", "Float", target.dtype.word)
    return call_function(name, to(input, target.dtype), target, weight, reduction=how, pos_weight=pos_weight)


@function("kl_div", module=NN)
def kl_div(input: Any, target: Any, log_target: bool, **options: Any) -> Tensor:
    how = "batchmean" if options.get("reduction") == "batchmean" else reduction_of(**options)
    if how == "mean":
        warn("mean of a divergence")
    raise_if(input._a.dtype.kind != "f" or target._a.dtype.kind != "f", "integers in a divergence")
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if how != "batchmean":
        return _one(loss, how)
    return loss.sum() / input.shape[0] if input.shape else loss.sum()


# What PyTorch composes itself


@function("poisson_nll_loss", module=NN)
def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float, **options: Any) -> Any:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * np.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _one(loss, reduction_of(**options))


@function("gaussian_nll_loss", module=NN)
def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool, eps: float, **options: Any) -> Any:
    raise_if((var._a < 0).any(), "negative variance")
    spread = var.clamp(min=eps)
    loss = 0.5 * (spread.log() + (input - target) ** 2 / spread)
    return _one(loss + 0.5 * np.log(2 * np.pi) if full else loss, reduction_of(**options))


@function("hinge_embedding_loss", module=NN)
def hinge_embedding_loss(input: Any, target: Any, margin: float, **options: Any) -> Any:
    far = where(target.ne(1), (margin - input).clamp_min(0), 0.0)
    return _one(far + where(target.ne(-1), input, 0.0), reduction_of(**options))


@function("margin_ranking_loss", module=NN)
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float, **options: Any) -> Any:
    return _one((-target * (input1 - input2) + margin).clamp_min(0), reduction_of(**options))


@function("cosine_embedding_loss", module=NN)
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float, **options: Any) -> Any:
    eps = 1e-12
    products = (input1 * input2).sum(-1)
    cosine = products / (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    near = where(target.eq(1), 1 - cosine, 0.0)
    return _one(near + where(target.eq(-1), (cosine - margin).clamp_min(0), 0.0), reduction_of(**options))


@function("soft_margin_loss", module=NN)
def soft_margin_loss(input: Any, target: Any, **options: Any) -> Any:
    return set_grad_fn_name(_one((-target * input).exp().log1p(), reduction_of(**options)), "SoftMarginLossBackward0")


@function("pairwise_distance", module=NN)
def pairwise_distance(x1: Any, x2: Any, p: float, eps: float, keepdim: bool) -> Any:
    return set_grad_fn_name((x1 - x2 + eps).norm(p, -1, keepdim), "NormBackward1")


@function("triplet_margin_loss", module=NN)
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool, **options: Any
) -> Any:
    near, far = (pairwise_distance(anchor, x, p, eps, False) for x in (positive, negative))
    far = far.minimum(pairwise_distance(positive, negative, p, eps, False)) if swap else far
    return _one((margin + near - far).clamp_min(0), reduction_of(**options))


# Of classes


@function("cross_entropy", module=NN)
def cross_entropy(
    input: Tensor, target: Tensor, weight: Any, ignore_index: int, label_smoothing: float, **options: Any
) -> Tensor:
    how = reduction_of(**options)
    raise_if(not 0 <= label_smoothing <= 1, "smoothing outside", label_smoothing)
    if target.shape != input.shape:
        return _of_classes("cross_entropy", input, target, weight, ignore_index, how, label_smoothing)
    if target._a.dtype.kind != "f":
        raise torch_error("dtype of probabilities", target.dtype.word)
    if not input.numel():  # PyTorch's mean of nothing is nan
        loss = -(input * target).sum(min(1, input.dim() - 1))
        return loss.sum() / 0 if how == "mean" else _one(loss, how)
    likely = "AddBackward1(MulBackward1(1))" if label_smoothing else "1"
    product = f"Mul(LogSoftmax(0),{likely})" if weight is None else f"Mul(Mul(LogSoftmax(0),{likely}),_)"
    whole = f"Neg({'SumBackward1' if how == 'none' else 'Sum'}({product}))"
    name = f"DivBackward1({whole})" if how == "mean" else whole
    return _cross_entropy(input, target, weight, None, how, label_smoothing, name)


def _cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None, ignored: int | None, how: str, smoothing: float, name: str
) -> Tensor:
    numbers = [number(smoothing, x.dtype)] if smoothing else []

    def build(x: Node, t: Node, *more: Node) -> Node:
        options = {"weight": more[0] if weight is not None else None}
        options["label_smoothing"] = more[-1] if numbers else const(0)
        return call_with("cross_entropy", (ignored, how), (x, t), **options)

    operands = (x, target) if weight is None else (x, target, weight.detach())
    return apply("cross_entropy", build, operands, (weight is None, ignored, how), name, numbers)


@function("nll_loss", module=NN)
def nll_loss(input: Tensor, target: Tensor, weight: Any, ignore_index: int, **options: Any) -> Tensor:
    return _of_classes("nll_loss", input, target, weight, ignore_index, reduction_of(**options))


@function("multi_margin_loss", module=NN)
def multi_margin_loss(input: Any, target: Any, p: int, margin: float, weight: Any, **options: Any) -> Any:
    """Return by how much less than a margin the score of the class is above those of the others."""
    rows, classes = (input, target.reshape(-1, 1)) if input.dim() > 1 else (input.unsqueeze(0), target.reshape(1, 1))
    gaps = (margin - rows.gather(1, classes) + rows).clamp_min(0).pow(p)
    gaps = gaps if weight is None else gaps * weight[classes]
    losses = gaps.scatter(1, classes, 0.0).sum(1) / rows.shape[1]
    losses = losses if input.dim() > 1 else losses[0]
    return set_grad_fn_name(_one(losses, reduction_of(**options)), "MultiMarginLossBackward0")


@function("multilabel_soft_margin_loss", module=NN)
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any, **options: Any) -> Any:
    """Return the binary cross entropies of several labels, averaged."""
    losses = -(target * call_function("logsigmoid", input) + (1 - target) * call_function("logsigmoid", -input))
    losses = (losses if weight is None else losses * weight).sum(-1) / input.shape[-1]
    return _one(losses, reduction_of(**options))


def _of_classes(
    op: str, input: Tensor, target: Tensor, weight: Tensor | None, ignored: int, how: str, smoothing: float = 0
) -> Tensor:
    """Return the loss of scores, or of logarithms of probabilities, at the targets' classes, weighted and averaged."""
    if op == "cross_entropy" and input.dim():
        check_numbers("log_softmax", input.dtype)
    _check_classes(input, target, weight, ignored)
    rank = input.dim()
    if rank == target.dim() == 1:
        target = target[0]
    known = None if not (target._a == ignored).any() else ignored
    scores = "0" if op == "nll_loss" else "LogSoftmax(0)"
    name = f"NllLoss({scores})" if rank <= 2 else f"NllLoss2D({scores})" if rank == 4 else f"NllLoss2D(View({scores}))"
    name = f"View({name})" if rank not in (1, 2, 4) and how == "none" else name
    if smoothing:
        even = f"Neg(SumBackward1({scores if weight is None else f'Mul({scores},_)'}))"
        even = f"MaskedFill({even})" if how == "none" else f"Sum(MaskedFill({even}))"
        name = f"Add(MulBackward1({name}),MulBackward1({f'Div({even},_)' if how == 'mean' else even}))"
    if op == "cross_entropy" and input.numel():
        return _cross_entropy(input, target, weight, known, how, smoothing, name)
    operands = (input, target) if weight is None else (input, target, weight.detach())
    settings = () if weight is None else ("weight",), known, how
    return apply("nll_loss", partial(call_of, "nll_loss", settings), operands, settings, name)


def _check_classes(scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> None:
    """Check that targets are classes, in PyTorch's order and with its messages."""
    shape, classes = list(scores.shape), target._a[..., 0]
    rank, sizes, expected = len(shape), list(classes.shape), [*shape[:1], *shape[2:]]
    raise_if(not rank, "scores without an axis")
    count = shape[min(1, rank - 1)]
    raise_if(rank > 1 and sizes[:1] != shape[:1], "size of the batch", shape[0], sizes[0] if sizes else 0)
    raise_if(rank < 3 and len(sizes) > 1, "several targets")
    if weight is not None and weight.shape != (count,):
        raise torch_error(
            "weights of classes" if rank < 3 else "weights of classes in places", count, list(weight.shape)
        )
    raise_if(rank == 4 and len(sizes) != 3, "targets in places", len(sizes))
    raise_if(rank in (3, 5) and sizes != expected, "size of targets", expected, sizes)
    raise_if(classes.dtype not in (np.int64, np.uint8), "dtype of targets", target.dtype.word)
    raise_if(rank == 1 and sizes not in ([], [1]), "size of a single target", classes.size)
    raise_if(rank == 4 and sizes != expected, "size of targets in places", shape, sizes)
    bad = (classes != ignored) & ((classes < 0) | (classes >= count))
    if bad.any():
        raise torch_error("class out of bounds", classes[bad].reshape(-1)[0])
