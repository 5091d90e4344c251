"""Arithmetic, comparisons and conditions, with the operators of Python that stand for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.pytorch.calls import exact, in_order, number, operands, pointwise, typed
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.operations.creation import as_tensor
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.record import apply
from gradcli.pytorch.registry import Number, both, method, no_overload, tensor_like
from gradcli.pytorch.tensor import Tensor, new

# Arithmetic


def _scaled(op: str, input: Any, other: Any, alpha: Any, name: str | None = None) -> Tensor:
    """Return a sum or a difference in one step, the second operand multiplied by a number."""
    if alpha == 1:
        return pointwise(op, input, other, name=name)
    dtype = result_dtype((input, other))
    if not dtype.is_floating_point and isinstance(alpha, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    factor = const(exact(alpha if dtype.name != "bool" else bool(alpha)), (), dtype.name)
    build = typed(lambda a, b: elementwise(op, a, elementwise("mul", b, factor)), dtype.name)
    return apply(op, build, operands(dtype, input, other), (dtype.name, repr(alpha)), name)


def _sum(op: str) -> Callable[..., Tensor]:
    def made(input: Any, other: Any, *more: Any, alpha: Any = 1) -> Tensor:
        if more:
            (other,), own = in_order(op, (other, *more), {})
            alpha = own["alpha"]
        if op == "sub":
            _no_booleans(input, other)
        return _scaled(op, input, other, alpha)

    return made


add = both("add")(_sum("add"))
sub = both("sub", "subtract")(_sum("sub"))


@both("rsub")
def rsub(input: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    _no_booleans(input, other)
    return _scaled("sub", other, input, alpha, f"RsubBackward{int(not isinstance(other, Tensor))}")


def is_boolean(x: Any) -> bool:
    """Tell whether something is a tensor of booleans."""
    return isinstance(x, Tensor) and x._a.dtype == bool


def _no_booleans(a: Any, b: Any) -> None:
    found = [is_boolean(a), is_boolean(b)]
    if all(found):
        raise refusal("difference of booleans")
    if any(found):
        raise RuntimeError(f"Subtraction, the `-` operator, with a bool tensor is not supported. {_INVERT}")


_INVERT = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."


@both("neg", "negative")
def neg(input: Tensor) -> Tensor:
    if is_boolean(input):
        raise RuntimeError(f"Negation, the `-` operator, on a bool tensor is not supported. {_INVERT}")
    return pointwise("neg", input)


mul: Callable[..., Tensor] = both("mul", "multiply")(lambda input, other: pointwise("mul", input, other))


@both("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return pointwise("div", input, other)
    _no_zeros(input, other)
    if rounding_mode == "floor":
        return pointwise("floor_divide", input, other, name="DivBackward2")
    dtype = result_dtype((input, other))
    exactly = "float64" if dtype.name == "int64" else dtype.name
    build = typed(lambda a, b: elementwise("trunc", elementwise("div", a, b)), exactly)  # type: ignore[arg-type]
    given = operands(dtype, input, other)
    return apply("div", lambda a, b: cast(build(a, b), dtype.name), given, dtype.name, "DivBackward2")


def _no_zeros(a: Any, b: Any) -> None:
    """Refuse to divide whole numbers by 0, as PyTorch does."""
    if any(isinstance(x, Tensor) and not x.numel() for x in (a, b)):
        return
    divisor = b._a if isinstance(b, Tensor) else np.asarray(b)
    if not result_dtype((a, b)).is_floating_point and not divisor.all():
        raise RuntimeError("ZeroDivisionError")


def _quotient(op: str, grad: str) -> Callable[..., Tensor]:
    """Return a division that whole numbers cannot do by 0; the step's name may tell whether the divisor is a tensor."""

    def made(input: Any, other: Any) -> Tensor:
        found = pointwise(op, input, other, name=grad.format(int(isinstance(other, Tensor))))
        _no_zeros(input, other)
        return found

    return made


floor_divide = both("floor_divide")(_quotient("floor_divide", "torch::autograd::NotImplemented"))
remainder = both("remainder")(_quotient("mod", "RemainderBackward{}"))
both("fmod")(_quotient("fmod", "FmodBackward{}"))


@both("pow")
def pow(input: Any, exponent: Any) -> Tensor:
    if isinstance(exponent, Tensor):
        return pointwise("pow", input, exponent, name=f"PowBackward{1 if isinstance(input, Tensor) else 2}")
    if input._a.dtype.kind in "iu" and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    dtype = result_dtype((input, exponent))

    def build(x: Node) -> Node:
        return elementwise("pow", cast(x, dtype.name), const(exact(exponent), (), dtype.name))

    return apply("pow", build, (input,), (dtype.name, type(exponent).__name__, repr(exponent)), "PowBackward0")


def _sign(grad: str) -> Callable[..., Tensor]:
    return lambda input: input.clone() if is_boolean(input) else pointwise("sign", input, name=grad)


def _rounding(name: str) -> Callable[..., Tensor]:
    def made(input: Tensor) -> Tensor:
        if is_boolean(input):
            raise NotImplementedError(f"\"{name}_vml_cpu\" not implemented for 'Bool'")
        return pointwise(name, input)

    return made


both("sign")(_sign("SignBackward0"))
both("sgn")(_sign("SgnBackward0"))
for _name in ("floor", "ceil", "trunc"):
    both(_name)(_rounding(_name))
both("fix")(lambda input: input.trunc())


# Comparisons


def _comparison(op: str) -> Callable[[Tensor, Any], Tensor]:
    def made(input: Tensor, other: Any) -> Tensor:
        dtype = result_dtype((input, other))
        build = typed(lambda a, b: compare(op, a, b), dtype.name)
        return apply(op, build, operands(dtype, input, other), dtype.name)

    return made


_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "ne": "not_equal", "eq": "eq"}
_COMPARED = {op: both(op, word)(_comparison(op)) for op, word in _COMPARISONS.items()}


def _equal(self: Tensor, other: Any) -> Any:
    other = as_tensor(other) if isinstance(other, np.ndarray) else other
    return _COMPARED["eq"](self, other) if tensor_like(other) else NotImplemented


def _unequal(self: Tensor, other: Any) -> Any:
    return _COMPARED["ne"](self, other) if tensor_like(other) else True


# Conditions and bits


def _logical(op: str, *names: str) -> Callable[..., Tensor]:
    def made(input: Tensor, other: Tensor) -> Tensor:
        return apply(op, typed(lambda a, b: compare(op, a, b), "bool"), (input, other))

    return both(*names)(made)


_LOGICAL = {"and": _logical("and", "logical_and"), "or": _logical("or", "logical_or")}
_LOGICAL["xor"] = _logical("ne", "logical_xor")


logical_not: Callable[..., Tensor] = both("logical_not")(
    lambda x: apply("not", typed(lambda a: compare("not", a), "bool"), (x,))
)


def _bitwise(word: str, function: Any) -> Callable[..., Tensor]:
    def made(input: Any, other: Any) -> Tensor:
        if word in _LOGICAL and all(is_boolean(x) or isinstance(x, bool) for x in (input, other)):
            return _LOGICAL[word](*(x if isinstance(x, Tensor) else new(np.array([x])) for x in (input, other)))
        dtype = result_dtype((input, other))
        if dtype.is_floating_point:
            common_shape([x.shape for x in (input, other) if isinstance(x, Tensor)])
            kernel = {"left_shift": "lshift", "right_shift": "rshift"}.get(word, f"bitwise_{word}")
            raise NotImplementedError(f"\"{kernel}_cpu\" not implemented for '{dtype.word}'")
        arrays = [x._a.astype(dtype.numpy) if isinstance(x, Tensor) else number(x, dtype) for x in (input, other)]
        return new(function(*arrays))

    return both(f"bitwise_{word}")(made)


_BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_BITS |= {"left_shift": np.left_shift, "right_shift": np.right_shift}  # type: ignore[dict-item]
BITWISE = {word: _bitwise(word, function) for word, function in _BITS.items()}


@both("bitwise_not")
def bitwise_not(self: Tensor) -> Tensor:
    if self._a.dtype == bool:
        return logical_not(self)
    if self._a.dtype.kind == "f":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return -self - 1


# The operators


def _operator(name: str, made: Callable[[Any, Any], Any]) -> None:
    def operate(self: Tensor, other: Any) -> Any:
        return made(self, other) if tensor_like(other) else NotImplemented

    operate.__name__ = name
    setattr(Tensor, name, operate)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": add,
    "radd": lambda a, b: pointwise("add", a, b),
    "sub": sub,
    "rsub": rsub,
    "mul": mul,
    "rmul": lambda a, b: pointwise("mul", b, a, recorded="rmul"),
    "truediv": div,
    "floordiv": floor_divide,
    "rfloordiv": lambda a, b: floor_divide(b, a),
    "mod": remainder,
    "rmod": lambda a, b: pointwise("mod", b, a, recorded="remainder"),  # which has no derivative there
    "pow": pow,
    "rpow": lambda a, b: pow(b, a),
    **{op: made for op, made in _COMPARED.items() if op not in ("eq", "ne")},
    **{side + op: BITWISE[op] for op in ("and", "or", "xor") for side in ("", "r")},
    "lshift": BITWISE["left_shift"],
    "rshift": BITWISE["right_shift"],
}
for _name, _made in OPERATORS.items():
    _operator(f"__{_name}__", _made)
method("__rtruediv__")(lambda self, other: self.reciprocal() * other)
method("__eq__")(_equal)
method("__ne__")(_unequal)
method("__neg__")(neg)
method("__pos__")(lambda self: self)
method("__abs__")(lambda self: pointwise("abs", self))
method("__invert__")(bitwise_not)

# Choices


_WHERE = (
    "Tensor condition",
    "Tensor condition, Tensor input, Tensor other, *, Tensor out = None",
    "Tensor condition, Number self, Tensor other",
    "Tensor condition, Tensor input, Number other",
    "Tensor condition, Number self, Number other",
)


@both("where")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)  # type: ignore[attr-defined]
    given = (condition, input) if other is None else (condition, input, other)
    if len(given) < 3 or not isinstance(condition, Tensor) or not all(isinstance(x, (Tensor, *Number)) for x in given):
        raise no_overload("where", given, _WHERE)
    if condition._a.dtype not in (bool, np.uint8):
        raise refusal("condition that is none", condition.dtype.word)
    dtype = result_dtype((input, other))

    def build(c: Node, a: Node, b: Node) -> Node:
        return elementwise("where", c, cast(a, dtype.name), cast(b, dtype.name))

    return apply("where", build, (condition, *operands(dtype, input, other)), dtype.name)


@method("where")
def _where(self: Tensor, condition: Tensor, other: Any) -> Any:
    if not isinstance(condition, Tensor) or not isinstance(other, (Tensor, *Number)):
        raise no_overload(
            "where", (condition, other), ("Tensor condition, Tensor other", "Tensor condition, Number other")
        )
    return where(condition, self, other)


@both("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor) and value.dim():
        raise refusal("value of a mask", value.dim())
    if mask._a.dtype != bool:
        raise refusal("mask that is none", mask.dtype.word.lower())
    dtype = input.dtype.name
    if isinstance(value, Tensor) and value.requires_grad:
        return apply("masked_fill", lambda x, m, v: elementwise("where", m, v, x), (input, mask, value), (), _FILL)
    own = number(value.item() if isinstance(value, Tensor) else value, input.dtype)
    return apply("masked_fill", lambda x, m, v: cast(elementwise("where", m, v, x), dtype), (input, mask, own))


_FILL = "MaskedFillBackward1"
