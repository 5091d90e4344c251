"""Every operation of the table: its value against NumPy's, its first and second derivatives against differences.

The second derivative is the `vjp` of the `vjp`, so each rule is also differentiated itself.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import each, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from numpy.testing import assert_allclose

from gradcli import evaluate, parse, vjp
from gradcli.graph import construct, index_arrays, matrices
from gradcli.graph.calls import call_of, opened
from gradcli.graph.construct import call, corner, where
from gradcli.graph.graph import Graph
from gradcli.graph.index_arrays import dynamic_scatter, dynamic_slice, gather, index_add
from gradcli.graph.jvp import jvp
from gradcli.graph.node import compare, const, leaf
from gradcli.graph.operations import OPERATIONS

ANY, POSITIVE, NEGATIVE, UNIT = (-2.0, 2.0), (0.5, 3.0), (-3.0, -1.0), (-0.9, 0.9)

# The domain of each argument.
_ALIKE = {
    (ANY, ANY): """add sub mul leaky_relu elu maximum minimum logaddexp logistic_loss heaviside lt le gt ge eq ne
        and or""",
    (ANY, NEGATIVE): "div hypot atan2 celu",
    (ANY,): """neg identity exp exp2 expm1 sin cos atan sinh cosh tanh sech asinh erf erfc i0 i1 relu sigmoid softplus
        silu gelu mish selu logsigmoid softsign tanhshrink abs ndtr frac sign floor ceil trunc round not""",
    (POSITIVE,): "sqrt log log1p log2 log10 csc cot gamma lgamma digamma polygamma zeta",
    (UNIT,): "tan sec asin acos atanh",
    (ANY, ANY, ANY): "clamp where corner lerp",
}
DOMAINS = {op: domains for domains, ops in _ALIKE.items() for op in ops.split()}
DOMAINS |= {
    "pow": (POSITIVE, ANY),
    "cbrt": (NEGATIVE,),
    "acosh": ((1.2, 3.0),),
    "hardtanh": (ANY, (-1.5, -0.5), (0.5, 1.5)),
    "mod": (ANY, (2.5, 4.5)),
    "fmod": ((-2.9, -2.2), (1.0, 1.09)),
    "huber": ((-2.5, -1.6), (0.5, 1.5)),
    "log_loss": ((0.1, 0.9), (0.1, 0.9)),
    "floor_divide": (ANY, (2.5, 4.5)),
}
# Its derivative is 0, whatever the differences are.
DETACHED = {"detach"}
# What takes more than leaves (a condition, a whole number), or is a condition.
BUILT = {
    **{op: partial(compare, op) for op, row in OPERATIONS.items() if row.kind == "condition"},
    "where": lambda c, a, b: where(c > 0, a, b),
    "corner": lambda c, a, b: corner(c > 0, a, b),
    "polygamma": lambda x: call("polygamma", 1, x),
    "zeta": lambda q: call("zeta", 3, q),
}

SHAPES = {"a": (), "x": (3,), "z": (3,), "M": (2, 3), "N": (3, 4), "T": (2, 2, 3), "U": (2, 3, 2), "V": (1, 3, 2)}
SHAPES |= {"P": (3, 3), "I": (1, 2, 4, 3), "K": (2, 2, 2, 2)}
REGULAR = "(P + [[5, 0, 0], [0, 6, 0], [0, 0, 7]])"

DISTINCT = const((6, 1, 0, 1, 13, 1, 0, 1, 27), (3, 3))  # its eigenvalues are far apart


def integers(numbers):
    array = np.array(numbers)
    return const(tuple(array.reshape(-1).tolist()), array.shape, "int64")


def stacked(x):
    return construct.stack([x, x * x])


# Each expression is read by gradcli, and by Python with NumPy's functions under the same names.
EXPRESSIONS = {
    "sum": [
        "sum(x)",
        "sum(a)",
        "sum(M, axis=0)",
        "sum(M, axis=-1, keepdims=True)",
        "M.sum(axis=1)",
        "sum(T, axis=(0, 2))",
        "sum(T, axis=(-1, 0), keepdims=True)",
        "norm(x, ord=1)",
        "norm(M, ord=1, axis=0)",
    ],
    "mean": ["mean(M)", "mean(M, axis=0)", "mean(T, axis=(0, -1), keepdims=True)"],
    "prod": [
        "prod(x)",
        "prod(M, axis=-1)",
        "prod(T, axis=(0, 2))",
        "prod(T, axis=1, keepdims=True)",
        "prod(x - x[1])",
        "prod(concatenate([x - x[0], z - z[1]]))",
    ],
    "product_of_others": [
        lambda x: construct.product_of_others(x, (0,)),
        lambda x: construct.product_of_others(construct.index(x, (range(1),)), (0,)),
        lambda T: construct.product_of_others(T, (0, 2)),
        lambda M: construct.product_of_others(construct.concatenate([M, M * M, M], 1), (1,)),
    ],
    "max": [
        "max(x)",
        "max(M, axis=0)",
        "M.max(axis=-1, keepdims=True)",
        "max(T, axis=(0, 2))",
        "amax(T, axis=-2)",
        "norm(x, ord=inf)",
        "norm(M, ord=inf, axis=1, keepdims=True)",
    ],
    "min": ["min(M)", "min(M, axis=1)", "M.min(axis=0, keepdims=True)", "min(T, axis=(0, -1))", "amin(T, axis=0)"],
    "norm": ["norm(x)", "norm(M)", "norm(M, axis=-1)", "norm(T, axis=0, keepdims=True)"],
    "var": ["var(x)", "var(M, axis=0, ddof=0)", "var(T, axis=(0, 2), keepdims=True)", "var(x, ddof=2)"],
    "std": ["std(x)", "std(M, axis=-1, ddof=0)", "std(T, axis=(0, 2))", "std(x, ddof=2)"],
    "logsumexp": ["logsumexp(x)", "logsumexp(M, axis=0, keepdims=True)", "logsumexp(T, axis=(0, -1))"],
    "softmax": ["softmax(x)", "softmax(M, axis=0)", "softmax(T, axis=1)"],
    "log_softmax": ["log_softmax(x)", "log_softmax(M, axis=0)", "log_softmax(T, axis=1)"],
    "cumsum": ["cumsum(x)", "cumsum(M, axis=0)", "cumsum(T, axis=-1)"],
    "cummax": ["cummax(x)", "cummax(M, axis=0)", "cummax(T, axis=-1)", "cummax(x - x[1])**2"],
    "cummin": ["cummin(x)*z", "cummin(M, axis=1)", "cummin(T, axis=1)"],
    "sum_segments": [lambda x: call_of("sum_segments", (0,), x * x, compare("gt", x, const(0)))],
    "cumprod": ["cumprod(x)", "cumprod(M, axis=0)", "cumprod(T, axis=-1)", "cumprod(x - x[1])"],
    "recurrence": [
        lambda x, z: construct.recurrence(construct.index(x, (range(2),)), z, 0),
        lambda T: construct.recurrence(construct.index(T, (range(2), range(2), range(1, 3))), T * T, 2),
    ],
    "sort": ["sort(x)*z", "sort(M, axis=0)**2", "sort(T, axis=1)"],
    "argsort": ["argsort(x)*z*x", "argsort(M, axis=0)*M**2"],
    "take_along": [lambda x, z: construct.along("take_along", x, construct.ordered("argsort", z, 0, False), 0)],
    "put_along": [lambda M: construct.along("put_along", M * M, construct.ordered("argsort", M, 1, True), 1)],
    "gather": [
        lambda x: gather(x * x, 0, integers([2, 0, 2])),
        lambda T: gather(T, 1, integers([[1, 0], [0, 0]])),
    ],
    "index_add": [
        lambda x: index_add(x * x, 0, integers([1, 0, 1]), 4),
        lambda M: index_add(M, 0, integers([[0, 1, 1], [3, 1, 0]]), 4),
    ],
    "dynamic_slice": [
        lambda x: dynamic_slice(x * x, (0,), integers([2])),
        lambda T: dynamic_slice(T, (0, None, range(1)), integers([1, 1])),
    ],
    "dynamic_scatter": [
        lambda x: dynamic_scatter(x * x, (range(0, 6, 2),), integers([1]), (7,)),
        lambda M: dynamic_scatter(M, (0, range(2)), integers([1, 2]), (2, 5, 3)),
    ],
    "median": ["median(x)", "median(M, axis=1)**2", "median(P)"],
    "argmedian_mask": [lambda P: construct.argument_mask("argmedian_mask", P, 0)],
    "argmax": ["argmax(x)*x", "argmax(M, axis=0)*x"],
    "argmin": ["argmin(x)*x", "argmin(M, axis=1, keepdims=True)*M"],
    "argmax_mask": [lambda M: construct.argument_mask("argmax_mask", M, 0)],
    "argmin_mask": [lambda M: construct.argument_mask("argmin_mask", M, 1)],
    "matmul": [
        "x @ z",
        "x @ N",
        "M @ x",
        "M @ N",
        "T @ x",
        "x @ U",
        "T @ N",
        "M @ U",
        "T @ U",
        "T @ V",
        "V @ T",
        "x @ V",
        "matmul(x, M.T)",
        "dot(x, x)",
    ],
    "outer": ["outer(x, z)", "outer(x, x[:2])"],
    "einsum": ['einsum("ij,jk->ki", M, N)', 'einsum("aij,aik->jka", T, T)', 'einsum("ij,j,i->", P, x, z)'],
    "cross": ["cross(x, z)", "cross(M, x)", "cross(P.T, P[::-1], axis=0)"],
    "det": ["det(P)", "det(T[:, :, :2]*a)"],
    "cofactors": [
        lambda P: matrices.cofactors(P),
        lambda T: matrices.cofactors(construct.index(T, (range(2), range(2), range(2)))),
    ],
    "cholesky": [
        lambda P: matrices.cholesky(P + DISTINCT),
        lambda P: matrices.cholesky(stacked(P + DISTINCT)),
    ],
    "inv": [f"inv({REGULAR})", "inv(T[:, :, ::2] + [[4, 0], [0, 5]])"],
    "eigvalsh": [lambda P: matrices.eigvalsh(P + DISTINCT), lambda P: matrices.eigvalsh(stacked(P + DISTINCT))],
    "eigvecsh": [lambda P: matrices.eigvecsh(P + DISTINCT), lambda P: matrices.eigvecsh(stacked(P + DISTINCT))],
    "svdvals": [lambda P: matrices.svdvals(P + DISTINCT), lambda M: matrices.svdvals(M), lambda U: matrices.svdvals(U)],
    "svd_u": [
        lambda P: matrices.singular_vectors("svd_u", P + DISTINCT),
        lambda M: matrices.singular_vectors("svd_u", M),
        lambda N: matrices.singular_vectors("svd_u", construct.swap(N)),
        lambda U: construct.sliced(matrices.singular_vectors("svd_u", U, full=True), 2, range(2)),
    ],
    "svd_vh": [
        lambda P: matrices.singular_vectors("svd_vh", P + DISTINCT),
        lambda M: construct.sliced(matrices.singular_vectors("svd_vh", M, full=True), 0, range(2)),
        lambda U: matrices.singular_vectors("svd_vh", U),
    ],
    "solve": [f"solve({REGULAR}, x)", f"solve({REGULAR}, N)"],
    "trace": ["trace(M)", "trace(N)", "trace(M @ N)"],
    "diagonal": ["diag(M)", "diag(N)"],
    "from_diagonal": [
        "diag(x)",
        lambda x: construct.from_diagonal(x, (3, 5)),
        lambda x: construct.from_diagonal(x, (4, 3)),
    ],
    "transpose": ["M.T", "transpose(T)", "transpose(T, (2, 0, 1))", "permute(T, -1, 0, 1)", "transpose(T, 0, -1)"],
    "reshape": ["reshape(M, (3, 2))", "M.reshape(3, -1)", "T.flatten()", "reshape(T, -1, 2)", "reshape(a, (1, 1))"],
    "broadcast": [lambda x: construct.broadcast(x, (2, 3)), lambda V: construct.broadcast(V, (2, 2, 3, 2))],
    "index": [
        "x[0]",
        "x[-1]",
        "x[::-1]",
        "x[2:0:-1]",
        "x[1:]",
        "x[:0:-2]",
        "x[:, None]*z",
        "x[0]*x[-1]*x",
        "M[1, ::-1]",
        "M[:, -1]",
        "M[::-1, ::-2]",
        "T[..., 0]",
        "T[0, None, :, ::2]",
    ],
    "take": ["M[:, [2, 0, 2]]", "N[[0, 2, 2, 1]]*a", "take(T, [0, 11, 5, 5])"],
    "scatter_add": [lambda M: index_arrays.scatter_add(M, 1, index_arrays.IndexArray.of([3, 0, 3]), 5)],
    "segment_sum": ["segment_sum(x, [1, 0, 1], 2)", "segment_sum(M, [2, 2], 4)*a"],
    "triu": ["triu(P)", "triu(T, 1)"],
    "tril": ["tril(N)", "tril(M, -1)"],
    "scatter": [lambda x, a: construct.scatter((2, 3), [((0, range(3)), x), ((0, range(2, -1, -1)), x), ((1, 2), a)])],
    "concatenate": ["concatenate([x, z])", "concatenate([M, M[:, :1]], axis=1)", "concatenate([U, V], axis=-3)"],
    "stack": ["stack([x, z])", "stack([x, 2*z], axis=-1)", "stack([M, M**2], axis=1)", "[x[1], a, x[1]*a]"],
    # Calls
    "mse_loss": ["mse_loss(x, z)", "mse_loss(M, x, 'sum')", "mse_loss(x, M*x, reduction='none')"],
    "l1_loss": ["l1_loss(M, x)", "l1_loss(x, a, 'none')"],
    "huber_loss": ["huber_loss(M, x, delta=0.5)", "huber_loss(x, z, 'sum', a**2 + 1)"],
    "smooth_l1_loss": ["smooth_l1_loss(M, x)", "smooth_l1_loss(x, z, beta=a**2 + 1)"],
    "binary_cross_entropy": [
        "binary_cross_entropy(sigmoid(M), sigmoid(x))",
        "binary_cross_entropy(sigmoid(x), sigmoid(z), a**2, 'none')",
    ],
    "binary_cross_entropy_with_logits": [
        "binary_cross_entropy_with_logits(M, x, reduction='sum')",
        "binary_cross_entropy_with_logits(x, z, a, pos_weight=z**2)",
    ],
    "nll_loss": ["nll_loss(M, [2, 0])", "nll_loss(x, 1)", "nll_loss(M, [0, 1], x**2, 1, 'sum')"],
    "cross_entropy": [
        "cross_entropy(M, [2, 0])",
        "cross_entropy(M, [1, 1], x**2)",
        "cross_entropy(M, softmax(M*a, axis=1), x**2, label_smoothing=0.2)",
        "cross_entropy(x, softmax(z), reduction='none')",
        "cross_entropy(T, [[0, 1, 1], [1, 0, -100]], label_smoothing=0.1)",
    ],
    "linear": [
        "linear(x, N.T, N[0])",
        "linear(M, P)",
        "linear(T, P*a, x)",
        "linear(M[None], M[:1], a)",
        "linear(M, x, a)",
    ],
    "bilinear": ["bilinear(x, z, [P, P*a], x[:2])", "bilinear(M, U[:, 0], U, a)"],
    "embedding": [
        "embedding([1, 0, 1], M)",
        "embedding([[2, 0], [0, 0]], N)",
        "embedding(1, N)",
        "embedding(a - a + 1, M*a)",
        lambda M: call_of("embedding", (None,), integers([[0, 1, 1], [1, 0, 0]]), M * M),
    ],
    "dropout": ["dropout(x, [1, 0, 1])", "dropout(M, x, a**2/9)", "dropout(M, [[1], [0]], 1/4)"],
    "scaled_dot_product_attention": [
        "scaled_dot_product_attention(M, P, N)",
        "scaled_dot_product_attention(T, U.mT, T*a, is_causal=True)",
        "scaled_dot_product_attention(T, M, U.mT, M[:, :2], scale=a)",
        "scaled_dot_product_attention(M, P, P, x < z + [3, 0, 0])",
        "scaled_dot_product_attention(U, V, V)",
        "scaled_dot_product_attention(I[0], V.mT, V.mT*a, enable_gqa=True)",
    ],
    "lstm": [
        "lstm(T, x[None, :2, None], M[:1, :2, None], N.T, N.T[:, :1]*a, N[0], N[1])",
        "lstm(T, x[None, :2, None], M[:1, :2, None], N.T, N.T[:, :1]*a, N[0], N[1], batch_first=True, result=1)",
        "lstm(M, V[0, :1, :1], V[0, 1:2, :1], N.T, N.T[:, :1], has_biases=False, result=2)",
        "lstm(U[:, 0], V[0, :2, :1], V[0, 1:, 1:], N.T[:, :2], N.T[:, :1], N.T[:, 1:3], N.T[:, 2:], has_biases=False,"
        " bidirectional=True, result=1)",
        "lstm(M, V[0, :2, :1], V[0, 1:, 1:], N.T, N.T[:, :1], N.T[:, :1], N.T[:, 2:], [[1], [0]], 1/4, num_layers=2,"
        " has_biases=False, dropout=True)",
        "lstm(M, [[a, 1]], V[0, 1:2, :1], N.T, N.T[:, :2], V[0, :2, :1], has_biases=False)",
    ],
    "gru": [
        "gru(T, x[None, :2, None], P, P[:, :1]*a, x, z)",
        "gru(M, V[0, :2, :1], P, P[:, :1], P[:, 1:2]*a, P[:, 2:], has_biases=False, num_layers=2, result=1)",
    ],
    "rnn_tanh": [
        "rnn_tanh(T, M[None, :, :2], M, T[0, :, :2], x[:2], z[1:])",
        "rnn_tanh(T, M[None, :, :2], M, T[0, :, :2], has_biases=False, result=1)",
    ],
    "rnn_relu": ["rnn_relu(T, M[None, :, :2], M, T[0, :, :2]**2 + 1, x[:2] + 9, z[1:])"],
    "layer_norm": ["layer_norm(M, 3)", "layer_norm(T, (2, 3), M, x*M)", "layer_norm(x, 3, bias=z, eps=a**2 + 1)"],
    "group_norm": ["group_norm(M.T, 1)", "group_norm(T.mT, 3, x*z, z, a**2)", "group_norm(I, 2)"],
    "instance_norm": [
        "instance_norm(T)",
        "instance_norm(I, weight=x[:2]*a, bias=z[1:], eps=a**2)",
        "instance_norm(T, x[:2], z[1:]**2, use_input_stats=False)",
    ],
    "rms_norm": ["rms_norm(M, 3)", "rms_norm(T, (2, 3), M, a**2)"],
    "batch_norm": [
        "batch_norm(M.T)",
        "batch_norm(T, weight=x[:2]*a, bias=z[1:], eps=a**2)",
        "batch_norm(M, x, z**2, weight=z, eps=0.1)",
    ],
    "conv1d": [
        "conv1d(T, U[:, :2], x[:2], padding=1)",
        "conv1d(M, T[:, :, :2], stride=2, padding=1)",
        "conv1d(T, U[:, :1, :], dilation=2, groups=2)",
        "conv1d(M, T[:, :, :2], padding='same')",
    ],
    "conv2d": [
        "conv2d(I, K, padding=(1, 0), stride=(2, 1))",
        "conv2d(I[0], K, dilation=(1, 2), padding=2)",
        "conv2d(I, K[:, :1], groups=2, bias=x[1:])",
    ],
    "conv3d": ["conv3d(I[:, :, None], K[:, :, None], padding=(0, 1, 1), stride=2)"],
    "conv_transpose1d": ["conv_transpose1d(T, T[:, :, :2], x[1:], stride=2, output_padding=1, padding=1)"],
    "conv_transpose2d": [
        "conv_transpose2d(I, K, stride=(1, 2), dilation=2, output_padding=1)",
        "conv_transpose2d(I, K, [a, 1], output_padding=0, padding=1)",
        "conv_transpose2d(I, K, stride=(2, 1), padding=(1, 0), dilation=(1, 2))",
        "conv_transpose2d(I[0], K, groups=2, bias=[a, 1, 2, 3])",
    ],
    "conv_transpose3d": ["conv_transpose3d(I[:, :, None], K[:, :, None], padding=(0, 1, 1), stride=2)"],
    "max_pool1d": ["max_pool1d(T, 2, stride=1)", "max_pool1d(M, 2, padding=1)"],
    "max_pool2d": ["max_pool2d(I, (2, 3), stride=1)", "max_pool2d(I, 2, padding=1, dilation=2, ceil_mode=True)"],
    "max_pool3d": ["max_pool3d(I, 2)"],
    "avg_pool1d": ["avg_pool1d(T, 2, padding=1)", "avg_pool1d(M, 2, ceil_mode=True)"],
    "avg_pool2d": ["avg_pool2d(I, 2, padding=1, count_include_pad=False)", "avg_pool2d(I, 2, divisor_override=3)"],
    "kron": ["kron(x, M)", "kron(M, x)"],
    "roll": ["roll(x, 1)", "roll(M, (1, -1), (0, 1))", "roll(M, 2)"],
    "pad": ["pad(x, (1, 2), value=3)", "pad(M, (0, 1, 2, 1), value=x[0])"],
    "interpolate": [
        "interpolate(T, 5)",
        "interpolate(T, scale_factor=1.5, mode='linear')",
        "interpolate(I, (3, 4), mode='bilinear')",
        "interpolate(I, size=(7, 2), mode='bilinear', align_corners=True)",
        "interpolate(I, (6, 2), mode='bicubic')",
        "interpolate(I, scale_factor=(1.5, 0.5), mode='area')",
    ],
    "adaptive_max_pool1d": ["adaptive_max_pool1d(T, 2)", "adaptive_max_pool1d(M, 3)"],
    "adaptive_max_pool2d": ["adaptive_max_pool2d(I, (3, 2))", "adaptive_max_pool2d(I[0], (2, 3))"],
    "adaptive_max_pool3d": ["adaptive_max_pool3d(I, (1, 3, 2))"],
    "adaptive_avg_pool1d": ["adaptive_avg_pool1d(T, 2)", "adaptive_avg_pool1d(M, 1)"],
    "adaptive_avg_pool2d": ["adaptive_avg_pool2d(I, (3, 2))", "adaptive_avg_pool2d(I[0], (2, 3))"],
    "adaptive_avg_pool3d": ["adaptive_avg_pool3d(I, (1, 3, 5))"],
    "avg_pool3d": ["avg_pool3d(I, 2)"],
    # Elementwise operations as the language spells them.
    "pow": ["x**3", "x**-2", "x^0", "(x**2)**0.5", "3**x", "square(x)", "(x**2 + 1)**M"],
    "clamp": ["clip(x, -0.5, 0.5)", "clip(M, x, z)"],
    "maximum": ["maximum(x, M)", "maximum(M, a)"],
    "heaviside": ["heaviside(x - x, z)*a"],
    "where": ["where(x > z, x*z, M)", "where((x > 0) & (x < a), x**2, x)"],
    "mod": ["x % 0.7", "(x + 10) % 3"],
}


NUMPY = vars(np) | {
    "cummax": lambda x, axis=0: np.maximum.accumulate(x, axis),
    "cummin": lambda x, axis=0: np.minimum.accumulate(x, axis),
    "segment_sum": lambda x, ids, n: np.stack([x[np.asarray(ids) == k].sum(axis=0) for k in range(n)]),
    "norm": np.linalg.norm,
    "var": partial(np.var, ddof=1),
    "std": partial(np.std, ddof=1),
    "logsumexp": lambda x, **axes: np.log(np.sum(np.exp(x), **axes)),
    "log_softmax": lambda x, axis=-1: x - np.log(np.exp(x).sum(axis=axis, keepdims=True)),
    "det": np.linalg.det,
    "inv": np.linalg.inv,
    "solve": np.linalg.solve,
    "softmax": lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True),
    "transpose": lambda x, *axes: np.swapaxes(x, *axes) if len(axes) == 2 else np.transpose(x, *axes),
    "permute": lambda x, *axes: np.transpose(x, axes),
    "reshape": lambda x, *shape: x.reshape(*shape),
}


# PyTorch's values of layers and losses: `record_calls.py`.
RECORDED = json.loads(Path(__file__).with_name("calls.json").read_text("utf-8"))


def graph_of(build, **shapes):
    leaves = {name: leaf(shape) for name, shape in shapes.items()}
    return Graph.of(leaves, {"y": build(**leaves)})


def random_point(graph, domains, rng):
    """Return distinct values for the leaves: no two are equal, none is whole or 0, and none is near to that."""
    point = {}
    for i, ((name, node), (low, high)) in enumerate(zip(graph.inputs.items(), domains, strict=True)):
        count = max(16, node.size)
        places = rng.choice(count, node.size, replace=False) + (i + 1) / (len(graph.inputs) + 1)
        point[name] = low + (high - low) * places.reshape(node.shape) / count
    return point


def at(graph, point):
    """Evaluate at one point; return the outputs by name."""
    found = evaluate(graph, {name: value[..., None] for name, value in point.items()})
    return {name: value[..., 0] for name, value in found.items()}


def differences(graph, point, name, h=1e-3):
    """Return the gradient of vᵀy for one leaf, by central differences extrapolated from h and h/2."""
    x = point[name]
    steps = np.eye(x.size).reshape(*x.shape, x.size)
    shifted = np.concatenate([x[..., None] + s * steps for s in (h, -h, h / 2, -h / 2)], axis=-1)
    found = evaluate(graph, {k: v[..., None] for k, v in point.items()} | {name: shifted})
    total = np.zeros(4 * x.size)
    for output, y in found.items():
        total += np.sum(point[f"{output}.v"][..., None] * y, axis=tuple(range(y.ndim - 1)))
    up, down, half_up, half_down = total.reshape(4, *x.shape)
    return (8 * (half_up - half_down) - (up - down)) / (6 * h)


def assert_close(found, expected, rtol, atol, name):
    """Be quick where NumPy's `assert_allclose` has nothing to tell, which takes its time to find that."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.subtract(found, expected, dtype=float))
    if not (apart <= atol + rtol * np.abs(expected)).all():
        assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=name)


def check_grads(graph, point, rng, order=2):
    """Check vᵀJ, the vᵀJ of that, and so on up to `order`, against differences."""
    point = point | {f"{name}.v": rng.uniform(-1, 1, y.shape) for name, y in graph.outputs.items()}
    grads = vjp(graph)
    found = at(grads, point)
    for name, node in graph.inputs.items():
        grad = found[f"{name}.grad"]
        assert grad.shape == node.shape
        assert_close(grad, differences(graph, point, name), 1e-7, 1e-8, name)
    if order > 1:
        check_grads(grads, point, rng, order - 1)


def check_batch(graph, domains, rng, points=3):
    """Check that many points at once give what each gives alone, and that an input may have one point for all."""
    singles = [random_point(graph, domains, rng) for _ in range(points)]
    batch = {name: np.stack([single[name] for single in singles], axis=-1) for name in graph.inputs}
    batch |= {f"{name}.v": rng.uniform(-1, 1, (*y.shape, 1)) for name, y in graph.outputs.items()}
    first = next(iter(graph.inputs))
    for g in (graph, vjp(graph)):
        for values in (batch, batch | {first: batch[first][..., :1]}):
            together = evaluate(g, values)
            for k in range(points):
                one = at(g, {name: value[..., k % value.shape[-1]] for name, value in values.items()})
                for name, value in together.items():
                    shape = g.outputs[name].shape
                    assert value.shape in {(*shape, 1), (*shape, points)}
                    assert_close(value[..., k % value.shape[-1]], one[name], 1e-12, 1e-14, name)


def test_no_operation_is_forgotten():
    elementwise = {op for op, row in OPERATIONS.items() if row.broadcasts}
    assert elementwise == set(DOMAINS) | DETACHED
    # The numbers of formulas are all of one type.
    assert set(OPERATIONS) - elementwise - {"cast"} <= set(EXPRESSIONS)


@pytest.mark.parametrize("op", DOMAINS)
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_elementwise(op, data):
    domains = DOMAINS[op]
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=len(domains), max_dims=2, max_side=3)).input_shapes
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    build = BUILT.get(op, partial(call, op))
    graph = graph_of(lambda **leaves: build(*leaves.values()), **dict(zip("abc", shapes, strict=False)))
    assert graph.outputs["y"].shape == np.broadcast_shapes(*shapes)
    check_grads(graph, random_point(graph, domains, rng), rng)
    check_batch(graph, domains, rng)


@each(("op", "text"), [(op, text) for op, texts in EXPRESSIONS.items() for text in texts])
def test_expression(op, text):
    rng = np.random.default_rng(0)
    graph = parse(text, **SHAPES) if isinstance(text, str) else built(text)
    assert op in {node.op for node in graph.nodes}
    domains = [ANY] * len(graph.inputs)
    point = random_point(graph, domains, rng)
    if isinstance(text, str):
        (value,) = at(graph, point).values()
        right = RECORDED[text] if text in RECORDED else eval(text.replace("^", "**"), NUMPY | point)
        assert_allclose(value, right, rtol=1e-13, atol=1e-14 * (text in RECORDED))
        assert value.shape == np.shape(right)
    check_grads(graph, point, rng)
    check_batch(graph, domains, rng)


def built(build):
    """Return the graph of a function of leaves, which have their names and shapes from its arguments."""
    return graph_of(build, **{name: SHAPES[name] for name in build.__code__.co_varnames[: build.__code__.co_argcount]})


CALLS = [text for op, texts in EXPRESSIONS.items() for text in texts if OPERATIONS[op].kind == "call"]
# A row of padding has no gradient, whatever the differences are.
CALLS += [
    "embedding([[2, 0], [0, 0]], N, 0)",
    "embedding(a - a + [0, 1], M, -1)",
    lambda M: call_of("embedding", (1,), integers([[0, 1, 1], [1, 0, 0]]), M * M),
]


@each("text", CALLS)
@settings(max_examples=examples(4), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_call_has_the_derivatives_of_its_definition(text, seed):
    graph = parse(text, **SHAPES) if isinstance(text, str) else built(text)
    rng = np.random.default_rng(seed)
    point = random_point(graph, [ANY] * len(graph.inputs), rng)
    moving = {f"{name}.u": rng.uniform(-1, 1, x.shape) for name, x in graph.inputs.items()}
    for derived, more in ((vjp, {}), (lambda g: vjp(vjp(g)), {}), (jvp, moving)):
        found = derived(graph)
        more |= {name: rng.uniform(-1, 1, x.shape) for name, x in found.inputs.items() if name not in {*point, *more}}
        expected = at(derived(opened(graph)), point | more)
        for name, value in at(found, point | more).items():
            assert_close(value, expected[name], 1e-9, 1e-11, name)
