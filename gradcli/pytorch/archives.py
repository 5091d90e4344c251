"""Arrays in a zip archive that may be written to do harm: each is checked against its bytes before it is made."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.array import Array

MAX_AXES = 31  # NumPy 1.26 has 32, and a tensor has one more than its shape
_FREE_BYTES = 2**28  # what arrays may take, however short the file: an expanded tensor has one number in it
_TIMES = 16  # … and how many times the bytes of the file


class Damaged(RuntimeError):
    """A file that does not hold what it says."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the file is damaged: {why}")


class Archive:
    """The entries of a zip archive, which are not compressed, as `torch.save` writes them.

    Memory is bounded by the length of the file: an entry is read once, and all arrays together may take 256 MiB and 16
    times as many bytes as the file has.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.names = frozenset(archive.namelist())
        self._archive = archive
        self._unread = archive.start_dir  # the entries stand in front of their directory
        self._room = _FREE_BYTES + _TIMES * archive.start_dir
        self._data: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        """Return the bytes of an entry.

        Errors: `Damaged` for one that is not there, is compressed, or is longer than the file.
        """
        if name not in self._data:
            if name not in self.names:
                raise Damaged(f"it has no entry {name!r}")
            entry = self._archive.getinfo(name)
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > self._unread:
                raise Damaged(f"the entry {name!r} is compressed, or longer than the file")
            self._unread -= entry.file_size
            self._data[name] = self._archive.read(entry)
        return self._data[name]

    def array(
        self, data: bytes, dtype: np.dtype[Any], shape: Sequence[int], stride: Sequence[int] | None = None,
        offset: int = 0,
    ) -> Array:  # fmt: skip
        """Return a new array with elements of `data`; `stride` and `offset` count elements, as PyTorch does.

        Without a stride, the elements are contiguous, and there are no others.

        Errors: `Damaged` for sizes and positions that are not in `data`, and for arrays that take too much memory.
        """
        _check_integers("size", shape)
        _check_integers("offset", [offset])
        contiguous = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        _check_integers("stride", contiguous if stride is None else stride)
        if stride is None and math.prod(shape) * dtype.itemsize != len(data):
            raise Damaged(f"an array of size {list(shape)} has {len(data)} bytes")
        steps = contiguous if stride is None else [*stride]
        if len(steps) != len(shape) or len(shape) > MAX_AXES:
            raise Damaged(f"unequal size length ({len(shape)}) and stride length ({len(steps)})")
        last = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
        if 0 not in shape and (last + 1) * dtype.itemsize > len(data):
            raise Damaged(f"a tensor of size {list(shape)} and stride {steps} is longer than its storage")
        self._room -= math.prod(max(n, 1) for n in shape) * dtype.itemsize
        if self._room < 0:
            raise Damaged("its tensors are many times longer than the file")
        if 0 in shape:
            return np.empty(tuple(shape), dtype)
        strides = tuple(s * dtype.itemsize if n > 1 else 0 for n, s in zip(shape, steps, strict=True))
        return np.ndarray(tuple(shape), dtype, data, offset * dtype.itemsize, strides).copy()


def _check_integers(name: str, values: Any) -> None:
    if not isinstance(values, list | tuple) or any(type(n) is not int or n < 0 for n in values):
        raise Damaged(f"the {name} of a tensor is not made of integers from 0 up")


def checked_key(key: Any) -> Any:
    """Return a key of a dictionary, whose hash takes no longer than it is.

    Errors: `Damaged` for what is not text, a number, or a short tuple of them.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(k, str | int | float | bytes | None) for k in parts):
        raise Damaged(f"a key of a dictionary is a {type(key).__name__}")
    return key
