"""Calls: tensors and numbers as operands, and any function of the vocabulary called as PyTorch calls it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradcli.graph import construct
from gradcli.graph.dtypes import WHOLE, DType
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.graph.operations import OPERATIONS
from gradcli.pytorch import dtypes
from gradcli.pytorch.dtypes import default_dtype, result_dtype
from gradcli.pytorch.gradnames import grad_name
from gradcli.pytorch.messages import warn_once
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.record import apply
from gradcli.pytorch.registry import Number
from gradcli.pytorch.tensor import Array, Tensor, axis_of, different_axes
from gradcli.vocabulary import FUNCTIONS

KEYWORDS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims"}


def number(value: Any, dtype: dtypes.dtype, op: str = "add") -> Array:
    """Return a Python number as an operand; it is never None, as the `.grad` is that nobody computed."""
    if value is None:
        raise TypeError(f"{op}(): argument 'other' (position 1) must be Tensor, not NoneType")
    if isinstance(value, np.ndarray | list | tuple | str):
        from gradcli.pytorch.nn.module import typename

        raise TypeError(f"{op}(): argument 'other' (position 2) must be Tensor, not {typename(value)}")
    return np.array([value], dtype.numpy)


def operands(dtype: dtypes.dtype, *given: Any) -> list[Any]:
    """Return tensors and numbers as operands, the numbers in a dtype."""
    return [x if isinstance(x, Tensor) else number(x, dtype) for x in given]


def typed(build: Callable[..., Node], dtype: DType) -> Callable[..., Node]:
    """Return a constructor whose arguments are cast first."""
    return lambda *nodes: build(*(cast(n, dtype) for n in nodes))


@cache
def _elementwise(op: str) -> Callable[..., Node]:
    return lambda *nodes: elementwise(op, *nodes)


def pointwise(op: str, *operands: Any, name: str | None = None, recorded: str = "") -> Tensor:
    """Return an elementwise operation of tensors and numbers, which are promoted and broadcast as in PyTorch.

    It may be `recorded` under another name.
    """
    first = next(x for x in operands if isinstance(x, Tensor))
    own = first._a.dtype
    dtype = dtypes.OF_NUMPY[own]
    if len(operands) > 1 and not all(isinstance(x, Tensor) and x._a.dtype == own for x in operands):
        dtype = result_dtype(operands)
    if op not in WHOLE and not dtype.is_floating_point:
        dtype = default_dtype()
    given = [x if isinstance(x, Tensor) else number(x, dtype, op) for x in operands]
    build = _elementwise(op)
    cast_to: DType | None = None
    if any((x._a if isinstance(x, Tensor) else x).dtype != dtype.numpy for x in given):
        build, cast_to = typed(build, dtype.name), dtype.name
    return apply(recorded or op, build, given, cast_to, name)


def moved(op: str, x: Tensor, shape: Sequence[int], setting: Any, name: str) -> Tensor:
    """Return what shows a tensor's elements in another shape: a step of its own, also where nothing moves."""
    own = tuple(shape)
    return apply(op, lambda n: Node(op, (n,), own, (setting,)), (x,), setting, name)


def called(x: Any, name: str) -> Any:
    """Return what a composition gave, under the name that PyTorch has for the step that made it."""
    if isinstance(x, tuple):
        return type(x)(*(called(p, name) for p in x)) if hasattr(x, "_fields") else tuple(called(p, name) for p in x)
    if isinstance(x, Tensor) and x._fn is not None:
        x._fn.recipe = x._fn.recipe.called(name)
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
    """Return what the function of the vocabulary with a name gives."""
    return vocabulary_call(name, FUNCTIONS[name], args, kwargs)


class Given(NamedTuple):
    """What a function of the vocabulary was given: arguments by their places, and by name."""

    places: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]


class Parameters:
    """How the arguments of a builder are read: as nodes, as lists of them, or as plain settings.

    A definition, whose parameters are not annotated, takes nodes alone.
    """

    def __init__(self, build: Callable[..., Node]) -> None:
        self.build = build
        found = list(inspect.signature(build).parameters.values())
        self.is_definition = all(p.annotation is p.empty for p in found)
        self.names = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.KEYWORD_ONLY]
        self.kinds = {p.name: "Node" if self.is_definition else str(p.annotation) for p in found}
        self.rest, self.rest_name = next(
            ((str(p.annotation), p.name) for p in found if p.kind is p.VAR_POSITIONAL), ("", "")
        )
        self.positional = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]

    def read(
        self, name: str, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Any, Callable[..., Node]]:
        """Return the operands among arguments, what else they say, and what makes the node of the operands' nodes."""
        if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
            return [args[0]], (), self.build
        operands: list[Any] = []
        if self.rest_name == "axes":
            args = (*args[:1], args[1:]) if len(args) > 2 else args
        rank = args[0].dim() if args and isinstance(args[0], Tensor) else 0
        positional = []
        for i, value in enumerate(args):
            parameter = self.positional[i] if i < len(self.positional) else self.rest_name
            kind = self.kinds.get(parameter, self.rest)
            positional.append(_encoded(_axes(value, rank) if parameter in ("axis", "axes") else value, kind, operands))
        given = {_keyword(name, self, k): v for k, v in kwargs.items() if k not in ("size_average", "reduce")}
        named = tuple(
            (k, _encoded(_axes(v, rank) if k == "axis" else v, self.kinds[k], operands)) for k, v in given.items()
        )

        def make(*nodes: Node) -> Node:
            return self.build(*(_decoded(e, nodes) for e in positional), **{k: _decoded(e, nodes) for k, e in named})

        return operands, Given(tuple(positional), named), make


_parameters = cache(Parameters)


def vocabulary_call(name: str, build: Callable[..., Node], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """Return what a function of the vocabulary, or a definition, gives for a script's arguments.

    Errors: `RuntimeError` with the vocabulary's own words where the arguments do not fit; `NotImplementedError` for
    whole numbers where PyTorch computes of real ones alone.
    """
    if name in _FACTORS:
        more, kwargs = in_order(name, args[1:], kwargs)
        args = (*args[:1], *more)
    known = _parameters(build)
    operands, settings, make = known.read(name, args, kwargs)
    if not operands:
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {_type(args)}")
    first = operands[0]
    if not first.dim() and name in _ALONG:
        make = of_scalar(make)
    if name in _ALONG_ONE:
        if not ({"dim", "axis"} & set(kwargs) or len(args) > 1):
            raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
        if not first.numel() and (first._a.dtype.kind == "f" or "soft" in name):
            make = _same
    if name == "lerp" and (others := [x for x in operands if x._a.dtype != first._a.dtype]):
        raise RuntimeError(f"expected dtype {spelled(first)} for `end` but got dtype {spelled(others[0])}")
    make = _promoted(name, make, operands, [*args, *kwargs.values()], known.is_definition)
    return apply(name, _finished(make), operands, settings, _grad(name, args, len(operands), settings))


# What the number behind `Backward` is where an operand is a plain number, and where all are tensors.
_NUMBERED = {"clamp_min": "01", "clamp_max": "01", "clamp": "10", "clip": "10", "copysign": "10", "xlogy": "20"}


def _grad(name: str, args: Sequence[Any], tensors: int, settings: Any) -> str:
    """Return what PyTorch calls the step, which may tell how many operands are tensors, and what else is given."""
    found = grad_name(name)
    if name == "lerp" and tensors > 2:
        return "LerpBackward1"
    if name == "round" and settings:
        return "RoundBackward1"
    if name not in _NUMBERED:
        return found
    is_left = tensors == 1 and not isinstance(args[0], Tensor)  # what stands in front is a number
    return f"{found.rpartition('Backward')[0]}Backward{1 if is_left else _NUMBERED[name][tensors > 1]}"


# Definitions that make whole numbers of whole numbers, as the vocabulary's do that `WHOLE` lists.
_WHOLE = frozenset(("addcmul", "clamp", "clip", "hardtanh", "clamp_min", "clamp_max", "fmax", "fmin", "nan_to_num"))
_WHOLE |= WHOLE | {"relu6", "threshold"}
# What goes along an axis, also of a number.
_ALONG = frozenset(("amax", "amin", "cumprod", "cumsum", "flip", "log_softmax", "softmax", "softmin"))
_ALONG_ONE = frozenset(("softmax", "log_softmax", "cumsum", "cumprod"))
# What PyTorch computes of real numbers alone, and what its errors call it.
_REAL_ONLY = {"frac": "frac_cpu", "gelu": "GeluKernelImpl", "logsigmoid": "log_sigmoid_cpu"}
_REAL_ONLY |= {f"{n}softmax": f"{n}softmax_lastdim_kernel_impl" for n in ("", "log_")}
_REAL_ONLY |= dict.fromkeys(("elu", "celu", "selu"), "elu_cpu")
_REAL_ONLY |= {n: f"{n}_cpu" for n in ("silu", "mish", "leaky_relu", "softplus", "hardswish", "hardsigmoid")}
_REAL_ONLY |= {"hardshrink": "hardshrink_cpu", "softshrink": "softshrink_check"}


def _same(x: Node) -> Node:
    return Node("identity", (x,), x.shape)


def spelled(x: Tensor) -> str:
    """Return what PyTorch's C++ calls a tensor's dtype."""
    return {"int64": "long int", "int32": "int", "uint8": "unsigned char"}.get(x.dtype.name, x.dtype.word.lower())


def _type(args: Sequence[Any]) -> str:
    return type(args[0]).__name__ if args else "nothing"


def _promoted(
    name: str, make: Callable[..., Node], operands: Sequence[Any], given: Sequence[Any], is_definition: bool
) -> Callable[..., Node]:
    """Return a constructor whose operands are of the dtype that PyTorch computes in."""
    first = operands[0]
    if name in _REAL_ONLY and first._a.dtype.kind != "f" and make is not _same:
        raise NotImplementedError(f"\"{_REAL_ONLY[name]}\" not implemented for '{first.dtype.word}'")
    if first._a.dtype == bool and name in ("relu6", "hardtanh"):
        raise RuntimeError("Bool inputs not supported for hardtanh")
    row = OPERATIONS.get({"arctan2": "atan2"}.get(name, name))
    if not is_definition and (row is None or not row.broadcasts or row.kind == "condition"):
        return make
    dtype = result_dtype([x for x in given if isinstance(x, (Tensor, *Number))])
    if not dtype.is_floating_point and name not in _WHOLE:
        dtype = default_dtype()
    if is_definition:
        return lambda *nodes: cast(make(*(cast(n, dtype.name) for n in nodes)), dtype.name)
    return typed(make, dtype.name) if any(x._a.dtype != dtype.numpy for x in operands) else make


def _finished(make: Callable[..., Node]) -> Callable[..., Node]:
    """Return a constructor whose places are whole numbers."""

    def build(*nodes: Node) -> Node:
        node = make(*nodes)
        inner = node.args[0] if node.op == "reshape" and node.args else node
        places = inner.args and OPERATIONS[inner.op].kind == "place"
        return cast(node, "int64") if places else node

    return build


def _keyword(name: str, known: Parameters, given: str) -> str:
    for own in (given, KEYWORDS.get(given, given), {"input": known.names[0], "other": known.names[-1]}.get(given, "")):
        if own in known.names:
            return own
    if given in ("inplace", "dtype", "_stacklevel"):
        raise MissingError(f"{name}({given}=…)")
    raise TypeError(f"{name}() got an unexpected keyword argument '{given}'")


def _axes(value: Any, rank: int) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return axis_of(value, rank)
    return different_axes(value, rank) if isinstance(value, tuple | list) else value


def _encoded(value: Any, kind: str, operands: list[Any]) -> Any:
    """Return an argument in a form that can be a key: tensors are numbered, numbers are exact."""
    if isinstance(value, Tensor):
        if "Node" not in kind:
            return ("setting", value.tolist() if value.dim() == 0 else _frozen(value.tolist()))
        operands.append(value)
        return ("operand", len(operands) - 1)
    if isinstance(value, list | tuple):
        return ("list", tuple(_encoded(v, kind, operands) for v in value))
    if "Node" in kind and isinstance(value, Number):
        return ("number", type(value).__name__, repr(value), value)
    return ("setting", value)


def _frozen(values: Any) -> Any:
    return tuple(_frozen(v) for v in values) if isinstance(values, list) else values


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
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, int | np.integer):
        return int(value)
    return Decimal(repr(float(value))) if math.isfinite(value) else float(value)
