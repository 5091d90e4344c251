"""Calls: tensors and numbers as operands, and any function of the vocabulary called as PyTorch calls it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import call
from gradcli.graph.dtypes import KEEPING_INTEGERS, DType
from gradcli.graph.node import Node, cast, compare, elementwise
from gradcli.graph.operations import OPERATIONS
from gradcli.pytorch import dtypes
from gradcli.pytorch.dtypes import default_dtype, result_dtype
from gradcli.pytorch.functions import fact, grad_name, is_listed, schema_of
from gradcli.pytorch.messages import builtin_name, raise_if, torch_error
from gradcli.pytorch.operations.definitions import ELEMENTWISE
from gradcli.pytorch.running import apply
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
        result = np.empty(1, dtype.numpy)  # in half the time of np.array
        result[0] = value
        return result
    with np.errstate(all="ignore"):
        return np.array([value]).astype(dtype.numpy)


_LARGEST = 256  # any larger number may be one that a dtype does not hold, and is then cut off as in PyTorch
_HOLDERS = {"uint8": "uint8_t", "int32": "int", "int64": "int64_t", "float32": "float"}


def checked_number(value: Any, dtype: dtypes.dtype) -> Array:
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


def in_dtype(build: Callable[..., Node], dtype: DType) -> Callable[..., Node]:
    """Return a constructor whose arguments are cast first, and whose result is of their type, or a condition."""

    def build_in_dtype(*nodes: Node) -> Node:
        result = build(*(cast(n, dtype) for n in nodes))
        return result if result.dtype == "bool" else cast(result, dtype)

    return build_in_dtype


@cache
def _elementwise(op: str, dtype: DType) -> Callable[..., Node]:
    check_numbers(op, dtypes.OF_NUMPY[np.dtype(dtype)])
    build = compare if op in _CONDITIONS else elementwise
    return in_dtype(lambda *nodes: build(op, *nodes), dtype)


def check_numbers(op: str, dtype: dtypes.dtype) -> None:
    """Raise PyTorch's error for an operation in a dtype in which it does not compute it."""
    if dtype.is_floating_point:
        return
    kernel = fact("no_integers", op)
    if dtype.name == "bool":
        kernel = kernel or fact("no_booleans", op)
        raise_if(kernel in ("relu", "hardtanh"), f"{kernel} of booleans")
    raise_if(kernel, "no kernel", kernel, dtype.word)


def is_boolean(x: Any) -> bool:
    """Return whether something is a tensor of booleans."""
    return isinstance(x, Tensor) and x._a.dtype == bool


_INTEGER = np.dtype(int)  # of numbers alone
_REAL = (float, int)  # types of numbers that promote no floating-point tensor


def _computing_dtype(values: Sequence[Any], keeps_integers: bool) -> dtypes.dtype:
    """Return the dtype in which PyTorch computes an operation on the elements of tensors, and on numbers."""
    kinds = [x._a.dtype for x in values if isinstance(x, Tensor)]
    first = kinds[0] if kinds else _INTEGER
    dtype, is_real = dtypes.OF_NUMPY[first], first.kind == "f"
    for x in values:
        is_alike = x._a.dtype == first if isinstance(x, Tensor) else is_real and type(x) in _REAL
        if not is_alike:
            dtype = result_dtype(values)
            is_real = dtype.is_floating_point
            break
    return dtype if is_real or keeps_integers else default_dtype()


def pointwise(op: str, *values: Any, name: str | None = None, recorded: str = "") -> Tensor:
    """Return an elementwise operation of tensors and numbers, which are promoted and broadcast as in PyTorch.

    It may be `recorded` under another name.
    """
    dtype = _computing_dtype(values, op in _OF_INTEGERS)
    return apply(recorded or op, _elementwise(op, dtype.name), operands(dtype, *values, op=op), dtype.name, name)


def apply_move(op: str, x: Tensor, shape: Sequence[int], setting: Any, name: str) -> Tensor:
    """Return a tensor's elements in another shape, which is always a step, also for the same shape."""
    sizes = tuple(shape)
    return apply(op, lambda n: Node(op, (n,), sizes, (setting,)), (x,), setting, name)


def set_grad_fn_name(x: Any, name: str) -> Any:
    """Return the result of a composition, or several of them, after giving their steps PyTorch's name."""
    if isinstance(x, tuple):
        parts = [set_grad_fn_name(part, name) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, Tensor) and x._fn is not None:
        x._fn.called = name
    return x


def of_scalar(build: Callable[..., Node]) -> Callable[..., Node]:
    """Return a constructor for which a number is a vector of one element, as for PyTorch's reductions along an axis."""

    def build_vector(x: Node, *more: Node) -> Node:
        return construct.reshape(build(construct.reshape(x, (1,)), *more), ())

    return build_vector


# Functions of the vocabulary


def call_function(name: str, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a definition, or of a function of the vocabulary, by its name."""
    row = vocabulary_row(name)
    assert row is not None, name
    values = (*args, *kwargs.values())
    key = len(args), *kwargs, *map(type, values)
    if (run := row.runners.get(key)) is None:
        run = row.runners[key] = row.runner((*list(row.arguments)[: len(args)], *kwargs))
    return run(*values)


@cache
def vocabulary_row(name: str) -> VocabularyRow | None:
    """Return a definition or a function of the vocabulary as PyTorch calls it, if it has a schema."""
    build = ELEMENTWISE.get(name) or FUNCTIONS.get(name)
    return None if build is None or not is_listed(name) else VocabularyRow(name, build)


# What makes integers of integers.
_OF_INTEGERS = KEEPING_INTEGERS | _CONDITIONS


class VocabularyRow:
    """A function of the vocabulary, or a definition, with the arguments that PyTorch's has.

    Their parameters have the same names, or are in the same order; a definition takes nodes alone.
    """

    def __init__(self, name: str, build: Callable[..., Node]) -> None:
        schema = schema_of(name)
        self.name, self.build, self.arguments, facts = name, build, schema.arguments, schema.facts
        parameters = list(inspect.signature(build).parameters.values())
        self._parameters = _by_arguments(self.arguments, [p.name for p in parameters])
        self._positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self._rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        row = OPERATIONS.get(build.args[0] if isinstance(build, partial) else name)
        self._is_elementwise = name in ELEMENTWISE or (row is not None and row.broadcasts)
        self._keeps_integers = name in _OF_INTEGERS or "integers" in facts
        self._is_along_axis, self._of_vectors = "dtype" in self.arguments, "vector" in facts
        self._integers = {a.name for overload in schema.overloads for a in overload.arguments if a.type == "int"}
        self._needs_numbers = "no_integers" in facts
        self.runners: dict[Any, Callable[..., Tensor]] = {}  # by the names and types of arguments
        self._steps, self._digit = facts.get("steps", ""), facts.get("with_settings", "")

    def runner(self, names: Sequence[str]) -> Callable[..., Tensor]:
        """Return the function that computes calls with arguments of these names, all of the same types.

        Errors: `RuntimeError` with the vocabulary's own message where the arguments do not fit; `NotImplementedError`
        for a dtype in which PyTorch does not compute it.
        """
        if self._is_along_axis:
            return lambda *values: self._along_axis(dict(zip(names, values, strict=True)))
        plan: tuple[Any, ...] = (
            [],
            None,
        )  # which values are settings, and these; then where the others stand, and so on

        def run(*values: Any) -> Tensor:
            nonlocal plan
            if [values[i] for i in plan[0]] == plan[1]:
                _, _, places, settings, make, step = plan
                operands, promoting, varying = [[values[i] for i in at] for at in places]
            else:
                operands, promoting, varying, settings, make = self._read(dict(zip(names, values, strict=True)))
                step = self._step(values, len(operands), settings)
                if (places := _places(values, operands, promoting, varying)) is not None:
                    fixed = [i for i in range(len(values)) if i not in places[0] and i not in places[2]]
                    plan = fixed, [values[i] for i in fixed], places, settings, make, step
            if operands[0]._a.dtype.kind != "f":
                check_numbers(self.name, result_dtype(operands))
            if self._of_vectors and not operands[0].dim():
                make = of_scalar(make)
            if self._is_elementwise:
                dtype = _computing_dtype(promoting, self._keeps_integers)
                make = in_dtype(make, dtype.name)
                numbers = [number(v, dtype, self.name) for v in varying]
            else:
                numbers = [number(v, result_dtype((operands[0], v)), self.name) for v in varying]
            return apply(self.name, make, operands, settings, step, numbers)

        return run

    def _along_axis(self, values: dict[str, Any]) -> Tensor:
        """Return the result of a function along one axis, in a dtype that may be an argument."""
        dtype = values.pop("dtype", None)
        if dtype is not None:
            return self._along_axis({**values, "input": values["input"].to(dtype)}).to(dtype)
        operands, _, _, settings, make = self._read(values)
        x = operands[0]
        if not x.numel() and (x.is_floating_point() or self._needs_numbers):
            return apply(self.name, partial(call, "identity"), operands, settings)
        if operands[0]._a.dtype.kind != "f":
            check_numbers(self.name, result_dtype(operands))
        return apply(self.name, make if x.dim() else of_scalar(make), operands, settings)

    def _read(self, values: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any], Any, Callable[..., Node]]:
        """Return the operands of a call, what counts in promotion, its numbers, the settings, and a constructor."""
        x = next(iter(values.values()))
        if len(values) == 1 and isinstance(x, Tensor):
            return [x], [x], [], (), self.build
        operands: list[Any] = []
        varying: list[Any] = []
        rank = x.dim() if isinstance(x, Tensor) else 0
        settings = Arguments(self._setting(k, v, rank, operands, varying) for k, v in values.items())
        promoting = [v for k, v in values.items() if self.arguments[k].type != "float" and isinstance(v, _NUMBERS)]

        def make(*nodes: Node) -> Node:
            arguments = {k: _decode(e, nodes[: len(operands)], nodes[len(operands) :]) for k, e in settings}
            rest = arguments.pop(self._rest, ())
            return self.build(*(arguments.pop(p) for p in self._positional if rest), *rest, **arguments)

        return operands, promoting, varying, settings, make

    def _setting(self, name: str, value: Any, rank: int, operands: list[Any], numbers: list[Any]) -> tuple[str, Any]:
        """Return an argument of the vocabulary's function, by its name there."""
        parameter = self._parameters[name]
        value = _axes(value, rank) if parameter in ("axis", "axes") else value
        kind = "int" if isinstance(value, int) and name in self._integers else self.arguments[name].type
        return parameter, _encode(value, kind, operands, numbers)

    def _step(self, args: Sequence[Any], tensors: int, settings: Any) -> str:
        """Return PyTorch's name of the step, whose digit may depend on the number of tensors and on the settings."""
        name = grad_name(self.name)
        if not self._steps:
            return f"{name[:-1]}{self._digit}" if settings and self._digit else name
        is_left = tensors == 1 and not isinstance(args[0], Tensor)  # what is in front is a number
        return f"{name.rpartition('Backward')[0]}Backward{1 if is_left else self._steps[tensors - 1]}"


def _places(values: Sequence[Any], *parts: Sequence[Any]) -> list[list[int]] | None:
    """Return where each part of a call's values stands among them; None where one is not there, or several times."""
    indices = [[i for i, w in enumerate(values) if w is v] for part in parts for v in part]
    if any(len(at) != 1 for at in indices):
        return None
    flat = iter([at[0] for at in indices])
    return [[next(flat) for _ in part] for part in parts]


def _by_arguments(arguments: Iterable[str], parameters: Sequence[str]) -> dict[str, str]:
    """Return the vocabulary's name of each argument of PyTorch's: its own, or else that at its position."""
    left = iter([p for p in parameters if p not in arguments])
    return {a: a if a in parameters else next(left, "") for a in arguments}


def _axes(value: Any, rank: int) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return axis_of(value, rank)
    return different_axes(value, rank) if isinstance(value, tuple | list) else value


def _encode(value: Any, kind: str, operands: list[Any], numbers: list[Any]) -> Any:
    """Return an argument in a form that can be a key: tensors, and numbers that may vary, by their positions."""
    if isinstance(value, Tensor):
        if kind not in _NODES:
            return _encode(value.tolist(), kind, operands, numbers)
        operands.append(value)
        return ("operand", len(operands) - 1)
    if isinstance(value, list | tuple):
        return ("list", tuple(_encode(v, kind, operands, numbers) for v in value))
    if kind in _NODES and isinstance(value, Number):
        numbers.append(value)
        return ("number", len(numbers) - 1)
    return ("setting", value)


_NUMBERS = (Tensor, *Number)
_NODES = frozenset(("Tensor", "Scalar", "float"))  # what is an operand, or a number


def _decode(encoded: Any, operands: Sequence[Node], numbers: Sequence[Node]) -> Any:
    match encoded[0]:
        case "operand":
            return operands[encoded[1]]
        case "list":
            return tuple(_decode(e, operands, numbers) for e in encoded[1])
        case "number":
            return numbers[encoded[1]]
    return encoded[1]


def exact(value: Any) -> Any:
    """Return a Python number as a constant: decimals as they are written."""
    if isinstance(value, int | np.integer | np.bool_):
        return int(value)
    return Decimal(repr(float(value))) if math.isfinite(value) else float(value)
