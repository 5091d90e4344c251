"""The constants and functions of the language, under the names that PyTorch, NumPy and SymPy users type.

Each is a Python function from nodes to a node.  The annotation of a parameter tells how its argument is read:
`Node` is an expression, `Sequence[Node]` a list of expressions, anything else a plain setting such as an axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial, reduce

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import Axes, axes_of, one_axis
from gradcli.graph.elementwise import ELEMENTWISE, call
from gradcli.graph.node import Constant, Node, Shape, const

Axis = int | Sequence[int] | None
Builder = Callable[..., Node]

CONSTANTS: dict[str, Constant] = {"pi": "pi", "π": "pi", "e": "e", "inf": math.inf, "nan": math.nan}
FUNCTIONS: dict[str, Builder] = {}
METHODS: dict[str, Builder] = {}  # `x.sum()`: the object is the first argument

# Settings have NumPy's names; PyTorch's are read as well.
KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "ord": "p", "ddof": "correction", "a_min": "min", "a_max": "max"}


def _add(build: Builder, *names: str, methods: Sequence[str] | None = None) -> None:
    FUNCTIONS.update(dict.fromkeys(names, build))
    METHODS.update(dict.fromkeys(names if methods is None else methods, build))


def _named(*names: str, methods: Sequence[str] | None = None) -> Callable[[Builder], Builder]:
    """Register a function under its names, and as a method under the same ones unless others are given."""

    def register(build: Builder) -> Builder:
        _add(build, *names, methods=methods)
        return build

    return register


# Elementwise


def _unary(op: str) -> Builder:
    def build(x: Node) -> Node:
        return call(op, x)

    return build


def _binary(op: str) -> Builder:
    def build(x: Node, y: Node) -> Node:
        return call(op, x, y)

    return build


_ALIASES = {
    "log": ("ln",),
    "asin": ("arcsin",),
    "acos": ("arccos",),
    "atan": ("arctan",),
    "atan2": ("arctan2",),
    "asinh": ("arcsinh",),
    "acosh": ("arccosh",),
    "atanh": ("arctanh",),
    "lgamma": ("loggamma", "gammaln"),
    "digamma": ("psi",),
    "sigmoid": ("expit",),
    "abs": ("Abs", "absolute"),
    "sign": ("sgn",),
    "ceil": ("ceiling",),
    "mod": ("Mod", "remainder"),
    "pow": ("Pow", "power"),
    "sub": ("subtract",),
    "mul": ("multiply",),
    "div": ("divide",),
}
# What follows below with settings of its own, or is no function of the language.
_APART = {"leaky_relu", "heaviside", "clamp", "where", "maximum", "minimum", "identity"}

for _op, _row in ELEMENTWISE.items():
    if _op not in _APART and not (_row.infix and _row.constant):
        _add((_unary if _row.arity == 1 else _binary)(_op), _op, *_ALIASES.get(_op, ()))


@_named("square")
def _square(x: Node) -> Node:
    return call("pow", x, const(2))


_SLOPE = const(Decimal("0.01"))  # PyTorch's default
_HALF = const(Decimal("0.5"))


@_named("leaky_relu")
def _leaky_relu(x: Node, negative_slope: Node = _SLOPE) -> Node:
    return call("leaky_relu", x, negative_slope)


@_named("heaviside", "Heaviside")
def _heaviside(x: Node, values: Node = _HALF) -> Node:
    # SymPy's Heaviside(0) is 1/2; NumPy and PyTorch ask for the value.
    return call("heaviside", x, values)


@_named("clamp", "clip")
def _clamp(x: Node, min: Node | None = None, max: Node | None = None) -> Node:
    if min is None and max is None:
        raise InputError("`clamp` needs a bound", hint="for example `clamp(x, 0, 1)` or `clamp(x, min=0)`")
    return call("clamp", x, const(-math.inf) if min is None else min, const(math.inf) if max is None else max)


@_named("where", methods=())
def _where(condition: Node, x: Node, y: Node) -> Node:
    return call("where", condition, x, y)


@_named("Piecewise", methods=())
def _piecewise(*pairs: Sequence[Node]) -> Node:
    result: Node = const(math.nan)  # SymPy: undefined where no condition holds
    for pair in reversed(pairs):
        if len(pair) != 2:
            raise InputError("`Piecewise` takes pairs", hint="for example `Piecewise((x, x > 0), (0, True))`")
        value, condition = pair
        result = (
            value if condition.op == "const" and condition.value is True else call("where", condition, value, result)
        )
    return result


def _folded(op: str, *x: Node) -> Node:
    if len(x) < 2:
        raise InputError(f"`{op}` takes two values or more", hint=f"`{op[:3]}(x)` is the {op} of an array")
    return reduce(partial(call, op), x)


@_named("maximum", "Max")
def _maximum(*x: Node) -> Node:
    return _folded("maximum", *x)


@_named("minimum", "Min")
def _minimum(*x: Node) -> Node:
    return _folded("minimum", *x)


# Reductions


def _kept(reduced: Node, x: Node, axes: Axes, keepdims: bool) -> Node:
    """Return the reduced array, with the reduced axes of size 1 if they are to be kept."""
    if not keepdims:
        return reduced
    return construct.reshape(reduced, tuple(1 if i in axes else n for i, n in enumerate(x.shape)))


def _reduction(op: str) -> Builder:
    def build(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
        axes = axes_of(axis, len(x.shape))
        return _kept(construct.reduce(op, x, axes), x, axes, keepdims)

    return build


for _op in ("sum", "mean", "prod", "logsumexp"):
    _add(_reduction(_op), _op)


_SHORT = 20


def _extremum(op: str, x: Node, axis: Axis, keepdims: bool, shared: bool = False) -> Node:
    # PyTorch: max() and amax(dim) share a tie evenly, max(dim) gives the whole gradient to one index.
    ties = "first" if isinstance(axis, int) and not shared else "even"
    axes = axes_of(axis, len(x.shape))
    return _kept(construct.extremum(op, x, axes, ties), x, axes, keepdims)


def _extremum_function(op: str, pairwise: str) -> Builder:
    def build(*x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
        if len(x) == 1:
            return _extremum(op, x[0], axis, keepdims)
        if not x:
            raise InputError(f"`{op}` lacks an argument", hint=f"for example `{op}(x)`")
        if len(x) == 2 and type(x[1].value) is int:
            name, number = _shown(x[0]), x[1].value
            raise InputError(
                f"`{op}({name}, {number})` can mean two things: PyTorch takes the {number} for an axis",
                hint=f"element by element it is `{pairwise}({name}, {number})`, along an axis "
                f"`{op}({name}, axis={number})`",
            )
        if axis is not None or keepdims:
            raise InputError(f"`{op}` of several values has no axis", hint=f"`{op}(x, axis=0)` reduces one array")
        return _folded(pairwise, *x)

    return build


def _shown(x: Node) -> str:
    """Return an argument as it was typed, where that is short."""
    typed = x.span.text if x.span and not x.name else x.name
    return typed if typed and len(typed) <= _SHORT else "x"


def _extremum_of_one(op: str, shared: bool) -> Builder:
    def build(x: Node, axis: Axis = None, keepdims: bool = False) -> Node:
        return _extremum(op, x, axis, keepdims, shared)

    return build


for _op, _pairwise in (("max", "maximum"), ("min", "minimum")):
    _add(_extremum_function(_op, _pairwise), _op, methods=())
    METHODS[_op] = _extremum_of_one(_op, shared=False)
    _add(_extremum_of_one(_op, shared=True), f"a{_op}")


@_named("norm")
def _norm(x: Node, p: float = 2, axis: Axis = None, keepdims: bool = False) -> Node:
    axes = axes_of(axis, len(x.shape))
    if p == 2:
        return _kept(construct.reduce("norm", x, axes), x, axes, keepdims)
    if p == 1:
        return _kept(construct.reduce("sum", call("abs", x), axes), x, axes, keepdims)
    if p == math.inf:
        return _extremum("max", call("abs", x), axis, keepdims, shared=True)
    raise InputError("`norm` knows p=1, p=2 and p=inf", hint="another: `sum(abs(x)**p)**(1/p)`")


def _spreadness(op: str) -> Builder:
    def build(
        x: Node, axis: Axis = None, correction: int = 1, keepdims: bool = False, unbiased: bool | None = None
    ) -> Node:
        axes = axes_of(axis, len(x.shape))
        correction = correction if unbiased is None else int(unbiased)
        if type(correction) is not int:
            raise InputError("the correction is a whole number", hint="1 divides by n - 1, 0 by n")
        return _kept(construct.spreadness(op, x, axes, correction), x, axes, keepdims)

    return build


_add(_spreadness("var"), "var")
_add(_spreadness("std"), "std")


@_named("softmax")
def _softmax(x: Node, axis: int = -1) -> Node:
    return construct.softmax(x, one_axis(axis, len(x.shape)))


@_named("cumsum")
def _cumsum(x: Node, axis: int | None = None) -> Node:
    if axis is None and len(x.shape) > 1:
        raise InputError("`cumsum` of a matrix needs an axis", hint="for example `cumsum(x, axis=0)`")
    return construct.cumsum(x, one_axis(axis or 0, len(x.shape)))


# Linear algebra


@_named("matmul", "mm", "dot", "mv", "bmm")
def _matmul(a: Node, b: Node) -> Node:
    return construct.matmul(a, b)


@_named("outer")
def _outer(a: Node, b: Node) -> Node:
    return construct.outer(a, b)


@_named("trace")
def _trace(x: Node) -> Node:
    return construct.trace(x)


@_named("diag")
def _diag(x: Node) -> Node:
    return construct.from_diagonal(x, x.shape * 2) if len(x.shape) == 1 else construct.diagonal(x)


# Movement


@_named("transpose", "t")
def _transpose(x: Node, *axes: Axis) -> Node:
    rank = len(x.shape)
    if not axes:
        return construct.transpose(x, tuple(reversed(range(rank))))
    if len(axes) == 1:
        return _permute(x, *axes)
    first, second = (one_axis(a, rank) for a in _pair(axes))  # PyTorch: x.transpose(0, 1) exchanges two axes
    exchanged = {first: second, second: first}
    return construct.transpose(x, tuple(exchanged.get(i, i) for i in range(rank)))


def _pair(axes: Sequence[Axis]) -> tuple[int, int]:
    if len(axes) != 2:
        raise InputError("`transpose` exchanges two axes", hint="`permute(x, 2, 0, 1)` puts all in a new order")
    return _sizes(axes)[0], _sizes(axes)[1]


@_named("permute")
def _permute(x: Node, *axes: Axis) -> Node:
    return construct.transpose(x, tuple(one_axis(a, len(x.shape)) for a in _sizes(axes)))


def _sizes(given: Sequence[Axis]) -> Shape:
    """Return whole numbers given one by one or as one tuple."""
    listed = given[0] if len(given) == 1 and not isinstance(given[0], int) else given
    if not isinstance(listed, tuple | list) or not all(type(n) is int for n in listed):
        raise InputError("whole numbers are wanted here", hint="for example `reshape(x, 2, 3)` or `reshape(x, (2, 3))`")
    return tuple(n for n in listed if isinstance(n, int))


@_named("reshape", "view")
def _reshape(x: Node, *shape: Axis) -> Node:
    return construct.reshape(x, _sizes(shape))


@_named("flatten", "ravel")
def _flatten(x: Node) -> Node:
    return construct.reshape(x, (-1,))


@_named("concatenate", "cat", "concat", methods=())
def _concatenate(parts: Sequence[Node], axis: int = 0) -> Node:
    rank = len(parts[0].shape) if parts else 0
    if not rank or any(len(p.shape) != rank for p in parts):
        raise InputError(
            "`concatenate` joins arrays of equally many dimensions", hint="`stack([a, b])` makes a vector of scalars"
        )
    return construct.concatenate(parts, one_axis(axis, rank))


@_named("stack", methods=())
def _stack(parts: Sequence[Node], axis: int = 0) -> Node:
    if not parts:
        raise InputError("`stack` needs at least one element")
    return construct.stack(parts, one_axis(axis, len(parts[0].shape) + 1))
