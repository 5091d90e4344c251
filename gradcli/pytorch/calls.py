"""Calls: tensors and numbers as operands, and any function of the vocabulary called as PyTorch calls it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import call
from gradcli.graph.dtypes import KEEPING_INTEGERS, DType
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.graph.operations import OPERATIONS
from gradcli.pytorch import dtypes
from gradcli.pytorch.dtypes import default_dtype, result_dtype
from gradcli.pytorch.functions import fact, grad_name
from gradcli.pytorch.limits import check_limits, limits
from gradcli.pytorch.messages import builtin_name, facts_of, raise_if, torch_error, warn_once
from gradcli.pytorch.operations.definitions import ELEMENTWISE
from gradcli.pytorch.record import apply
from gradcli.pytorch.signatures import REQUIRED, find, signature
from gradcli.pytorch.tensor import Array, Number, Tensor, axis_of, different_axes
from gradcli.vocabulary import FUNCTIONS

_CONDITIONS = frozenset(op for op, row in OPERATIONS.items() if row.kind == "condition")


class Arguments(tuple[tuple[str, Any], ...]):
    """The arguments of a call by the parameters' names: each as its kind and, last, its value."""


def tensor_like(x: Any) -> bool:
    """Return whether something may be an operand."""
    return isinstance(x, (Tensor, *Number, complex))


def number(value: Any, dtype: dtypes.dtype, op: str = "add") -> Array:
    """Return a Python number as an operand; it is never None, as the `.grad` is that nobody computed."""
    if value is None or isinstance(value, np.ndarray | list | tuple | str):
        raise torch_error("no tensor", op, "other", 1, builtin_name(value))
    if -256 < value < _LARGEST and (value >= 0 or dtype.numpy != np.uint8):
        return np.array([value], dtype.numpy)
    with np.errstate(all="ignore"):
        return np.array([value]).astype(dtype.numpy)


_LARGEST = 256  # any larger number may be one that a dtype does not hold, and is then cut off as in PyTorch
_HOLDERS = {"uint8": "uint8_t", "int32": "int", "int64": "int64_t", "float32": "float"}


def held(value: Any, dtype: dtypes.dtype) -> Array:
    """Return a Python number that is to be written into a tensor.

    Errors: `RuntimeError` for one that the dtype does not hold.
    """
    result = number(value, dtype)
    if not -_LARGEST < value < _LARGEST and dtype.name in _HOLDERS:
        is_float = dtype.is_floating_point
        most = float(np.finfo(dtype.numpy).max) if is_float else np.iinfo(dtype.numpy).max
        is_small = -most - (dtype.is_signed and not is_float) <= value <= most
        fits = is_small or (is_float and not math.isfinite(value))
        raise_if(not fits, "number that is not held", _HOLDERS[dtype.name])
    return result


def operands(dtype: dtypes.dtype, *values: Any, op: str = "add") -> list[Any]:
    """Return tensors and numbers as operands, the numbers in a dtype."""
    return [x if isinstance(x, Tensor) else number(x, dtype, op) for x in values]


def typed(build: Callable[..., Node], dtype: DType) -> Callable[..., Node]:
    """Return a constructor whose arguments are cast first, and whose result is of their type, or a condition."""

    def build_typed(*nodes: Node) -> Node:
        result = build(*(cast(n, dtype) for n in nodes))
        return result if result.dtype == "bool" else cast(result, dtype)

    return build_typed


@cache
def _elementwise(op: str, dtype: DType) -> Callable[..., Node]:
    check_numbers(op, dtypes.OF_NUMPY[np.dtype(dtype)])
    build = compare if op in _CONDITIONS else elementwise
    return typed(lambda *nodes: build(op, *nodes), dtype)


def check_numbers(op: str, dtype: dtypes.dtype) -> None:
    """Raise PyTorch's error for an operation in a dtype in which it does not compute it."""
    kernel = None if dtype.is_floating_point else fact("no_integers", op)
    if dtype.name == "bool":
        kernel = kernel or fact("no_booleans", op)
    raise_if(kernel, "no kernel", kernel, dtype.word)


def is_boolean(x: Any) -> bool:
    """Return whether something is a tensor of booleans."""
    return isinstance(x, Tensor) and x._a.dtype == bool


def _computed_in(values: Sequence[Any], keeps_integers: bool) -> dtypes.dtype:
    """Return the dtype in which PyTorch computes an operation on the elements of tensors, and on numbers."""
    first = next((x._a.dtype for x in values if isinstance(x, Tensor)), np.dtype(int))
    dtype = dtypes.OF_NUMPY[first]
    if len(values) > 1 and not all(isinstance(x, Tensor) and x._a.dtype == first for x in values):
        dtype = result_dtype(values)
    return dtype if dtype.is_floating_point or keeps_integers else default_dtype()


def pointwise(op: str, *values: Any, name: str | None = None, recorded: str = "") -> Tensor:
    """Return an elementwise operation of tensors and numbers, which are promoted and broadcast as in PyTorch.

    It may be `recorded` under another name.
    """
    dtype = _computed_in(values, op in _OF_INTEGERS)
    return apply(recorded or op, _elementwise(op, dtype.name), operands(dtype, *values, op=op), dtype.name, name)


def moved(op: str, x: Tensor, shape: Sequence[int], setting: Any, name: str) -> Tensor:
    """Return a tensor's elements in another shape, which is always a step, also for the same shape."""
    sizes = tuple(shape)
    return apply(op, lambda n: Node(op, (n,), sizes, (setting,)), (x,), setting, name)


def called(x: Any, name: str) -> Any:
    """Return the result of a composition, with PyTorch's name for its step."""
    if isinstance(x, tuple):
        return type(x)(*(called(p, name) for p in x)) if hasattr(x, "_fields") else tuple(called(p, name) for p in x)
    if isinstance(x, Tensor) and x._fn is not None:
        x._fn.called = name
    return x


def of_scalar(build: Callable[..., Node]) -> Callable[..., Node]:
    """Return a constructor for which a number is a vector of one element, as for PyTorch's reductions along an axis."""

    def build_vector(x: Node, *more: Node) -> Node:
        return construct.reshape(build(construct.reshape(x, (1,)), *more), ())

    return build_vector


def in_order(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments behind the first operand in today's order; older calls begin with a factor."""
    signature = find(name.removesuffix("_"))
    if (
        signature is None
        or "front" not in signature.facts
        or len(args) != len(signature.ordered)
        or not isinstance(args[0], Number)
    ):
        return args, kwargs
    factor = signature.facts["front"]
    warn_once("factor in front", name, factor, ", ".join(f"Tensor {a.name}" for a in signature.ordered[1:]))
    return args[1:], {**kwargs, factor: args[0]}


# Functions of the vocabulary


def named(name: str, *args: Any, **kwargs: Any) -> Tensor:
    """Return the result of a definition, or of a function of the vocabulary, by its name."""
    row = vocabulary_row(name)
    assert row is not None, name
    return row.call(args, kwargs)


@cache
def vocabulary_row(name: str) -> VocabularyRow | None:
    """Return a definition or a function of the vocabulary as PyTorch calls it, if it has a signature."""
    build = ELEMENTWISE.get(name) or FUNCTIONS.get(name)
    return None if build is None or find(name) is None else VocabularyRow(name, build)


# What makes integers of integers.
_OF_INTEGERS = KEEPING_INTEGERS | _CONDITIONS


class VocabularyRow:
    """A function of the vocabulary, or a definition, with the signature that PyTorch's has.

    Their parameters are in the same order; a definition takes nodes alone.
    """

    def __init__(self, name: str, build: Callable[..., Node]) -> None:
        self.name, self.build, self.signature = name, build, signature(name)
        parameters = list(inspect.signature(build).parameters.values())
        known = self.signature.known.values()
        self._parameters = {a.name: (p.name, a.kind) for a, p in zip(known, parameters, strict=False)}
        self._apart = frozenset(a.name for a in known if a.kind == "float")  # which do not count in promotion
        self._required = {a.name for a in self.signature.ordered if a.default is REQUIRED}
        self._most = math.inf if self.signature.rest else len(self.signature.ordered)
        self._positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self._rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        self._is_unary = sum(a.default is REQUIRED for a in known) - bool(self.signature.rest) == 1
        facts = self.signature.facts
        row = OPERATIONS.get(build.args[0] if isinstance(build, partial) else name)
        self._is_elementwise = name in ELEMENTWISE or (row is not None and row.broadcasts)
        self._keeps_integers = name in _OF_INTEGERS or "integers" in facts
        self._is_along_axis, self._of_vectors = "dtype" in self.signature.known, "vector" in facts
        self._steps, self._digit = facts.get("steps", ""), facts.get("with_settings", "")
        self._has_front, self._is_limited = "front" in facts, name in limits()

    def call(self, args: Sequence[Any], kwargs: dict[str, Any], skipped: int = 0) -> Tensor:
        """Return the result of a call; positions in errors do not count the tensor of a method, which is `skipped`.

        Errors: `RuntimeError` with the vocabulary's own message where the arguments do not fit; `NotImplementedError`
        for a dtype in which PyTorch does not compute it.
        """
        try:
            return self._called(args, kwargs, skipped)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            if facts_of(error) is None or isinstance(error, TypeError):
                self.signature.check_call(self.name, args, kwargs, skipped)
            raise

    def _called(self, args: Sequence[Any], kwargs: dict[str, Any], skipped: int) -> Tensor:
        if self._has_front:
            more, kwargs = in_order(self.name, args[1:], kwargs)
            args = (*args[:1], *more)
        if self._is_along_axis:
            return self._along_axis(args, kwargs, skipped)
        operands, numbers, settings, make = self._read(args, kwargs, skipped)
        is_number = not operands[0].dim()
        self._check_dtypes(operands)
        if self._of_vectors and is_number:
            make = of_scalar(make)
        if self._is_elementwise:
            make = typed(make, _computed_in(numbers, self._keeps_integers).name)
        return apply(self.name, make, operands, settings, self._step(args, len(operands), settings))

    def _along_axis(self, args: Sequence[Any], kwargs: dict[str, Any], skipped: int) -> Tensor:
        """Return the result of a function along one axis, in a dtype that may be an argument."""
        if "dtype" in kwargs:
            dtype, others = kwargs["dtype"], {k: v for k, v in kwargs.items() if k != "dtype"}
            return self._along_axis((args[0].to(dtype), *args[1:]), others, skipped).to(dtype)
        operands, _, settings, make = self._read(args, kwargs, skipped)
        x = operands[0]
        if not x.numel() and (x.is_floating_point() or "no_integers" in self.signature.facts):
            return apply(self.name, partial(call, "identity"), operands, settings)
        self._check_dtypes(operands)
        return apply(self.name, make if x.dim() else of_scalar(make), operands, settings)

    def _read(
        self, args: Sequence[Any], kwargs: dict[str, Any], skipped: int
    ) -> tuple[list[Any], Sequence[Any], Any, Callable[..., Node]]:
        """Return the operands of a call, with the numbers that count in promotion, the settings, and a constructor."""
        if self._is_unary and len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
            if self._is_limited:
                check_limits(self.name, {self.signature.ordered[0].name: args[0]})
            return [args[0]], args, (), self.build
        values = self.signature.bound(self.name, args, kwargs)
        check_limits(self.name, values)
        self.signature.check_tensors(self.name, args, skipped=skipped)
        operands: list[Any] = []
        rank = args[0].dim() if args and isinstance(args[0], Tensor) else 0
        settings = Arguments(self._setting(k, v, rank, operands) for k, v in values.items())
        if args and not operands:
            raise torch_error("no tensor", self.name, "input", 1, builtin_name(args[0]))
        if not self._required <= values.keys() or len(args) > self._most:
            self.signature.check_call(self.name, args, kwargs, skipped)
        numbers = [v for k, v in values.items() if k not in self._apart and isinstance(v, _NUMBERS)]

        def make(*nodes: Node) -> Node:
            arguments = {k: _decoded(e, nodes) for k, e in settings}
            rest = arguments.pop(self._rest, ())
            return self.build(*(arguments.pop(p) for p in self._positional if rest), *rest, **arguments)

        return operands, numbers, settings, make

    def _check_dtypes(self, operands: Sequence[Tensor]) -> None:
        """Raise PyTorch's error for dtypes in which it does not compute the function."""
        if not operands[0].is_floating_point():
            check_numbers(self.name, result_dtype(operands))

    def _setting(self, name: str, value: Any, rank: int, operands: list[Any]) -> tuple[str, Any]:
        """Return an argument of the vocabulary's function, by its name there."""
        parameter, kind = self._parameters[name]
        return parameter, _encoded(_axes(value, rank) if kind == "axis" else value, kind, operands)

    def _step(self, args: Sequence[Any], tensors: int, settings: Any) -> str:
        """Return PyTorch's name of the step, whose digit may depend on the number of tensors and on the settings."""
        name = grad_name(self.name)
        if not self._steps:
            return f"{name[:-1]}{self._digit}" if settings and self._digit else name
        is_left = tensors == 1 and not isinstance(args[0], Tensor)  # what is in front is a number
        return f"{name.rpartition('Backward')[0]}Backward{1 if is_left else self._steps[tensors - 1]}"


def _axes(value: Any, rank: int) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return axis_of(value, rank)
    return different_axes(value, rank) if isinstance(value, tuple | list) else value


def _encoded(value: Any, kind: str, operands: list[Any]) -> Any:
    """Return an argument in a form that can be a key: tensors are numbered, numbers are exact."""
    if isinstance(value, Tensor):
        if kind not in _NODES:
            return _encoded(value.tolist(), kind, operands)
        operands.append(value)
        return ("operand", len(operands) - 1)
    if isinstance(value, list | tuple):
        return ("list", tuple(_encoded(v, kind, operands) for v in value))
    if kind in _NODES and isinstance(value, Number):
        return ("number", type(value).__name__, repr(value), value)
    return ("setting", value)


_NUMBERS = (Tensor, *Number)
_NODES = frozenset(("Tensor", "Tensor?", "Scalar", "float"))  # what is an operand, or a constant


def _decoded(encoded: Any, nodes: Sequence[Node]) -> Any:
    match encoded[0]:
        case "operand":
            return nodes[encoded[1]]
        case "list":
            return tuple(_decoded(e, nodes) for e in encoded[1])
        case "number":
            return const(exact(encoded[3]))
    return encoded[1]


def exact(value: Any) -> Any:
    """Return a Python number as a constant: decimals as they are written."""
    if isinstance(value, int | np.integer | np.bool_):
        return int(value)
    return Decimal(repr(float(value))) if math.isfinite(value) else float(value)
