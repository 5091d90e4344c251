"""Functions of tensors that are not just names of the vocabulary: each is a function of `torch`, a method, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import axes_of
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.pytorch import dtypes
from gradcli.pytorch.calls import Number, exact, number, pointwise, shapes_differ, typed
from gradcli.pytorch.dtypes import WORDS, result_dtype
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor, axis_of
from gradcli.vocabulary.register import kept

F = TypeVar("F", bound=Callable[..., Any])
TORCH: dict[str, Any] = {}  # what `torch` has by name


def both(*names: str) -> Callable[[F], F]:
    """Register a function of `torch` that is a method as well."""

    def register(function: F) -> F:
        for name in names or (function.__name__,):
            TORCH[name] = function
            setattr(Tensor, name, function)
        return function

    return register


def method(*names: str) -> Callable[[F], F]:
    """Register a method of tensors."""

    def register(function: F) -> F:
        for name in names or (function.__name__,):
            setattr(Tensor, name, function)
        return function

    return register


def function(*names: str) -> Callable[[F], F]:
    """Register a function of `torch`."""

    def register(made: F) -> F:
        TORCH.update(dict.fromkeys(names or (made.__name__,), made))
        return made

    return register


def tensor_like(x: Any) -> bool:
    """Tell whether something may be an operand."""
    return isinstance(x, (Tensor, *Number))


# Arithmetic


@both("add")
def add(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return `input + alpha·other`."""
    if out is not None:
        from gradcli.pytorch.inplace import into

        return into(out, "add", lambda: add(input, other, alpha=alpha), (input, other))
    return pointwise("add", input, other if alpha == 1 else other * alpha)


@both("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return `input - alpha·other`."""
    _no_booleans(input, other)
    return pointwise("sub", input, other if alpha == 1 else other * alpha)


def _no_booleans(a: Any, b: Any) -> None:
    if any(isinstance(x, Tensor) and x._a.dtype == bool for x in (a, b)):
        both_are = all(isinstance(x, Tensor) and x._a.dtype == bool for x in (a, b))
        raise RuntimeError(
            "Subtraction, the `-` operator, with "
            + ("two bool tensors" if both_are else "a bool tensor")
            + " is not supported. "
            + (
                "Use the `^` or `logical_xor()` operator instead."
                if both_are
                else "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        )


@both("mul", "multiply")
def mul(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the product, element by element."""
    if out is not None:
        from gradcli.pytorch.inplace import into

        return into(out, "mul", lambda: mul(input, other), (input, other))
    return pointwise("mul", input, other)


@both("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return the quotient, rounded towards 0 (`trunc`) or down (`floor`) where that is asked for."""
    if rounding_mode is None:
        return pointwise("div", input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    found = trunc_(pointwise("div", input, other))
    return to(found, result_dtype((input, other)))


def trunc_(x: Tensor) -> Tensor:
    """Return the numbers without what stands behind the point."""
    return pointwise("trunc", x)


@both("floor_divide")
def floor_divide(input: Any, other: Any) -> Tensor:
    """Return the quotient, rounded down."""
    return pointwise("floor_divide", input, other)


@both("remainder")
def remainder(input: Any, other: Any) -> Tensor:
    """Return what is left of the division, with the sign of the divisor."""
    return pointwise("mod", input, other, name="RemainderBackward0")


@both("pow", "float_power")
def pow(input: Any, exponent: Any) -> Tensor:
    """Return a power."""
    if not isinstance(exponent, Tensor):
        if input._a.dtype.kind in "iu" and isinstance(exponent, int) and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        dtype = result_dtype((input, exponent))

        def build(x: Node) -> Node:
            return elementwise("pow", cast(x, dtype.name), const(exact(exponent), (), dtype.name))

        return apply("pow", build, (input,), (dtype.name, type(exponent).__name__, repr(exponent)), "PowBackward0")
    if isinstance(input, Tensor):
        return pointwise("pow", input, exponent, name="PowBackward1")
    return pointwise("pow", input, exponent, name="PowBackward2")


@both("square")
def square(input: Tensor) -> Tensor:
    """Return the square."""
    return pow(input, 2)


@both("reciprocal")
def reciprocal(input: Tensor) -> Tensor:
    """Return 1/x."""
    return pointwise("div", 1.0, input, name="ReciprocalBackward0")


@both("rsqrt")
def rsqrt(input: Tensor) -> Tensor:
    """Return 1/sqrt(x)."""
    return apply("rsqrt", lambda x: elementwise("div", const(1), elementwise("sqrt", x)), (_real(input),))


def _real(x: Tensor) -> Tensor:
    return x if x._a.dtype.kind == "f" else to(x, dtypes.default_dtype())


@both("neg", "negative")
def neg(input: Tensor) -> Tensor:
    """Return the numbers with the other sign."""
    if input._a.dtype == bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
            "mask, use the "
            "`~` or `logical_not()` operator instead."
        )
    return pointwise("neg", input)


@both("addcmul")
def addcmul(input: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    """Return `input + value·a·b`."""
    return input + a * b * value


@both("addcdiv")
def addcdiv(input: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    """Return `input + value·a/b`."""
    return input + value * (a / b)


@both("rsub")
def rsub(input: Tensor, other: Any) -> Tensor:
    """Return `other - input`."""
    _no_booleans(input, other)
    return pointwise("sub", other, input, name="RsubBackward1" if not isinstance(other, Tensor) else None)


def _operator(name: str, made: Callable[[Any, Any], Any]) -> None:
    def operate(self: Tensor, other: Any) -> Any:
        if not tensor_like(other):
            if isinstance(other, np.ndarray):
                from gradcli.pytorch.creation import as_tensor

                other = as_tensor(other)
            else:
                return NotImplemented
        return made(self, other)

    operate.__name__ = name
    setattr(Tensor, name, operate)


_operator("__add__", add)
_operator("__radd__", lambda a, b: pointwise("add", a, b))
_operator("__sub__", sub)
_operator("__rsub__", rsub)
_operator("__mul__", mul)
_operator("__rmul__", lambda a, b: pointwise("mul", b, a))
_operator("__truediv__", div)
_operator("__rtruediv__", lambda a, b: reciprocal(a) * b)
_operator("__floordiv__", floor_divide)
_operator("__rfloordiv__", lambda a, b: pointwise("floor_divide", b, a))
_operator("__mod__", remainder)
_operator("__rmod__", lambda a, b: pointwise("mod", b, a))
_operator("__pow__", pow)
_operator("__rpow__", lambda a, b: pow(b, a))
Tensor.__neg__ = neg
Tensor.__pos__ = lambda self: self
Tensor.__abs__ = lambda self: pointwise("abs", self)

# Comparisons, and conditions

_SIGNS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "", "ne": "not_equal"}


def _comparison(op: str) -> Callable[[Tensor, Any], Tensor]:
    def made(input: Tensor, other: Any) -> Tensor:
        dtype = result_dtype((input, other))
        given = [x if isinstance(x, Tensor) else number(x, dtype) for x in (input, other)]
        try:
            return apply(op, typed(lambda a, b: compare(op, a, b), dtype.name), given, dtype.name)
        except InputError:
            raise shapes_differ(input, other) from None

    made.__name__ = op
    return made


for _op, _word in _SIGNS.items():
    _made = _comparison(_op)
    both(_op, *([_word] if _word else []))(_made)
    if _op not in ("eq", "ne"):
        _operator(f"__{_op}__", _made)


def _equal(self: Tensor, other: Any) -> Any:
    if not tensor_like(other):
        return NotImplemented if not isinstance(other, list | tuple | str | type(None)) else False
    return self.eq(other)


def _unequal(self: Tensor, other: Any) -> Any:
    return self.ne(other) if tensor_like(other) else True


setattr(Tensor, "__eq__", _equal)  # noqa: B010
setattr(Tensor, "__ne__", _unequal)  # noqa: B010


def _logical(op: str, *names: str) -> Callable[..., Tensor]:
    def made(input: Tensor, other: Tensor) -> Tensor:
        return apply(op, typed(lambda a, b: compare(op, a, b), "bool"), (input, other))

    return both(*names)(made)


_and, _or = _logical("and", "logical_and"), _logical("or", "logical_or")


@both("logical_not")
def logical_not(input: Tensor) -> Tensor:
    """Return where the condition does not hold."""
    return apply("not", typed(lambda a: compare("not", a), "bool"), (input,))


@both("logical_xor")
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Return where one of two conditions holds."""
    return apply("ne", typed(lambda a, b: compare("ne", a, b), "bool"), (input, other))


def _bitwise(name: str, made: Callable[[Any, Any], Tensor]) -> None:
    def operate(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor) or self._a.dtype != bool or other._a.dtype != bool:
            raise MissingError(f"Tensor.{name} of what is not boolean")
        return made(self, other)

    setattr(Tensor, name, operate)


_bitwise("__and__", _and)
_bitwise("__or__", _or)
_bitwise("__xor__", logical_xor)


def _invert(self: Tensor) -> Tensor:
    if self._a.dtype == bool:
        return logical_not(self)
    if self._a.dtype.kind == "f":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return -self - 1


Tensor.__invert__ = _invert


@both("where")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Return `input` where the condition holds and `other` elsewhere; alone, the places where it holds."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if (
        isinstance(input, Tensor)
        and isinstance(condition, Tensor)
        and input._a.dtype == bool != condition._a.dtype == 0
    ):
        condition, input = input, condition
    dtype = result_dtype((input, other))
    given = [x if isinstance(x, Tensor) else number(x, dtype) for x in (input, other)]

    def build(c: Node, a: Node, b: Node) -> Node:
        return elementwise("where", c, cast(a, dtype.name), cast(b, dtype.name))

    try:
        return apply("where", build, (condition, *given), dtype.name)
    except InputError:
        raise shapes_differ(input, other) from None


setattr(Tensor, "where", lambda self, condition, other: where(condition, self, other))  # noqa: B010


@both("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return the tensor with a value where the mask holds."""
    own = const(exact(value.item() if isinstance(value, Tensor) else value), (), input.dtype.name)
    return apply("masked_fill", lambda x, m: elementwise("where", m, own, x), (input, mask), repr(own.value))


@both("clamp_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Return the numbers, those below a bound raised to it."""
    return input.clamp(min=min)


@both("clamp_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Return the numbers, those above a bound lowered to it."""
    return input.clamp(max=max)


@both("isnan")
def isnan(input: Tensor) -> Tensor:
    """Return where the number is none."""
    return input.ne(input)


@both("isinf")
def isinf(input: Tensor) -> Tensor:
    """Return where the number is infinite."""
    return pointwise("abs", input).eq(float("inf"))


@both("isfinite")
def isfinite(input: Tensor) -> Tensor:
    """Return where the number is one, and finite."""
    return logical_not(_or(isnan(input), isinf(input)))


@both("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have the same shape and the same numbers."""
    return bool(input._a.shape == other._a.shape and (input._a == other._a).all())


@both("allclose")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Tell whether all numbers are nearly the same."""
    return bool(np.allclose(input._a, other._a, rtol, atol, equal_nan))


@both("isclose")
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return where numbers are nearly the same."""
    from gradcli.pytorch.tensor import new

    return new(np.isclose(input._a, other._a, rtol, atol, equal_nan))


# Other types


@method("to")
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the tensor in another dtype, or on another device; itself where it is there already."""
    wanted = kwargs.pop("dtype", None)
    dtypes.check_device(kwargs.pop("device", None))
    copy = kwargs.pop("copy", False)
    kwargs.pop("non_blocking", None)
    for value in args:
        if isinstance(value, dtypes.dtype):
            wanted = value
        elif isinstance(value, Tensor):
            wanted = value.dtype
        elif isinstance(value, str | dtypes.device):
            dtypes.check_device(value)
    if wanted is None or wanted.numpy == input._a.dtype:
        return input.clone() if copy else input
    return apply("cast", lambda x: cast(x, wanted.name), (input,), wanted.name)


for _name, _dtype in {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "long": dtypes.int64,
    "int": dtypes.int32,
    "byte": dtypes.uint8,
    "bool": dtypes.bool_,
}.items():
    setattr(Tensor, _name, lambda self, _dtype=_dtype: to(self, _dtype))


@method("type")
def type_(self: Tensor, wanted: Any = None) -> Any:
    """Return the name of the tensor's type, or the tensor in another one."""
    if wanted is None:
        return f"torch.{self.dtype.tensor}"
    if isinstance(wanted, str):
        wanted = next(d for d in dtypes.ALL if wanted in (f"torch.{d.tensor}", repr(d)))
    return to(self, getattr(wanted, "dtype", wanted))


@method("type_as")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of another."""
    return to(self, other.dtype)


@method("cpu", "contiguous_")
def cpu(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the tensor itself: it is on the CPU."""
    return self


@method("cuda")
def cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Refuse, as a PyTorch without CUDA does."""
    raise AssertionError("Torch not compiled with CUDA enabled")


# Reductions that have more to them than a name


def _check_real(name: str, x: Tensor, dtype: dtypes.dtype | None) -> None:
    if (dtype or x.dtype).name not in ("float32", "float64"):
        word = WORDS[x.dtype.name]
        if name == "mean":
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                f"Got: {word}"
            )
        raise RuntimeError(f"{name}: only supports floating-point dtypes")


def _reduced(name: str) -> Callable[..., Tensor]:
    def made(
        input: Tensor,
        dim: Any = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
        axis: Any = None,
        keepdims: bool = False,
    ) -> Tensor:
        dim, keepdim = dim if axis is None else axis, keepdim or keepdims
        if isinstance(dim, dtypes.dtype):
            dim, dtype = None, dim
        x = input if dtype is None else to(input, dtype)
        if name == "mean":
            _check_real(name, x, dtype)
        rank = x.dim()
        whole = dim is None or dim in ((), [])
        axes = axes_of(None, rank) if whole else _axes(dim, rank)

        def build(n: Node) -> Node:
            return kept(construct.reduce(name, n, axes), n, axes, keepdim)

        suffix = "0" if dim is None else "1"
        return apply(name, build, (x,), (axes, keepdim), f"{name.capitalize()}Backward{suffix}")

    return both(name)(made)


def _axes(dim: Any, rank: int) -> tuple[int, ...]:
    if not rank:
        return ()
    return tuple(sorted(axis_of(d, rank) for d in (dim if isinstance(dim, tuple | list) else (dim,))))


for _name in ("sum", "mean", "prod"):
    _reduced(_name)


def _spread(name: str) -> Callable[..., Tensor]:
    def made(
        input: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None
    ) -> Tensor:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        _check_real(f"{name} and {'var' if name == 'std' else 'std'}", input, None)
        axes = axes_of(None, input.dim()) if dim is None else _axes(dim, input.dim())
        less = correction if correction is not None else int(unbiased)

        def build(n: Node) -> Node:
            return kept(construct.spreadness(name, n, axes, less), n, axes, keepdim)

        return apply(name, build, (input,), (axes, keepdim, less))

    return both(name)(made)


_spread("std")
_spread("var")


@both("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the p-norm; 2 unless another is asked for."""
    p = 2 if p in ("fro", None) else p
    axes = axes_of(None, input.dim()) if dim is None else _axes(dim, input.dim())
    settings = (p, axes, keepdim)

    def build(n: Node) -> Node:
        if p == 2:
            return kept(construct.reduce("norm", n, axes), n, axes, keepdim)
        size = elementwise("abs", n)
        if p in (float("inf"), float("-inf")):
            return kept(construct.extremum("max" if p > 0 else "min", size, axes, "even"), n, axes, keepdim)
        if p == 1:
            return kept(construct.reduce("sum", size, axes), n, axes, keepdim)
        if p == 0:
            return kept(construct.reduce("sum", cast(compare("ne", n, const(0)), n.dtype), axes), n, axes, keepdim)
        power = const(exact(p))
        return kept(construct.reduce("sum", size**power, axes) ** (1 / power), n, axes, keepdim)

    return apply("norm", build, (input,), settings)


def _any_all(name: str, op: str) -> None:
    def made(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        from gradcli.pytorch.tensor import new

        axes = axes_of(None, input.dim()) if dim is None else _axes(dim, input.dim())
        return new(np.asarray(getattr(np, op)(input._a.astype(bool), axis=axes, keepdims=keepdim)))

    both(name)(made)


_any_all("any", "any")
_any_all("all", "all")


@both("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the places of what is not 0: a row for each, or a tensor for each axis."""
    from gradcli.pytorch.tensor import of_array

    found = np.nonzero(input._a[..., 0])
    return tuple(map(of_array, found)) if as_tuple else of_array(np.stack(found, axis=1).astype(np.int64))


@both("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """Return the places of what is not 0, a row for each."""
    return nonzero(input)  # type: ignore[no-any-return]


@both("unique")
def unique(input: Tensor, sorted: bool = True, return_counts: bool = False) -> Any:
    """Return the different numbers, in order, and how often each is there if that is asked for."""
    from gradcli.pytorch.tensor import of_array

    values, counts = np.unique(input._a, return_counts=True)
    return (of_array(values), of_array(counts)) if return_counts else of_array(values)


@both("bincount")
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """Return how often each whole number is there."""
    from gradcli.pytorch.tensor import of_array

    return of_array(np.bincount(input._a[..., 0], minlength=minlength))


@function("numel")
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.numel()


@function("is_tensor")
def is_tensor(x: Any) -> bool:
    """Tell whether something is a tensor."""
    return isinstance(x, Tensor)


@function("is_floating_point")
def is_floating_point(x: Tensor) -> bool:
    """Tell whether a tensor's numbers are real."""
    return x.is_floating_point()
