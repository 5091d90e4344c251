"""`torch.save` and `torch.load`: a zip archive of the bytes of tensors and of an index, as PyTorch has them.

The index is a pickle, of which only tensors, containers, numbers and modules are made.  Python's unpickler calls what a
file names and sets attributes as a file says.  This one has the instructions that PyTorch writes, its own functions for
the few names that it knows, and sets nothing but what it made.
"""

from __future__ import annotations

import codecs
import io
import os
import pickle
import struct
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gradcli.data.replacement import replaced_file
from gradcli.pytorch import dtypes, nn
from gradcli.pytorch.archives import Archive, Damaged, checked_key
from gradcli.pytorch.messages import MissingError, facts_of, missing_if, raise_if, torch_error, typename
from gradcli.pytorch.nn.module import Module, Parameter, rebuilt_parameter
from gradcli.pytorch.operations.creation import rebuilt
from gradcli.pytorch.tensor import Tensor, alias

_KINDS = "biufcSU"  # of NumPy's dtypes, whose bytes are numbers or text


class _Part:
    """A part of what is pickled, which is never a result itself."""


@dataclass(frozen=True)
class _Function(_Part):
    call: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


@dataclass(frozen=True)
class _StorageType(_Part):
    dtype: dtypes.dtype

    @property
    def name(self) -> str:
        """PyTorch's name."""
        return f"torch.{self.dtype.tensor.removesuffix('Tensor')}Storage"


@dataclass(frozen=True)
class _Storage(_Part):
    data: bytes
    dtype: dtypes.dtype
    archive: Archive | None = None  # which it was read from


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, *_: Any) -> Tensor:
    if not isinstance(storage, _Storage) or storage.archive is None:
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


def _numpy_dtype(name: Any, *_: Any) -> np.dtype[Any]:
    kind = np.dtype(str(name))
    if kind.kind not in _KINDS:
        raise Damaged("an array is neither of numbers nor of text")
    return kind


# What a name stands for; functions are new objects, so that nothing that is loaded can be called or written to.
_NAMES: dict[str, Callable[[], Any]] = {repr(d): lambda d=d: d for d in dtypes.ALL}  # type: ignore[misc]
_NAMES |= {_StorageType(d).name: lambda d=d: _StorageType(d) for d in dtypes.ALL}  # type: ignore[misc]
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
_RECONSTRUCT, _SCALAR = (f"numpy._core.multiarray.{name}" for name in ("_reconstruct", "scalar"))
# What is more than weights.
_OF_NUMPY: dict[str, Callable[..., Any]] = {
    **{"numpy.dtype": _numpy_dtype, "numpy.ndarray": np.empty, _RECONSTRUCT: lambda *_: np.empty(0)},
}
_WRITTEN: dict[Any, str] = {
    **{call: name for name, call in _CALLS.items()},
    **{OrderedDict: "collections.OrderedDict", Counter: "collections.Counter", set: "builtins.set"},
    **{codecs.encode: "_codecs.encode", np.ndarray: "numpy.ndarray", np.dtype: "numpy.dtype"},
}
_WRITTEN[np.empty(0).__reduce__()[0]], _WRITTEN[np.float64(0).__reduce__()[0]] = _RECONSTRUCT, _SCALAR  # type: ignore[index]


class _Writer(pickle._Pickler):
    """Pickles tensors, containers, numbers, arrays and modules as PyTorch does.

    Errors: `MissingError` for anything else.
    """

    write: Callable[[bytes], Any]
    memoize: Callable[[Any], None]

    def __init__(self) -> None:
        self.index = io.BytesIO()
        self.storages: list[bytes] = []
        super().__init__(self.index, 2)

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, _Storage):
            return None
        self.storages.append(obj.data)
        size = len(obj.data) // obj.dtype.itemsize
        return "storage", _StorageType(obj.dtype), str(len(self.storages) - 1), "cpu", size

    def save_global(self, obj: Any, name: str | None = None) -> None:
        assert name is not None
        home, _, own = name.rpartition(".")
        self.write(pickle.GLOBAL + f"{home}\n{own}\n".encode())
        self.memoize(obj)

    def reducer_override(self, obj: Any) -> Any:
        """Return how an object is made, or the name that stands for it."""
        match obj:
            case Parameter():
                return _parameter, (alias(obj), obj._requires, OrderedDict())
            case Tensor():
                storage = _Storage(obj._a.tobytes(), obj.dtype)
                steps = tuple(np.empty(obj.shape, bool).strides)
                return _tensor, (storage, 0, tuple(obj.shape), steps, obj._requires, OrderedDict())
            case dtypes.dtype():
                return repr(obj)
            case _StorageType():
                return obj.name
            case dtypes.Size():
                return _size, (tuple(obj),)
            case dtypes.device():
                return _device, (obj.type, obj.index)
            case np.ndarray() | np.generic():
                missing_if(obj.dtype.kind not in _KINDS, f"torch.save of a NumPy array of {obj.dtype}")
                return NotImplemented
            case None | bool() | int() | float() | str() | bytes() | np.dtype():
                return NotImplemented
            case Module() if _class_of_name(typename(obj)) is type(obj):
                return type(obj), (), {k: v for k, v in vars(obj).items() if k != "_kind"}
        if isinstance(obj, type) and issubclass(obj, Module):
            return typename(obj)
        if type(obj) in (list, tuple, dict, OrderedDict, Counter, set):
            return NotImplemented
        if callable(obj) and obj in _WRITTEN:
            return _WRITTEN[obj]
        raise MissingError(f"torch.save of a {type(obj).__name__}", "only data are saved, such as model.state_dict()")


def _class_of_name(name: str) -> type[Module] | None:
    """Return a class of modules by its name: of `torch.nn`, or a script's own."""
    home, _, cls = name.rpartition(".")
    known = vars(nn) if home.startswith("torch.nn.") else vars(sys.modules.get(home, object))
    result = known.get(cls) or (getattr(nn, cls, None) if known is vars(nn) else None)
    return result if isinstance(result, type) and issubclass(result, Module) else None


_INSTRUCTIONS = (
    *(pickle.PROTO, pickle.MARK, pickle.GLOBAL, pickle.REDUCE, pickle.BINPERSID, pickle.BINPUT, pickle.LONG_BINPUT),
    *(pickle.BINGET, pickle.LONG_BINGET, pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
    *(
        pickle.EMPTY_LIST,
        pickle.APPEND,
        pickle.APPENDS,
        pickle.EMPTY_DICT,
        pickle.NONE,
        pickle.NEWTRUE,
        pickle.NEWFALSE,
    ),
    *(pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1, pickle.BINFLOAT, pickle.BINUNICODE, pickle.STOP),
)


class _Reader(pickle._Unpickler):
    """Reads the index in a folder of an archive."""

    stack: list[Any]
    pop_mark: Callable[[], list[Any]]
    dispatch: ClassVar[Any] = {code[0]: pickle._Unpickler.dispatch[code[0]] for code in _INSTRUCTIONS}

    def __init__(self, archive: Archive, folder: str, weights_only: bool) -> None:
        super().__init__(io.BytesIO(archive.read(f"{folder}/data.pkl")))
        self._archive, self._folder, self._weights_only = archive, folder, weights_only

    def find_class(self, module: str, name: str) -> Any:
        known = f"{module}.{name}".replace("numpy.core.", "numpy._core.")
        if known in _NAMES:
            return _NAMES[known]()
        if self._weights_only:
            raise torch_error("more than weights", known, "\x1b[1m", "\x1b[0m", kind=pickle.UnpicklingError)
        if known == _SCALAR:
            return _Function(self._scalar)
        if known in _OF_NUMPY:
            return _Function(_OF_NUMPY[known])
        kind: Any = _class_of_name(known)
        raise_if(kind is None and module == "__main__", "class that is not there", name)
        missing_if(kind is None, f"torch.load of a {known} that PyTorch has saved")
        return _Function(lambda: object.__new__(kind))

    def _scalar(self, kind: Any, data: Any) -> Any:
        return self._archive.array(data, kind, ())[()]

    def persistent_load(self, pid: Any) -> Any:
        _, kind, key, _, size = pid
        if not isinstance(kind, _StorageType) or not isinstance(key, str) or type(size) is not int:
            raise Damaged("a storage has no type")
        data = self._archive.read(f"{self._folder}/data/{key}")
        if len(data) != size * kind.dtype.itemsize:
            raise Damaged(f"a storage of {size} elements has {len(data)} bytes")
        return _Storage(data, kind.dtype, self._archive)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._update([key, value])

    def load_setitems(self) -> None:
        self._update(self.pop_mark())

    def _update(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], dict):
            raise Damaged("an object that is not a dictionary is changed as a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            self.stack[-1][checked_key(key)] = value

    def load_build(self) -> None:
        """Set the attributes of a module, the elements of an array, or the versions of modules in a state_dict."""
        state, made = self.stack.pop(), self.stack[-1]
        match made:
            case Module():
                vars(made).update(state)
            case np.ndarray():
                self._archive.array(state[4], state[2], state[1])  # which checks them
                made.__setstate__(state)
            case np.dtype() if state[1] in ("<", "|"):
                pass
            case OrderedDict() if isinstance(state, dict) and [*state] == ["_metadata"]:
                made._metadata = state["_metadata"]  # type: ignore[attr-defined]
            case _:
                raise Damaged("an object is written to")

    dispatch |= {pickle.SETITEM[0]: load_setitem, pickle.SETITEMS[0]: load_setitems, pickle.BUILD[0]: load_build}


def _checked_data(data: Any) -> Any:
    """Return what was read.

    Errors: `Damaged` where a part of what is pickled stands in the place of data.
    """
    known, waiting = set[int](), [data]
    while waiting:
        x = waiting.pop()
        if isinstance(x, _Part):
            raise Damaged("a part of a tensor is where only data can be")
        if id(x) not in known and isinstance(x, list | tuple | dict | Module):
            known.add(id(x))
            waiting.extend(x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ())
            waiting.extend(getattr(x, "__dict__", {}).values())
    return data


def save(obj: Any, f: Any, **_: Any) -> None:
    """Write tensors, what holds them, or modules to a file.

    A file that is there already is replaced whole, or not at all.

    Errors: `MissingError` for anything else; `RuntimeError` where the folder is not there; `OSError`.
    """
    folder = os.path.dirname(f) if isinstance(f, str | os.PathLike) else ""
    raise_if(folder and not os.path.isdir(folder), "no folder", folder)
    writer = _Writer()
    writer.dump(obj)
    if not isinstance(f, str | os.PathLike):
        _write(f, writer)
        return
    if os.path.exists(f) and not os.path.isfile(f):  # a device, or a pipe, cannot be replaced
        with open(f, "wb") as file:
            _write(file, writer)
        return
    with replaced_file(os.fspath(f)) as file:
        _write(file, writer)


def _write(file: Any, writer: _Writer) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", writer.index.getvalue())
        archive.writestr("archive/byteorder", "little")
        for i, data in enumerate(writer.storages):
            archive.writestr(f"archive/data/{i}", data)
        archive.writestr("archive/version", "3\n")


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what was saved.

    Errors: `RuntimeError` for a file that is not an archive of tensors, or is damaged; `UnpicklingError` for more than
    weights.
    """
    try:
        with zipfile.ZipFile(f) as file:
            archive = Archive(file)
            index = next((name for name in archive.names if name.endswith("/data.pkl")), None)
            if index is None:
                raise torch_error("not an archive")
            return _checked_data(_Reader(archive, index.removesuffix("/data.pkl"), weights_only).load())
    except zipfile.BadZipFile:
        raise torch_error("not an archive") from None
    except _UNREADABLE as error:
        if facts_of(error) is not None:
            raise
        raise Damaged("what it says cannot be read") from error


_UNREADABLE = (
    *(AttributeError, LookupError, TypeError, ValueError, RecursionError, NotImplementedError, EOFError),
    *(AssertionError, struct.error, pickle.UnpicklingError),
)
