"""`torch.save` and `torch.load`: tensors, what holds them, and modules, in a file that holds no code.

A file is a zip archive: the structure as JSON, and each array in NumPy's own format.  Of a module it has the name of
the class, and the attributes; no other class is ever looked up.  A file of PyTorch's is read as far as it holds
tensors, numbers, words, and lists and dictionaries of them; nothing else is ever made of it.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from gradcli.pytorch import dtypes, nn
from gradcli.pytorch.messages import missing_if, refuse_if, told, typename
from gradcli.pytorch.nn.module import Module, Parameter
from gradcli.pytorch.operations.creation import rebuilt
from gradcli.pytorch.tensor import Tensor

_STRUCTURE = "gradcli.json"
_CONTAINERS: dict[str, Any] = {"ordered": OrderedDict, "counter": Counter, "dict": dict}
_CONTAINERS |= {"list": list, "tuple": tuple, "size": dtypes.Size}


def save(obj: Any, f: Any, **_: Any) -> None:
    """Write tensors, what holds them, or modules to a file.

    Errors: `MissingError` for anything else.
    """
    folder = os.path.dirname(f) if isinstance(f, str | os.PathLike) else ""
    refuse_if(folder and not os.path.isdir(folder), "no folder", folder)
    writer = _Writer()
    structure = writer.described(obj)
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr(_STRUCTURE, json.dumps(structure))
        for i, array in enumerate(writer.arrays):
            with archive.open(f"{i}.npy", "w") as file:
                np.save(file, array, allow_pickle=False)


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
            return {"array": self._put(obj._a[..., 0]), "grad": obj._requires, "parameter": isinstance(obj, Parameter)}
        if isinstance(obj, np.ndarray | np.generic):
            return {"array": self._put(np.asarray(obj)), "scalar": isinstance(obj, np.generic)}
        if isinstance(obj, dtypes.dtype | dtypes.device):
            return {type(obj).__name__: str(obj).removeprefix("torch.")}
        for name, kind in _CONTAINERS.items():
            if type(obj) is kind:
                return {name: self._pairs(obj) if isinstance(obj, dict) else [self.described(v) for v in obj]}
        lacks = not isinstance(obj, Module) or _class_named(typename(obj)) is not type(obj)
        missing_if(lacks, f"torch.save of a {type(obj).__name__}", "what is saved is data: model.state_dict(), say")
        return {"module": typename(obj), "holds": self._pairs({k: v for k, v in vars(obj).items() if k != "_kind"})}

    def _pairs(self, own: dict[Any, Any]) -> list[Any]:
        return [[self.described(k), self.described(v)] for k, v in own.items()]

    def _put(self, array: Any) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


def _class_named(name: str) -> type[Module] | None:
    """Return a class of modules by its name: of `torch.nn`, or a script's own."""
    home, _, own = name.rpartition(".")
    found = getattr(nn if home.startswith("torch.nn.") else sys.modules.get(home), own, None)
    return found if isinstance(found, type) and issubclass(found, Module) else None


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what was saved.

    Errors: `RuntimeError` for a file that is none of these; `UnpicklingError` for more than weights.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            if _STRUCTURE in archive.namelist():
                return _Maker(archive, weights_only).made(json.loads(archive.read(_STRUCTURE)))
            index = next(n for n in archive.namelist() if n.endswith("/data.pkl"))
            own = io.BytesIO(archive.read(index)), archive, index.removesuffix("/data.pkl")
            return _Reader(*own, weights_only).load()
    except (zipfile.BadZipFile, StopIteration):
        raise RuntimeError("the file is no archive of tensors") from None


class _Maker:
    """Makes objects as they are described."""

    def __init__(self, archive: zipfile.ZipFile, weights_only: bool) -> None:
        self.archive, self.weights_only = archive, weights_only
        self.seen: list[Any] = []

    def made(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        ((kind, value), *_) = node.items()
        if kind == "again":
            missing_if(self.seen[value] is None, "torch.load of a tuple that holds itself")
            return self.seen[value]
        place = len(self.seen)
        self.seen.append(None)
        if kind == "module":
            return self._module(value, node["holds"], place)
        if kind in ("tuple", "size"):
            found = _CONTAINERS[kind](map(self.made, value))
        elif kind in _CONTAINERS:  # which may hold itself
            self.seen[place] = found = _CONTAINERS[kind]()
            if kind == "list":
                found += map(self.made, value)
            else:
                found.update({self.made(k): self.made(v) for k, v in value})
        elif kind == "array":
            found = self._array(value, **node)
        else:
            found = dtypes.device(value) if kind == "device" else next(d for d in dtypes.ALL if d.name == value)
        self.seen[place] = found
        return found

    def _array(
        self, number: int, grad: bool | None = None, parameter: bool = False, scalar: bool = False, **_: Any
    ) -> Any:
        self._check(f"numpy._core.multiarray.{'scalar' if scalar else '_reconstruct'}" if grad is None else "")
        array = np.load(io.BytesIO(self.archive.read(f"{number}.npy")), allow_pickle=False)
        return array[()] if scalar else array if grad is None else rebuilt(parameter, array, grad)

    def _module(self, name: str, holds: list[Any], place: int) -> Any:
        self._check(name)
        kind = _class_named(name)
        if kind is None:
            raise AttributeError(f"Can't get attribute '{name.rpartition('.')[2]}': no class of modules in this script")
        self.seen[place] = found = object.__new__(kind)
        for key, value in holds:
            found.__dict__[key] = self.made(value)
        return found

    def _check(self, name: str) -> None:
        if name and self.weights_only:
            raise _more(name)


def _more(name: str) -> Exception:
    """Return the error for what is more than weights where no more is wanted."""
    return pickle.UnpicklingError(told("more than weights", name, "\x1b[1m", "\x1b[0m"))


class _Reader(pickle.Unpickler):
    """Reads the index of a PyTorch file: it knows tensors and ordered dictionaries, and makes nothing else."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, folder: str, weights_only: bool) -> None:
        super().__init__(file)
        self.archive, self.folder, self.weights_only = archive, folder, weights_only

    def find_class(self, module: str, name: str) -> Any:
        if (own := f"{module}.{name}") not in _KNOWN:
            missing_if(not self.weights_only, f"torch.load of a {own} that PyTorch has saved")
            raise _more(own)
        return _KNOWN[own]

    def persistent_load(self, identity: Any) -> Any:
        _, kind, key, _, size = identity
        return np.frombuffer(self.archive.read(f"{self.folder}/data/{key}"), kind.numpy)[:size].copy()


def _rebuilt(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, *_: Any) -> Tensor:
    strides = tuple(n * storage.itemsize for n in stride)
    return rebuilt(False, np.lib.stride_tricks.as_strided(storage[offset:], tuple(size), strides).copy(), requires_grad)


_KNOWN: dict[str, Any] = {
    **{f"torch.{d.tensor.removesuffix('Tensor')}Storage": d for d in dtypes.ALL},
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor_v2": _rebuilt,
    "torch._utils._rebuild_parameter": lambda data, requires_grad, hooks: Parameter(data, requires_grad),
}
