"""Products, reductions, normalizations, and operators along an axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.array import Array
from gradcli.graph.calls import call_with
from gradcli.graph.construct import call, channels, corner, equal, kept, matmul, ordered, reduce, reshape, sliced, swap
from gradcli.graph.einsum import einsum
from gradcli.graph.matrices import det
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import size_of
from gradcli.graph.windows import Window, average
from gradcli.onnx.register import add, operator
from gradcli.onnx.values import axis_of, integers, number


def _kept(op: str, x: Node, axes: tuple[int, ...], *settings: int) -> Node:
    return kept(reduce(op, x, axes, *settings), x, axes)


def _standard(x: Node, axes: tuple[int, ...], epsilon: float) -> Node:
    """Return an array less its mean over axes, over the root of its variance there."""
    return (x - _kept("mean", x, axes)) / call("sqrt", _kept("var", x, axes, 0) + number(epsilon))


@operator("BatchNormalization", since=7)
def _batch(
    x: Node, scale: Node, bias: Node, mean: Node, var: Node, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0, is_test: int = 1, spatial: int = 1,
) -> tuple[Node, ...]:  # fmt: skip
    given, training = (mean, var, scale, bias), training_mode or not is_test
    if not training and len(x.shape) > 1 and all(v.shape == x.shape[1:2] for v in given):
        names = ("running_mean", "running_var", "weight", "bias")
        return (call_with("batch_norm", (False,), (x,), **dict(zip(names, given, strict=True)), eps=number(epsilon)),)
    scale, bias, mean, var = (channels(v, x) for v in (scale, bias, mean, var))
    if not training:
        return ((x - mean) / call("sqrt", var + number(epsilon)) * scale + bias,)
    axes = (0, *range(2, len(x.shape)))
    kept = number(momentum)
    now = [(reduce("mean", x, axes), mean), (reduce("var", x, axes, 0), var)]
    running = [reshape(old, (old.size,)) * kept + new * (1 - kept) for new, old in now]
    return (_standard(x, axes, epsilon) * scale + bias, *running)


add(partial(_batch, is_test=0), "BatchNormalization")


@operator("InstanceNormalization")
def _instance(x: Node, scale: Node, bias: Node, *, epsilon: float = 1e-5) -> Node:
    if len(x.shape) > 2 and scale.shape == bias.shape == x.shape[1:2]:
        return call_with("instance_norm", (True,), (x,), weight=scale, bias=bias, eps=number(epsilon))
    return _standard(x, tuple(range(2, len(x.shape))), epsilon) * channels(scale, x) + channels(bias, x)


@operator("LayerNormalization")
def _layer(
    x: Node, scale: Node, bias: Node | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Node, ...]:
    axes = tuple(range(axis_of(axis, len(x.shape)), len(x.shape)))
    shape = tuple(x.shape[i] for i in axes)
    if scale.shape == shape and (bias is None or bias.shape == shape):
        y = call_with("layer_norm", (shape,), (x,), weight=scale, bias=bias, eps=number(epsilon))
    else:
        y = _standard(x, axes, epsilon) * scale
        y = y if bias is None else y + bias
    inverse = 1 / call("sqrt", _kept("var", x, axes, 0) + number(epsilon))
    return y, _kept("mean", x, axes), inverse


@operator("GroupNormalization", since=18)
def _group(x: Node, scale: Node, bias: Node, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1) -> Node:
    count = x.shape[1]
    if num_groups < 1 or count % num_groups:
        raise InputError(f"{count} channels do not form {num_groups} groups")
    if scale.shape == bias.shape == (count,):
        return call_with("group_norm", (num_groups,), (x,), weight=scale, bias=bias, eps=number(epsilon))
    groups = reshape(x, (x.shape[0], num_groups, -1))
    y = _standard(groups, (2,), epsilon)
    if scale.size == count:
        return reshape(y, x.shape) * channels(scale, x) + channels(bias, x)
    return reshape(y * reshape(scale, (-1, 1)) + reshape(bias, (-1, 1)), x.shape)


@operator("LpNormalization")
def _lp(x: Node, *, axis: int = -1, p: int = 2) -> Node:
    axes = (axis_of(axis, len(x.shape)),)
    size = _kept("norm", x, axes) if p == 2 else _kept("sum", call("abs", x), axes)
    return corner(equal(size, 0), 0, x / size)


@operator("LRN")
def _lrn(x: Node, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Node:
    if size < 1:
        raise InputError(f"there is no window of {size} channels")
    # The window is one along the channels, which come last.
    flat = reshape(x**2, (*x.shape[:2], -1))
    before = (size - 1) // 2
    window = Window(size, padding=before, more=size - 1 - 2 * before)
    sums = reshape(swap(average(swap(flat), [window], True, 1)), x.shape)
    return x / (number(bias) + number(alpha) / size * sums) ** number(beta)


Axes = tuple[int, ...]


_REDUCTIONS: dict[str, Callable[[Node, Axes], Node]] = {
    "ReduceSum": partial(construct.reduce, "sum"),
    "ReduceMean": partial(construct.reduce, "mean"),
    "ReduceProd": partial(construct.reduce, "prod"),
    "ReduceMax": lambda x, axes: construct.reduce("max", x, axes, "even"),
    "ReduceMin": lambda x, axes: construct.reduce("min", x, axes, "even"),
    "ReduceL1": lambda x, axes: construct.reduce("sum", call("abs", x), axes),
    "ReduceL2": partial(construct.reduce, "norm"),
    "ReduceLogSum": lambda x, axes: call("log", construct.reduce("sum", x, axes)),
    "ReduceLogSumExp": partial(construct.reduce, "logsumexp"),
    "ReduceSumSquare": lambda x, axes: construct.reduce("sum", x**2, axes),
}


def _reduce(name: str, x: Node, axes: Array | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Node:
    listed = integers(axes)
    if not listed and noop_with_empty_axes:
        # Nothing is reduced: what is done to each element is.
        chosen: Axes = ()
    else:
        chosen = tuple(sorted({axis_of(a, len(x.shape)) for a in listed})) or tuple(range(len(x.shape)))
    reduced = _over(name, x, chosen)
    return construct.kept(reduced, x, chosen) if keepdims else reduced


def _over(name: str, x: Node, axes: Axes) -> Node:
    if not axes:
        each = {"ReduceL1": call("abs", x), "ReduceL2": call("abs", x), "ReduceLogSum": call("log", x)}
        return (each | {"ReduceSumSquare": x**2}).get(name, x)
    if not x.size and name in ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSumExp"):
        raise InputError(f"`{name}` of an empty array has no value")
    return _REDUCTIONS[name](x, axes)


for _name in _REDUCTIONS:
    add(partial(_reduce, _name), _name)


# Softmax


def _flat(build: Callable[[Node, int], Node], x: Node, *, axis: int = 1) -> Node:
    """Return the result as in opsets before 13: of a matrix whose columns are all axes from `axis` on."""
    axis = axis_of(axis, len(x.shape)) if axis != len(x.shape) else axis
    matrix = construct.reshape(x, (size_of(x.shape[:axis]), size_of(x.shape[axis:])))
    return construct.reshape(build(matrix, 1), x.shape)


def _softmax(build: Callable[[Node, int], Node], x: Node, *, axis: int = -1) -> Node:
    return build(x, axis_of(axis, len(x.shape)))


_OF_LINES: dict[str, Callable[[Node, int], Node]] = {
    "Softmax": partial(construct.softmax, "softmax"),
    "LogSoftmax": partial(construct.softmax, "log_softmax"),
    "Hardmax": lambda x, axis: construct.where(construct.argument_mask("argmax_mask", x, axis), 1, 0),
}
for _name, _one in _OF_LINES.items():
    add(partial(_flat, _one), _name)
    add(partial(_softmax, _one), _name, since=13)


# Order


@operator("TopK")
def _top_k(x: Node, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Node, Node]:
    axis, count = axis_of(axis, len(x.shape)), integers(k)[0]
    if not 0 < count <= x.shape[axis]:
        raise InputError(f"`TopK` takes {count} of {x.shape[axis]} elements")
    values, indices = (ordered(op, x, axis, bool(largest)) for op in ("sort", "argsort"))
    return sliced(values, axis, range(count)), sliced(indices, axis, range(count))


def _argument(name: str, x: Node, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Node:
    axis = axis_of(axis, len(x.shape))
    index = construct.argument(name, construct.flip(x, (axis,)) if select_last_index else x, axis)
    index = const(x.shape[axis] - 1) - index if select_last_index else index
    return construct.kept(index, x, (axis,)) if keepdims else index


add(partial(_argument, "argmax"), "ArgMax")
add(partial(_argument, "argmin"), "ArgMin")


def _cumulative(op: str, first: int, x: Node, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Node:
    along = axis_of(integers(axis)[0], len(x.shape))
    if not x.size:
        return x
    x = construct.flip(x, (along,)) if reverse else x
    if exclusive:
        start = const(first, tuple(1 if i == along else n for i, n in enumerate(x.shape)), x.dtype)
        x = construct.concatenate([start, sliced(x, along, range(x.shape[along] - 1))], along)
    y = construct.cumulative(op, x, along)
    return construct.flip(y, (along,)) if reverse else y


add(partial(_cumulative, "cumsum", 0), "CumSum")
add(partial(_cumulative, "cumprod", 1), "CumProd")


@operator("Gemm")
def _gemm(
    a: Node,
    b: Node,
    c: Node | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Node:
    biases = c is None or (c.shape == b.shape[:1] and beta == 1)
    rows = len(a.shape) == len(b.shape) == 2 and a.shape[1] == b.shape[-1]
    if transB and rows and biases and not transA and alpha == 1:
        return call_with("linear", (), (a, b), bias=c)
    product = matmul(swap(a) if transA else a, swap(b) if transB else b)
    product = product if alpha == 1 else number(alpha) * product
    return product if c is None else product + (c if beta == 1 else number(beta) * c)


add(matmul, "MatMul")


add(lambda *x, equation: einsum(equation, *x), "Einsum")
add(det, "Det")
