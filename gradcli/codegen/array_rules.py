"""The rules that libraries of arrays share: NumPy, JAX and PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.codegen.arrays import CONDITIONS, ArrayWriter, Rule, Text
from gradcli.codegen.helpers import calls_in, names_in
from gradcli.engine.evaluate import number
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
    lengths = iter(sizes)
    for k in key:
        size = 0 if k is None else next(lengths)
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
    """Return the index that equals a reshape which only adds or removes axes of 1; None for another reshape.

    >>> inserted((3,), (1, 3)), inserted((3, 1), (3,)), inserted((4,), (2, 2))
    ('None', ':, 0', None)
    """
    key: list[int | range | None] = []
    result = list(before)
    for n in after:
        while result and result[0] == 1 != n:
            result.pop(0)
            key.append(0)
        if result and result[0] == n:
            key.append(range(result.pop(0)))
        elif n == 1:
            key.append(None)
        else:
            return None
    return None if any(n != 1 for n in result) else index_text([*key, *[0] * len(result)], before)


def axes_text(axes: Sequence[int]) -> str:
    """Return axes as NumPy takes them: one as a number."""
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))


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


def einsum_text(node: Node) -> str:
    """Return the subscripts of a contraction.

    >>> from gradcli.graph.construct import matmul
    >>> from gradcli.graph.node import leaf
    >>> einsum_text(matmul(leaf((2, 3)), leaf((3,))))
    'ij,j->i'
    """
    terms = labels(node)
    letters: dict[object, str] = {}
    for label in (label for term in terms for label in term):
        if label not in letters:
            wanted = label if isinstance(label, str) and len(label) == 1 else "b"
            free = [c for c in f"{wanted}bcdefghlmnopqrstuvwxyzaijk" if c not in letters.values()]
            letters[label] = free[0]
    first, second, result = ("".join(letters[label] for label in term) for term in terms)
    return f"{first},{second}->{result}"


def numbers_text(node: Node) -> str:
    """Return an array of numbers as lists."""
    numbers = np.array([number(v) for v in node.values]).reshape(node.shape)
    return str(numbers.tolist()).replace("inf", 'float("inf")').replace("nan", 'float("nan")')


def along(function: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write a function along the axes, or the axis, of the first setting."""
    axes = node.settings[0]
    return f"{function}({args[0]}, axis={axes_text(axes) if isinstance(axes, tuple) else axes})"


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


def scattered(w: ArrayWriter, node: Node, args: Sequence[Text], name: str) -> str:
    """Write the parts of an array of zeros: `=` at first, `+=` where there may be something already."""
    shape, keys = node.settings
    for key, part, new in zip(keys, args, untouched(shape, keys), strict=True):
        w.line(f"{name}[{index_text(key, shape)}] {'=' if new else '+='} {part}")
    return name


def _called(name: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    return f"{name}({', '.join(args)})"


def of_matrices(library: str, target: str) -> dict[str, Rule | str]:
    """Return the rules of the functions of matrices that a library has, without an axis of points."""
    return {op: partial(_called, f"{library}.{name}") for op, name in names_in(target, "matrix").items()}


def einsum(library: str) -> Rule:
    """Return the rule of a contraction, without an axis of points."""
    return lambda w, node, args: f'{library}.einsum("{einsum_text(node)}", {args[0]}, {args[1]})'


def mask_of(library: str, position: str) -> Rule:
    """Return the rule of a one-hot mask, without an axis of points; `position` is the text of the index of the 1."""

    def rule(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
        (axis,) = node.settings
        n, *rest = node.shape[axis:]
        result = w.named(position.format(x=args[0], axis=axis, middle=(n - 1) // 2))
        return f"{library}.arange({n}).reshape({(n, *(1 for _ in rest))}) == {result}"

    return rule


def _sort(library: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis, descending = node.settings
    text = f"{library}.sort({args[0]}, axis={axis})"
    return f"{library}.flip({text}, {axis})" if descending else text


def _transpose(library: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    (order,) = node.settings
    moved = [axis for axis, k in enumerate(order) if axis != k]
    if len(moved) == 2:
        return f"{library}.swapaxes({args[0]}, {moved[0]}, {moved[1]})"
    return f"{library}.moveaxis({args[0]}, {tuple(order)}, {tuple(range(len(order)))})"


def shared(target: str, library: str) -> dict[str, Rule | str]:
    """Return the rules that NumPy and JAX share, by the name under which the library is imported.

    >>> shared("jax", "jnp")["exp"], shared("numpy", "np")["where"]
    ('jnp.exp({})', 'np.where({}, {}, {})')
    """

    def whole(name: str) -> str:
        return name if name.startswith("jax.") else f"{library}.{name}"

    return {
        **calls_in(target, whole),
        **dict.fromkeys(("add", "sub", "mul", "div", "pow", "mod", "floor_divide"), "infix"),
        **dict.fromkeys(CONDITIONS, "comparison"),
        **dict.fromkeys(("identity", "cast"), "{}"),
        "neg": "-{}",
        "softplus": f"{library}.logaddexp(0.0, {{}})",
        "sign": f"{library}.nan_to_num({library}.sign({{}}))",
        **{op: partial(along, whole(name)) for op, name in names_in(target, "reduction", "scan", "index").items()},
        "sort": partial(_sort, library),
        "median": lambda w, node, args: (
            f'{library}.quantile({args[0]}, 0.5, axis={axes_text(node.settings[0])}, method="lower")'
        ),
        "take_along": f"{library}.take_along_axis({{}}, {{}}, axis={{axis}})",
        "transpose": partial(_transpose, library),
        "index": lambda w, node, args: f"{args[0].atom}[{index_text(node.settings[0], node.args[0].shape)}]",
        "diagonal": f"{library}.moveaxis({library}.diagonal({{}}), -1, 0)",
        **dict.fromkeys(("product_of_others", "cofactors"), "unsupported"),  # written out
    }
