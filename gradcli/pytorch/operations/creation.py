"""New tensors: from numbers, from arrays of NumPy's, filled, counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.dtypes import promoted
from gradcli.pytorch import dtypes
from gradcli.pytorch.binding import no_overload
from gradcli.pytorch.calls import checked_number
from gradcli.pytorch.cuts import Kind, cut_all
from gradcli.pytorch.dtypes import BY_NAME, OF_NUMPY, check_device, chosen, default_dtype
from gradcli.pytorch.functions import schema_of
from gradcli.pytorch.layouts import like_operands
from gradcli.pytorch.messages import (
    MissingError,
    builtin_name,
    missing_if,
    raise_if,
    typename,
    warn,
    warn_once,
)
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.operations.conversion import SHORT, TYPES, to
from gradcli.pytorch.operations.views import shape_of
from gradcli.pytorch.tensor import Array, Number, Tensor, as_sequence, new, of_array


def _values(data: Any, dtype: Any = None) -> Array:
    """Return numbers in lists as an array, of a dtype or the one that PyTorch gives them."""
    if isinstance(data, np.ndarray | np.generic | Tensor):
        return data._a[..., 0] if isinstance(data, Tensor) else np.asarray(data)
    kinds: set[Any] = set()
    result = np.asarray(_numbers_in_lists(data, kinds))
    kind = result.dtype.kind
    missing_if(kind == "c", "torch.complex64")
    raise_if(kind in "US", "text among numbers", "str" if kind == "U" else "bytes")
    for value in result.flat if kind == "O" else ():
        raise_if(not isinstance(value, Number), "no number", type(value).__name__)
    raise_if(kind == "O", "integer too large")
    names: Any = {k if isinstance(k, str) else dtypes.of_number(k()).name for k in kinds}
    usual = BY_NAME[promoted(names)] if names else default_dtype()
    return _in_dtype(result, chosen(dtype, usual).numpy)


def _in_dtype(numbers: Array, kind: np.dtype[Any]) -> Array:
    """Return numbers in a dtype; those too large for a real one are infinite."""
    if kind.kind in "iu":
        most = np.iinfo(kind).max
        wraps = kind.kind == "u" and numbers.dtype.kind != "f"  # what is negative counts from the end
        least = -most if wraps else np.iinfo(kind).min
        too_large = np.isfinite(numbers).all() and ((numbers < least) | (numbers > most)).any()
        raise_if(too_large, "number that is not held", kind.name)
    with np.errstate(all="ignore"):
        return numbers.astype(np.int64 if kind.kind == "u" else kind).astype(kind)


def _numbers_in_lists(data: Any, kinds: set[Any]) -> Any:
    """Return numbers in lists, a tensor there as its only element; its dtype, an array's, or a type is noted."""
    if isinstance(data, Tensor):
        raise_if(data._a.size != 1, "array among numbers")
        kinds.add(data.dtype.name)
        if data.requires_grad:
            warn_once("scalar of what requires grad")
        cut_all(data, Kind.COPIED, "torch.tensor", "[…]")
        return data._a.item()
    if isinstance(data, list | tuple | range):
        if any(isinstance(e, np.ndarray) for e in data):
            warn_once("list of arrays")
        lengths = [len(e) for e in data if isinstance(e, list | tuple)]
        result = [_numbers_in_lists(e, kinds) for e in data]
        for n in lengths:
            raise_if(n != lengths[0], "ragged list", lengths[0], n)
        return result
    if not isinstance(data, np.ndarray | np.generic):
        kinds.add(type(data))
    else:
        kinds.add(OF_NUMPY[data.dtype].name if data.dtype in OF_NUMPY else type(data.dtype.type().item()))
    return data


def tensor_of(array: Array, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return a tensor of an array, in a dtype, with the wish for a gradient."""
    check_device(device)
    target = chosen(dtype, OF_NUMPY.get(array.dtype))
    if target is None and array.dtype.kind in "uc":
        raise MissingError(f"torch.{array.dtype.name}")
    kind = array.dtype.type
    raise_if(target is None, "array of another dtype", kind.__module__, kind.__name__)
    result = of_array(array.astype(target.numpy, copy=False))
    raise_if(requires_grad and result._a.dtype.kind != "f", "integers that require grad")
    result._requires = requires_grad
    return result


@function("tensor")
def tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    if isinstance(data, Tensor):
        warn("tensor of a tensor")
    result = tensor_of(np.array(_values(data, dtype)), dtype, requires_grad, device)
    result._detached = cut_all(data, Kind.COPIED, "torch.tensor", "…" if isinstance(data, Tensor) else "[…]")
    return result


@function("as_tensor")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    return to(data, dtype) if isinstance(data, Tensor) else tensor_of(_values(data, dtype), dtype, device=device)


@function("asarray")
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    result = as_tensor(obj, dtype, device)
    return result.clone() if copy else result  # type: ignore[attr-defined,no-any-return]


@function("from_numpy")
def from_numpy(array: Array) -> Tensor:
    kind = typename(array) if isinstance(array, np.generic) else type(array).__name__
    raise_if(not isinstance(array, np.ndarray), "no array", kind)
    return tensor_of(array)


_MOST = 2**40  # bytes


def of_size(
    size: Any, fill: Callable[[int, Any], Any], usual: Any = None, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, **others: Any,
) -> Tensor:  # fmt: skip
    """Return a tensor of a size, whose elements are given for their count and dtype: the usual one, unless it is told.

    Errors: `RuntimeError` in PyTorch's words, also for what no memory holds.
    """
    result_kind = chosen(dtype, usual or default_dtype())
    check_device(device)
    shape = shape_of(size)
    for n in shape:
        raise_if(n < 0, "negative size", n, list(shape))
    count = math.prod(shape)
    raise_if(count * result_kind.itemsize > _MOST, "no room", count * result_kind.itemsize)
    return tensor_of(np.asarray(fill(count, result_kind.numpy), result_kind.numpy).reshape(shape), None, requires_grad)


def in_memory(numbers: Any, like: Any) -> Any:
    """Return numbers as an array whose elements stand in memory as those of another one do."""
    result = like_operands(np.empty(like.shape, numbers.dtype), [like])
    result.ravel(order="K")[...] = numbers
    return result


def like(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the function that makes a tensor of the size, the dtype and the layout of another one."""

    def call(input: Tensor, dtype: Any, **options: Any) -> Tensor:
        result = make(tuple(input.shape), dtype=dtype or input.dtype, **options)
        result._a, result._map = in_memory(result._a.reshape(-1), input._a), input._map
        return result

    return call


def _full(size: Any, fill_value: Any, **options: Any) -> Tensor:
    value = _number(fill_value)
    raise_if(not isinstance(value, (*Number, complex)), "number to fill with", builtin_name(value))

    def fill(count: int, kind: Any) -> Array:
        return np.full(count, checked_number(value, dtypes.OF_NUMPY[np.dtype(kind)])[0])

    return of_size(size, fill, dtypes.of_number(value), **options)


def _filler(value: float) -> Callable[..., Tensor]:
    return lambda size, **options: _full(size, value, **options)


def _new(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a method that makes a tensor of a size, of the dtype of another, and in the same `vmap`."""

    def call(self: Tensor, dtype: Any, **options: Any) -> Tensor:
        made = make(dtype=dtype or self.dtype, **options)
        made._map = self._map
        return made

    return call


_FILLERS = {"zeros": _filler(0.0), "ones": _filler(1.0), "empty": _filler(0.0), "full": _full}
for _name, _make in _FILLERS.items():
    function(_name)(_make)
    function(f"{_name}_like")(like(_make))
    function(f"new_{_name}")(_new(_make))
zeros, zeros_like, ones_like = (TORCH[name] for name in ("zeros", "zeros_like", "ones_like"))
function("new_tensor")(
    lambda self, data, dtype, requires_grad, device: tensor_of(
        np.array(_values(data, dtype or self.dtype)), chosen(dtype, self.dtype), requires_grad, device
    )
)


@function("values", "index")
def values(self: Tensor, *args: Any) -> None:
    """Raise an error: a dense tensor has no `values`.  Plotting libraries look for this method, and for `index`."""
    raise_if(not args, "values of a dense tensor")
    raise MissingError("Tensor.index")


@function("new")
def new_of(self: Any, *args: Any) -> Tensor:
    """Return a tensor of the same dtype, of numbers or of sizes: the old constructor."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        return legacy_tensor(Tensor, *args, dtype=self.dtype)
    numbers = len(args) == 1 and not isinstance(args[0], int | dtypes.Size)
    return self.new_tensor(args[0]) if numbers else self.new_zeros(*(args or (0,)))  # type: ignore[no-any-return]


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


@function("arange")
def arange(start: Any, end: Any, step: Any, **options: Any) -> Tensor:
    start, end, step = map(_number, (0 if start is None else start, end, step))
    bounds, dtype = (start, end, step), chosen(options.get("dtype"), default_dtype())
    if not dtype.is_floating_point:  # of integers; up to an integer end for int64 alone
        start, end, step = map(int, bounds)
        bounds = (start, end, step) if dtype is dtypes.int64 else bounds
    whole, (first, last, by) = all(isinstance(v, int) for v in (start, end, step)), bounds
    raise_if(not by, "no step")
    raise_if((last - first) * by < 0, "step away from the end")
    fill = (lambda n, _: start + step * np.arange(n)) if whole else partial(_steps, start, step)
    return of_size((math.ceil((last - first) / by),), fill, dtypes.int64 if whole else None, **options)


def _steps(start: float, step: float, count: int, kind: Any) -> Array:
    """Return start + step*k as PyTorch's vectors compute it, where a 0 in the middle may be 7e-8 and is printed so.

    The first element of each vector is rounded to the dtype, and the others are steps from there.
    """
    lanes = 32 // kind.itemsize
    indices = np.arange(count)
    lane = np.where(indices < count - count % (2 * lanes), indices % lanes, 0)
    return (start + step * (indices - lane)).astype(kind) + step * lane


@function("range")
def range_(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    warn("range")
    start, end = (0, start) if end is None else (start, end)
    return of_size((int((end - start) / step) + 1,), partial(_steps, start, step), **options)


@function("linspace", "logspace")
def evenly_spaced(start: Any, end: Any, steps: int, base: float | None, **options: Any) -> Tensor:
    """Return evenly spaced numbers, or the powers of a base with these exponents."""
    raise_if(steps < 0, "number of steps")

    def fill(n: int, kind: Any) -> Array:
        a, b = (float(np.array(_number(x), kind)) for x in (start, end))
        numbers = np.linspace(a, b, n, dtype=np.float64)
        return numbers if base is None else np.power(float(base), numbers)

    return of_size((steps,), fill, **options)


@function("eye")
def eye(n: int, m: int | None, **options: Any) -> Tensor:
    return of_size((n, n if m is None else m), lambda *_: np.eye(n, m), **options)


# The old types, which are called like functions


def _check_keywords(args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raise PyTorch's `TypeError` for a keyword that the old types do not take."""
    if keywords.keys() - {"device"}:
        raise no_overload("new", schema_of("Tensor", "Tensor").overloads, args, keywords)


def _new_tensor(cls: type[Tensor], *args: Any, **keywords: Any) -> Tensor:
    """Return the tensor of `torch.Tensor(…)`; a class of the script's may take keywords of its own."""
    named = [keywords.pop(k) for k in ("data", "size", "other") if k in keywords]
    if cls is Tensor:
        _check_keywords(args, keywords)
    return legacy_tensor(cls, *args, *named)


def _sizes(args: Sequence[Any]) -> Sequence[Any]:
    """Return sizes that are arguments of their own, or one sequence; a boolean is none."""
    return [None if isinstance(n, bool) else n for n in as_sequence(args)]


def legacy_tensor(cls: type[Tensor], *args: Any, dtype: Any = None) -> Tensor:
    """Return the tensor of a call of `torch.Tensor` or a class like it, of numbers in lists or of sizes."""
    kind = (dtype or default_dtype()).numpy
    if len(args) == 1 and isinstance(args[0], Tensor):
        after, before = dtype or args[0].dtype, args[0].dtype
        raise_if(after is not before, "old tensor of another dtype", after.in_c, before.in_c)
        return args[0][...] if cls is Tensor else new(args[0]._a, cls)
    raise_if(args and isinstance(args[0], float), "number for a new tensor")
    if len(args) == 1 and isinstance(args[0], list | tuple | np.ndarray) and not isinstance(args[0], dtypes.Size):
        result = np.array(_values(args[0], dtype or default_dtype())).astype(kind)
    else:
        result = np.zeros(shape_of(_sizes(args)) if args else (0,), kind)
    return new(result[..., None], cls)


Tensor.__new__ = _new_tensor  # type: ignore[assignment]


class _OldType(type):
    """The class of the old types: whether something is one of them is a matter of its dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        _check_keywords(args, keywords)
        return legacy_tensor(Tensor, *args, dtype=cls.dtype)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype


for _dtype in dtypes.ALL:
    function(_dtype.tensor)(_OldType(_dtype.tensor, (), {"dtype": _dtype, "__module__": "torch"}))


def rebuilt(array: Array, requires_grad: bool) -> Tensor:
    """Return a tensor that was pickled."""
    return tensor_of(array, requires_grad=requires_grad)


@function("__reduce_ex__")
def _reduce_ex(self: Tensor, protocol: Any) -> Any:
    return rebuilt, (self._a[..., 0].copy(), self._requires)


@function("set_default_tensor_type")
def set_default_tensor_type(t: Any) -> None:
    warn_once("default type of tensors")
    dtypes.set_default_dtype(TYPES[t] if isinstance(t, str) else t.dtype)


function("set_default_dtype")(dtypes.set_default_dtype)
function("get_default_dtype")(default_dtype)
TORCH.update(BY_NAME)
TORCH.update({alias: BY_NAME[name] for alias, name in SHORT.items() if alias not in ("bool", "byte", "char")})
