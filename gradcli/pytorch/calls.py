"""Calls: tensors and numbers as operands, and any function of the vocabulary called as PyTorch calls it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.dtypes import WHOLE, DType
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.graph.operations import OPERATIONS
from gradcli.pytorch import dtypes
from gradcli.pytorch.dtypes import default_dtype, result_dtype
from gradcli.pytorch.gradnames import grad_name
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Array, Tensor, axis_of

Number = (int, float, bool, np.number)
KEYWORDS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims"}


def number(value: Any, dtype: dtypes.dtype) -> Array:
    """Return a Python number as an operand."""
    return np.array([value], dtype.numpy)


def typed(build: Callable[..., Node], dtype: DType) -> Callable[..., Node]:
    """Return a constructor whose arguments are cast first."""
    return lambda *nodes: build(*(cast(n, dtype) for n in nodes))


@cache
def _elementwise(op: str) -> Callable[..., Node]:
    return lambda *nodes: elementwise(op, *nodes)


def pointwise(op: str, *operands: Any, name: str | None = None) -> Tensor:
    """Return an elementwise operation of tensors and numbers, which are promoted and broadcast as in PyTorch."""
    first = next(x for x in operands if isinstance(x, Tensor))
    own = first._a.dtype
    dtype = dtypes.OF_NUMPY[own]
    if len(operands) > 1 and not all(isinstance(x, Tensor) and x._a.dtype == own for x in operands):
        dtype = result_dtype(operands)
    if op not in WHOLE and not dtype.is_floating_point:
        dtype = default_dtype()
    given = [x if isinstance(x, Tensor) else number(x, dtype) for x in operands]
    build = _elementwise(op)
    cast_to: DType | None = None
    if any((x._a if isinstance(x, Tensor) else x).dtype != dtype.numpy for x in given):
        build, cast_to = typed(build, dtype.name), dtype.name
    try:
        return apply(op, build, given, cast_to, name)
    except InputError:
        raise shapes_differ(*operands) from None


def shapes_differ(*operands: Any) -> RuntimeError:
    """Return PyTorch's error for shapes that do not broadcast."""
    a, b = ([x.shape for x in operands if isinstance(x, Tensor)] + [()])[:2]
    rank = max(len(a), len(b))
    for k in range(1, rank + 1):
        m, n = (s[-k] if k <= len(s) else 1 for s in (a, b))
        if m != n and 1 not in (m, n):
            return RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                f"{rank - k}"
            )
    return RuntimeError(f"shapes {list(a)} and {list(b)} do not fit together")


# Functions of the vocabulary


class Parameters:
    """How the arguments of a builder of the vocabulary are read: as nodes, as lists of them, or as plain settings."""

    def __init__(self, build: Callable[..., Node]) -> None:
        found = list(inspect.signature(build).parameters.values())
        self.names = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.KEYWORD_ONLY]
        self.kinds = {p.name: str(p.annotation) for p in found}
        self.rest = next((str(p.annotation) for p in found if p.kind is p.VAR_POSITIONAL), None)
        self.positional = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]


_parameters = cache(Parameters)


def vocabulary_call(name: str, build: Callable[..., Node], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """Return what a function of the vocabulary gives for a script's arguments.

    Errors: `RuntimeError` with the vocabulary's own words where the arguments do not fit.
    """
    operands: list[Any] = []
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        operands.append(args[0])
        settings: Any = ()
        make = build
    else:
        known = _parameters(build)
        own = {_keyword(name, known, k): v for k, v in kwargs.items() if k not in ("out", "size_average", "reduce")}
        if "out" in kwargs and kwargs["out"] is not None:
            return _into(kwargs["out"], name, build, args, {k: v for k, v in kwargs.items() if k != "out"})
        rank = args[0].dim() if args and isinstance(args[0], Tensor) else 0
        positional = []
        for i, value in enumerate(args):
            parameter = known.positional[i] if i < len(known.positional) else ""
            kind = known.kinds.get(parameter) or known.rest or ""
            positional.append(_encoded(_axes(value, rank) if parameter == "axis" else value, kind, operands))
        named = tuple(
            (k, _encoded(_axes(v, rank) if k == "axis" else v, known.kinds[k], operands)) for k, v in own.items()
        )
        settings = (tuple(positional), named)

        def make(*nodes: Node) -> Node:
            return build(*(_decoded(e, nodes) for e in positional), **{k: _decoded(e, nodes) for k, e in named})

    if not operands:
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {_type(args)}")
    variant = grad_name(f"{name}_dim" if name in _BY_DIM and (len(args) > 1 or kwargs) else name)
    op = f"{name}_dim" if name in ("median",) and (len(args) > 1 or kwargs) else name
    try:
        return apply(op, _finished(make), _promoted(name, operands), settings, variant)
    except InputError as error:
        raise _refused(name, error, operands) from None


_BY_DIM = frozenset(("sum", "mean", "prod", "median"))


def _type(args: Sequence[Any]) -> str:
    return type(args[0]).__name__ if args else "nothing"


def _promoted(name: str, operands: list[Any]) -> list[Any]:
    """Return tensors of whole numbers as real ones, of the default dtype, for functions of real numbers."""
    row = OPERATIONS.get(name)
    if row is not None and row.broadcasts and row.kind != "condition" and name not in WHOLE:
        from gradcli.pytorch.operators import to

        default = default_dtype()
        return [x if x._a.dtype.kind == "f" else to(x, default) for x in operands]
    return operands


def _finished(make: Callable[..., Node]) -> Callable[..., Node]:
    """Return a constructor whose places are whole numbers."""

    def build(*nodes: Node) -> Node:
        node = make(*nodes)
        inner = node.args[0] if node.op == "reshape" and node.args else node
        places = inner.args and OPERATIONS[inner.op].kind == "place"
        return cast(node, "int64") if places else node

    return build


def _refused(name: str, error: InputError, operands: Sequence[Any]) -> Exception:
    if "do not fit together" in error.message:
        return shapes_differ(*operands)
    return RuntimeError(f"{name}(): {error.message}" + (f" ({error.hint})" if error.hint else ""))


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
    return tuple(axis_of(v, rank) for v in value) if isinstance(value, tuple | list) else value


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


def _into(out: Tensor, name: str, build: Callable[..., Node], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    from gradcli.pytorch.inplace import into

    return into(out, name, lambda: vocabulary_call(name, build, args, kwargs), args)
