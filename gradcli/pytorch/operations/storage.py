"""The memory behind tensors: where in it one begins, and its elements as one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.messages import MissingError, warn_once
from gradcli.pytorch.names import method
from gradcli.pytorch.tensor import Tensor

Array = np.ndarray[Any, Any]


def _memory(x: Tensor) -> Array:
    """Return the whole memory that a tensor shows, as one row in which its elements lie where they are."""
    whole = x._a
    while isinstance(whole.base, np.ndarray) and whole.base.dtype == x._a.dtype:
        whole = whole.base
    return whole.ravel(order="K") if whole.flags.forc else x._a.ravel()


class UntypedStorage:
    """A memory as bytes."""

    def __init__(self, row: Array) -> None:
        self._row = row

    def data_ptr(self) -> int:
        return int(self._row.__array_interface__["data"][0])

    def __len__(self) -> int:
        return self._row.size

    size = __len__

    def nbytes(self) -> int:
        return self._row.nbytes

    def tolist(self) -> list[Any]:
        return self._row.tolist()

    def __getitem__(self, i: int) -> Any:
        return self._row[i].item()

    def __setitem__(self, i: int, value: Any) -> None:
        self._row[i] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise MissingError(f"torch.storage.{type(self).__name__}.{name}")

    def __repr__(self) -> str:
        kind = f"dtype={OF_NUMPY[self._row.dtype]}, " if type(self) is TypedStorage else ""
        text = f"\n[torch.storage.{type(self).__name__}({kind}device=cpu) of size {len(self)}]"
        return "\n".join(f" {v}" for v in self.tolist()) + text


class TypedStorage(UntypedStorage):
    """A memory as numbers of one dtype."""


UntypedStorage.__module__ = TypedStorage.__module__ = "torch.storage"


@method("storage")
def storage(self: Tensor) -> TypedStorage:
    warn_once("typed storage")
    return TypedStorage(_memory(self))


method("untyped_storage")(lambda self: UntypedStorage(_memory(self).view(np.uint8)))
method("storage_offset")(lambda self: (self.data_ptr() - UntypedStorage(_memory(self)).data_ptr()) // self.itemsize)
