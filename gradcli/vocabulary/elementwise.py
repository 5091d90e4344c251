"""Names of elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce

from gradcli.errors import InputError
from gradcli.graph.construct import call
from gradcli.graph.node import Node, const, elementwise, is_const
from gradcli.graph.operations import OPERATIONS
from gradcli.vocabulary.register import add, each, named


def _unary(op: str, x: Node) -> Node:
    return elementwise(op, x)


def _binary(op: str, x: Node, y: Node) -> Node:
    return elementwise(op, x, y)


_ALIASES = {
    "tan": ("tg",),
    "cot": ("ctg",),
    "asin": ("arcsin",),
    "acos": ("arccos",),
    "atan": ("arctan", "arctg"),
    "atan2": ("arctan2",),
    "sinh": ("sh",),
    "cosh": ("ch",),
    "tanh": ("th",),
    "asinh": ("arcsinh", "arsinh"),
    "acosh": ("arccosh", "arcosh"),
    "atanh": ("arctanh", "artanh"),
    "log2": ("lb", "ld"),
    "log10": ("lg",),
    "lgamma": ("loggamma", "gammaln"),
    "digamma": ("psi",),
    "sigmoid": ("expit",),
    "abs": ("Abs", "absolute", "fabs"),
    "sign": ("sgn",),
    "ceil": ("ceiling",),
    "trunc": ("fix",),
    "detach": ("stop_gradient",),
    "logsigmoid": ("log_sigmoid",),
    "mod": ("Mod", "remainder"),
    "pow": ("Pow", "power"),
    "silu": ("swish",),
    "neg": ("negative",),
    "sub": ("subtract",),
    "mul": ("multiply",),
    "div": ("divide",),
}
# Operations whose functions are defined below, since they have settings, and operations that are not functions.
_APART = {"leaky_relu", "elu", "celu", "hardtanh", "huber", "log", "round", "lerp", "heaviside", "clamp", "where"}
_APART |= {"maximum", "minimum", "identity", "corner", "polygamma"}

for _op, _row in OPERATIONS.items():
    if _op not in _APART and _row.kind in ("elementwise", "step"):
        add(partial(_unary if _row.arity == 1 else _binary, _op), _op, *_ALIASES.get(_op, ()))


_MAX_ORDER = 300  # of polygamma: the engine knows the orders of its derivatives, too


@named("polygamma")
def _polygamma(n: Node | int, x: Node) -> Node:
    order = n.value if isinstance(n, Node) else n
    if isinstance(order, int | Fraction | Decimal):
        fits = order == int(order) and 0 <= order <= _MAX_ORDER
    else:
        fits = not isinstance(order, float | str)  # inf, nan, pi and e; an array of orders, or an input, may be right
    if not fits:
        raise InputError(
            f"the order of `polygamma` must be an integer from 0 to {_MAX_ORDER}", hint="for example `polygamma(1, x)`"
        )
    return call("polygamma", n, x)


@named("square")
def _square(x: Node) -> Node:
    return call("pow", x, const(2))


_SLOPE = const(Decimal("0.01"))  # PyTorch's default
_HALF = const(Decimal("0.5"))
_ONE, _MINUS_ONE = const(1), const(-1)
_MAX_DECIMALS = 300


@named("log", "ln")
def _log(x: Node, base: Node | None = None) -> Node:
    if base is None:
        return call("log", x)
    if base.value in (2, 10):
        return call("log2" if base.value == 2 else "log10", x)
    return call("div", call("log", x), call("log", base))


@named("round")
def _round(x: Node, decimals: int = 0) -> Node:
    if type(decimals) is not int or abs(decimals) > _MAX_DECIMALS:
        raise InputError(
            f"`decimals` must be an integer, at most {_MAX_DECIMALS}",
            hint="`round(x, 2)` leaves two digits, `round(x)` none",
        )
    if not decimals:
        return call("round", x)
    # PyTorch: a division by 10**n, not a product with 10**-n, which float64 cannot represent.
    scale = const(10 ** abs(decimals))
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return call(back, call("round", call(there, x, scale)), scale)


@named("lerp")
def _lerp(start: Node, end: Node, weight: Node) -> Node:
    return call("lerp", start, end, weight)


@named("leaky_relu")
def _leaky_relu(x: Node, negative_slope: Node = _SLOPE) -> Node:
    return call("leaky_relu", x, negative_slope)


@each("elu", "celu")
def _elu(op: str, x: Node, alpha: Node = _ONE) -> Node:
    if op == "celu" and is_const(alpha, 0):
        raise InputError("the `alpha` of `celu` is a divisor, and must not be 0")
    return call(op, x, alpha)


@named("hardtanh")
def _hardtanh(x: Node, min_val: Node = _MINUS_ONE, max_val: Node = _ONE) -> Node:
    return call("hardtanh", x, min_val, max_val)


@named("huber")
def _huber(x: Node, delta: Node = _ONE) -> Node:
    return call("huber", x, delta)


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
        result = value if condition.value is True else call("where", condition, value, result)
    return result


def folded(op: str, *x: Node) -> Node:
    """Return the maximum or minimum of several arrays, element by element."""
    if len(x) < 2:
        raise InputError(f"`{op}` takes two values or more", hint=f"`{op[:3]}(x)` is the {op} of an array")
    return reduce(partial(call, op), x)


add(partial(folded, "maximum"), "maximum", "Max")
add(partial(folded, "minimum"), "minimum", "Min")
