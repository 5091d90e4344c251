"""`torch.utils.data`: samples, and batches of them in an order by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import floor, isclose
from typing import Any, Generic, TypeVar

import numpy as np

from gradcli.pytorch.dtypes import float64
from gradcli.pytorch.generator import DEFAULT, Generator
from gradcli.pytorch.messages import missing_if, refuse_if
from gradcli.pytorch.operations.creation import tensor
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.tensor import Tensor, of_array

_T = TypeVar("_T")


class Dataset(Generic[_T]):
    """Samples by their numbers."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset[Any]):
    """Samples that are the rows of tensors."""

    def __init__(self, *tensors: Tensor) -> None:
        refuse_if(any(len(x) != len(tensors[0]) for x in tensors), "sizes of a set")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(x[index] for x in self.tensors)  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset[Any]):
    """Some of the samples of another set."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[Any], generator: Generator | None = None) -> list[Subset]:
    """Return parts of a set of these sizes, or shares, in an order by chance; what shares leave goes round."""
    count, sizes = len(dataset), list(lengths)
    if isclose(sum(sizes), 1) and sum(sizes) <= 1:
        sizes = [floor(count * n) for n in sizes]
        sizes = [n + (i < count - sum(sizes)) for i, n in enumerate(sizes)]
    refuse_if(sum(sizes) != count, "sizes of a split")
    order = (generator or DEFAULT).permutation(count).tolist()
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, accumulate(sizes), strict=True)]


def default_collate(batch: Sequence[Any]) -> Any:
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray | np.generic):
        return stack([of_array(np.asarray(b)) for b in batch])
    if isinstance(first, int | float):
        return tensor(list(batch), dtype=float64 if isinstance(first, float) else None)
    if isinstance(first, Mapping):
        return {k: default_collate([b[k] for b in batch]) for k in first}
    if isinstance(first, tuple | list):
        return [default_collate(part) for part in zip(*batch, strict=True)]
    return batch  # as they came: of pairs it is the tuple of all first, or second, parts


class DataLoader:
    """Goes through a set in batches."""

    def __init__(
        self, dataset: Any, batch_size: int = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable[..., Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, generator: Generator | None = None, **_: Any,
    ) -> None:  # fmt: skip
        missing_if(sampler is not None or batch_sampler is not None, "torch.utils.data.DataLoader(sampler=…)")
        missing_if(batch_size is None, "torch.utils.data.DataLoader(batch_size=None)")
        refuse_if(not isinstance(batch_size, int) or batch_size < 1, "size of batches", batch_size)
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, bool(shuffle), drop_last
        self.collate_fn, self.generator = collate_fn or default_collate, generator

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        (self.generator or DEFAULT).long_words(1)  # the seed of workers
        order = list(range(len(self.dataset)))
        if self.shuffle:
            own = self.generator or Generator().manual_seed(int(DEFAULT.long_words(1)[0]))
            order = own.permutation(len(order)).tolist()
        return self._batches(order)

    def _batches(self, order: list[int]) -> Iterator[Any]:
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            if len(chosen) == self.batch_size or not self.drop_last:
                yield self.collate_fn([self.dataset[i] for i in chosen])
