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
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.pytorch.dtypes import ALL, dtype
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.nn.module import Parameter
from gradcli.pytorch.tensor import Tensor, of_array

_STRUCTURE = "gradcli.json"
_PLAIN = (str, int, float, bool, type(None))


def save(obj: Any, f: Any, **_: Any) -> None:
    """Write tensors, or dictionaries and lists of them, to a file.

    Errors: `MissingError` for anything else, such as a whole module.
    """
    folder = os.path.dirname(f) if isinstance(f, str | os.PathLike) else ""
    if folder and not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    arrays: list[Any] = []
    structure = _described(obj, arrays)
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr(_STRUCTURE, json.dumps(structure))
        for i, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{i}.npy", buffer.getvalue())


def _described(obj: Any, arrays: list[Any]) -> Any:
    if isinstance(obj, Tensor):
        arrays.append(obj._a[..., 0])
        return {"tensor": len(arrays) - 1, "parameter": type(obj).__name__ == "Parameter", "grad": obj._requires}
    if isinstance(obj, dict):
        kind = "ordered" if isinstance(obj, OrderedDict) else "dict"
        return {kind: [[_described(k, arrays), _described(v, arrays)] for k, v in obj.items()]}
    if isinstance(obj, list | tuple):
        return {type(obj).__name__ if type(obj) in (list, tuple) else "tuple": [_described(v, arrays) for v in obj]}
    if isinstance(obj, np.ndarray):
        arrays.append(obj)
        return {"array": len(arrays) - 1}
    if isinstance(obj, _PLAIN):
        return {"value": obj}
    if isinstance(obj, np.generic):
        return {"value": obj.item()}
    raise MissingError(
        f"torch.save of a {type(obj).__name__}", "what is saved is data: save model.state_dict() instead of the model"
    )


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what was saved.

    Errors: `RuntimeError` for a file that is none of these.
    """
    if isinstance(f, str | Path) and not Path(f).exists():
        raise FileNotFoundError(2, "No such file or directory", str(f))
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise RuntimeError("the file is no archive of tensors") from None
    with archive:
        if _STRUCTURE in archive.namelist():
            return _read(json.loads(archive.read(_STRUCTURE)), archive)
        return _of_pytorch(archive)


def _read(node: Any, archive: zipfile.ZipFile) -> Any:
    ((kind, value), *more) = node.items()
    match kind:
        case "tensor":
            found = of_array(np.load(io.BytesIO(archive.read(f"{value}.npy")), allow_pickle=False))
            settings = dict(more)
            if settings["parameter"]:
                return Parameter(found, settings["grad"])
            found._requires = settings["grad"]
            return found
        case "array":
            return np.load(io.BytesIO(archive.read(f"{value}.npy")), allow_pickle=False)
        case "dict" | "ordered":
            pairs = [(_read(k, archive), _read(v, archive)) for k, v in value]
            return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
        case "list" | "tuple":
            return (list if kind == "list" else tuple)(_read(v, archive) for v in value)
    return value


class _Reader(pickle.Unpickler):
    """Reads the index of a PyTorch file: it knows tensors and ordered dictionaries, and makes nothing else."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(file)
        self.archive, self.folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuilt
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda data, requires_grad, hooks: Parameter(data, requires_grad)
        if module == "torch" and name.endswith("Storage"):
            return next((d for d in ALL if d.tensor.removesuffix("Tensor") + "Storage" == name), None)
        raise pickle.UnpicklingError(f"the file holds a {module}.{name}, and only tensors are read")

    def persistent_load(self, identity: Any) -> Any:
        _, kind, key, _, size = identity
        own: dtype = kind
        return np.frombuffer(self.archive.read(f"{self.folder}/data/{key}"), own.numpy)[:size].copy()


def _rebuilt(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, *_: Any) -> Tensor:
    width = storage.itemsize
    view = np.lib.stride_tricks.as_strided(storage[offset:], tuple(size), tuple(n * width for n in stride))
    found = of_array(view.copy())
    found._requires = requires_grad
    return found


def _of_pytorch(archive: zipfile.ZipFile) -> Any:
    index = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
    if index is None:
        raise RuntimeError("the file is no archive of tensors")
    try:
        return _Reader(io.BytesIO(archive.read(index)), archive, index.removesuffix("/data.pkl")).load()
    except pickle.UnpicklingError as error:
        raise RuntimeError(f"Weights only load failed: {error}") from None
