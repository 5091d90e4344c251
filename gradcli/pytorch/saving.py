"""`torch.save` and `torch.load`: tensors, containers of them, and modules, in a file that holds no code.

A file is a zip archive: the structure as JSON, and the bytes of each array.  For a module it has the name of the class,
and the attributes; no other class is ever looked up.  Files that PyTorch has saved are read by `pickled`.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
import zipfile
from collections import Counter, OrderedDict
from typing import Any, BinaryIO

import numpy as np

from gradcli.data.replacement import replaced_file
from gradcli.pytorch import dtypes, nn
from gradcli.pytorch.archives import Archive, Damaged, checked_key
from gradcli.pytorch.messages import MissingError, missing_if, raise_if, torch_error, typename
from gradcli.pytorch.nn.module import Module, Parameter, rebuilt_parameter
from gradcli.pytorch.operations.creation import rebuilt
from gradcli.pytorch.pickled import Reader
from gradcli.pytorch.tensor import Tensor

_STRUCTURE = "gradcli.json"
_KINDS = "biufcSUmM"  # of NumPy's dtypes, whose bytes are numbers or text
_CONTAINERS: dict[str, Any] = {"ordered": OrderedDict, "counter": Counter, "dict": dict}
_CONTAINERS |= {"list": list, "tuple": tuple, "size": dtypes.Size}


def save(obj: Any, f: Any, **_: Any) -> None:
    """Write tensors, what holds them, or modules to a file.

    A file that is there already is replaced whole, or not at all.

    Errors: `MissingError` for anything else; `RuntimeError` where the folder is not there; `OSError`.
    """
    folder = os.path.dirname(f) if isinstance(f, str | os.PathLike) else ""
    raise_if(folder and not os.path.isdir(folder), "no folder", folder)
    writer = _Writer()
    structure = writer.described(obj)
    if not isinstance(f, str | os.PathLike):
        _write(f, structure, writer.arrays)
        return
    if os.path.exists(f) and not os.path.isfile(f):  # a device, or a pipe, cannot be replaced
        with open(f, "wb") as file:
            _write(file, structure, writer.arrays)
        return
    with replaced_file(os.fspath(f)) as file:
        _write(file, structure, writer.arrays)


def _write(file: BinaryIO, structure: Any, arrays: list[Any]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_STRUCTURE, json.dumps(structure))
        for i, array in enumerate(arrays):
            archive.writestr(f"data/{i}", array.tobytes())


class _Writer:
    """Describes objects as JSON can: arrays by their numbers, and what was there before by its own."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.seen: dict[int, int] = {}

    def described(self, obj: Any) -> Any:
        if isinstance(obj, str | int | float | None) and not isinstance(obj, np.generic):
            return obj
        if id(obj) in self.seen:
            return {"again": self.seen[id(obj)]}
        self.seen[id(obj)] = len(self.seen)
        if isinstance(obj, Tensor):
            return self._put(obj._a[..., 0]) | {"grad": obj._requires, "parameter": isinstance(obj, Parameter)}
        if isinstance(obj, np.ndarray | np.generic):
            missing_if(obj.dtype.kind not in _KINDS, f"torch.save of a NumPy array of {obj.dtype}")
            return self._put(np.asarray(obj)) | {"scalar": isinstance(obj, np.generic)}
        if isinstance(obj, dtypes.dtype | dtypes.device):
            return {type(obj).__name__: str(obj).removeprefix("torch.")}
        for name, kind in _CONTAINERS.items():
            if type(obj) is kind:
                return {name: self._pairs(obj) if isinstance(obj, dict) else [self.described(v) for v in obj]}
        lacks = not isinstance(obj, Module) or _class_of_name(typename(obj)) is not type(obj)
        missing_if(lacks, f"torch.save of a {type(obj).__name__}", "only data are saved, such as model.state_dict()")
        return {"module": typename(obj), "holds": self._pairs({k: v for k, v in vars(obj).items() if k != "_kind"})}

    def _pairs(self, items: dict[Any, Any]) -> list[Any]:
        return [[self.described(k), self.described(v)] for k, v in items.items()]

    def _put(self, array: Any) -> dict[str, Any]:
        self.arrays.append(array)
        return {"array": len(self.arrays) - 1, "dtype": array.dtype.str, "shape": array.shape}


def _class_of_name(name: str) -> type[Module] | None:
    """Return a class of modules by its name: of `torch.nn`, or a script's own."""
    home, _, cls = name.rpartition(".")
    known = vars(nn) if home.startswith("torch.nn.") else vars(sys.modules.get(home, object))
    result = known.get(cls) or (getattr(nn, cls, None) if known is vars(nn) else None)
    return result if isinstance(result, type) and issubclass(result, Module) else None


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what was saved.

    Errors: `RuntimeError` for a file that is not an archive of tensors, or is damaged; `UnpicklingError` for more than
    weights.
    """
    try:
        with zipfile.ZipFile(f) as file:
            return _load_archive(Archive(file), weights_only)
    except zipfile.BadZipFile:
        raise torch_error("not an archive") from None
    except (LookupError, TypeError, ValueError, RecursionError, NotImplementedError, EOFError, struct.error) as error:
        raise Damaged("what it says cannot be read") from error


def _load_archive(archive: Archive, weights_only: bool) -> Any:
    if _STRUCTURE in archive.names:
        return _Maker(archive, weights_only).restored(json.loads(archive.read(_STRUCTURE)))
    index = next((name for name in archive.names if name.endswith("/data.pkl")), None)
    if index is None:
        raise torch_error("not an archive")
    reader = Reader(archive, index.removesuffix("/data.pkl"), lambda name: _unknown(name, weights_only))
    return reader.read(archive.read(index))


class _Maker:
    """Makes objects as they are described."""

    def __init__(self, archive: Archive, weights_only: bool) -> None:
        self.archive, self.weights_only = archive, weights_only
        self.seen: list[Any] = []

    def restored(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        ((kind, value), *_) = node.items()
        if kind == "again":
            missing_if(self.seen[value] is None, "torch.load of a tuple that holds itself")
            return self.seen[value]
        index = len(self.seen)
        self.seen.append(None)
        if kind == "module":
            return self._module(value, node["holds"], index)
        if kind in ("tuple", "size"):
            result = _CONTAINERS[kind](map(self.restored, value))
        elif kind in _CONTAINERS:  # which may hold itself
            self.seen[index] = result = _CONTAINERS[kind]()
            if kind == "list":
                result += map(self.restored, value)
            else:
                result.update({checked_key(self.restored(k)): self.restored(v) for k, v in value})
        elif kind == "array":
            result = self._array(value, **node)
        else:
            result = dtypes.device(str(value)) if kind == "device" else dtypes.BY_NAME[value]
        self.seen[index] = result
        return result

    def _array(
        self, number: int, dtype: str, shape: list[int], grad: bool | None = None, parameter: bool = False,
        scalar: bool = False, **_: Any,
    ) -> Any:  # fmt: skip
        self._check(f"numpy._core.multiarray.{'scalar' if scalar else '_reconstruct'}" if grad is None else "")
        kind = np.dtype(str(dtype))
        if kind.kind not in _KINDS or (grad is not None and kind not in dtypes.OF_NUMPY):
            raise Damaged("an array is neither of numbers nor of text")
        array = self.archive.array(self.archive.read(f"data/{number}"), kind, shape)
        if grad is None:
            return array[()] if scalar else array
        raise_if(grad and kind.kind != "f", "requires_grad of integers")
        return (rebuilt_parameter if parameter else rebuilt)(array, bool(grad))

    def _module(self, name: str, holds: list[Any], index: int) -> Any:
        self._check(name)
        kind = _class_of_name(name)
        if kind is None:
            raise torch_error("class that is not there", name.rpartition(".")[2])
        self.seen[index] = result = object.__new__(kind)
        for key, value in holds:
            result.__dict__[key] = self.restored(value)
        return result

    def _check(self, name: str) -> None:
        if name and self.weights_only:
            raise _weights_only_error(name)


def _unknown(name: str, weights_only: bool) -> BaseException:
    return _weights_only_error(name) if weights_only else MissingError(f"torch.load of a {name} that PyTorch has saved")


def _weights_only_error(name: str) -> Exception:
    """Return the error for what is more than weights where no more is wanted."""
    return torch_error("more than weights", name, "\x1b[1m", "\x1b[0m", kind=pickle.UnpicklingError)
