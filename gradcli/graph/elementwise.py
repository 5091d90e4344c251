"""The table of elementwise operations: what each is to NumPy and to SymPy, and its slopes.

A row without `slopes` asks SymPy for its derivative (see `calculus.py`).  A row states them where SymPy
lacks the function, differentiates it in a numerically poor form, or where the function has a corner;
there the slope is what PyTorch 2.13 gives, with the reason beside it.

A slope is a function of the node `y` and its arguments; the i-th slope is ∂y/∂(i-th argument).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gradcli.graph.node import Exact, Node, const, elementwise, is_const, lift

Slope = Callable[..., Node | Exact]


@dataclass(frozen=True)
class Elementwise:
    """One row: NumPy's name (the op's own unless given), SymPy's name, the slopes, and how it is written.

    `lowered` gives the numbers of an operation that engines do not have, in terms of those that they have.
    """

    arity: int = 1
    numpy: str = ""
    sympy: str = ""
    slopes: tuple[Slope, ...] = ()
    infix: str = ""
    constant: bool = False  # piecewise constant: its slope is 0 everywhere
    lowered: Callable[..., Node] | None = None


def where(condition: Node, a: Node | Exact, b: Node | Exact) -> Node:
    """Return the node that is `a` where the condition holds and `b` elsewhere."""
    a, b = lift(a), lift(b)
    if a.op == b.op == "const" and a.value == b.value:
        return const(a.params[0], elementwise("where", condition, a, b).shape)
    return elementwise("where", condition, a, b)


def factor(slope: Node) -> Node:
    """Return a choice as a slope that is multiplied: where it is 0, an infinite adjoint makes it nan, as in PyTorch.

    A choice that is a slope itself selects the adjoint (see `vjp.scale`).
    """
    return elementwise("identity", slope)


def equal(a: Node, b: Node | Exact) -> Node:
    """Return the node of the comparison `a == b`."""
    return elementwise("eq", a, lift(b))


def call(op: str, *args: Node | Exact) -> Node:
    """Return the node of a function of the table."""
    return elementwise(op, *map(lift, args))


def _lowered_pow(a: Node, b: Node) -> Node:
    # PyTorch: the same few powers are products.  Others are left to the engine's own `pow`.
    match b.value:
        case 2:
            return a * a
        case 3:
            return a * a * a
        case -1:
            return 1 / a
        case -2:
            return 1 / (a * a)
        case Fraction(numerator=1, denominator=2) | Decimal() if b.value * 2 == 1:
            return call("sqrt", a)
    return elementwise("pow", a, b)


def _pow_base(y: Node, a: Node, b: Node) -> Node | Exact:
    # PyTorch: 0 where the exponent is 0, even at a = 0 where b·a**(b-1) would be 0·inf.
    if b.op == "const":
        return 0 if is_const(b, 0) else b * a ** (b - 1)
    return where(equal(b, 0), 0, b * a ** (b - 1))


def _pow_exponent(y: Node, a: Node, b: Node) -> Node:
    # PyTorch: 0 where the base is 0 and the exponent is not negative: 0**b is flat there.
    if a.op == "const" and isinstance(a.value, int | Fraction | Decimal) and a.value > 0:
        return y * call("log", a)
    return factor(where(equal(a, 0) & (b >= 0), 0, y * call("log", a)))


def _normal_density(x: Node) -> Node:
    return call("exp", -(x**2) / 2) / call("sqrt", 2 * const("pi"))


def _normal_distribution(x: Node) -> Node:
    return (1 + call("erf", x / call("sqrt", const(2)))) / 2


ELEMENTWISE: dict[str, Elementwise] = {
    # Arithmetic
    "add": Elementwise(2, infix="+", slopes=(lambda y, a, b: 1, lambda y, a, b: 1)),
    "sub": Elementwise(2, "subtract", infix="-", slopes=(lambda y, a, b: 1, lambda y, a, b: -1)),
    "mul": Elementwise(2, "multiply", infix="*", slopes=(lambda y, a, b: b, lambda y, a, b: a)),
    "div": Elementwise(2, "true_divide", infix="/", slopes=(lambda y, a, b: 1 / b, lambda y, a, b: -(y / b))),
    "neg": Elementwise(1, "negative", infix="-", slopes=(lambda y, a: -1,)),
    "pow": Elementwise(2, "power", infix="**", slopes=(_pow_base, _pow_exponent), lowered=_lowered_pow),
    "identity": Elementwise(1, "positive", slopes=(lambda y, x: 1,)),
    # Powers and logarithms
    "sqrt": Elementwise(sympy="sqrt"),
    # SymPy's cbrt is complex below 0; NumPy's, like a textbook's, is real.
    "cbrt": Elementwise(slopes=(lambda y, x: 1 / (3 * y**2),)),
    "exp": Elementwise(sympy="exp"),
    "expm1": Elementwise(sympy="expm1"),
    "log": Elementwise(sympy="log"),
    "log1p": Elementwise(sympy="log1p"),
    "log2": Elementwise(sympy="log2"),
    "log10": Elementwise(sympy="log10"),
    "hypot": Elementwise(2, slopes=(lambda y, a, b: a / y, lambda y, a, b: b / y)),
    # Trigonometric
    "sin": Elementwise(sympy="sin"),
    "cos": Elementwise(sympy="cos"),
    "tan": Elementwise(sympy="tan"),
    "sec": Elementwise(sympy="sec", lowered=lambda x: 1 / call("cos", x)),
    "csc": Elementwise(sympy="csc", lowered=lambda x: 1 / call("sin", x)),
    "cot": Elementwise(sympy="cot", lowered=lambda x: call("cos", x) / call("sin", x)),
    "asin": Elementwise(1, "arcsin", "asin"),
    "acos": Elementwise(1, "arccos", "acos"),
    "atan": Elementwise(1, "arctan", "atan"),
    # PyTorch: 0 at the origin, where the angle has no slope.
    "atan2": Elementwise(
        2,
        "arctan2",
        slopes=(
            lambda y, a, b: factor(where(equal(a**2 + b**2, 0), 0, b / (a**2 + b**2))),
            lambda y, a, b: factor(where(equal(a**2 + b**2, 0), 0, -(a / (a**2 + b**2)))),
        ),
    ),
    # Hyperbolic
    "sinh": Elementwise(sympy="sinh"),
    "cosh": Elementwise(sympy="cosh"),
    # SymPy's 1 - tanh(x)**2, which formulas show, cancels: at x = 10 it has lost 8 digits.
    "tanh": Elementwise(sympy="tanh", slopes=(lambda y, x: call("sech", x) ** 2,)),
    "sech": Elementwise(sympy="sech", lowered=lambda x: 1 / call("cosh", x)),
    "asinh": Elementwise(1, "arcsinh", "asinh"),
    # PyTorch: finite below -1 too, where the function is not.
    "acosh": Elementwise(
        1,
        "arccosh",
        "acosh",
        (lambda y, x: 1 / (call("sqrt", call("abs", x) - 1) * call("sqrt", call("abs", x) + 1)),),
    ),
    "atanh": Elementwise(1, "arctanh", "atanh"),
    # Special
    "erf": Elementwise(sympy="erf"),
    "erfc": Elementwise(sympy="erfc"),
    "gamma": Elementwise(sympy="gamma"),
    "lgamma": Elementwise(sympy="loggamma"),
    "digamma": Elementwise(slopes=(lambda y, x: call("polygamma", 1, x),)),
    "polygamma": Elementwise(2, slopes=(lambda y, n, x: 0, lambda y, n, x: call("polygamma", n + 1, x))),
    # Activations
    # PyTorch: 0 at 0, and the slope of NaN is 1, hence `<=`.
    "relu": Elementwise(slopes=(lambda y, x: where(x <= 0, 0, 1),), lowered=lambda x: call("maximum", x, 0)),
    "leaky_relu": Elementwise(
        2,
        slopes=(lambda y, x, s: where(x > 0, 1, s), lambda y, x, s: where(x > 0, 0, x)),
        lowered=lambda x, s: where(x > 0, x, s * x),
    ),
    # y·(1 - y) cancels where y is near 1.
    "sigmoid": Elementwise(
        slopes=(lambda y, x: y * call("sigmoid", -x),),
        # Without overflow, and with full relative precision on both sides.
        lowered=lambda x: call("exp", -call("softplus", -x)),
    ),
    "softplus": Elementwise(slopes=(lambda y, x: call("sigmoid", x),)),
    "silu": Elementwise(
        slopes=(lambda y, x: call("sigmoid", x) * (1 + x * call("sigmoid", -x)),),
        lowered=lambda x: x * call("sigmoid", x),
    ),
    # x·Φ(x), Φ the normal distribution (Hendrycks and Gimpel, 2016; PyTorch's default, not the tanh form).
    "gelu": Elementwise(
        slopes=(lambda y, x: _normal_distribution(x) + x * _normal_density(x),),
        lowered=lambda x: x * call("erfc", -x / call("sqrt", const(2))) / 2,
    ),
    # Corners.  Ties are split evenly, and a clamp passes its gradient at its bounds, as in PyTorch.
    "abs": Elementwise(slopes=(lambda y, x: call("sign", x),)),
    "maximum": Elementwise(
        2,
        slopes=(
            lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a < b, 0, 1)),
            lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b < a, 0, 1)),
        ),
    ),
    "minimum": Elementwise(
        2,
        slopes=(
            lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(a > b, 0, 1)),
            lambda y, a, b: where(equal(a, b), Fraction(1, 2), where(b > a, 0, 1)),
        ),
    ),
    "clamp": Elementwise(
        3,
        "clip",
        slopes=(
            lambda y, x, low, high: where((x >= low) & (x <= high), 1, 0),
            lambda y, x, low, high: where((x < low) & (low < high), 1, 0),
            lambda y, x, low, high: where((x > high) | (high < low), 1, 0),
        ),
    ),
    "where": Elementwise(
        3, slopes=(lambda y, c, a, b: 0, lambda y, c, a, b: where(c, 1, 0), lambda y, c, a, b: where(c, 0, 1))
    ),
    "mod": Elementwise(2, slopes=(lambda y, a, b: 1, lambda y, a, b: -call("floor_divide", a, b)), infix="%"),
    # PyTorch has no derivative for heaviside; 0 is what every other step function has there.
    "heaviside": Elementwise(2, slopes=(lambda y, x, h: 0, lambda y, x, h: where(equal(x, 0), 1, 0))),
    # Piecewise constant
    "sign": Elementwise(constant=True),  # of NaN: 0, as in PyTorch
    "floor": Elementwise(constant=True),
    "ceil": Elementwise(constant=True),
    # Not the floor of a quotient: what is left of the division is subtracted first, so that nothing is rounded up.
    "floor_divide": Elementwise(2, constant=True),
    "lt": Elementwise(2, "less", infix="<", constant=True),
    "le": Elementwise(2, "less_equal", infix="<=", constant=True),
    "gt": Elementwise(2, "greater", infix=">", constant=True),
    "ge": Elementwise(2, "greater_equal", infix=">=", constant=True),
    "eq": Elementwise(2, "equal", infix="==", constant=True),
    "ne": Elementwise(2, "not_equal", infix="!=", constant=True),
    "and": Elementwise(2, "logical_and", infix="&", constant=True),
    "or": Elementwise(2, "logical_or", infix="|", constant=True),
    "not": Elementwise(1, "logical_not", infix="~", constant=True),
}

# What a gradient has no way through, not even for a 0: PyTorch's booleans.
CONDITIONS = frozenset(op for op, row in ELEMENTWISE.items() if row.constant and row.infix)
