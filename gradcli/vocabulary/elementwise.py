"""Names of elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import partial, reduce

from gradcli.errors import InputError
from gradcli.graph.construct import call
from gradcli.graph.node import Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.vocabulary.register import Builder, add, named


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
_APART = {"leaky_relu", "heaviside", "clamp", "where", "maximum", "minimum", "identity", "corner"}

for _op, _row in OPERATIONS.items():
    if _op not in _APART and _row.kind in ("elementwise", "step"):
        add((_unary if _row.arity == 1 else _binary)(_op), _op, *_ALIASES.get(_op, ()))


@named("square")
def _square(x: Node) -> Node:
    return call("pow", x, const(2))


_SLOPE = const(Decimal("0.01"))  # PyTorch's default
_HALF = const(Decimal("0.5"))


@named("leaky_relu")
def _leaky_relu(x: Node, negative_slope: Node = _SLOPE) -> Node:
    return call("leaky_relu", x, negative_slope)


@named("heaviside", "Heaviside")
def _heaviside(x: Node, values: Node = _HALF) -> Node:
    # SymPy's Heaviside(0) is 1/2; NumPy and PyTorch ask for the value.
    return call("heaviside", x, values)


@named("clamp", "clip")
def _clamp(x: Node, min: Node | None = None, max: Node | None = None) -> Node:
    if min is None and max is None:
        raise InputError("`clamp` needs a bound", hint="for example `clamp(x, 0, 1)` or `clamp(x, min=0)`")
    return call("clamp", x, const(-math.inf) if min is None else min, const(math.inf) if max is None else max)


@named("where", methods=())
def _where(condition: Node, x: Node, y: Node) -> Node:
    return call("where", condition, x, y)


@named("Piecewise", methods=())
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


def folded(op: str, *x: Node) -> Node:
    """Return the maximum or minimum of several arrays, element by element."""
    if len(x) < 2:
        raise InputError(f"`{op}` takes two values or more", hint=f"`{op[:3]}(x)` is the {op} of an array")
    return reduce(partial(call, op), x)


@named("maximum", "Max")
def _maximum(*x: Node) -> Node:
    return folded("maximum", *x)


@named("minimum", "Min")
def _minimum(*x: Node) -> Node:
    return folded("minimum", *x)
