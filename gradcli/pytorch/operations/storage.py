"""The memory behind tensors: where in it one begins, and its elements as one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.dtypes import OF_NUMPY, dtype
from gradcli.pytorch.messages import warn
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.registry import method
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

    _what = "UntypedStorage(device=cpu)"

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
        return self._row.tolist()  # type: ignore[no-any-return]

    def __getitem__(self, i: Any) -> Any:
        return self._row[i].item()

    def __setitem__(self, i: Any, value: Any) -> None:
        self._row[i] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise MissingError(f"torch.storage.{type(self).__name__}.{name}")

    def __repr__(self) -> str:
        return "\n".join(f" {v}" for v in self.tolist()) + f"\n[torch.storage.{self._what} of size {len(self)}]"


class TypedStorage(UntypedStorage):
    """A memory as numbers of one dtype."""

    @property
    def dtype(self) -> dtype:
        return OF_NUMPY[self._row.dtype]

    @property
    def _what(self) -> str:  # type: ignore[override]
        return f"TypedStorage(dtype={self.dtype}, device=cpu)"

    def untyped(self) -> UntypedStorage:
        return UntypedStorage(self._row.view(np.uint8))


UntypedStorage.__module__ = TypedStorage.__module__ = "torch.storage"


@method("storage")
def storage(self: Tensor) -> TypedStorage:
    if "storage" not in Mode.warned:
        Mode.warned.add("storage")
        warn("typed storage")
    return TypedStorage(_memory(self))


method("untyped_storage")(lambda self: TypedStorage(_memory(self)).untyped())
method("storage_offset")(lambda self: (self.data_ptr() - TypedStorage(_memory(self)).data_ptr()) // self._a.itemsize)
method("is_set_to")(
    lambda self, tensor: (
        (self.data_ptr(), self.shape, self.stride()) == (tensor.data_ptr(), tensor.shape, tensor.stride())
    )
)
method("is_shared", "is_pinned")(lambda self: False)
