"""Operators of scikit-learn's models: `ai.onnx.ml`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import argument, call, concatenate, corner, equal, matmul, reduce, softmax, where
from gradcli.graph.construct import reshape as reshaped
from gradcli.graph.graph import computed_from
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, cast, compare, const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import rewritten
from gradcli.onnx.register import add, operator
from gradcli.onnx.values import Value, gather, lift

ML = "ai.onnx.ml."


def _row(numbers: Any, like: Node) -> Node:
    return lift(np.asarray(numbers, np.float64), like.dtype)


def _transformed(x: Node, how: str) -> Node:
    match how:
        case "NONE":
            return x
        case "LOGISTIC":
            return call("sigmoid", x)
        case "SOFTMAX":
            return softmax("softmax", x, len(x.shape) - 1)
        case "SOFTMAX_ZERO":
            weights = where(equal(x, 0), 0, call("exp", x))
            return weights / reshaped(reduce("sum", weights, (len(x.shape) - 1,)), (*x.shape[:-1], 1))
    raise InputError(f"the transformation `{how[:40]}` is not supported")


add(lambda x, *, offset=(0.0,), scale=(1.0,): (x - _row(offset, x)) * _row(scale, x), ML + "Scaler")


@operator(ML + "Normalizer")
def _normalizer(x: Node, *, norm: str = "MAX") -> Node:
    axes = (len(x.shape) - 1,)
    size = {
        "MAX": lambda: reduce("max", call("abs", x), axes, "even"),
        "L1": lambda: reduce("sum", call("abs", x), axes),
        "L2": lambda: reduce("norm", x, axes),
    }[norm]()
    size = reshaped(size, (*x.shape[:-1], 1))
    return x / corner(equal(size, 0), 1, size)


@operator(ML + "Imputer")
def _imputer(x: Node, *, imputed_value_floats: Any = (), replaced_value_float: float = 0.0, **_: Any) -> Node:
    missing = (
        compare("ne", x, x) if np.isnan(replaced_value_float) else equal(x, lift(np.asarray(replaced_value_float)))
    )
    return where(missing, _row(imputed_value_floats, x), _defined(x, missing) if missing.op == "ne" else x)


_UNDEFINED = ("pow", "log", "log1p", "sqrt")  # of negative numbers
_MAX_STEPS = 1000


def _defined(x: Node, missing: Node) -> Node:
    """Return x with 1 in place of what its logarithms and powers read where it is missing.

    Both ways of writing it have the same values elsewhere, but the slope of `log` at -1 is nan, and 0 times nan is nan:
    scikit-learn's power transformer computes both of its branches everywhere, and fills in what is nan.
    """
    steps, ahead = {x}, [x]
    while ahead and len(steps) < _MAX_STEPS:
        for a in ahead.pop().args:
            is_new = a not in steps and a.args and a.shape == x.shape
            if is_new and OPERATIONS[a.op].kind == "elementwise" and not _is_filled(a):
                steps.add(a)
                ahead.append(a)
    known = {a: a for n in steps for a in n.args if a not in steps}

    def guarded(n: Node) -> Node:
        return n.with_args((corner(missing, 1, n.args[0]), *n.args[1:])) if n.op in _UNDEFINED else n

    return rewritten(computed_from(known, [x]), guarded, known)[x]


def _is_filled(n: Node) -> bool:
    """Return whether a node is that of an `Imputer` of nan, or of what it guards."""
    return n.op in ("where", "corner") and n.args[0].op == "ne" and n.args[0].args[0] is n.args[0].args[1]


@operator(ML + "LabelEncoder")
def _label_encoder(x: Node, **attributes: Any) -> Node:
    """Return the value of each key, and the default for other numbers."""
    keys, values, default = (_numbers(name, attributes) for name in ("keys", "values", "default"))
    if len(keys) != len(values):
        raise InputError(f"{len(keys)} keys and {len(values)} values")
    found = cast(where(equal(reshaped(x, (x.size, 1)), _row(keys, x)), 1, 0), x.dtype)
    otherwise = default[0] if len(default) else 0 if values.dtype.kind == "f" else -1
    return reshaped(matmul(found, _row(values - otherwise, x)) + _row(otherwise, x), x.shape)


def _numbers(name: str, attributes: dict[str, Any]) -> Array:
    """Return an attribute of numbers, which has one name for each type."""
    if any(key in attributes for key in (f"{name}_strings", f"{name}_string")) and name != "default":
        raise InputError("it computes with text", hint="cut the model at its result, and differentiate what follows")
    given = (
        attributes[key]
        for ending in ("tensor", "int64s", "floats", "int64", "float")
        if (key := f"{name}_{ending}") in attributes
    )
    return np.asarray(next(given, ())).reshape(-1)


add(lambda x, *, threshold=0.0: where(x > lift(np.asarray(threshold)), 1, 0), ML + "Binarizer")


@operator(ML + "FeatureVectorizer")
def _feature_vectorizer(*x: Node, inputdimensions: Any = None) -> Node:
    rows = [reshaped(n, (n.shape[0], -1)) if len(n.shape) != 2 else n for n in x]
    return concatenate(rows, 1)


@operator(ML + "ArrayFeatureExtractor")
def _array_feature_extractor(x: Node, indices: Value) -> Node:
    flat = reshaped(indices, (indices.size,)) if isinstance(indices, Node) else indices.reshape(-1).astype(np.int64)
    result = lift(gather(x, -1, flat))
    return reshaped(result, (1, result.size)) if len(x.shape) == 1 else result


# Linear models


@operator(ML + "LinearRegressor")
def _linear_regressor(
    x: Node, *, coefficients: Any, intercepts: Any = None, targets: int = 1, post_transform: str = "NONE"
) -> Node:
    weights = np.reshape(np.asarray(coefficients, np.float64), (targets, -1))
    return _transformed(_shifted(matmul(x, lift(weights.T, x.dtype)), intercepts), post_transform)


@operator(ML + "LinearClassifier")
def _linear_classifier(
    x: Node, *, coefficients: Any, intercepts: Any = None, classlabels_ints: Any = None,
    classlabels_strings: Any = None, multi_class: int = 0, post_transform: str = "NONE",
) -> tuple[Node, Node]:  # fmt: skip
    classes = len(classlabels_ints or classlabels_strings or ())
    x = reshaped(x, (1, x.size)) if len(x.shape) == 1 else x
    # ONNX Runtime leaves out what is too much, which a model that it ships has.
    each = x.shape[-1] * (len(intercepts) if intercepts else len(coefficients) // x.shape[-1])
    weights = np.reshape(np.asarray(coefficients[:each], np.float64), (-1, x.shape[-1]))
    scores = _shifted(matmul(x, lift(weights.T, x.dtype)), intercepts)
    return _classified(scores, -scores if weights.shape[0] == 1 and classes == 2 else None, post_transform)


def _shifted(y: Node, intercepts: Any) -> Node:
    return y if intercepts is None else y + _row(intercepts, y)


def _classified(scores: Node, other: Node | None, how: str) -> tuple[Node, Node]:
    """Return the classes and their transformed scores; `other` are those of the first of two classes."""
    if other is None:
        scores = _transformed(scores, how)
    elif how == "LOGISTIC":
        scores = concatenate([call("sigmoid", -scores), call("sigmoid", scores)], 1)
    else:
        scores = _transformed(concatenate([other, scores], 1), how)
    return argument("argmax", scores, 1), scores


# Support vectors


def _kernel(kind: str, parameters: Any, x: Node, vectors: Array) -> Node:
    """Return the kernel of each row with each support vector."""
    gamma, coef, degree = (*(float(p) for p in parameters or ()), 0.0, 0.0, 0.0)[:3]
    product = matmul(x, lift(vectors.T, x.dtype))
    match kind:
        case "LINEAR":
            return product
        case "POLY":
            return (_row(gamma, x) * product + _row(coef, x)) ** _row(degree, x)
        case "SIGMOID":
            return call("tanh", _row(gamma, x) * product + _row(coef, x))
        case "RBF":
            squares = reshaped(reduce("sum", x**2, (1,)), (x.shape[0], 1))
            distance = squares + _row((vectors**2).sum(axis=1), x) - 2 * product
            return call("exp", -_row(gamma, x) * distance)
    raise InputError(f"the kernel `{kind[:40]}` is not supported")


@operator(ML + "SVMRegressor")
def _svm_regressor(
    x: Node, *, coefficients: Any, support_vectors: Any = (), n_supports: int = 0, rho: Any = (0.0,),
    kernel_type: str = "LINEAR", kernel_params: Any = None, one_class: int = 0, post_transform: str = "NONE",
) -> Node:  # fmt: skip
    terms = x
    if n_supports:
        vectors = np.reshape(np.asarray(support_vectors, np.float64), (n_supports, -1))
        terms = _kernel(kernel_type, kernel_params, x, vectors)
    y = matmul(terms, lift(np.reshape(np.asarray(coefficients, np.float64), (-1, 1)), x.dtype)) + _row(rho[0], x)
    return where(y > 0, 1, -1) if one_class else _transformed(y, post_transform)


# Trees: constant between their thresholds

_BRANCHES = {"BRANCH_LEQ": "le", "BRANCH_LT": "lt", "BRANCH_GTE": "ge", "BRANCH_GT": "gt", "BRANCH_EQ": "eq"}
MAX_LEAVES = 100_000


def _trees(x: Node, attributes: dict[str, Any], kind: str, outputs: int) -> Node:
    """Return the sums of the leaves' weights: of a leaf all conditions on its path hold."""
    ids = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    position = {key: k for k, key in enumerate(ids)}
    modes = attributes["nodes_modes"]
    leaves = [k for k, mode in enumerate(modes) if mode == "LEAF"]
    inner = [k for k, mode in enumerate(modes) if mode != "LEAF"]
    if len(leaves) * max(1, len(inner)) > 2**24 or len(leaves) > MAX_LEAVES:
        raise InputError(f"{len(leaves):,} leaves are too many")
    column = {k: i for i, k in enumerate(inner)}
    row = {k: i for i, k in enumerate(leaves)}
    path, lengths = np.zeros((len(inner), len(leaves))), np.zeros(len(leaves))
    parents: dict[int, tuple[int, int]] = {}
    for k in inner:
        parents[position[ids[k][0], attributes["nodes_truenodeids"][k]]] = (k, 1)
        parents[position[ids[k][0], attributes["nodes_falsenodeids"][k]]] = (k, -1)
    for k in leaves:
        node, steps = k, 0
        while node in parents:
            parent, side = parents[node]
            path[column[parent], row[k]] = side
            lengths[row[k]] += side > 0
            node, steps = parent, steps + 1
            if steps > len(ids):
                raise InputError("a tree has a cycle")
    weights = np.zeros((len(leaves), outputs))
    for tree, node, target, weight in zip(
        *(attributes[f"{kind}_{key}"] for key in ("treeids", "nodeids", "ids", "weights")), strict=True
    ):
        weights[row[position[tree, node]], target] += weight
    return matmul(_reached(x, attributes, inner, path, lengths), lift(weights, x.dtype))


def _reached(x: Node, attributes: dict[str, Any], inner: list[int], path: Array, lengths: Array) -> Node:
    """Return 1 for the leaves that each row reaches, and 0 for the others."""
    if not inner:
        return const(1, (x.shape[0], len(lengths)), x.dtype)
    modes = [attributes["nodes_modes"][k] for k in inner]
    if other := next((mode for mode in modes if mode not in _BRANCHES), None):
        raise InputError(f"the branch `{other[:40]}` is not supported")
    features = np.array([attributes["nodes_featureids"][k] for k in inner])
    if features.size and not 0 <= features.min() <= features.max() < x.shape[-1]:
        raise InputError("a tree reads a feature that the input does not have")
    thresholds = _row([attributes["nodes_values"][k] for k in inner], x)
    chosen = take(x, 1, IndexArray.of(features))
    held = [
        cast(where(compare(_BRANCHES[mode], chosen, thresholds), 1, 0), x.dtype) * _row([m == mode for m in modes], x)
        for mode in sorted({*modes})
    ]
    met = matmul(sum(held[1:], held[0]), lift(path, x.dtype))
    return cast(where(equal(met, _row(lengths, x)), 1, 0), x.dtype)


@operator(ML + "TreeEnsembleRegressor")
def _tree_regressor(
    x: Node, *, n_targets: int = 1, aggregate_function: str = "SUM", base_values: Any = None,
    post_transform: str = "NONE", **attributes: Any,
) -> Node:  # fmt: skip
    if aggregate_function not in ("SUM", "AVERAGE"):
        raise InputError(f"the aggregation `{aggregate_function[:40]}` is not supported")
    y = _trees(x, attributes, "target", n_targets)
    y = y / len(set(attributes["nodes_treeids"])) if aggregate_function == "AVERAGE" else y
    return _transformed(_shifted(y, base_values), post_transform)


@operator(ML + "TreeEnsembleClassifier")
def _tree_classifier(
    x: Node, *, base_values: Any = None, post_transform: str = "NONE", classlabels_int64s: Any = None,
    classlabels_strings: Any = None, **attributes: Any,
) -> tuple[Node, Node]:  # fmt: skip
    classes = len(classlabels_int64s or classlabels_strings or ())
    binary = classes == 2 and len(set(attributes["class_ids"])) == 1
    ids = {"class_ids": [0] * len(attributes["class_ids"])} if binary else {}
    y = _shifted(_trees(x, attributes | ids, "class", 1 if binary else classes), base_values)
    return _classified(y, 1 - y if binary else None, post_transform)
