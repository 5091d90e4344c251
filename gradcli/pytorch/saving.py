"""`torch.save` and `torch.load`: tensors, and dictionaries and lists of them, in a file that holds no code.

A file is a zip archive: the structure as JSON, and each array in NumPy's own format.  A file of PyTorch's is read as
far as it holds tensors, numbers, words, and lists and dictionaries of them; nothing else is ever made of it.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from gradcli.pytorch.dtypes import ALL
from gradcli.pytorch.messages import MissingError, refuse_if
from gradcli.pytorch.nn.module import Parameter
from gradcli.pytorch.operations.creation import rebuilt
from gradcli.pytorch.tensor import Tensor

_STRUCTURE = "gradcli.json"
_CONTAINERS = {"ordered": OrderedDict, "dict": dict, "list": list, "tuple": tuple}


def save(obj: Any, f: Any, **_: Any) -> None:
    """Write tensors, or dictionaries and lists of them, to a file.

    Errors: `MissingError` for anything else, such as a whole module.
    """
    folder = os.path.dirname(f) if isinstance(f, str | os.PathLike) else ""
    refuse_if(folder and not os.path.isdir(folder), "no folder", folder)
    arrays: list[Any] = []
    structure = _described(obj, arrays)
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr(_STRUCTURE, json.dumps(structure))
        for i, array in enumerate(arrays):
            with archive.open(f"{i}.npy", "w") as file:
                np.save(file, array, allow_pickle=False)


def _described(obj: Any, arrays: list[Any]) -> Any:
    """Return what JSON can hold: arrays by their numbers, and containers by their kinds, a dictionary by its pairs."""
    if isinstance(obj, str | int | float | None):
        return obj
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, Tensor | np.ndarray):
        arrays.append(obj._a[..., 0] if isinstance(obj, Tensor) else obj)
        own = {"parameter": isinstance(obj, Parameter), "grad": obj._requires} if isinstance(obj, Tensor) else {}
        return {"array": len(arrays) - 1, **own}
    for name, kind in _CONTAINERS.items():
        if isinstance(obj, kind):
            return {name: [_described(v, arrays) for v in (obj.items() if isinstance(obj, dict) else obj)]}
    raise MissingError(
        f"torch.save of a {type(obj).__name__}", "what is saved is data: save model.state_dict() instead of the model"
    )


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what was saved.

    Errors: `RuntimeError` for a file that is none of these.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            if _STRUCTURE in archive.namelist():
                return _read(json.loads(archive.read(_STRUCTURE)), archive)
            index = next(n for n in archive.namelist() if n.endswith("/data.pkl"))
            return _Reader(io.BytesIO(archive.read(index)), archive, index.removesuffix("/data.pkl")).load()
    except (zipfile.BadZipFile, StopIteration):
        raise RuntimeError("the file is no archive of tensors") from None
    except pickle.UnpicklingError as error:
        raise RuntimeError(f"Weights only load failed: {error}") from None


def _read(node: Any, archive: zipfile.ZipFile) -> Any:
    if not isinstance(node, dict):
        return node
    ((kind, value), *_) = node.items()
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](_read(v, archive) for v in value)
    array = np.load(io.BytesIO(archive.read(f"{value}.npy")), allow_pickle=False)
    return rebuilt(node["parameter"], array, node["grad"]) if "grad" in node else array


class _Reader(pickle.Unpickler):
    """Reads the index of a PyTorch file: it knows tensors and ordered dictionaries, and makes nothing else."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(file)
        self.archive, self.folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in _KNOWN:
            raise pickle.UnpicklingError(f"the file holds a {module}.{name}, and only tensors are read")
        return _KNOWN[f"{module}.{name}"]

    def persistent_load(self, identity: Any) -> Any:
        _, kind, key, _, size = identity
        return np.frombuffer(self.archive.read(f"{self.folder}/data/{key}"), kind.numpy)[:size].copy()


def _rebuilt(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, *_: Any) -> Tensor:
    strides = tuple(n * storage.itemsize for n in stride)
    return rebuilt(False, np.lib.stride_tricks.as_strided(storage[offset:], tuple(size), strides).copy(), requires_grad)


_KNOWN: dict[str, Any] = {
    **{f"torch.{d.tensor.removesuffix('Tensor')}Storage": d for d in ALL},
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor_v2": _rebuilt,
    "torch._utils._rebuild_parameter": lambda data, requires_grad, hooks: Parameter(data, requires_grad),
}
