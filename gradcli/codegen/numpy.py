"""NumPy: what each operation is there, at one point or at many along a last axis, and the file of functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gradcli.codegen.array_rules import einsum_text, inserted, numbers_text, scattered, shared
from gradcli.codegen.arrays import ArrayLanguage, ArrayWriter, Rule, Text
from gradcli.codegen.helpers import names_in, needed
from gradcli.codegen.numpy_helpers import HELPERS
from gradcli.codegen.program import Program
from gradcli.codegen.python import RESERVED as RESERVED
from gradcli.codegen.python import assembled, function_lines, self_test
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape


def _shape(w: ArrayWriter, shape: Shape) -> str:
    """Return a shape followed by that of the points."""
    sizes = [*map(str, shape), f"*{w.points()}"]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def _zeros(w: ArrayWriter, node: Node) -> str:
    return w.named(f"np.zeros({_shape(w, node.shape)})", w.own_name(node))


def _scatter_add(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis, indices, _ = node.settings
    name = _zeros(w, node)
    before = "slice(None), " * axis
    at = w.indices(indices.numbers)
    key = f"({before}{at})" if axis else at
    w.line(f"np.add.at({name}, {key}, {args[0]})")
    return name


def _from_diagonal(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    name = _zeros(w, node)
    indices = w.named(f"np.arange({min(node.shape[:2])})")
    w.line(f"{name}[{indices}, {indices}] = {args[0]}")
    return name


def _scan(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write a recurrence as a loop along the axis, which is moved to the front."""
    (axis,) = node.settings
    a, b = args if axis == 0 else (w.named(f"np.moveaxis({x}, {axis}, 0)") for x in args)
    a = w.named(a)
    name = w.named(f"np.array({b})")
    k = next(w.fresh)
    w.line(f"for {k} in range(1, len({name})):")
    w.line(f"    {name}[{k}] += {a}[{k} - 1] * {name}[{k} - 1]")
    return name if axis == 0 else f"np.moveaxis({name}, 0, {axis})"


def mask(function: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write a one-hot mask along an axis, at the index that `function` gives."""
    (axis,) = node.settings
    x = w.named(args[0])
    result = function.format(x=x, axis=axis, middle=(node.shape[axis] - 1) // 2)
    return f"{w.helper('_is_at')}({result}, {node.shape[axis]}, {axis})"


def argsort(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Return the indices that sort the elements, stably."""
    axis, descending = node.settings
    if not descending:
        return f'np.argsort({args[0]}, axis={axis}, kind="stable")'
    flipped = f'np.argsort(np.flip({args[0]}, {axis}), axis={axis}, kind="stable")'
    return f"{node.shape[axis] - 1} - np.flip({flipped}, {axis})"


def _put_along(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    (axis,) = node.settings
    name = _zeros(w, node)
    w.line(f"np.put_along_axis({name}, {args[1]}, {args[0]}, axis={axis})")
    return name


def _einsum(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    subscripts = einsum_text(node).replace(",", "...,").replace("->", "...->") + "..."
    return f'np.einsum("{subscripts}", {args[0]}, {args[1]})'


def _linear(function: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    return f"{w.helper('_linear')}({function.format(*node.settings)}, {w.points()}, {', '.join(args)})"


def _reshape(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    key = inserted(node.args[0].shape, node.shape)
    if key is not None and node.args[0].shape:
        return f"{args[0].atom}[{key}]"
    return f"np.reshape({args[0]}, {_shape(w, node.shape)})"


def _triangle(op: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    kept = f"np.{op}(np.ones({tuple(node.shape[-2:])}, dtype=bool), {node.settings[0]})"
    return f"np.where({w.helper('_spread')}({kept}, {w.points()}), {args[0]}, 0.0)"


def _stack(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    parts = f"[{', '.join(args)}]"
    if not all(a in w.varying for a in node.args) and any(a in w.varying for a in node.args):
        parts = f"np.broadcast_arrays({', '.join(args)})"
    axis = f", axis={node.settings[0]}" if node.settings[0] else ""
    return f"np.stack({parts}{axis})"


def _concatenate(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    parts = [
        a if n in w.varying else f"np.broadcast_to({a}, {_shape(w, n.shape)})"
        for n, a in zip(node.args, args, strict=True)
    ]
    axis = f", axis={node.settings[0]}" if node.settings[0] else ""
    return f"np.concatenate([{', '.join(parts)}]{axis})"


RULES: dict[str, Rule | str] = {
    **shared("numpy", "np"),
    **{op: f"_{op}({', '.join(['{}'] * row.arity)})" for op, row in OPERATIONS.items() if f"_{op}" in HELPERS},
    "recurrence": _scan,
    "argmax_mask": partial(mask, "np.argmax({x}, axis={axis})"),
    "argmin_mask": partial(mask, "np.argmin({x}, axis={axis})"),
    "argmedian_mask": partial(mask, 'np.take(np.argsort({x}, axis={axis}, kind="stable"), {middle}, axis={axis})'),
    "argsort": argsort,
    "put_along": _put_along,
    "matmul": _einsum,
    "einsum": _einsum,
    **{op: partial(_linear, f"np.{name}") for op, name in names_in("numpy", "matrix").items()},
    "eigvalsh": partial(_linear, "lambda m: np.linalg.eigvalsh((m + np.swapaxes(m, -1, -2))/2)"),
    "eigvecsh": partial(_linear, "lambda m: np.linalg.eigh((m + np.swapaxes(m, -1, -2))/2)[1]"),
    "svd_u": partial(_linear, "lambda m: np.linalg.svd(m, full_matrices={})[0]"),
    "svd_vh": partial(_linear, "lambda m: np.linalg.svd(m, full_matrices={})[2]"),
    "reshape": _reshape,
    "broadcast": lambda w, node, args: f"np.broadcast_to({args[0]}, {_shape(w, node.shape)})",
    "from_diagonal": _from_diagonal,
    "triu": partial(_triangle, "triu"),
    "tril": partial(_triangle, "tril"),
    "take": lambda w, node, args: f"np.take({args[0]}, {w.indices(node.settings[1].numbers)}, axis={node.settings[0]})",
    "scatter_add": _scatter_add,
    "scatter": lambda w, node, args: scattered(w, node, args, _zeros(w, node)),
    "concatenate": _concatenate,
    "stack": _stack,
}


def _result(w: ArrayWriter, node: Node, text: str) -> str:
    """Return a result, of all points also where it is the same at all."""
    if node in w.varying:
        return text
    if not node.shape:
        return f"np.full({w.points()}, {text})"
    return text if node.value is not None else f"np.broadcast_to({text}, {_shape(w, node.shape)})"


LANGUAGE = ArrayLanguage(
    "numpy",
    RULES,
    lambda w, node, value: (
        f"{w.helper('_spread')}({numbers_text(node)}, {w.points()})"
        if value is None
        else f"np.full({_shape(w, node.shape)}, {value})"
    ),
    _result,
)
_ABOUT = [
    "Arguments are numbers, and arrays of the shapes below.  Each may have one more axis,",
    "the last, for many points; the results then have it, too.",
]
NUMBERS = False  # whether its functions have numbers and flat arrays alone


def source(program: Program) -> str:
    """Return the Python file of a program: its imports, helpers, functions and self-test."""
    called: set[str] = set()  # the functions that the lines call, which `function_lines` adds
    functions = [function_lines(f, LANGUAGE, called) for f in program.functions]
    helpers = needed(called, HELPERS)
    imports = ["import math", ""] if any("math." in line for lines in helpers for line in lines) else []
    tested = self_test(program, ["np.array"], "np")
    return assembled(program, "NumPy", [*imports, "import numpy as np"], [*helpers, *functions], tested, _ABOUT)
