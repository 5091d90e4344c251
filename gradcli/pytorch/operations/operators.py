"""Arithmetic, comparisons and conditions, with the operators of Python that stand for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gradcli.graph.construct import call
from gradcli.graph.dtypes import DType
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.pytorch.calls import (
    call_function,
    check_numbers,
    checked_number,
    exact,
    in_dtype,
    is_boolean,
    number,
    operands,
    pointwise,
    tensor_like,
)
from gradcli.pytorch.dtypes import result_dtype
from gradcli.pytorch.messages import raise_if, torch_error
from gradcli.pytorch.names import function
from gradcli.pytorch.operations.creation import as_tensor
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor, new

# Arithmetic


def _add_scaled(op: str, input: Any, other: Any, alpha: Any, name: str | None = None) -> Tensor:
    """Return a sum or a difference in one step, the second operand multiplied by a number."""
    if op == "sub" and (is_boolean(input) or is_boolean(other)):
        raise_if(is_boolean(input) and is_boolean(other), "difference of booleans")
        raise torch_error("sign of a mask", "Subtraction", "with a bool tensor")
    if alpha == 1 and alpha is not True:
        return pointwise(op, input, other, name=name)
    dtype = result_dtype((input, other))
    raise_if(isinstance(alpha, bool) and dtype.name != "bool", "boolean alpha")
    raise_if(not dtype.is_floating_point and isinstance(alpha, float), "factor of integers")
    build = _with_factor(op, dtype.name)
    return apply(op, build, operands(dtype, input, other), (dtype.name, "alpha"), name, [number(alpha, dtype)])


@cache
def _with_factor(op: str, dtype: DType) -> Callable[..., Node]:
    return in_dtype(lambda a, b, factor: elementwise(op, a, elementwise("mul", b, factor)), dtype)


def _sum(op: str) -> Callable[..., Tensor]:
    return lambda input, other, alpha=1: _add_scaled(op, input, other, alpha)


add = function("add")(_sum("add"))
sub = function("sub", "subtract")(_sum("sub"))


@function("rsub")
def rsub(input: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return _add_scaled("sub", other, input, alpha, f"RsubBackward{int(not isinstance(other, Tensor))}")


@function("neg", "negative")
def neg(input: Tensor) -> Tensor:
    raise_if(is_boolean(input), "sign of a mask", "Negation", "on a bool tensor")
    return pointwise("neg", input)


@function("div", "divide", "true_divide")
def div(input: Any, other: Any, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return pointwise("div", input, other)
    raise_if(rounding_mode not in ("trunc", "floor"), "rounding mode", rounding_mode)
    if rounding_mode == "floor":
        return _quotient("floor_divide", "DivBackward2")(input, other)
    dtype = result_dtype((input, other))
    check_numbers("trunc_divide", dtype)
    wide = in_dtype(
        lambda a, b: call("detach", call("trunc", a / b)), "float64" if dtype.name == "int64" else dtype.name
    )
    _no_zeros(input, other)
    values = operands(dtype, input, other)
    return apply("trunc_divide", lambda a, b: cast(wide(a, b), dtype.name), values, dtype.name, "DivBackward2")


def _no_zeros(a: Any, b: Any) -> None:
    """Raise PyTorch's error for integers divided by 0."""
    if any(isinstance(x, Tensor) and not x.numel() for x in (a, b)):
        return
    divisor = b._a if isinstance(b, Tensor) else np.asarray(b)
    raise_if(not result_dtype((a, b)).is_floating_point and not divisor.all(), "division by 0")


def _quotient(op: str, grad: str) -> Callable[..., Tensor]:
    """Return a division, of integers not by 0; the step's name may depend on whether the divisor is a tensor."""

    def function(input: Any, other: Any) -> Tensor:
        result = pointwise(op, input, other, name=grad.format(int(isinstance(other, Tensor))))
        _no_zeros(input, other)
        return result

    return function


floor_divide = function("floor_divide")(_quotient("floor_divide", "torch::autograd::NotImplemented"))
remainder = function("remainder")(_quotient("mod", "RemainderBackward{}"))
function("fmod")(_quotient("fmod", "FmodBackward{}"))


@function("pow")
def pow(input: Any, exponent: Any) -> Tensor:
    if isinstance(exponent, Tensor):
        return pointwise("pow", input, exponent, name=f"PowBackward{1 if isinstance(input, Tensor) else 2}")
    raise_if(input._a.dtype.kind in "iu" and isinstance(exponent, int) and exponent < 0, "negative power")
    dtype = result_dtype((input, exponent))
    exponent = exponent.item() if isinstance(exponent, np.generic) else exponent

    own = float(exponent) in _POWERS
    known = const(exact(exponent), (), dtype.name) if own else None

    def build(x: Node, *power: Node) -> Node:
        return elementwise("pow", cast(x, dtype.name), *((known,) if known is not None else power))

    numbers = [] if own else [number(exponent, dtype)]
    return apply("pow", build, (input,), (dtype.name, str(exponent) if own else ""), "PowBackward0", numbers)


_POWERS = frozenset((-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0))  # each computed in a way of its own, as in PyTorch


# Products, and comparisons


def _of_two(op: str) -> Callable[..., Tensor]:
    return lambda input, other: pointwise(op, input, other)


_WORDS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "eq", "ne": "not_equal"}
_ROWS = {op: function(op, word)(_of_two(op)) for op, word in {"mul": "multiply", **_WORDS}.items()}

# Conditions and bits


def _logical(op: str, *args: Any) -> Tensor:
    return pointwise({"xor": "ne"}.get(op, op), *(x if is_boolean(x) else x.ne(0) for x in args))


def _logical_of_two(op: str) -> Callable[..., Tensor]:
    return lambda input, other: _logical(op, input, other)


_LOGICAL = {word: function(f"logical_{word}")(_logical_of_two(word)) for word in ("and", "or", "xor")}


@function("logical_not")
def logical_not(input: Tensor) -> Tensor:
    return _logical("not", input)


def _bitwise(kernel: str, compute: Any) -> Callable[..., Tensor]:
    @function(kernel)
    def bitwise(input: Any, other: Any) -> Tensor:
        dtype = result_dtype((input, other))
        if is_boolean(input) and is_boolean(other) and (word := kernel.removeprefix("bitwise_")) in _LOGICAL:
            return _LOGICAL[word](input, other)
        common_shape([x.shape for x in (input, other) if isinstance(x, Tensor)])
        raise_if(dtype.is_floating_point, "no kernel", f"{kernel}_cpu", dtype.word)
        return new(compute(*(getattr(x, "_a", x) for x in operands(dtype, input, other))).astype(dtype.numpy))

    return bitwise


_BITWISE = {word: _bitwise(f"bitwise_{word}", getattr(np, f"bitwise_{word}")) for word in ("and", "or", "xor")}


@function("bitwise_not")
def bitwise_not(self: Tensor) -> Tensor:
    if is_boolean(self):
        return logical_not(self)
    raise_if(self.is_floating_point(), "bits of a real number")
    return -self - 1


# The operators


def operator(function: Callable[[Any, Any], Any], otherwise: Any = NotImplemented) -> Callable[[Tensor, Any], Any]:
    return lambda self, other: function(self, other) if tensor_like(other) else otherwise


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **_ROWS,
    "add": add,
    "radd": lambda a, b: pointwise("add", a, b),
    "sub": sub,
    "rsub": rsub,
    "rmul": lambda a, b: pointwise("mul", b, a, recorded="rmul"),
    "truediv": div,
    "floordiv": floor_divide,
    "rfloordiv": lambda a, b: floor_divide(b, a),
    "mod": remainder,
    "rmod": lambda a, b: pointwise("mod", b, a, recorded="remainder"),  # which has no derivative there
    "pow": pow,
    "rpow": lambda a, b: pow(b, a),
    **{side + op: _BITWISE[op] for op in ("and", "or", "xor") for side in ("", "r")},
    "lshift": _bitwise("lshift", np.left_shift),
    "rshift": _bitwise("rshift", np.right_shift),
}
for _name, _function in OPERATORS.items():
    function(f"__{_name}__")(operator(_function))


_eq, _ne = operator(_ROWS["eq"]), operator(_ROWS["ne"], True)
function("__eq__")(lambda self, other: _eq(self, as_tensor(other) if isinstance(other, np.ndarray) else other))
function("__ne__")(_ne)
function("__rtruediv__")(lambda self, other: self.reciprocal() * other)
function("__neg__")(neg)
function("__pos__")(lambda self: self)
function("__abs__")(lambda self: pointwise("abs", self))
function("__invert__")(bitwise_not)

# Choices


@function("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x._a.dtype != input._a.dtype:
            raise torch_error("dtype of an end", input.dtype.in_c, name, x.dtype.in_c)
    return call_function("lerp", input, end, weight)  # type: ignore[no-any-return]


@function("addcdiv")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Tensor:
    raise_if(not (tensor1.is_floating_point() or tensor2.is_floating_point()), "integers divided")
    return call_function("addcdiv", input, tensor1, tensor2, value=value)  # type: ignore[no-any-return]


@function("where")
def where(condition: Tensor, input: Any, other: Any) -> Any:
    if input is None:
        return condition.nonzero(as_tuple=True)
    raise_if(condition._a.dtype not in (bool, np.uint8), "condition that is none", condition.dtype.word)
    dtype = result_dtype((input, other))

    def build(c: Node, a: Node, b: Node) -> Node:
        return elementwise("where", c, cast(a, dtype.name), cast(b, dtype.name))

    return apply("where", build, (condition, *operands(dtype, input, other)), dtype.name)


@function("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    dtype, is_tensor = input.dtype, isinstance(value, Tensor)
    raise_if(is_tensor and value.dim(), "value of a mask", is_tensor and value.dim())
    raise_if(mask._a.dtype != bool, "mask that is none", mask.dtype.in_c)
    arguments = (input, mask, value if is_tensor else checked_number(value, dtype))
    return apply(
        "masked_fill",
        lambda x, m, v: cast(elementwise("where", m, v, x), dtype.name),
        arguments,
        (),
        f"MaskedFillBackward{int(is_tensor)}",
    )
