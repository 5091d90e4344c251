"""PyTorch's dtypes, `Size` and `device`, and which dtype a result has where tensors and numbers meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from operator import index
from typing import Any

import numpy as np

from gradcli.graph.dtypes import FLOATING, DType, promoted
from gradcli.pytorch.messages import missing_if, raise_if

_IN_C = {"Byte": "unsigned char", "Char": "signed char", "Short": "short int", "Long": "long int", "Half": "c10::Half"}


class dtype:
    """The type of a tensor's numbers; there is one object for each."""

    def __init__(self, name: DType, word: str) -> None:
        self.name: DType = name
        self.word = word  # as PyTorch's messages call it
        self.tensor = f"{word}Tensor"
        self.in_c = _IN_C.get(word, word.lower())
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

_WORDS: dict[DType, str] = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int"}
_WORDS |= {"int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}
BY_NAME: dict[str, dtype] = {name: dtype(name, word) for name, word in _WORDS.items()}
ALL = tuple(BY_NAME.values())
float32, float64, float16, int64, int32, int16, int8, uint8, bool_ = ALL
OF_NUMPY = {d.numpy: d for d in ALL}


class _Default:
    dtype = float32


def default_dtype() -> dtype:
    """Return the dtype of real numbers that say nothing of it."""
    return _Default.dtype


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of real numbers that say nothing of it.

    Errors: `TypeError` for one that is not of real numbers.
    """
    raise_if(not d.is_floating_point, "default dtype")
    _Default.dtype = d


def of_number(value: object) -> dtype:
    """Return the dtype that a Python number has as a tensor."""
    missing_if(isinstance(value, complex), "torch.complex64")
    if isinstance(value, (bool, np.bool_)):
        return bool_
    return int64 if isinstance(value, (int, np.integer)) else _Default.dtype


KINDS = {d.name: {"b": 0, "u": 1, "i": 1, "f": 2}[d.numpy.kind] for d in ALL}


_NO_ARRAY = np.empty(0, object)


def result_dtype(operands: Sequence[Any]) -> dtype:
    """Return the dtype of a result: of another kind than the tensors', a scalar tensor or a number counts too."""
    first = getattr(operands[0], "_a", None)
    if first is not None and all(getattr(x, "_a", _NO_ARRAY).dtype is first.dtype for x in operands):
        return OF_NUMPY[first.dtype]
    return _result(tuple(map(_promotion_rank, operands)))


def _promotion_rank(x: Any) -> tuple[int, dtype]:
    """Return whether an operand is an array, a scalar tensor or a number, and its dtype."""
    a = getattr(x, "_a", None)
    return (2, of_number(x)) if a is None else (int(a.ndim == 1), OF_NUMPY[a.dtype])


@cache
def _result(operands: tuple[tuple[int, dtype], ...]) -> dtype:
    result = [[d.name for weight, d in operands if weight == level] for level in range(3)]
    return BY_NAME[max((promoted(names) for names in result if names), key=KINDS.__getitem__)]


def chosen(kind: Any, usual: Any) -> Any:
    """Return the dtype that is wanted, which may be one of Python's types, or the usual one for none.

    Errors: `TypeError` for what is no dtype.
    """
    if kind is None:
        return usual
    result = {float: float64, int: int64, bool: bool_}.get(kind, kind)
    raise_if(not isinstance(result, dtype), "no dtype", type(kind).__name__)
    return result


class iinfo:
    """The range of an integer dtype."""

    _names: tuple[str, ...] = ("min", "max")

    def __init__(self, type: dtype | None = None) -> None:
        kind = type or default_dtype()
        limits: Any = np.finfo(kind.numpy) if kind.is_floating_point else np.iinfo(kind.numpy)
        self.bits, self.dtype = limits.bits, kind.name
        for name in self._names:
            setattr(self, name, np.asarray(getattr(limits, name)).item())

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in self._names)
        return f"{type(self).__name__}({values}, dtype={self.dtype})"


class finfo(iinfo):
    """The limits of a floating-point dtype."""

    _names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")


iinfo.__module__ = finfo.__module__ = "torch"


def _constant(kind: str, name: str) -> Any:
    return type(kind, (), {"__module__": "torch", "__repr__": lambda _: f"torch.{name}"})()


strided = _constant("layout", "strided")
contiguous_format, preserve_format = (_constant("memory_format", f"{n}_format") for n in ("contiguous", "preserve"))


class Size(tuple[int, ...]):
    """A tensor's shape, a tuple that says so."""

    def __new__(cls, sizes: Any = ()) -> Size:
        numbers = tuple(sizes)
        for i, n in enumerate(numbers):
            raise_if(not hasattr(n, "__index__"), "item of a Size", i, type(n).__name__)
        return sized(map(index, numbers))

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __add__(self, other: Any) -> Size:
        raise_if(not isinstance(other, tuple), "what is added to a Size", type(other).__name__)
        return sized(tuple(self) + other)

    def __radd__(self, other: Any) -> Size:
        return sized(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Size:
        return sized(tuple(self) * count)

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return sized(part) if isinstance(key, slice) else part


Size.__module__, Size.__name__ = "torch", "torch.Size"  # as Python's errors call it
sized: Callable[[Iterable[int]], Size] = partial(tuple.__new__, Size)  # of integers, which are not checked


class device:
    """The device of a tensor: the CPU.

    Errors: `RuntimeError` for any other place, as on a machine without one.
    """

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        raise_if(isinstance(type, int), "no accelerator")
        name: str = str(type)
        kind, _, number = name.partition(":")
        raise_if(kind not in _DEVICES.split(", "), "type of a device", _DEVICES, name)
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


_DEVICES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
    "privateuseone"
)
device.__module__ = "torch"
CPU = device("cpu")


def check_device(place: Any) -> None:
    """Check that a device is the CPU.

    Errors: those of a PyTorch without other devices.
    """
    kind = "cpu" if place is None else device(place).type
    raise_if(kind == "cuda", "no CUDA")
    raise_if(kind != "cpu", "no such device", kind)
