"""NumPy: what each operation is there, at one point or at many along a last axis, and the file of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.evaluate import number
from gradcli.export.arrays import CONDITIONS, ArrayLanguage, ArrayWriter, Rule, Text, number_literal, tuple_literal
from gradcli.export.helpers import needed
from gradcli.export.numpy_helpers import HELPERS
from gradcli.export.program import Program
from gradcli.export.python import RESERVED as RESERVED
from gradcli.export.python import assembled, function_lines, self_test
from gradcli.graph.einsum import labels
from gradcli.graph.node import Node
from gradcli.graph.operations.movement import basic
from gradcli.graph.shapes import Shape


def index_text(key: Sequence[Any], sizes: Shape) -> str:
    """Return an index of an array of these sizes as Python writes it.

    >>> index_text((0, range(1, 3), None, range(2, -1, -1)), (2, 4, 3)), index_text((range(0, 3), 0), (3, 2))
    ('0, 1:3, None, 2::-1', ':, 0')
    """
    parts = []
    own = iter(sizes)
    for k in key:
        size = 0 if k is None else next(own)
        if isinstance(k, range):
            start = str(k.start) if k.start or k.step < 0 else ""
            stop = str(k.stop) if 0 <= k.stop < size else ""
            parts.append(f"{start}:{stop}" + (f":{k.step}" if k.step != 1 else ""))
        else:
            parts.append(str(k))
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def inserted(before: Shape, after: Shape) -> str | None:
    """Return the index that does what a reshape does, where it only adds axes of 1 or takes them away.

    >>> inserted((3,), (1, 3)), inserted((3, 1), (3,)), inserted((4,), (2, 2))
    ('None', ':, 0', None)
    """
    key: list[int | range | None] = []
    own = list(before)
    for n in after:
        while own and own[0] == 1 != n:
            own.pop(0)
            key.append(0)
        if own and own[0] == n:
            key.append(range(own.pop(0)))
        elif n == 1:
            key.append(None)
        else:
            return None
    return None if any(n != 1 for n in own) else index_text([*key, *[0] * len(own)], before)


def axes_text(axes: Sequence[int]) -> str:
    """Return axes as NumPy takes them: one as a number."""
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))


def along(op: str) -> Rule:
    """Return the rule of a function along the axes, or the axis, of the first setting."""

    def rule(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        axes = node.settings[0]
        return f"np.{op}({args[0]}, axis={axes_text(axes) if isinstance(axes, tuple) else axes})"

    return rule


def recurrence(slices: str, stacked: str) -> Rule:
    """Return the rule of a recurrence as a loop over a list of slices, where no array is written to."""

    def rule(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        (axis,) = node.settings
        a, b = (w.named(f"list({slices.format(x, axis)})") for x in args)
        k = next(w.fresh)
        w.line(f"for {k} in range(1, len({b})):")
        w.line(f"    {b}[{k}] = {b}[{k}] + {a}[{k} - 1] * {b}[{k} - 1]")
        return stacked.format(b, axis)

    return rule


def _shape(w: ArrayWriter, shape: Shape) -> str:
    """Return a shape with the points behind it."""
    return tuple_literal([*map(str, shape), f"*{w.points()}"])


def _zeros(w: ArrayWriter, node: Node) -> str:
    return w.named(f"np.zeros({_shape(w, node.shape)})", w.own_name(node))


def scattered(w: ArrayWriter, node: Node, args: Sequence[Text], name: str) -> str:
    """Write the parts of an array of zeros: `=` at first, `+=` where there may be something already."""
    shape, keys = node.settings
    for key, part, new in zip(keys, args, untouched(shape, keys), strict=True):
        w.line(f"{name}[{index_text(key, shape)}] {'=' if new else '+='} {part}")
    return name


def untouched(shape: Shape, keys: Sequence[Any]) -> list[bool]:
    """Return for each key whether none of those before it has an element in common with it.

    >>> untouched((3,), [(0,), (range(1, 3),), (2,)])
    [True, True, False]
    """
    taken = np.zeros(shape, dtype=bool)
    result = []
    for key in keys:
        result.append(not np.any(taken[basic(key)]))
        taken[basic(key)] = True
    return result


def _scatter(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    return scattered(w, node, args, _zeros(w, node))


def _put(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis, places, _ = node.settings
    name = _zeros(w, node)
    before = "slice(None), " * axis
    at = w.places(places.numbers)
    key = f"({before}{at})" if axis else at
    w.line(f"np.add.at({name}, {key}, {args[0]})")
    return name


def _take(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis, places = node.settings
    return f"np.take({args[0]}, {w.places(places.numbers)}, axis={axis})"


def _from_diagonal(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    name = _zeros(w, node)
    places = w.named(f"np.arange({min(node.shape[:2])})")
    w.line(f"{name}[{places}, {places}] = {args[0]}")
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


def mask(place: str) -> Rule:
    """Return the rule of a mask, true where the `place` of `x` along the axis is."""

    def rule(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        (axis,) = node.settings
        x = w.named(args[0])
        result = place.format(x=x, axis=axis, middle=(node.shape[axis] - 1) // 2)
        return f"_is_at({result}, {node.shape[axis]}, {axis})"

    return rule


def argsort(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Return the places in order; of equal elements the first stays the first."""
    axis, descending = node.settings
    if not descending:
        return f'np.argsort({args[0]}, axis={axis}, kind="stable")'
    flipped = f'np.argsort(np.flip({args[0]}, {axis}), axis={axis}, kind="stable")'
    return f"{node.shape[axis] - 1} - np.flip({flipped}, {axis})"


def sort(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Return the elements in order."""
    axis, descending = node.settings
    text = f"np.sort({args[0]}, axis={axis})"
    return f"np.flip({text}, {axis})" if descending else text


def _put_along(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    (axis,) = node.settings
    name = _zeros(w, node)
    w.line(f"np.put_along_axis({name}, {args[1]}, {args[0]}, axis={axis})")
    return name


def einsum_text(node: Node) -> str:
    """Return the subscripts of a contraction.

    >>> from gradcli.graph.construct import matmul
    >>> from gradcli.graph.node import leaf
    >>> einsum_text(matmul(leaf((2, 3)), leaf((3,))))
    'ij,j->i'
    """
    terms = labels(node)
    letters: dict[object, str] = {}
    for label in (label for own in terms for label in own):
        if label not in letters:
            wanted = label if isinstance(label, str) and len(label) == 1 else "b"
            free = [c for c in f"{wanted}bcdefghlmnopqrstuvwxyzaijk" if c not in letters.values()]
            letters[label] = free[0]
    first, second, result = ("".join(letters[label] for label in own) for own in terms)
    return f"{first},{second}->{result}"


def einsum(library: str) -> Rule:
    """Return the rule of a contraction in a library that knows no points."""
    return lambda w, node, args: f'{library}.einsum("{einsum_text(node)}", {args[0]}, {args[1]})'


def mask_of(library: str, place: str) -> Rule:
    """Return the rule of a mask in a library that knows no points: true where the `place` of `x` along the axis is."""

    def rule(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        (axis,) = node.settings
        n, *rest = node.shape[axis:]
        result = w.named(place.format(x=args[0], axis=axis, middle=(n - 1) // 2))
        return f"{library}.arange({n}).reshape({(n, *(1 for _ in rest))}) == {result}"

    return rule


def _einsum(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    subscripts = einsum_text(node).replace(",", "...,").replace("->", "...->") + "..."
    return f'np.einsum("{subscripts}", {args[0]}, {args[1]})'


def _linear(op: str) -> Rule:
    def rule(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        return f"_linear(np.linalg.{op}, {w.points()}, {', '.join(args)})"

    return rule


def _transpose(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    (order,) = node.settings
    moved = [axis for axis, k in enumerate(order) if axis != k]
    if len(moved) == 2:
        return f"np.swapaxes({args[0]}, {moved[0]}, {moved[1]})"
    return f"np.moveaxis({args[0]}, {tuple(order)}, {tuple(range(len(order)))})"


def _reshape(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    key = inserted(node.args[0].shape, node.shape)
    if key is not None and node.args[0].shape:
        return f"{args[0].atom}[{key}]"
    return f"np.reshape({args[0]}, {_shape(w, node.shape)})"


def _triangle(op: str) -> Rule:
    def rule(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        kept = f"np.{op}(np.ones({tuple(node.shape[-2:])}, dtype=bool), {node.settings[0]})"
        return f"np.where(_spread({kept}, {w.points()}), {args[0]}, 0.0)"

    return rule


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
    **dict.fromkeys(("add", "sub", "mul", "div", "pow", "mod", "floor_divide"), "infix"),
    "neg": "-{}",
    **dict.fromkeys(CONDITIONS, "comparison"),
    "identity": "{}",
    **{op: f"np.{op}({{}})" for op in ("sqrt", "cbrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos")},
    **{op: f"np.{op}({{}})" for op in ("tan", "sinh", "cosh", "tanh", "floor", "ceil", "abs")},
    **{op: f"np.arc{op[1:]}({{}})" for op in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "atan2": "np.arctan2({}, {})",
    "hypot": "np.hypot({}, {})",
    **{op: f"_{op}({{}})" for op in ("erf", "erfc", "gamma", "lgamma", "digamma")},
    "polygamma": "_polygamma({}, {})",
    "softplus": "np.logaddexp(0.0, {})",
    "where": "np.where({}, {}, {})",
    "maximum": "np.maximum({}, {})",
    "minimum": "np.minimum({}, {})",
    "clamp": "np.clip({}, {}, {})",
    "heaviside": "np.heaviside({}, {})",
    "sign": "np.nan_to_num(np.sign({}))",
    "round": "np.rint({})",
    **{op: along(op) for op in ("sum", "prod", "max", "min", "cumsum", "cumprod", "argmax", "argmin")},
    "recurrence": _scan,
    "prod_others": "refused",  # written out
    "argmax_mask": mask("np.argmax({x}, axis={axis})"),
    "argmin_mask": mask("np.argmin({x}, axis={axis})"),
    "argmedian_mask": mask('np.take(np.argsort({x}, axis={axis}, kind="stable"), {middle}, axis={axis})'),
    "median": lambda w, node, args: f'np.quantile({args[0]}, 0.5, axis={axes_text(node.settings[0])}, method="lower")',
    "sort": sort,
    "argsort": argsort,
    "take_along": lambda w, node, args: f"np.take_along_axis({args[0]}, {args[1]}, axis={node.settings[0]})",
    "put_along": _put_along,
    "matmul": _einsum,
    "einsum": _einsum,
    **{op: _linear(op) for op in ("det", "inv", "solve")},
    "cofactors": "refused",  # written out
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast": lambda w, node, args: f"np.broadcast_to({args[0]}, {_shape(w, node.shape)})",
    "index": lambda w, node, args: f"{args[0].atom}[{index_text(node.settings[0], node.args[0].shape)}]",
    "cast": "{}",
    "diagonal": lambda w, node, args: f"np.moveaxis(np.diagonal({args[0]}), -1, 0)",
    "from_diagonal": _from_diagonal,
    "triu": _triangle("triu"),
    "tril": _triangle("tril"),
    "take": _take,
    "put": _put,
    "scatter": _scatter,
    "concatenate": _concatenate,
    "stack": _stack,
}


def _array(w: ArrayWriter, node: Node) -> str:
    if node.value is not None:
        return f"np.full({_shape(w, node.shape)}, {number_literal(number(node.value))})"
    return f"_spread({numbers_text(node)}, {w.points()})"


def numbers_text(node: Node) -> str:
    """Return an array of numbers as lists."""
    numbers = np.array([number(v) for v in node.values]).reshape(node.shape)
    return str(numbers.tolist()).replace("inf", 'float("inf")').replace("nan", 'float("nan")')


def _result(w: ArrayWriter, node: Node, text: str) -> str:
    """Return a result, of all points also where it is the same at all."""
    if node in w.varying:
        return text
    if not node.shape:
        return f"np.full({w.points()}, {text})"
    return text if node.value is not None else f"np.broadcast_to({text}, {_shape(w, node.shape)})"


LANGUAGE = ArrayLanguage("numpy", RULES, _array, _result)
_ABOUT = [
    "Arguments are numbers, and arrays of the shapes that are told.  All of them may have",
    "points along one axis more, the last; then the results have it, too.",
]


def source(program: Program) -> str:
    """Return the file."""
    functions = [function_lines(f, LANGUAGE) for f in program.functions]
    text = "\n".join(line for lines in functions for line in lines)
    helpers = needed(text, HELPERS)
    imports = ["import math", ""] if any("math." in line for lines in helpers for line in lines) else []
    tested = self_test(program, "np.array", "np")
    return assembled(program, "NumPy", [*imports, "import numpy as np"], [*helpers, *functions], tested, _ABOUT)
