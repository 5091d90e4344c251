"""The operations in ONNX, and the writer of a model: its nodes, its initializers, and their names.

A rule gets the names of the arguments and returns that of the result; it adds the nodes that compute it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.codegen.helpers import names_in
from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.names import Numbered
from gradcli.graph.node import Node
from gradcli.graph.operations import JOINS, OPERATIONS
from gradcli.graph.shapes import Shape, size_of


class ModelWriter:
    """Adds nodes and initializers of a model; `dtype` is that of its real numbers.

    Unless arrays are `shared`, each has an initializer of its own, so that the names do not depend on the numbers.
    """

    def __init__(self, dtype: str, shared: bool = True) -> None:
        self.dtype = np.dtype(dtype)
        self.shared = shared
        self.nodes: list[Any] = []
        self.results: dict[Hashable, list[str]] = {}  # of calls with several
        self.initializers: dict[str, Array] = {}
        self._known: dict[tuple[Any, ...], str] = {}
        self.fresh = Numbered()

    def take(self, names: Iterable[str]) -> None:
        """Take names that are no longer free."""
        self.fresh.taken.update(names)

    def add(self, op: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        return self.several(op, *inputs, names=[name] if name else None, **attributes)[0]

    def several(
        self, op: str, *inputs: str, outputs: int = 1, names: list[str] | None = None, **attributes: Any
    ) -> list[str]:
        """Add a node of several results, and return their names."""
        from onnx import helper

        results = names or [self.fresh(f"{op.lower()}_{len(self.nodes)}") for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), results, name=f"{op}_{len(self.nodes)}", **attributes))
        return results

    def initializer(self, array: Array, name: str = "c") -> str:
        """Return the name of an array that the model holds; of a small one, each time the same."""
        key: tuple[Any, ...] = (len(self._known),)
        if self.shared:
            key = (array.shape, array.dtype.str, array.tobytes() if array.size <= 2**10 else id(array), name)
        if key not in self._known:
            self._known[key] = self.fresh(name)
            self.initializers[self._known[key]] = array
        return self._known[key]

    def number(self, value: float) -> str:
        """Return the name of a real number."""
        return self.initializer(np.asarray(value, self.dtype))

    def integers(self, numbers: Iterable[int]) -> str:
        """Return the name of a vector of integers."""
        return self.initializer(np.array(list(numbers), np.int64))


def element_type(dtype: np.dtype[Any]) -> int:
    """Return the number that ONNX has for a dtype of NumPy."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))


UNROLLED = 1_000  # steps of a recurrence

Rule = Callable[[ModelWriter, Node, Sequence[str]], str]


def _plain(name: str) -> Rule:
    """Return the rule of an operator, or of a text of operators with fields for the arguments: Sub(1, Erf({0}))."""
    if "{" not in name:
        return lambda w, node, args: w.add(name, *args)
    fields = [f"x{k}" for k in range(name.count("{"))]
    tree = ast.parse(name.format(*fields), mode="eval").body
    return lambda w, node, args: _added(w, tree, dict(zip(fields, args, strict=False)))


def _added(w: ModelWriter, tree: ast.expr, args: Mapping[str, str]) -> str:
    """Add the operators of a text, and return the name of the result."""
    match tree:
        case ast.Call(ast.Name(operator), parts):
            return w.add(operator, *(_added(w, part, args) for part in parts))
        case ast.Constant(value):
            return w.number(float(str(value)))
    return args[ast.unparse(tree)]


def _reduction(op: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    return w.add(op, args[0], w.integers(node.settings[0]), keepdims=0)


def _comparison(op: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write a comparison, of numbers: conditions are compared as such."""
    pairs = zip(node.args, args, strict=True)
    return w.add(op, *(w.add("Cast", a, to=element_type(w.dtype)) if n.dtype == "bool" else a for n, a in pairs))


def _truth(w: ModelWriter, node: Node, name: str) -> str:
    return name if node.dtype == "bool" else w.add("Cast", name, to=element_type(np.dtype(bool)))


def _logic(op: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    return w.add(op, *(_truth(w, n, a) for n, a in zip(node.args, args, strict=True)))


_CONDITIONS = names_in("onnx", "condition")


def _mod(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write a remainder with the sign of the divisor; the operator for real numbers has that of the dividend."""
    rest = w.add("Mod", *args, fmod=1)
    other = w.add("Less", w.add("Mul", rest, args[1]), w.number(0))
    return w.add("Where", other, w.add("Add", rest, args[1]), rest)


def _floor_divide(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    return w.add("Round", w.add("Div", w.add("Sub", args[0], _mod(w, node, args)), args[1]))


def _log1p(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write log(1 + x) with the rest that 1 + x loses: log(u)·x/(u - 1), of u = 1 + x (W. Kahan)."""
    u = w.add("Add", args[0], w.number(1))
    less = w.add("Sub", u, w.number(1))
    none = w.add("Equal", less, w.number(0))
    divisor = w.add("Where", none, w.number(1), less)
    infinite = w.add("IsInf", args[0])
    exact = w.add("Mul", w.add("Log", u), w.add("Div", args[0], divisor))
    return w.add("Where", none, args[0], w.add("Where", infinite, w.add("Log", u), exact))


def _atan2(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write the angle of (x, y) by atan(y/x), plus or minus π where x is negative, and ±π/2 where x is 0."""
    y, x = args
    zero, pi = w.number(0), w.number(math.pi)
    none, left, below = w.add("Equal", x, zero), w.add("Less", x, zero), w.add("Less", y, zero)
    angle = w.add("Atan", w.add("Div", y, w.add("Where", none, w.number(1), x)))
    shifted = w.add("Where", below, w.add("Sub", angle, pi), w.add("Add", angle, pi))
    upright = w.add("Mul", w.add("Sign", y), w.number(math.pi / 2))
    return w.add("Where", none, upright, w.add("Where", left, shifted, angle))


# Along an axis


def _sorted(w: ModelWriter, x: str, shape: Shape, axis: int, descending: bool) -> list[str]:
    """Return the elements in order, and their indices."""
    count = w.integers([shape[axis]])
    return w.several("TopK", x, count, outputs=2, axis=axis, largest=int(descending), sorted=1)


def _argsort(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    return w.add("Cast", _sorted(w, args[0], node.shape, *node.settings)[1], to=element_type(w.dtype))


def _along(op: str, w: ModelWriter, node: Node, x: str, order: str, *more: str) -> str:
    return w.add(op, x, w.add("Cast", order, to=element_type(np.dtype(np.int64))), *more, axis=node.settings[0])


def _zeros(w: ModelWriter, shape: Shape) -> str:
    return w.add("Expand", w.number(0), w.integers(shape)) if shape else w.number(0)


def _argument(op: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    return w.add("Cast", w.add(op, args[0], axis=node.settings[0], keepdims=0), to=element_type(w.dtype))


def _indices_along(w: ModelWriter, shape: Shape, axis: int) -> str:
    """Return the index of each element along an axis, as integers."""
    return w.initializer(np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]))


def _mask(op: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    axis = node.settings[0]
    return w.add("Equal", w.add(op, args[0], axis=axis, keepdims=1), _indices_along(w, node.shape, axis))


def _middle(w: ModelWriter, x: str, shape: Shape, axis: int) -> list[str]:
    """Return the lower of the elements in the middle along an axis, and its index."""
    at = w.integers([(shape[axis] - 1) // 2])
    return [w.add("Gather", part, at, axis=axis) for part in _sorted(w, x, shape, axis, False)]


def _argmedian_mask(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    (axis,) = node.settings
    return w.add("Equal", _middle(w, args[0], node.shape, axis)[1], _indices_along(w, node.shape, axis))


def _median(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    shape, axes = node.args[0].shape, node.settings[0]
    rest = [i for i in range(len(shape)) if i not in axes]
    moved = w.add("Transpose", args[0], perm=[*rest, *axes])
    flat = (*node.shape, size_of(tuple(shape[i] for i in axes)))
    middle = _middle(w, w.add("Reshape", moved, w.integers(flat)), flat, len(rest))[0]
    return w.add("Reshape", middle, w.integers(node.shape))


def _rows(w: ModelWriter, x: str, count: int, axis: int) -> list[str]:
    """Return the slices along an axis."""
    if count > UNROLLED:
        raise InputError(f"a recurrence of {count:,} steps cannot be exported to ONNX", hint=f"at most {UNROLLED:,}")
    return [w.add("Gather", x, w.integers([k]), axis=axis) for k in range(count)]


def _recurrence(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    (axis,), n = node.settings, node.shape[node.settings[0]]
    a, b = _rows(w, args[0], n - 1, axis), _rows(w, args[1], n, axis)
    for k in range(1, n):
        b[k] = w.add("Add", b[k], w.add("Mul", a[k - 1], b[k - 1]))
    return w.add("Concat", *b, axis=axis)


def _scan(operator: str, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write a scan by an operator, step by step."""
    (axis,), n = node.settings, node.shape[node.settings[0]]
    rows = _rows(w, args[0], n, axis)
    for k in range(1, n):
        rows[k] = w.add(operator, rows[k - 1], rows[k])
    return w.add("Concat", *rows, axis=axis)


def _matmul(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write a product with a vector as one with a matrix of one row or column.

    ONNX Runtime (1.32) takes a transposition into the product, and with a vector the result is wrong.
    """
    a, b = (x.shape for x in node.args)
    if len(a) > 1 and len(b) > 1:
        return w.add("MatMul", *args)
    left = args[0] if len(a) > 1 else w.add("Reshape", args[0], w.integers((1, *a)))
    right = args[1] if len(b) > 1 else w.add("Reshape", args[1], w.integers((*b, 1)))
    return w.add("Reshape", w.add("MatMul", left, right), w.integers(node.shape))


# Movement


def _index(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    key = [range(k, k + 1) if isinstance(k, int) else k for k in node.settings[0] if k is not None]
    cuts = [(axis, k) for axis, k in enumerate(key) if k != range(node.args[0].shape[axis])]
    result = args[0]
    if cuts:
        ends = [k.stop if k.stop >= 0 else -(2**31) for _, k in cuts]
        columns = [[k.start for _, k in cuts], ends, [axis for axis, _ in cuts], [k.step for _, k in cuts]]
        result = w.add("Slice", result, *map(w.integers, columns))
    taken = tuple(len(k) for k in key) + node.args[0].shape[len(key) :]
    return result if taken == node.shape else w.add("Reshape", result, w.integers(node.shape))


def _take(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    axis, indices = node.settings
    return w.add("Gather", args[0], w.initializer(indices.numbers), axis=axis)


def _scatter_add(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write zeros to which slices are added: along the first axis, where `ScatterND` adds rows."""
    axis, indices, _ = node.settings
    source, rank = node.args[0].shape, len(indices.shape)
    flat = (*source[:axis], indices.numbers.size, *source[axis + rank :])
    x = args[0] if flat == source else w.add("Reshape", args[0], w.integers(flat))
    order = [axis, *(i for i in range(len(flat)) if i != axis)]
    whole = tuple(node.shape[i] for i in order)
    x = w.add("Transpose", x, perm=order) if axis else x
    rows = w.initializer(indices.numbers.reshape(-1, 1))
    result = w.add("ScatterND", _zeros(w, whole), rows, x, reduction="add")
    return w.add("Transpose", result, perm=[order.index(i) for i in range(len(order))]) if axis else result


def _scatter(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    """Write the sum of the parts, each with zeros around it, or added to zeros element by element."""
    shape, keys = node.settings
    parts = []
    for key, x in zip(keys, args, strict=True):
        full = [range(k, k + 1) if isinstance(k, int) else k for k in key if k is not None]
        full += [range(n) for n in shape[len(full) :]]
        sized = w.add("Reshape", x, w.integers(len(k) for k in full))
        if all(k.step > 0 for k in full):
            spread, sizes = _spread(w, sized, shape, full)
            behind = (n - k.start - size for n, k, size in zip(shape, full, sizes, strict=True))
            parts.append(w.add("Pad", spread, w.integers([*(k.start for k in full), *behind])))
        else:
            indices = np.ravel_multi_index(np.ix_(*(np.array(k) for k in full)), shape).reshape(-1, 1)
            flat = w.add("Reshape", sized, w.integers([len(indices)]))
            added = w.add("ScatterND", _zeros(w, (size_of(shape),)), w.initializer(indices), flat, reduction="add")
            parts.append(w.add("Reshape", added, w.integers(shape)))
    return parts[0] if len(parts) == 1 else w.add("Sum", *parts)


def _spread(w: ModelWriter, x: str, shape: Shape, key: Sequence[range]) -> tuple[str, list[int]]:
    """Return an array with zeros between its elements, as many as the steps of a key say, and its shape."""
    sizes = [len(k) for k in key]
    for axis, k in enumerate(key):
        if k.step == 1:
            continue
        new_shape = [*sizes[: axis + 1], 1, *sizes[axis + 1 :]]
        zeros = [0] * 2 * len(new_shape)
        zeros[len(new_shape) + axis + 1] = k.step - 1
        sizes[axis] *= k.step
        padded = w.add("Pad", w.add("Reshape", x, w.integers(new_shape)), w.integers(zeros))
        x = w.add("Reshape", padded, w.integers(sizes))
        if sizes[axis] > shape[axis] - k.start:
            sizes[axis] = shape[axis] - k.start
            x = w.add("Slice", x, w.integers([0]), w.integers([sizes[axis]]), w.integers([axis]))
    return x, sizes


def _diagonal(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    rows, columns, *rest = node.args[0].shape
    flat = w.add("Reshape", args[0], w.integers([rows * columns, *rest]))
    return w.add("Gather", flat, w.integers(np.arange(node.shape[0]) * (columns + 1)), axis=0)


def _from_diagonal(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    rows, columns, *rest = node.shape
    indices = w.initializer((np.arange(min(rows, columns)) * (columns + 1)).reshape(-1, 1))
    flat = w.add("ScatterND", _zeros(w, (rows * columns, *rest)), indices, args[0])
    return w.add("Reshape", flat, w.integers(node.shape))


def _triangle(upper: int, w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    return w.add("Trilu", args[0], w.initializer(np.array(node.settings[0], np.int64)), upper=upper)


def _stack(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    (axis,) = node.settings
    return w.add("Concat", *(w.add("Unsqueeze", a, w.integers([axis])) for a in args), axis=axis)


def _cast(w: ModelWriter, node: Node, args: Sequence[str]) -> str:
    return w.add("Cast", args[0], to=element_type(np.dtype(bool) if node.dtype == "bool" else w.dtype))


RULES: dict[str, Rule] = {
    **{op: _plain(name) for op, name in names_in("onnx", "elementwise", "step", "matrix").items()},
    **{op: partial(_scan, OPERATIONS[name].spelling_in("onnx")) for op, name in JOINS["scan"].items()},
    **{op: partial(_reduction, name) for op, name in names_in("onnx", "reduction").items()},
    "mod": _mod, "floor_divide": _floor_divide,
    **{op: partial(_comparison if OPERATIONS[op].compares else _logic, name) for op, name in _CONDITIONS.items()},
    "ne": lambda w, node, args: w.add("Not", _comparison("Equal", w, node, args)),
    "log1p": _log1p, "atan2": _atan2,
    "where": lambda w, node, args: w.add("Where", _truth(w, node.args[0], args[0]), *args[1:]),
    "median": _median, "recurrence": _recurrence,
    "cumsum": lambda w, node, args: w.add("CumSum", args[0], w.initializer(np.array(node.settings[0], np.int64))),
    "argmax": partial(_argument, "ArgMax"), "argmin": partial(_argument, "ArgMin"),
    "argmax_mask": partial(_mask, "ArgMax"), "argmin_mask": partial(_mask, "ArgMin"), "argmedian_mask": _argmedian_mask,
    "sort": lambda w, node, args: _sorted(w, args[0], node.shape, *node.settings)[0], "argsort": _argsort,
    "take_along": lambda w, node, args: _along("GatherElements", w, node, *args),
    "put_along": lambda w, node, args: _along("ScatterElements", w, node, _zeros(w, node.shape), args[1], args[0]),
    "matmul": _matmul,
    "einsum": lambda w, node, args: w.add("Einsum", *args, equation=node.settings[0]),
    "transpose": lambda w, node, args: w.add("Transpose", args[0], perm=list(node.settings[0])),
    "reshape": lambda w, node, args: w.add("Reshape", args[0], w.integers(node.shape)),
    "broadcast": lambda w, node, args: w.add("Expand", args[0], w.integers(node.shape)),
    "index": _index, "take": _take, "scatter_add": _scatter_add, "scatter": _scatter,
    "concatenate": lambda w, node, args: w.add("Concat", *args, axis=node.settings[0]), "stack": _stack,
    "cast": _cast, "diagonal": _diagonal, "from_diagonal": _from_diagonal,
    "triu": partial(_triangle, 1), "tril": partial(_triangle, 0),
}  # fmt: skip
