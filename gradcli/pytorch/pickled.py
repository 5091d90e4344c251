"""The index of a file that PyTorch has saved: a pickle, of which only tensors, containers and numbers are made.

Python's `pickle` is a machine that calls what a file names and sets attributes as a file says.  This one has the
instructions that PyTorch writes, its own functions for the few names that it knows, and sets nothing but what it made.
"""

from __future__ import annotations

import pickletools
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from gradcli.pytorch import dtypes
from gradcli.pytorch.archives import Archive, Damaged, checked_key
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.nn.module import rebuilt_parameter
from gradcli.pytorch.operations.creation import rebuilt
from gradcli.pytorch.tensor import Tensor


class _Part:
    """A part of a pickled tensor, which is never a result itself."""


class _Function(_Part):
    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


class _StorageType(_Part):
    def __init__(self, dtype: dtypes.dtype) -> None:
        self.dtype = dtype


class _Storage(_Part):
    def __init__(self, archive: Archive, data: bytes, dtype: dtypes.dtype) -> None:
        self.archive, self.data, self.dtype = archive, data, dtype


class _Parts(_Part, tuple[Any, ...]):
    """A tuple with parts in it: the arguments of a function."""


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, *_: Any) -> Tensor:
    if not isinstance(storage, _Storage):
        raise Damaged("a tensor has no storage")
    array = storage.archive.array(storage.data, storage.dtype.numpy, size, stride, offset)
    raise_if(requires_grad and not storage.dtype.is_floating_point, "requires_grad of integers")
    return rebuilt(array, bool(requires_grad))


def _parameter(data: Any, requires_grad: Any, *_: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise Damaged("a parameter has no tensor")
    raise_if(requires_grad and not data.dtype.is_floating_point, "requires_grad of integers")
    return rebuilt_parameter(data._a[..., 0], bool(requires_grad))


def _ordered(pairs: Any = ()) -> OrderedDict[Any, Any]:
    return OrderedDict((checked_key(key), value) for key, value in pairs)


def _counter(counts: Any) -> Counter[Any]:
    if not isinstance(counts, dict):
        raise Damaged("a Counter has no counts")
    return Counter(counts)


def _set(items: Any) -> set[Any]:
    return {checked_key(item) for item in items}


def _size(sizes: Any) -> dtypes.Size:
    if not all(type(n) is int for n in sizes):
        raise Damaged("a size has more than integers in it")
    return dtypes.Size(sizes)


def _device(kind: Any, index: Any = None) -> dtypes.device:
    if not isinstance(kind, str) or not isinstance(index, int | None):
        raise Damaged("a device has no name")
    return dtypes.device(kind, index)


def _bytes(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise Damaged("bytes are not written as latin1")
    return text.encode("latin1")


# What a name stands for; functions are new objects, so that nothing that is loaded can be called or written to.
_NAMES: dict[str, Callable[[], Any]] = {f"torch.{d.name}": lambda d=d: d for d in dtypes.ALL}  # type: ignore[misc]
_NAMES |= {f"torch.{d.tensor.removesuffix('Tensor')}Storage": lambda d=d: _StorageType(d) for d in dtypes.ALL}  # type: ignore[misc]
_CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch.Size": _size,
    "torch.device": _device,
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counter,
    "_codecs.encode": _bytes,
    **dict.fromkeys(("__builtin__.set", "builtins.set"), _set),
}
_NAMES |= {name: lambda call=call: _Function(call) for name, call in _CALLS.items()}  # type: ignore[misc]

_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict}
_LITERALS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"}


class Reader:
    """Reads an index; `unknown` makes the error for a name that is not known."""

    def __init__(self, archive: Archive, folder: str, unknown: Callable[[str], BaseException]) -> None:
        self._archive, self._folder, self._unknown = archive, folder, unknown
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def read(self, data: bytes) -> Any:
        """Return the object that the pickle describes.

        Errors: `Damaged`; what `unknown` makes; `RuntimeError` as PyTorch has it.
        """
        for instruction, argument, _ in pickletools.genops(data):
            name = instruction.name
            if name == "STOP":
                return self._data(self._stack.pop())
            if name in _LITERALS or name in _CONSTANTS:
                self._stack.append(_CONSTANTS.get(name, argument))
            elif name in _EMPTY:
                self._stack.append(_EMPTY[name]())
            elif name in _STEPS:
                _STEPS[name](self, argument)
            else:
                raise Damaged(f"its index has the instruction {name}")
        raise Damaged("its index has no end")

    def _data(self, value: Any) -> Any:
        if isinstance(value, _Part):
            raise Damaged("a part of a tensor is where only data can be")
        return value

    def _behind_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def put(self, number: int) -> None:
        self._memo[number] = self._stack[-1]

    def get(self, number: int) -> None:
        self._stack.append(self._memo[number])

    def name(self, names: str) -> None:
        name = names.replace(" ", ".")
        if name not in _NAMES:
            raise self._unknown(name)
        self._stack.append(_NAMES[name]())

    def tuple(self, items: list[Any]) -> None:
        kind = _Parts if any(isinstance(item, _Part) for item in items) else tuple
        self._stack.append(kind(items))

    def some(self, count: int) -> None:
        items = [self._stack.pop() for _ in range(count)]
        self.tuple(items[::-1])

    def extend(self, items: list[Any]) -> None:
        if type(self._stack[-1]) is not list:
            raise Damaged("an object that is not a list is changed as a list")
        self._stack[-1].extend(map(self._data, items))

    def update(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], dict):
            raise Damaged("an object that is not a dictionary is changed as a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            self._stack[-1][checked_key(key)] = self._data(value)

    def call(self, _: Any) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, _Function) or not isinstance(arguments, tuple):
            raise Damaged("an object that is not a function is called")
        self._stack.append(function.call(*arguments))

    def storage(self, _: Any) -> None:
        _, kind, key, _, size = self._stack.pop()
        if not isinstance(kind, _StorageType) or not isinstance(key, str) or type(size) is not int:
            raise Damaged("a storage has no type")
        data = self._archive.read(f"{self._folder}/data/{key}")
        if len(data) != size * kind.dtype.itemsize:
            raise Damaged(f"a storage of {size} elements has {len(data)} bytes")
        self._stack.append(_Storage(self._archive, data, kind.dtype))

    def build(self, _: Any) -> None:
        """Set what a state_dict says of the modules' versions, which is the only attribute that a file may set."""
        state = self._stack.pop()
        if type(self._stack[-1]) is not OrderedDict or not isinstance(state, dict) or [*state] != ["_metadata"]:
            raise Damaged("an object is written to")
        self._stack[-1]._metadata = state["_metadata"]  # type: ignore[attr-defined]


_STEPS: dict[str, Callable[[Reader, Any], None]] = {
    "PROTO": lambda reader, _: None,
    "MARK": Reader.mark,
    "GLOBAL": Reader.name,
    "REDUCE": Reader.call,
    "BINPERSID": Reader.storage,
    "BUILD": Reader.build,
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), Reader.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), Reader.get),
    "TUPLE": lambda reader, _: reader.tuple(reader._behind_mark()),
    "TUPLE1": lambda reader, _: reader.some(1),
    "TUPLE2": lambda reader, _: reader.some(2),
    "TUPLE3": lambda reader, _: reader.some(3),
    "APPEND": lambda reader, _: reader.extend([reader._stack.pop()]),
    "APPENDS": lambda reader, _: reader.extend(reader._behind_mark()),
    "SETITEM": lambda reader, _: reader.update([reader._stack.pop(-2), reader._stack.pop()]),
    "SETITEMS": lambda reader, _: reader.update(reader._behind_mark()),
}
