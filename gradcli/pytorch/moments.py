"""The numbers that tensors had at a moment, kept from what is written into their memory later: copy on write."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet, ref

import numpy as np

Array = np.ndarray[Any, Any]

_COPIED = 10_000  # numbers that are copied where NumPy may write unseen: of more, the explanation would cost too much


def _copy(a: Array) -> Array:
    """Return a copy of an array, whose repeated numbers are copied once."""
    if 0 not in a.strides:
        return a.copy("K")
    return np.broadcast_to(a[tuple(slice(None if step else 1) for step in a.strides)].copy("K"), a.shape)


class Moment:
    """The numbers of a tensor when an operation read or made them, and the storage in which they were.

    `left` is the line that had changed the storage last, until then, `version` the count of its changes.
    """

    __slots__ = ("__weakref__", "array", "left", "storage", "version")

    def __init__(self, array: Array, storage: Storage | None = None, version: int = 0) -> None:
        self.array, self.storage, self.version = array, storage, version
        self.left = None if storage is None or storage.changed is None else storage.changed[0]

    @property
    def changed(self) -> Any:
        """The line that has changed the storage last since then; None where no line is known to have."""
        changed = self.storage.changed if self.storage is not None else None
        return None if changed is None or changed[0] is self.left else changed[0]

    def is_of(self, a: Array) -> bool:
        """Return whether these are the numbers of an array."""
        if self.array is a or self.array.shape != a.shape:
            return self.array is a
        return bool(np.array_equal(self.array, a, equal_nan=a.dtype.kind == "f"))


class Storage:
    """A memory, also where `.data` shows it as that of another tensor, and the moments that are shown from it.

    `changed` is the line of the last change, and what made it; `is_lent` is whether NumPy has an array of the memory,
    through which it may change without a word.
    """

    changed: tuple[Any, str] | None = None

    def __init__(self) -> None:
        self.moments: WeakSet[Moment] = WeakSet()
        self.is_lent = False

    def keep(self) -> None:
        """Copy the numbers of all moments: the memory is about to change."""
        for moment in self.moments:
            moment.array = _copy(moment.array)
        self.moments.clear()

    def lend(self) -> None:
        """Note that NumPy has an array of the memory."""
        self.keep()
        self.is_lent = True

    def moment(self, array: Array, version: int) -> Moment:
        """Return the numbers that an array of the memory has now, at a version."""
        if self.is_lent and array.size <= _COPIED:
            return Moment(_copy(array), self, version)
        result = Moment(array, self, version)
        self.moments.add(result)
        return result


class Memory:
    """The memory that tensors share (aliases): a count of its changes in place."""

    version = 0
    lines: Any = {}  # noqa: RUF012 - the version after the last change by each line, never changed in place
    _storage: Storage | None = None

    @property
    def storage(self) -> Storage:
        """The memory itself, which tensors share that count their changes apart."""
        if self._storage is None:
            self._storage = Storage()
        return self._storage

    def apart(self) -> Memory:
        """Return the same memory for a tensor whose changes nobody counts."""
        result = type(self)()
        result._storage = self.storage
        return result

    def move(self, storage: Storage, line: Any) -> None:
        """Stand for another storage from a line on; moments of the old one keep its numbers."""
        self.storage.keep()
        self.storage.changed = storage.changed = line, "data"
        self._storage = storage

    def keep(self) -> None:
        """Keep the numbers of all moments, before a change."""
        if self._storage is not None:
            self._storage.keep()


def moment(x: Any) -> Moment:
    """Return the numbers that a tensor has now, or those of a number or a constant.

    >>> from gradcli.pytorch.tensor import new
    >>> x = new(np.array([[1.0], [2.0]]))
    >>> before = moment(x)
    >>> before is moment(x)
    True
    >>> x.add_(1).tolist(), before.array.tolist()
    ([2.0, 3.0], [[1.0], [2.0]])
    """
    if isinstance(x, np.ndarray):
        return Moment(x)
    known = x._moment() if x._moment is not None else None
    if known is None or known.array is not x._a:
        known = x._memory.storage.moment(x._a, x._memory.version)
        x._moment = ref(known)
    return known  # type: ignore[no-any-return]
