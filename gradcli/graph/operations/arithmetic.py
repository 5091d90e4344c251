"""Arithmetic, remainders, and linear interpolation."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from gradcli.graph.construct import call, corner, equal, where
from gradcli.graph.node import Constant, Exact, Node, compare, const, elementwise, is_const, lift, operand
from gradcli.graph.operation import Corner, Operation, Precedence, function, spelled, step


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
    if is_const(b, 0):
        return 0
    if not b.is_constant:
        return corner(equal(b, 0), 0, b * a ** (b - 1))
    if 0 not in b.values:
        return b * a ** (b - 1)
    nonzero = const(tuple(v or 1 for v in b.values), b.shape)
    return corner(equal(b, 0), 0, b * a ** (nonzero - 1))


def _pow_exponent(y: Node, a: Node, b: Node) -> Node:
    # PyTorch: 0 where the base is 0 and the exponent is not negative: 0**b is flat there.
    if a.is_constant and all(map(_is_positive, a.values)):
        return y * call("log", a)
    return corner(equal(a, 0) & (b >= 0), 0, y * call("log", a))


def _is_positive(value: Constant) -> bool:
    return value in ("pi", "e") or (isinstance(value, Exact) and value > 0)


def _textbook_quotient(y: Node, a: Node, b: Node) -> Node:
    return positive / b**2 if (positive := operand(a, "neg")) is not None else -(a / b**2)


def _is_integer(x: Node) -> Node:
    return equal(call("floor", x), x)


ROWS: dict[str, Operation] = {
    "add": function(
        lambda y, a, b: 1,
        lambda y, a, b: 1,
        infix="+",
        precedence=Precedence.SUM,
        linear=(0, 1),
        commutes=True,
        keeps_integers=True,
        spelling=spelled(numpy="add", onnx="Add"),
    ),
    "sub": function(
        lambda y, a, b: 1,
        lambda y, a, b: -1,
        infix="-",
        precedence=Precedence.SUM,
        linear=(0, 1),
        keeps_integers=True,
        spelling=spelled(numpy="subtract", onnx="Sub"),
    ),
    "mul": function(
        lambda y, a, b: b,
        lambda y, a, b: a,
        infix="*",
        precedence=Precedence.PRODUCT,
        linear=(0, 1),
        commutes=True,
        keeps_integers=True,
        spelling=spelled(numpy="multiply", onnx="Mul"),
    ),
    "div": function(
        lambda y, a, b: 1 / b,
        lambda y, a, b: -(y / b),
        textbook={1: _textbook_quotient},
        infix="/",
        precedence=Precedence.PRODUCT,
        linear=(0,),
        poles=True,
        spelling=spelled(numpy="true_divide", onnx="Div"),
    ),
    "neg": function(
        lambda y, a: -1,
        infix="-",
        precedence=Precedence.SIGN,
        exact=True,
        linear=(0,),
        keeps_integers=True,
        spelling=spelled(numpy="negative", onnx="Neg"),
    ),
    "pow": function(
        _pow_base,
        _pow_exponent,
        lowered=_lowered_pow,
        infix="**",
        precedence=Precedence.POWER,
        keeps_integers=True,
        multiplies=(1,),
        corner=Corner(lambda y, a, b: equal(a, 0) & equal(b, 0), "0 by the exponent", (1,)),  # 0**b jumps, a**0 not
        poles=True,
        spelling=spelled(numpy="power", c="pow", javascript="power", onnx="Pow", llvm="pow"),
    ),
    "identity": function(
        lambda y, x: 1, exact=True, linear=(0,), keeps_integers=True, odd=True, spelling=spelled(onnx="Identity")
    ),
    "mod": function(
        lambda y, a, b: 1,
        lambda y, a, b: -call("floor_divide", a, b),
        infix="%",
        precedence=Precedence.PRODUCT,
        keeps_integers=True,
        corner=Corner(lambda y, a, b: _is_integer(a / b), "1, as everywhere else"),
        spelling=spelled(numpy="mod", torch="remainder", c="modulo", javascript="modulo"),
    ),
    # What is left of a division that rounds towards 0, so that it has the sign of `a`.
    "fmod": function(
        lambda y, a, b: 1,
        lambda y, a, b: -call("trunc", a / b),
        lowered=lambda a, b: where(a < 0, -call("mod", -a, call("abs", b)), call("mod", a, call("abs", b))),
        keeps_integers=True,
        corner=Corner(lambda y, a, b: _is_integer(a / b) & compare("ne", a, lift(0)), "1, as everywhere else"),
    ),
    # PyTorch: computed from the nearer end, so that w = 1 gives b exactly.
    "lerp": function(
        lambda y, a, b, w: 1 - w,
        lambda y, a, b, w: w,
        lambda y, a, b, w: b - a,
        lowered=lambda a, b, w: where(call("abs", w) < Fraction(1, 2), a + w * (b - a), b - (1 - w) * (b - a)),
    ),
    # Not the floor of a quotient: what is left of the division is subtracted first, so that nothing is rounded up.
    "floor_divide": step(
        2,
        corner=Corner(lambda y, a, b: _is_integer(a / b), "0, as everywhere else", (0, 1)),
        spelling=spelled(numpy="floor_divide", torch="floor_divide", c="quotient", javascript="quotient"),
    ),
}
