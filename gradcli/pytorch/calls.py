"""Calls: tensors and numbers as operands, and any function of the vocabulary called as PyTorch calls it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import call
from gradcli.graph.dtypes import WHOLE, DType
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.graph.operations import OPERATIONS
from gradcli.pytorch import dtypes
from gradcli.pytorch.dtypes import default_dtype, result_dtype
from gradcli.pytorch.facts import TABLES, grad_name
from gradcli.pytorch.messages import builtin_name, missing_if, refusal, refuse_if, warn_once
from gradcli.pytorch.operations.definitions import ELEMENTWISE
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Array, Tensor, axis_of, different_axes, listed
from gradcli.vocabulary import FUNCTIONS

_CONDITIONS = frozenset(op for op, row in OPERATIONS.items() if row.kind == "condition")


Number = (int, float, bool, np.number)


class Arguments(tuple[tuple[str, Any], ...]):
    """The arguments of a call by the parameters' names: each as its kind and, last, its value."""


def tensor_like(x: Any) -> bool:
    """Tell whether something may be an operand."""
    return isinstance(x, (Tensor, *Number, complex))


def number(value: Any, dtype: dtypes.dtype, op: str = "add") -> Array:
    """Return a Python number as an operand; it is never None, as the `.grad` is that nobody computed."""
    if value is None or isinstance(value, np.ndarray | list | tuple | str):
        place = 1 if value is None else 2
        raise refusal("no tensor", op, "other", place, builtin_name(value))
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
    found = number(value, dtype)
    if not -_LARGEST < value < _LARGEST and dtype.name in _HOLDERS:
        is_float = dtype.is_floating_point
        most = float(np.finfo(dtype.numpy).max) if is_float else np.iinfo(dtype.numpy).max
        is_small = -most - (dtype.is_signed and not is_float) <= value <= most
        fits = is_small or (is_float and not math.isfinite(value))
        refuse_if(not fits, "number that is not held", _HOLDERS[dtype.name])
    return found


def operands(dtype: dtypes.dtype, *given: Any, op: str = "add") -> list[Any]:
    """Return tensors and numbers as operands, the numbers in a dtype."""
    return [x if isinstance(x, Tensor) else number(x, dtype, op) for x in given]


def typed(build: Callable[..., Node], dtype: DType) -> Callable[..., Node]:
    """Return a constructor whose arguments are cast first, and whose result is of their type, or a condition."""

    def made(*nodes: Node) -> Node:
        found = build(*(cast(n, dtype) for n in nodes))
        return found if found.dtype == "bool" else cast(found, dtype)

    return made


@cache
def _elementwise(op: str, dtype: DType) -> Callable[..., Node]:
    check_numbers(op, dtypes.OF_NUMPY[np.dtype(dtype)])
    build = compare if op in _CONDITIONS else elementwise
    return typed(lambda *nodes: build(op, *nodes), dtype)


def check_numbers(op: str, dtype: dtypes.dtype) -> None:
    """Refuse an operation in a dtype in which PyTorch does not compute it."""
    kernel = None if dtype.is_floating_point else TABLES["real"].get(op)
    if dtype.name == "bool":
        kernel = kernel or TABLES["numbers"].get(op)
    refuse_if(kernel, "no kernel", kernel, dtype.word)


def is_boolean(x: Any) -> bool:
    """Tell whether something is a tensor of booleans."""
    return isinstance(x, Tensor) and x._a.dtype == bool


def _computed_in(op: str, given: Sequence[Any]) -> dtypes.dtype:
    """Return the dtype in which PyTorch computes an operation on the elements of tensors, and on numbers."""
    own = next((x._a.dtype for x in given if isinstance(x, Tensor)), np.dtype(int))
    dtype = dtypes.OF_NUMPY[own]
    if len(given) > 1 and not all(isinstance(x, Tensor) and x._a.dtype == own for x in given):
        dtype = result_dtype(given)
    return dtype if dtype.is_floating_point or op in _WHOLE else default_dtype()


def pointwise(op: str, *given: Any, name: str | None = None, recorded: str = "") -> Tensor:
    """Return an elementwise operation of tensors and numbers, which are promoted and broadcast as in PyTorch.

    It may be `recorded` under another name.
    """
    dtype = _computed_in(op, given)
    return apply(recorded or op, _elementwise(op, dtype.name), operands(dtype, *given, op=op), dtype.name, name)


def moved(op: str, x: Tensor, shape: Sequence[int], setting: Any, name: str) -> Tensor:
    """Return what shows a tensor's elements in another shape: a step of its own, also where nothing moves."""
    own = tuple(shape)
    return apply(op, lambda n: Node(op, (n,), own, (setting,)), (x,), setting, name)


def called(x: Any, name: str) -> Any:
    """Return what a composition gave, under the name that PyTorch has for the step that made it."""
    if isinstance(x, tuple):
        return type(x)(*(called(p, name) for p in x)) if hasattr(x, "_fields") else tuple(called(p, name) for p in x)
    if isinstance(x, Tensor) and x._fn is not None:
        x._fn.called = name
    return x


def of_scalar(build: Callable[..., Node]) -> Callable[..., Node]:
    """Return a constructor for which a number is a vector of one element, as for PyTorch's reductions along an axis."""

    def made(x: Node, *more: Node) -> Node:
        return construct.reshape(build(construct.reshape(x, (1,)), *more), ())

    return made


# What PyTorch once took in front of the tensors, and how many tensors there are.
_FACTORS = {"add": ("alpha", 1), "sub": ("alpha", 1), "addcmul": ("value", 2), "addcdiv": ("value", 2)}


def in_order(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return what a call is given behind its first operand in today's order: a factor behind the tensors, by name."""
    factor, count = _FACTORS.get(name.removesuffix("_"), ("", 0))
    if not factor or len(args) != count + 1 or not isinstance(args[0], Number):
        return args, kwargs
    tensors = ", ".join(f"Tensor {t}" for t in (["tensor1", "tensor2"] if count > 1 else ["other"]))
    warn_once("factor in front", name, factor, tensors)
    return args[1:], {**kwargs, factor: args[0]}


# Functions of the vocabulary


def named(name: str, *args: Any, **kwargs: Any) -> Tensor:
    """Return what the definition, or the function of the vocabulary, with a name gives."""
    return vocabulary_call(name, ELEMENTWISE.get(name) or FUNCTIONS[name], args, kwargs)


class Parameters:
    """How the arguments of a builder are read: as nodes, as lists of them, or as plain settings.

    A definition, whose parameters are not annotated, takes nodes alone.
    """

    def __init__(self, build: Callable[..., Node]) -> None:
        self.build = build
        found = list(inspect.signature(build).parameters.values())
        self.is_definition = all(p.annotation is p.empty for p in found)
        self.kinds = {p.name: "Node" if self.is_definition else str(p.annotation) for p in found}
        self.places = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.rest = next((p.name for p in found if p.kind is p.VAR_POSITIONAL), "")
        self.required = [p.name for p in found if p.default is p.empty and p.name != "times"]
        # What PyTorch calls them.
        self.said = {n: {"y": "other", "b": "other", "axes": "dims", "times": "dims"}.get(n, n) for n in self.kinds}
        self.said[found[0].name] = "input"
        self.names = {k: own for k, own in _KEYWORDS.items() if own in self.kinds}
        self.names |= {said: own for own, said in self.said.items()} | {n: n for n in self.kinds}

    def read(
        self, name: str, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Any, Callable[..., Node]]:
        """Return the operands among arguments, what else they say, and what makes the node of the operands' nodes."""
        if len(args) == 1 == len(self.required) and not kwargs and isinstance(args[0], Tensor):
            return [args[0]], (), self.build
        given = self.bound(name, args, kwargs)
        operands: list[Any] = []
        rank = args[0].dim() if args and isinstance(args[0], Tensor) else 0
        own = {k: _axes(v, rank) if k in ("axis", "axes") else v for k, v in given.items()}
        settings = Arguments((k, _encoded(v, self.kinds[k], operands)) for k, v in own.items())
        is_list = args and isinstance(args[0], list) and self.kinds[self.places[0]] == "Node"
        if is_list or (args and not operands):
            raise refusal("no tensor", name, "input", 1, builtin_name(args[0]))
        self.check(name, len(args), given)

        def make(*nodes: Node) -> Node:
            own = {k: _decoded(e, nodes) for k, e in settings}
            rest = own.pop(self.rest, ())
            return self.build(*(own.pop(p) for p in self.places if rest), *rest, **own)

        return operands, settings, make

    def bound(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return arguments by the names of the builder's parameters."""
        found = dict(zip(self.places, args, strict=False))
        if self.rest and len(args) > len(self.places):
            found[self.rest] = listed(args[len(self.places) :])
        for keyword, value in kwargs.items():
            is_missing = keyword not in self.names and keyword in ("inplace", "dtype", "_stacklevel")
            missing_if(is_missing, f"{name}({keyword}=…)")
            own = self.names.get(keyword, "")
            if not own or own in found:
                wrong = "multiple values for argument" if own else "an unexpected keyword argument"
                raise TypeError(f"{name}() got {wrong} '{keyword}'")
            found[own] = listed((value,)) if own == self.rest else value
        return found

    def check(self, name: str, count: int, given: Collection[str]) -> None:
        """Refuse arguments of which there are too few or too many."""
        if missing := [f'"{self.said[p]}"' for p in self.required if p not in given]:
            words = "positional arguments" if len(missing) == 1 else "positional argument"
            raise TypeError(f"{name}() missing {len(missing)} required {words}: {', '.join(missing)}")
        least, most = len(self.required), len(self.places)
        if count > most and not self.rest:
            several = "s" if most > 1 else ""
            takes = most if least == most else f"from {least} to {most}"
            raise TypeError(f"{name}() takes {takes} positional argument{several} but {count} were given")


_KEYWORDS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims"}
_parameters = cache(Parameters)


def vocabulary_call(name: str, build: Callable[..., Node], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """Return what a function of the vocabulary, or a definition, gives for a script's arguments.

    Errors: `RuntimeError` with the vocabulary's own words where the arguments do not fit; `NotImplementedError` for
    whole numbers where PyTorch computes of real ones alone.
    """
    if name in _FACTORS:
        more, kwargs = in_order(name, args[1:], kwargs)
        args = (*args[:1], *more)
    if name in _ALONG:
        return _along(name, build, args, kwargs)
    known = _parameters(build)
    operands, settings, make = known.read(name, args, kwargs)
    is_number = not operands[0].dim()
    refuse_if(name == "roll" and is_number and len(settings) > 2, "axes of a number to roll")
    _refuse(name, operands)
    if name == "flip" and is_number:
        make = of_scalar(make)
    row = OPERATIONS.get({"arctan2": "atan2"}.get(name, name))
    if known.is_definition or (row is not None and row.broadcasts):
        own = args[:1] if name in _OF_FIRST else (*args, *kwargs.values())
        given = [x for x in own if isinstance(x, (Tensor, *Number))]
        make = typed(make, _computed_in(name, given).name)
    return apply(name, make, operands, settings, _grad(name, args, len(operands), settings))


def _along(name: str, build: Callable[..., Node], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """Return what goes along one axis, in a dtype that may be given; a number is a vector of one element."""
    if "dtype" in kwargs:
        dtype, others = kwargs["dtype"], {k: v for k, v in kwargs.items() if k != "dtype"}
        return _along(name, build, (args[0].to(dtype), *args[1:]), others).to(dtype)
    operands, settings, make = _parameters(build).read(name, args, kwargs)
    x = operands[0]
    refuse_if("axis" not in dict(settings), "no axis", name)
    if not x.numel() and (x.is_floating_point() or "soft" in name):
        return apply(name, partial(call, "identity"), operands, settings)
    _refuse(name, operands)
    return apply(name, make if x.dim() else of_scalar(make), operands, settings)


def _grad(name: str, args: Sequence[Any], tensors: int, settings: Any) -> str:
    """Return what PyTorch calls the step, which may tell how many operands are tensors, and what else is given."""
    found = grad_name(name)
    if name not in TABLES["numbered"]:
        return "RoundBackward1" if name == "round" and settings else found
    is_left = tensors == 1 and not isinstance(args[0], Tensor)  # what stands in front is a number
    return f"{found.rpartition('Backward')[0]}Backward{1 if is_left else TABLES['numbered'][name][tensors - 1]}"


# What makes whole numbers of whole numbers.
_WHOLE = WHOLE.union(_CONDITIONS, TABLES["whole"])
_OF_FIRST = frozenset(("nan_to_num", "hardtanh"))  # whose bounds have no say in the dtype
# What goes along one axis, also of a number.
_ALONG = frozenset(("softmax", "log_softmax", "cumsum", "cumprod"))


def _refuse(name: str, operands: Sequence[Tensor]) -> None:
    """Refuse numbers of types that PyTorch does not compute with."""
    first = operands[0]
    if not first.is_floating_point():
        refuse_if(name in ("relu6", "hardtanh") and is_boolean(first), "hardtanh of booleans")
        check_numbers(name, result_dtype(operands))
    wholes = name == "addcdiv" and not any(x.is_floating_point() for x in operands[1:])
    refuse_if(wholes, "whole numbers divided")
    if name == "lerp" and (others := [x for x in operands if x._a.dtype != first._a.dtype]):
        raise RuntimeError(f"expected dtype {first.dtype.in_c} for `end` but got dtype {others[0].dtype.in_c}")


def _axes(value: Any, rank: int) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return axis_of(value, rank)
    return different_axes(value, rank) if isinstance(value, tuple | list) else value


def _encoded(value: Any, kind: str, operands: list[Any]) -> Any:
    """Return an argument in a form that can be a key: tensors are numbered, numbers are exact."""
    if isinstance(value, Tensor):
        if "Node" not in kind:
            return _encoded(value.tolist(), kind, operands)
        operands.append(value)
        return ("operand", len(operands) - 1)
    if isinstance(value, list | tuple):
        return ("list", tuple(_encoded(v, kind, operands) for v in value))
    if "Node" in kind and isinstance(value, Number):
        return ("number", type(value).__name__, repr(value), value)
    return ("setting", value)


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
