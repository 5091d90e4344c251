"""`torch.utils.data`: samples, and batches of them in an order by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from gradcli.pytorch.dtypes import float64
from gradcli.pytorch.generator import DEFAULT, Generator
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.operations.creation import tensor
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.tensor import Tensor, of_array

T = TypeVar("T")


class Dataset(Generic[T]):
    """Samples by their numbers."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset[Any]):
    """Samples that are the rows of tensors."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(x) != len(tensors[0]) for x in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(x[index] for x in self.tensors)  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset[Any]):
    """Some of the samples of another set."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[Any], generator: Generator | None = None) -> list[Subset]:
    sizes = list(lengths)
    if any(isinstance(n, float) for n in sizes):
        sizes = [int(np.floor(len(dataset) * n)) for n in sizes]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = (generator or DEFAULT).permutation(len(dataset)).tolist()
    ends = np.cumsum([0, *sizes]).tolist()
    return [Subset(dataset, order[a:b]) for a, b in pairwise(ends)]


def default_collate(batch: Sequence[Any]) -> Any:
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray | np.generic):
        return stack([of_array(np.asarray(b)) for b in batch])
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, Mapping):
        return {k: default_collate([b[k] for b in batch]) for k in first}
    if isinstance(first, tuple | list):
        return [default_collate(part) for part in zip(*batch, strict=True)]
    return batch  # as they came: of pairs it is the tuple of all first, or second, parts


class DataLoader:
    """Goes through a set in batches."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[..., Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
        **_: Any,
    ) -> None:
        if sampler is not None or batch_sampler is not None:
            raise MissingError("torch.utils.data.DataLoader(sampler=…)")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, bool(shuffle), drop_last
        self.collate_fn = collate_fn or default_collate
        self.generator = generator

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        order = list(range(len(self.dataset)))
        own = self.generator or DEFAULT
        if self.shuffle and self.generator is None:
            order = Generator().manual_seed(own.seeds()[1]).permutation(len(order)).tolist()
        elif self.shuffle:
            own.long_words(1)
            order = own.permutation(len(order)).tolist()
        else:
            own.long_words(1)
        return self._batches(order)

    def _batches(self, order: list[int]) -> Iterator[Any]:
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            if len(chosen) == self.batch_size or not self.drop_last:
                yield self.collate_fn([self.dataset[i] for i in chosen])
