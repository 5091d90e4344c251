"""The methods and attributes that arrays have, on tracers: most are NumPy's function of the same name."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.pyfunc.tape import called
from gradcli.pyfunc.tracer import Rule, Tracer, apply, mutable, untraceable

_FUNCTIONS = (
    "sum", "prod", "mean", "var", "std", "max", "min", "cumsum", "cumprod", "argmax", "argmin", "argsort", "all",
    "any", "dot", "trace", "diagonal", "swapaxes", "squeeze", "repeat", "take", "round", "clip", "nonzero",
    "searchsorted",
)  # fmt: skip


def _method(name: str) -> Rule:
    function = getattr(np, name)
    return lambda self, *args, **settings: apply(function, self, *args, **settings)


for _name in _FUNCTIONS:
    setattr(Tracer, _name, _method(_name))


def _several(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _astype(self: Tracer, dtype: Any, *_: Any, **__: Any) -> Any:
    kind = np.dtype(dtype).kind
    if kind == "f" or self.dtype == dtype:
        return apply(np.copy, self) if self.dtype.kind != "b" else apply(np.multiply, self, 1.0)
    if self.is_known:
        return mutable(np.asarray(self.value).astype(dtype))
    raise InputError(f"an array of {np.dtype(dtype)} has no derivative", hint="`np.floor(x)` stays a float")


def _in_place(function: Any) -> Rule:
    def change(self: Tracer, *args: Any, **settings: Any) -> None:
        self[...] = apply(function, self, *args, **settings)

    return change


def _viewed(self: Tracer, dtype: Any = None, type: Any = None) -> Any:
    kind = dtype if isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray) else type
    if kind not in (None, np.ndarray) or (kind is None and dtype is not None and np.dtype(dtype) != self.dtype):
        if self.is_known:
            return self.value.view(kind or dtype)
        raise untraceable(called() or "view")
    return self


class _Flat:
    """The elements of an array in order, where they are not next to each other in memory."""

    def __init__(self, x: Tracer) -> None:
        self._x = x

    def __getattr__(self, name: str) -> Any:
        return getattr(apply(np.ravel, self._x), name)

    def __getitem__(self, key: Any) -> Any:
        return apply(np.ravel, self._x)[key]

    def __setitem__(self, key: Any, new: Any) -> None:
        self._x[np.unravel_index(np.arange(self._x.size)[key], self._x.shape)] = new

    def __len__(self) -> int:
        return self._x.size


def _flat(self: Tracer) -> Any:
    result = apply(np.ravel, self)
    return result if result._value is None or np.may_share_memory(result._value, self._value) else _Flat(self)


def _set_flat(self: Tracer, values: Any) -> None:
    self[...] = np.reshape(np.resize(values, self.size), self.shape)


def _tolist(self: Tracer) -> Any:
    return [_tolist(row) if isinstance(row, Tracer) else row for row in self] if self.shape else self


def _item(self: Tracer, *key: Any) -> Any:
    if key:
        return apply(np.ravel, self)[key[0]] if len(key) == 1 else self[key]
    if self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return apply(np.reshape, self, ())


class _At:
    """JAX's `x.at[key].set(value)`: a copy of an array with other elements."""

    def __init__(self, x: Tracer, key: Any = None) -> None:
        self._x, self._key = x, key

    def __getitem__(self, key: Any) -> _At:
        return _At(self._x, key)

    def set(self, new: Any) -> Tracer:
        """Return the copy with these elements."""
        result: Tracer = apply(np.copy, self._x)
        result[self._key] = new
        return result

    def add(self, more: Any) -> Tracer:
        """Return the copy with these numbers added."""
        return self.set(self._x[self._key] + more)

    def multiply(self, by: Any) -> Tracer:
        """Return the copy with elements multiplied."""
        return self.set(self._x[self._key] * by)


_METHODS: dict[str, Any] = {
    "reshape": lambda self, *shape, order="C": apply(np.reshape, self, _several(shape), order=order),
    "transpose": lambda self, *axes: apply(np.transpose, self, _several(axes) if axes else None),
    "ravel": lambda self, order="C": apply(np.ravel, self, order),
    "flatten": lambda self, order="C": apply(np.copy, apply(np.ravel, self, order)),
    **dict.fromkeys(("copy", "__copy__"), lambda self, order="C": apply(np.copy, self)),
    "__deepcopy__": lambda self, memo: apply(np.copy, self),
    **dict.fromkeys(("conj", "conjugate"), lambda self: apply(np.conjugate, self)),
    "fill": lambda self, value: self.__setitem__(..., value),
    "view": _viewed,
    "astype": _astype,
    "sort": _in_place(np.sort),
    "partition": _in_place(np.partition),
    "tolist": _tolist,
    "item": _item,
    "T": property(lambda self: apply(np.transpose, self)),
    "mT": property(lambda self: apply(np.swapaxes, self, -1, -2)),
    "flat": property(_flat, _set_flat),
    "real": property(lambda self: self),
    "imag": property(lambda self: apply(np.imag, self)),
    "at": property(_At),
    "__round__": lambda self, digits=0: apply(np.round, self, digits or 0),
    "__floor__": lambda self: apply(np.floor, self),
    "__ceil__": lambda self: apply(np.ceil, self),
    "__trunc__": lambda self: apply(np.trunc, self),
    "__divmod__": lambda self, other: (self // other, self % other),
}
for _name, _attribute in _METHODS.items():
    setattr(Tracer, _name, _attribute)
