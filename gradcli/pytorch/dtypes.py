"""PyTorch's dtypes, `Size` and `device`, and which dtype a result has where tensors and numbers meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.dtypes import FLOATING, DType, promoted


class dtype:
    """The type of a tensor's numbers; there is one object for each."""

    def __init__(self, name: DType, tensor: str) -> None:
        self.name: DType = name
        self.tensor = tensor  # `FloatTensor`
        self.word = tensor.removesuffix("Tensor")  # as PyTorch's messages call it
        self.numpy = np.dtype(name)

    @property
    def is_floating_point(self) -> bool:
        """Whether these are real numbers."""
        return self.name in FLOATING

    is_complex = False
    is_signed = property(lambda self: self.name not in ("uint8", "bool"))
    itemsize = property(lambda self: self.numpy.itemsize)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


dtype.__module__ = "torch"

float32, float64, float16 = (
    dtype("float32", "FloatTensor"),
    dtype("float64", "DoubleTensor"),
    dtype("float16", "HalfTensor"),
)
int64, int32, uint8 = dtype("int64", "LongTensor"), dtype("int32", "IntTensor"), dtype("uint8", "ByteTensor")
int16, int8, bool_ = dtype("int16", "ShortTensor"), dtype("int8", "CharTensor"), dtype("bool", "BoolTensor")
ALL = (float32, float64, float16, int64, int32, int16, int8, uint8, bool_)
OF_NUMPY = {d.numpy: d for d in ALL}
BY_NAME = {d.name: d for d in ALL}


class _Default:
    dtype = float32


def default_dtype() -> dtype:
    """Return the dtype of real numbers that say nothing of it."""
    return _Default.dtype


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of real numbers that say nothing of it.

    Errors: `TypeError` for one that is not of real numbers.
    """
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _Default.dtype = d


def of_number(value: object) -> dtype:
    """Return the dtype that a Python number has as a tensor."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    return int64 if isinstance(value, (int, np.integer)) else _Default.dtype


KINDS = {d.name: {"b": 0, "u": 1, "i": 1, "f": 2}[d.numpy.kind] for d in ALL}


def result_dtype(operands: Sequence[Any]) -> dtype:
    """Return the dtype of a result: of another kind than the tensors', a scalar tensor or a number counts too."""
    found: list[dtype | None] = [None, None, None]  # of arrays, of scalar tensors, of numbers
    for x in operands:
        a = getattr(x, "_a", None)
        level = 2 if a is None else 0 if a.ndim > 1 else 1
        own = of_number(x) if a is None else OF_NUMPY[a.dtype]
        before = found[level]
        found[level] = own if before is None else BY_NAME[promoted([before.name, own.name])]
    result: dtype | None = None
    for d in found:
        if d is not None and (result is None or KINDS[d.name] > KINDS[result.name]):
            result = d
    assert result is not None
    return result


def chosen(wanted: Any, usual: dtype) -> dtype:
    """Return the dtype that is wanted, which may be one of Python's types, or the usual one for none.

    Errors: `TypeError` for what is no dtype.
    """
    if wanted is None:
        return usual
    found = {float: float64, int: int64, bool: bool_}.get(wanted, wanted)
    if not isinstance(found, dtype):
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(wanted).__name__}")
    return found


class iinfo:
    """What whole numbers of a dtype can be."""

    def __init__(self, type: dtype) -> None:
        own = np.iinfo(type.numpy)
        self.bits, self.min, self.max, self.dtype = own.bits, int(own.min), int(own.max), type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


class finfo:
    """What real numbers of a dtype can be."""

    def __init__(self, type: dtype | None = None) -> None:
        kind = type or default_dtype()
        own = np.finfo(kind.numpy)  # type: ignore[call-overload]
        self.bits, self.dtype = own.bits, kind.name
        for name in ("resolution", "min", "max", "eps", "smallest_normal", "tiny"):
            setattr(self, name, float(getattr(own, name)))

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"


iinfo.__module__ = finfo.__module__ = "torch"


class _Layout:
    def __repr__(self) -> str:
        return "torch.strided"


strided = _Layout()


class Size(tuple[int, ...]):
    """A tensor's shape, a tuple that says so."""

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """Return the number of elements."""
        return int(np.prod(self, dtype=np.int64))

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Size(found) if isinstance(key, slice) else found


Size.__module__ = "torch"


class device:
    """Where a tensor is: on the CPU.

    Errors: `RuntimeError` for any other place, as on a machine without one.
    """

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        name: str = str(type)
        kind, _, number = name.partition(":")
        self.type: str = kind
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (f", index={self.index})" if self.index is not None else ")")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))


device.__module__ = "torch"
CPU = device("cpu")


def check_device(wanted: Any) -> None:
    """Refuse a place that is not the CPU, in the words of a PyTorch that has no other."""
    if wanted is not None and device(wanted).type != "cpu":
        if device(wanted).type == "cuda":
            raise AssertionError("Torch not compiled with CUDA enabled")
        raise RuntimeError(f"PyTorch is not linked with support for {device(wanted).type} devices")
