"""New tensors: from numbers, from arrays of NumPy's, filled, counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.graph.dtypes import DType, promoted
from gradcli.kernels.rounding import fused
from gradcli.pytorch import dtypes
from gradcli.pytorch.cuts import cut_all
from gradcli.pytorch.dtypes import BY_NAME, OF_NUMPY, check_device, chosen, default_dtype
from gradcli.pytorch.messages import refusal, warn, warn_once
from gradcli.pytorch.missing import missing
from gradcli.pytorch.operations.conversion import SHORT, to
from gradcli.pytorch.operations.views import shape_of
from gradcli.pytorch.registry import TORCH, function, method
from gradcli.pytorch.tensor import Array, Tensor, new, of_array


def _values(data: Any, wanted: Any = None) -> Array:
    """Return numbers in lists as an array, of a dtype or the one that PyTorch gives them."""
    if isinstance(data, np.ndarray | np.generic | Tensor):
        return data._a[..., 0] if isinstance(data, Tensor) else np.asarray(data)
    tensors: set[DType] = set()
    found = np.asarray(_plain(data, tensors))
    if tensors and wanted is None:
        wanted = BY_NAME[promoted({*tensors, *_dtypes_of_numbers(data)})]
    if found.dtype.kind in "biuf" and wanted is not None:
        return _fitting(found, chosen(wanted, default_dtype()))
    if found.dtype.kind == "f" or found.size == 0:
        return _fitting(found, default_dtype())
    if found.dtype.kind in "US" or found.dtype == object:
        raise _unreadable(data)
    if found.dtype.kind == "c":
        raise missing("complex64", (), "torch.")
    return found.astype(np.int64) if found.dtype.kind in "iu" else found


def _fitting(numbers: Array, wanted: dtypes.dtype) -> Array:
    """Return numbers in a dtype; those too large for a real one are infinite."""
    least, most = (0, 0) if wanted.numpy.kind not in "iu" else (np.iinfo(wanted.numpy).min, np.iinfo(wanted.numpy).max)
    if most and np.isfinite(numbers).all() and ((numbers < least) | (numbers > most)).any():
        raise RuntimeError(f"value cannot be converted to type {wanted.name} without overflow")
    with np.errstate(all="ignore"):
        return numbers.astype(wanted.numpy)


def _dtypes_of_numbers(data: Any) -> set[DType]:
    if isinstance(data, list | tuple | range):
        return set[DType]().union(*map(_dtypes_of_numbers, data))
    return set() if isinstance(data, Tensor) else {dtypes.of_number(data).name}


def _plain(data: Any, tensors: set[DType]) -> Any:
    """Return numbers in lists, a tensor there as its only element; its dtype is noted."""
    if isinstance(data, Tensor):
        if data._a.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        tensors.add(data.dtype.name)
        if data.requires_grad:
            warn_once("scalar of what requires grad")
        cut_all(data, "torch.tensor([…])")
        return data._a.item()
    if isinstance(data, list | tuple | range):
        if any(isinstance(e, np.ndarray) for e in data):
            warn_once("list of arrays")
        listed: list[Any] = list(data)
        lengths = {len(e) for e in listed if isinstance(e, list | tuple)}
        found = [_plain(e, tensors) for e in data]
        if len(lengths) > 1:
            raise refusal("ragged list", len(listed[0]), next(len(e) for e in listed if len(e) != len(listed[0])))
        return found
    return data


def _unreadable(data: Any) -> Exception:
    leaf = data
    while isinstance(leaf, list | tuple) and leaf:
        leaf = leaf[0]
    if isinstance(leaf, str):
        return TypeError("new(): invalid data type 'str'")
    return RuntimeError(f"Could not infer dtype of {type(leaf).__name__}")


def made(array: Array, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return a tensor of an array, in a dtype, with the wish for a gradient."""
    check_device(device)
    wanted = chosen(dtype, default_dtype()) if dtype is not None else None
    if wanted is not None:
        array = array.astype(wanted.numpy, copy=False)
    elif array.dtype not in OF_NUMPY and array.dtype.kind in "uc":
        raise missing(array.dtype.name, (), "torch.")
    elif array.dtype not in OF_NUMPY:
        raise refusal("array of another dtype", array.dtype.type.__module__, array.dtype.type.__name__)
    found = of_array(array)
    if requires_grad:
        if array.dtype.kind != "f":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        found._requires = True
    return found


@function("tensor")
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    if isinstance(data, Tensor):
        warn("tensor of a tensor")
        found = made(data._a[..., 0].copy(), dtype, requires_grad, device)
        found._detached = cut_all(data, "torch.tensor(…)")
        return found
    found = made(np.array(_values(data, dtype)), dtype, requires_grad, device)
    found._detached = cut_all(data, "torch.tensor([…])") if isinstance(data, list | tuple) else None
    return found


@function("as_tensor", "asarray")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    if isinstance(data, Tensor):
        return to(data, dtype)
    return made(_values(data, dtype), dtype, device=device)


@function("from_numpy")
def from_numpy(array: Array) -> Tensor:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return made(array)


_MOST = 2**40  # bytes


def check_room(count: Any, kind: Any) -> None:
    """Refuse what no memory holds, in PyTorch's words."""
    size = int(count) * np.dtype(kind).itemsize
    if size > _MOST:
        raise refusal("no room", size)


def _filled(size: Any, value: Any, dtype: Any, options: dict[str, Any]) -> Tensor:
    wanted, shape = chosen(dtype, dtypes.of_number(value)), shape_of(size)
    if any(n < 0 for n in shape):
        least = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {least}: {list(shape)}")
    check_room(math.prod(shape), wanted.numpy)
    return _optional(np.full(shape, value, wanted.numpy), **options)


_UNUSED = frozenset(("layout", "pin_memory", "memory_format", "out"))


def _optional(array: Array, requires_grad: bool = False, device: Any = None, **others: Any) -> Tensor:
    for name in others.keys() - _UNUSED:
        raise TypeError(f"_optional() got an unexpected keyword argument '{name}'")
    return made(array, None, requires_grad, device)


def _filler(name: str, value: float) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Register the functions that fill a tensor of a size, or one like another, with a number."""

    def sized(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
        return _filled((options.pop("size"),) if "size" in options else size, value, dtype, options)

    def like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
        return _filled((tuple(input.shape),), value, dtype or input.dtype, options)

    method(f"new_{name}")(lambda self, *size, dtype=None, **more: _filled(size, value, dtype or self.dtype, more))
    return function(name)(sized), function(f"{name}_like")(like)


zeros, zeros_like = _filler("zeros", 0.0)
ones, ones_like = _filler("ones", 1.0)
_filler("empty", 0.0)  # whose numbers mean nothing
_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "full": lambda size, fill_value, *, dtype=None, **more: _filled((size,), _number(fill_value), dtype, more),
    "full_like": lambda input, fill_value, *, dtype=None, **more: _filled(
        (tuple(input.shape),), fill_value, dtype or input.dtype, more
    ),
    "logspace": lambda start, end, steps, base=10.0, **more: _optional(
        (base ** np.linspace(start, end, steps)).astype(default_dtype().numpy), **more
    ),
    "scalar_tensor": lambda value, *, dtype=None, **more: _filled(((),), value, dtype or default_dtype(), more),
}
for _name, _made in _FUNCTIONS.items():
    function(_name)(_made)
method("new_full")(
    lambda self, size, fill_value, *, dtype=None, **more: _filled((size,), fill_value, dtype or self.dtype, more)
)
method("new_tensor")(
    lambda self, data, *, dtype=None, **more: _optional(
        np.array(_values(data, dtype or self.dtype), chosen(dtype, self.dtype).numpy), **more
    )
)


@method("values")
def values(self: Tensor) -> Tensor:
    """Refuse: a dense tensor has none, but plotting libraries ask whether there is such a method."""
    raise RuntimeError("values expected sparse tensor layout but got Strided")


@method("index")
def index(self: Tensor, positions: Any, dims: Any) -> Tensor:
    """Refuse: nobody calls it, but plotting libraries ask whether there is such a method."""
    raise missing("index", (), "Tensor.")


@method("new")
def new_of(self: Tensor, *given: Any) -> Tensor:
    """Return a tensor of the same dtype, of numbers or of sizes: the old constructor."""
    numbers = len(given) == 1 and not isinstance(given[0], int | dtypes.Size)
    found: Any = self
    return found.new_tensor(given[0]) if numbers else _filled(given or (0,), 0.0, self.dtype, {})  # type: ignore[no-any-return]


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


@function("arange")
def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, **options: Any) -> Tensor:
    if end is None:
        start, end = 0, start
    start, end, step = map(_number, (start, end, step))
    whole = all(isinstance(v, int) for v in (start, end, step))
    wanted = chosen(dtype, dtypes.int64 if whole else default_dtype())
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int(np.ceil((end - start) / step))
    check_room(count, wanted.numpy)
    array = start + step * np.arange(count) if whole else _steps(start, step, count, wanted.numpy)
    return _optional(array.astype(wanted.numpy), **options)


def _steps(start: float, step: float, count: int, kind: np.dtype[Any]) -> Array:
    """Return start + step*k to PyTorch's last digit, which counts on from the first element of each vector."""
    lanes = 32 // kind.itemsize
    places = np.arange(count)
    lane = np.where(places < count - count % (2 * lanes), places % lanes, 0)
    first = fused(float(step), places - lane, float(start)).astype(kind)
    return fused(float(step), lane, first.astype(np.float64))


@function("range")
def range_(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, **options: Any) -> Tensor:
    warn("range")
    start, end = (0, start) if end is None else (start, end)
    wanted = chosen(dtype, default_dtype())
    return _optional(_steps(start, step, int((end - start) / step) + 1, wanted.numpy).astype(wanted.numpy), **options)


@function("linspace")
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **options: Any) -> Tensor:
    wanted = chosen(dtype, default_dtype()).numpy
    a, b = np.array(_number(start), wanted), np.array(_number(end), wanted)
    check_room(steps, wanted)
    step = (b - a) / wanted.type(max(1, steps - 1))
    places = np.arange(steps, dtype=wanted)
    # From the nearer end, as PyTorch counts them.
    found = np.where(places < steps // 2, fused(step, places, a), fused(-step, steps - 1 - places, b)).astype(wanted)
    return _optional(found if steps != 1 else np.array([a], wanted), **options)


@function("eye")
def eye(n: int, m: int | None = None, *, dtype: Any = None, **options: Any) -> Tensor:
    check_room(n * (m or n), chosen(dtype, default_dtype()).numpy)
    return _optional(np.eye(n, m, dtype=chosen(dtype, default_dtype()).numpy), **options)


# The old types, which are called like functions


def old_tensor(cls: type[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Return what `torch.Tensor(…)` and its like make: of numbers in lists, or of sizes."""
    wanted = default_dtype()
    if len(args) == 1 and isinstance(args[0], Tensor):
        return new(args[0]._a, cls)
    if len(args) == 1 and isinstance(args[0], list | tuple | np.ndarray) and not isinstance(args[0], dtypes.Size):
        found = np.array(_values(args[0], wanted)).astype(wanted.numpy)
    else:
        found = np.zeros(shape_of(args) if args else (0,), wanted.numpy)
    return new(found[..., None], cls)


class _OldType(type):
    """The class of the old types: whether something is one of them is a matter of its dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = old_tensor(Tensor, *args)
        if len(args) == 1 and isinstance(args[0], list | tuple | np.ndarray):
            return made(np.array(_values(args[0], cls.dtype)), cls.dtype)
        return made(found._a[..., 0], cls.dtype)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype


def _old_types() -> None:
    for d in dtypes.ALL:
        function(d.tensor)(_OldType(d.tensor, (), {"dtype": d, "__module__": "torch"}))


_old_types()


def rebuilt(parameter: bool, array: Array, requires_grad: bool) -> Tensor:
    """Return a tensor that was pickled."""
    from gradcli.pytorch.nn.module import Parameter

    found = of_array(array)
    if parameter:
        return Parameter(found, requires_grad)
    found._requires = requires_grad
    return found


@function("set_default_tensor_type")
def set_default_tensor_type(t: Any) -> None:
    name = t.removeprefix("torch.") if isinstance(t, str) else t.__name__
    dtypes.set_default_dtype(next(d for d in dtypes.ALL if d.tensor == name))


function("set_default_dtype")(dtypes.set_default_dtype)
function("get_default_dtype")(default_dtype)
for _d in dtypes.ALL:
    TORCH[_d.name] = _d
TORCH.update({alias: BY_NAME[name] for alias, name in SHORT.items() if alias not in ("bool", "byte", "char")})
