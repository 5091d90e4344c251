"""The memory behind tensors: where in it one begins, and its elements as one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.messages import MissingError, missing_if, raise_if, warn_once
from gradcli.pytorch.names import function
from gradcli.pytorch.tensor import Tensor

Array = np.ndarray[Any, Any]


def _memory(x: Tensor) -> Array:
    """Return the whole memory that a tensor shows, as one row in which its elements lie where they are."""
    whole = x._a
    while isinstance(whole.base, np.ndarray) and whole.base.dtype == x._a.dtype:
        whole = whole.base
    return whole.ravel(order="K") if whole.flags.forc else x._a.ravel()


def _is_dense(numbers: Array) -> bool:
    """Return whether elements fill a stretch of memory, each once, in whatever order of the axes."""
    step = numbers.itemsize
    for stride, n in sorted((s, n) for s, n in zip(numbers.strides, numbers.shape, strict=True) if n != 1):
        if stride != step:
            return False
        step *= n
    return numbers.size > 0


def check_overlap(written: Tensor, *operands: Any) -> None:
    """Check that operands do not share the memory that is written, unless they are all of it, element by element.

    PyTorch looks at what is dense alone (`get_overlap_status`), and else reads what it may have overwritten.

    Errors: `RuntimeError` in PyTorch's words; `MissingError` where its numbers depend on the processor.
    """
    for x in operands:
        if x is written or not isinstance(x, Tensor) or x._memory is not written._memory:
            continue
        array, other = written._a[..., 0], x._a[..., 0]
        # Of an axis of one element, NumPy leaves any stride.
        axes = [[(n, s) for n, s in zip(a.shape, a.strides, strict=True) if n != 1] for a in (array, other)]
        same = axes[0] == axes[1] and written.data_ptr() == x.data_ptr()
        if same or not np.may_share_memory(array, other):
            continue
        raise_if(_is_dense(array) and _is_dense(other), "memory that is read while it is written")
        hint = "what PyTorch reads then depends on the processor: give it a clone() of the operand"
        missing_if(np.shares_memory(array, other), "operation that overwrites its operand while it reads it", hint)


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


@function("storage")
def storage(self: Tensor) -> TypedStorage:
    warn_once("typed storage")
    return TypedStorage(_memory(self))


function("untyped_storage")(lambda self: UntypedStorage(_memory(self).view(np.uint8)))
function("storage_offset")(lambda self: (self.data_ptr() - UntypedStorage(_memory(self)).data_ptr()) // self.itemsize)
