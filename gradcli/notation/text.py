"""The operations as text in the language of gradcli: a rule each, most of them derived from the operation's row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.graph.array import Weights
from gradcli.graph.construct import Index
from gradcli.graph.index_arrays import IndexArray
from gradcli.graph.node import Constant, Node, operand, operands
from gradcli.graph.operation import Operation, Precedence
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.notation.numbers import quotient, shape_text, whole_text
from gradcli.notation.writer import (
    EXTREMA,
    SETTINGS,
    Binds,
    Rule,
    Writer,
    Written,
    called,
    one_hot_of,
    options_of,
    settings_of,
    spread_argument,
    through,
)

_BINDS = {Precedence.SUM: Binds.SUM, Precedence.PRODUCT: Binds.PRODUCT, Precedence.POWER: Binds.POWER}
_LOOSE = ("@", "%")  # products whose sign has spaces around it
PARTS = 4  # that are said to be added to zeros


def derived(row: Operation) -> Rule | None:
    """Return the rule that follows from an operation's row: a sign, or a call with the settings that need saying.

    None where the row has a setting that no keyword is known for.
    """
    if row.infix:
        return _prefix(row) if row.arity == 1 else _infix(row)
    return _call if set(row.settings) <= SETTINGS else None


def _prefix(row: Operation) -> Rule:
    binds = Binds.ATOM if row.kind == "condition" else Binds.SUM
    return lambda w, node: Written(f"{row.infix}{w.argument(node.args[0], Binds.PRODUCT, first=False)}", binds)


def _infix(row: Operation) -> Rule:
    """Return the rule of an infix operator: powers associate to the right, the others to the left."""
    level = _BINDS.get(row.precedence, Binds.CONDITION)
    binds = Binds.LOOSE if row.infix in _LOOSE else level
    left = binds if row.kind == "contraction" else level
    right = level if row.commutes else Binds(min(level + 1, Binds.ATOM))
    if level == Binds.POWER:
        left, right = Binds.ATOM, Binds.POWER
    elif level == Binds.CONDITION:
        left = right = Binds.SUM
    tight = binds in (Binds.PRODUCT, Binds.POWER)
    spaced = row.infix if tight else f" {row.infix} "

    def write(w: Any, node: Node) -> Written:
        a, b = w.plain(node)
        zero = {"div": b, "pow": a}.get(node.op)
        if zero is not None and zero.value == 0 and a.is_constant and b.is_constant:
            return _call(w, node)  # a typed 1/0 is refused as a mistake: div(1, 0) is its number
        # A sign in front needs no brackets: -a*b.
        signed = binds == Binds.PRODUCT and (a.is_constant or operand(a, "neg") is not None)
        before = w.argument(a, Binds.SUM if signed else left)
        return Written(f"{before}{spaced}{w.argument(b, right, first=level == Binds.CONDITION)}", binds)  # x <= -1

    return write


def _mul(w: Any, node: Node) -> Written:
    """Return a product; a number of times one of matrices needs no brackets: 2*A @ b."""
    a, b = w.plain(node)
    if not a.shape and b.op == "matmul" and b not in w.names:
        number = w.argument(a, Binds.SUM if a.is_constant else Binds.PRODUCT)  # a sign in front needs no brackets
        return Written(f"{number}*{w.argument(b, Binds.LOOSE)}", Binds.LOOSE)
    return _infix(OPERATIONS["mul"])(w, node)


def _call(w: Writer, node: Node, *more: str) -> Written:
    arguments, options = w.arguments(node), options_of(node)
    positional = arguments[: len(arguments) - len(options)]
    named = [f"{word}={arguments[i]}" for i, word in options.items() if word]
    first, behind = settings_texts(node)
    return Written(f"{called(node)}({', '.join([*positional, *first, *named, *behind, *more])})")


def settings_texts(node: Node) -> tuple[list[str], list[str]]:
    """Return the settings of a call as they are typed: those without a name, and those with one.

    >>> from gradcli.graph.construct import reduce
    >>> from gradcli.graph.node import leaf
    >>> settings_texts(reduce("sum", leaf((2, 3)), (1,)))
    ([], ['axis=1'])
    """
    texts = [(word, repr(value) if type(value) is str else str(value)) for word, value in settings_of(node)]
    return [text for word, text in texts if not word], [f"{word}={text}" for word, text in texts if word]


# Constants


def constant(w: Writer, node: Node) -> Written:
    """Return a constant: a number, an array filled with one, or a list."""
    if node.value is None:
        if isinstance(node.settings[0], Weights) and node.size > 1:
            return Written(f"constant({shape_text(node.shape)})")
        if (element := only_element(node, w.shown)) is not None:
            index, value = element
            hot, number = f"one_hot({index}, {node.size})", _number(w, value)
            return Written(hot) if number.text == "1" else Written(f"{number.text}*{hot}", Binds.PRODUCT)
        if is_hidden(node, w.shown):
            return Written(f"constant({shape_text(node.shape)})")
        return Written(listed(node.shape, node.values, lambda v: _number(w, v).text, w.shown))
    number = _number(w, node.value)
    if not node.shape:
        return number
    if node.shape == (1,):  # the target of one sample, say, which ones(1) is not
        return Written(f"[{number.text}]")
    filled = {"0": "zeros", "1": "ones"}.get(number.text)
    sizes = ", ".join(map(str, node.shape))
    return Written(f"{filled}({sizes})" if filled else f"full({node.shape}, {number.text})")


def _number(w: Writer, value: Constant) -> Written:
    text = exact_text(value)
    if text in ("pi", "e") and text in w.names.values():  # a variable has the name of the constant
        text = {"pi": "acos(-1)", "e": "exp(1)"}[text]
    return Written(text, Binds.SUM if text.startswith("-") else Binds.PRODUCT if "/" in text else Binds.ATOM)


def exact_text(value: Constant) -> str:
    """Return an exact number as it is typed.

    >>> exact_text(Fraction(1, 3)), exact_text(10**300), exact_text("pi")
    ('1/3', '1e+300', 'pi')
    """
    if isinstance(value, Fraction):
        return "-" * (value < 0) + "/".join(quotient(abs(value)))
    return whole_text(value) if isinstance(value, int) else str(value).replace("E", "e")


def is_hidden(node: Node, shown: int) -> bool:
    """Return whether the elements of a constant that would be shown are 0, and others are not: they would say it is 0.

    >>> from gradcli.graph.node import const
    >>> is_hidden(const((0, 0, 0, 5), (4,)), 3), is_hidden(const((0, 1, 0, 5), (4,)), 3)
    (True, False)
    """
    if max(node.shape) <= shown or not any(node.values):
        return False
    whole = np.arange(node.size).reshape(node.shape)
    return not any(node.values[k] for k in whole[(slice(shown),) * whole.ndim].flat)


def only_element(node: Node, shown: int) -> tuple[int, Constant] | None:
    """Return the index and the value of the only element of a vector that is not 0, where it would not be shown.

    >>> from gradcli.graph.node import const
    >>> only_element(const((0, 0, 0, 5), (4,)), 3)
    (3, 5)
    """
    rest = [(k, v) for k, v in enumerate(node.values) if v] if len(node.shape) == 1 and is_hidden(node, shown) else []
    return rest[0] if len(rest) == 1 else None


def listed(shape: Shape, values: Sequence[Constant], write: Callable[[Constant], str], shown: int) -> str:
    """Return an array as a list of lists, of which only the first elements are `shown`."""
    if not shape:
        return write(values[0])
    size = len(values) // shape[0]
    count = min(shown, shape[0])
    parts = [listed(shape[1:], values[i * size : (i + 1) * size], write, shown) for i in range(count)]
    return f"[{', '.join(parts + ['…'] * (count < shape[0]))}]"


# Movement


def subscript(key: Index, shape: Shape) -> str:
    """Return an index of an array of that shape as it is written between brackets.

    >>> subscript((0, range(1, 3), range(4)), (2, 5, 4)), subscript((range(2, -1, -1),), (3,))
    ('0, 1:3', '::-1')
    """
    sizes = iter(shape)
    parts = [("None" if k is None else _slice(k, next(sizes))) for k in key]
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def _slice(k: int | range, size: int) -> str:
    if isinstance(k, int):
        return str(k)
    if k.step > 0:
        start, stop = (str(k.start) if k.start else ""), (str(k.stop) if k.stop < size else "")
    else:
        start, stop = (str(k.start) if k.start < size - 1 else ""), (str(k.stop) if k.stop >= 0 else "")
    return f"{start}:{stop}" + (f":{k.step}" if k.step != 1 else "")


def _index(w: Writer, node: Node) -> Written:
    (x,) = node.args
    return Written(f"{w.argument(x, Binds.ATOM)}[{subscript(node.settings[0], x.shape)}]")


def index_key(axis: int, indices: IndexArray) -> str:
    """Return the index of a node that takes or puts slices, as it is written between brackets."""
    return f"{':, ' * axis}{indices}"


def taken(node: Node, names: Collection[Node]) -> tuple[Node, str]:
    """Return the array that a node takes elements from, and the text of the index."""
    (x,), (axis, indices) = node.args, node.settings
    whole = operand(x, "reshape")
    if whole is None or x in names or len(x.shape) != 1 or len(whole.shape) < 2:
        return x, index_key(axis, indices)
    keys = map(IndexArray.of, np.unravel_index(indices.numbers, whole.shape))
    return whole, ", ".join(map(str, keys))


def _take(w: Writer, node: Node) -> Written:
    x, key = taken(node, w.names)
    return Written(f"{w.argument(x, Binds.ATOM)}[{key}]")


def _of_arguments(w: Writer, node: Node) -> Written:
    return Written(f"{node.op}({', '.join(map(w.name, node.args))})")


def _transpose(w: Writer, node: Node) -> Written:
    (order,) = node.settings
    rank = len(order)
    inner = spread_argument(node.args[0])
    if inner is not None and len(inner.shape) != rank:  # the row that a vector was made: a vector's transpose is itself
        w.explicit.add(node.args[0])
    if order == tuple(reversed(range(rank))):
        return Written(f"{w.argument(node.args[0], Binds.ATOM)}.T")
    if order == (*range(rank - 2), rank - 1, rank - 2):
        return Written(f"{w.argument(node.args[0], Binds.ATOM)}.mT")
    return Written(f"permute({w.name(node.args[0])}, {order})")


def _reshape(w: Writer, node: Node) -> Written:
    """Return a reshape as a reduction with `keepdims=True`, as `solve(A, b)` of a vector b, else as a reshape."""
    if (reduced := reduction_with_keepdims(node, w)) is not None:
        return _call(w, w.with_explicit_broadcasts(reduced), "keepdims=True")
    if (system := solved_for_vector(node, w)) is not None:
        return Written(f"solve({', '.join(map(w.name, system))})")
    return Written(f"reshape({w.name(node.args[0])}, {node.shape})")


def reduction_with_keepdims(node: Node, w: Writer) -> Node | None:
    """Return the reduction whose axes a reshape restores with size 1, as `keepdims=True` does, unless it has a name."""
    (reduced,) = node.args
    if reduced in w.names or not reduced.args or OPERATIONS[reduced.op].kind not in ("reduction", "index"):
        return None
    axes, shape = reduced.settings[0], reduced.args[0].shape
    gone = axes if isinstance(axes, tuple) else (axes,)
    whole = reduced.shape != shape and node.shape == tuple(1 if i in gone else n for i, n in enumerate(shape))
    return reduced if whole else None


def solved_for_vector(node: Node, w: Writer) -> tuple[Node, Node] | None:
    """Return the matrix and the vector of a system that is solved for a column, of which a reshape makes a vector."""
    (solution,) = node.args
    match operands(solution, "solve"):
        case matrix, column if solution not in w.names and node.shape == solution.shape[:-1]:
            vector = operand(column, "reshape")
            if vector is not None and column not in w.names and column.shape == (*vector.shape, 1):
                return matrix, vector
    return None


def _joined(name: str) -> Rule:
    def write(w: Writer, node: Node) -> Written:
        (axis,) = node.settings
        names = [*map(w.name, node.args[: w.shown]), *["…"] * (len(node.args) > w.shown)]
        shown = f"[{', '.join(names)}]"
        if name == "stack" and axis == 0:
            return Written(shown)
        return Written(f"{name}({shown}{f', axis={axis}' if axis else ''})")

    return write


def _scatter(w: Writer, node: Node) -> Written:
    """Return the text of a scatter: of a single contiguous part, a padding with zeros."""
    shape, keys = node.settings
    if len(keys) == 1 and (around := padding(keys[0], shape)) is not None:
        part = w.name(node.args[0])
        for axis, k in enumerate(keys[0]):
            part = f"unsqueeze({part}, {axis})" if isinstance(k, int) else part
        return Written(f"pad({part}, {around})" if around else part)
    parts = [f"[{subscript(k, shape)}] += {w.name(a)}" for k, a in zip(keys, node.args, strict=True)]
    return Written(f"zeros{shape} with {', '.join(parts[:PARTS])}" + ", …" * (len(parts) > PARTS))


def padding(key: Index, shape: Shape) -> tuple[int, ...] | None:
    """Return the numbers of zeros before and after a part of an array, last axis first; None if it is not contiguous.

    >>> padding((range(3), range(1, 4)), (3, 6)), padding((range(0, 4, 2),), (4,))
    ((1, 2), None)
    """
    ranges = [range(k, k + 1) if isinstance(k, int) else k for k in key]
    if not all(isinstance(k, range) and k.step == 1 for k in ranges):
        return None
    pairs = [(k.start, n - k.stop) for k, n in zip(ranges, shape, strict=False) if isinstance(k, range)]
    while pairs and pairs[0] == (0, 0):
        pairs = pairs[1:]
    behind = [(0, 0)] * (len(shape) - len(ranges)) if pairs else []
    return tuple(n for pair in reversed([*pairs, *behind]) for n in pair)


def _scatter_add(w: Writer, node: Node) -> Written:
    axis, indices, _ = node.settings
    return Written(f"zeros{node.shape} with [{index_key(axis, indices)}] += {w.name(node.args[0])}")


def _diagonal(w: Writer, node: Node) -> Written:
    x = w.name(node.args[0])
    if len(node.args[0].shape) == 2:
        return Written(f"diag({x})")
    rest = "klmnopqrstuvwxyz"[: len(node.shape) - 1]
    return Written(f'einsum("ii{rest}->i{rest}", {x})')


def _from_diagonal(w: Writer, node: Node) -> Written:
    x, shape = w.name(node.args[0]), node.shape
    if len(shape) > 2:
        return Written(f"from_diagonal({x}, {shape})")
    if node.args[0].value == 1:
        return Written(f"eye({shape[0]})" if shape[0] == shape[1] else f"eye{shape}")
    if shape[0] == shape[1]:
        return Written(f"diag({x})")
    return Written(f"pad(diag({x}), {padding((range(min(shape)),) * 2, shape)})")


# Extrema, and where they stand


def _first(op: str) -> Rule:
    """Return the rule of the mask of the first extremum along an axis: its index compared with all."""

    def write(w: Writer, node: Node) -> Written:
        (axis,) = node.settings
        shape = node.args[0].shape
        along = f", axis={axis}" if len(shape) > 1 else ""
        text = f"{op}({w.name(node.args[0])}{along})"
        if op == "argsort":
            text += f"[{':, ' * axis}{(shape[axis] - 1) // 2}]"
        behind = (1,) * (len(shape) - axis - 1)
        text = f"unsqueeze({text}, {axis})" if along else text
        every = f"arange({shape[axis]})"
        every = f"reshape({every}, {(shape[axis], *behind)})" if behind else every
        return Written(f"{text} == {every}", Binds.CONDITION)

    return write


def _clamp(w: Writer, node: Node) -> Written:
    x, low, high = w.plain(node)
    if exact_text(high.value or 0) == "inf":
        return Written(f"clamp({w.name(x)}, min={w.name(low)})")
    if exact_text(low.value or 0) == "-inf":
        return Written(f"clamp({w.name(x)}, max={w.name(high)})")
    return Written(f"clamp({', '.join(w.arguments(node))})")


def _where(w: Writer, node: Node) -> Written:
    if (result := one_hot_of(node, w.names)) is not None:
        return Written(f"one_hot({w.name(result[0])}, {result[1]})")
    return Written(f"where({', '.join(w.arguments(node))})")


def _einsum(w: Writer, node: Node) -> Written:
    return Written(f'einsum("{node.settings[0]}", {", ".join(w.arguments(node))})')


TEXT: dict[str, Rule] = {op: rule for op, row in OPERATIONS.items() if (rule := derived(row)) is not None} | {
    "const": constant,
    "identity": through,
    "corner": through,
    "clamp": _clamp,
    "mul": _mul,
    "einsum": _einsum,
    "where": _where,
    **dict.fromkeys(EXTREMA, _call),
    "argmax_mask": _first("argmax"),
    "argmin_mask": _first("argmin"),
    "argmedian_mask": _first("argsort"),
    "cast": lambda w, node: Written(f"{node.dtype}({w.name(node.args[0])})"),
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast": lambda w, node: Written(f"expand({w.name(node.args[0])}, {node.shape})"),
    "index": _index,
    "take": _take,
    # At indices that are no constants: only scripts have them, and their pages know the indices.
    **dict.fromkeys(("index_add", "dynamic_slice", "dynamic_scatter"), _of_arguments),
    "scatter_add": _scatter_add,
    "scatter": _scatter,
    "diagonal": _diagonal,
    "from_diagonal": _from_diagonal,
    "concatenate": _joined("concatenate"),
    "stack": _joined("stack"),
}
