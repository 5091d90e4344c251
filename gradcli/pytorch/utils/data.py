"""`torch.utils.data`: samples, and batches of them in an order by chance."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from math import floor, isclose
from typing import Any, Generic, TypeVar

import numpy as np

from gradcli.process.platform import cores
from gradcli.pytorch.dtypes import float64
from gradcli.pytorch.generator import DEFAULT, Generator
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn
from gradcli.pytorch.operations.creation import as_tensor, tensor
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.operations.random import multinomial
from gradcli.pytorch.tensor import Tensor, of_array

_T = TypeVar("_T")


class Dataset(Generic[_T]):
    """Samples by their numbers."""

    def __getitem__(self, index: Any) -> Any:
        raise torch_error("dataset without samples")

    def __add__(self, other: Any) -> Any:
        return ConcatDataset([self, other])


class TensorDataset(Dataset[Any]):
    """Samples that are the rows of tensors."""

    def __init__(self, *tensors: Tensor) -> None:
        raise_if(any(len(x) != len(tensors[0]) for x in tensors), "sizes of a set")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(x[index] for x in self.tensors)

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


class ConcatDataset(Dataset[Any]):
    """The samples of several sets, one set after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        raise_if(not self.datasets, "no sets")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> Any:
        raise_if(-index > len(self), "index before the first sample")
        index += len(self) * (index < 0)
        k = bisect_right(self.cumulative_sizes, index)
        return self.datasets[k][index - (self.cumulative_sizes[k - 1] if k else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(dataset: Any, lengths: Sequence[Any], generator: Generator | None = None) -> list[Subset]:
    """Return parts of a set of these sizes, or shares, in an order by chance; what shares leave goes round."""
    count, sizes = len(dataset), list(lengths)
    if isclose(sum(sizes), 1) and sum(sizes) <= 1:
        sizes = [floor(count * n) for n in sizes]
        sizes = [n + (i < count - sum(sizes)) for i, n in enumerate(sizes)]
    raise_if(sum(sizes) != count, "sizes of a split")
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


# The order of samples


class Sampler(Generic[_T]):
    """The numbers of samples, in an order."""


class _Counted(Sampler[int]):
    """As many numbers as are known beforehand."""

    num_samples: int
    generator: Generator | None = None

    def __len__(self) -> int:
        return self.num_samples


class SequentialSampler(_Counted):
    """All numbers, one after the other."""

    def __init__(self, data_source: Any) -> None:
        self.data_source, self.num_samples = data_source, len(data_source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.num_samples))


class RandomSampler(_Counted):
    """As many numbers as are wanted, in an order by chance; with replacement a number may come twice."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        raise_if(self.num_samples <= 0, "samples of an order", self.num_samples)

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or Generator().manual_seed(int(DEFAULT.long_words(1)[0]))
        count, left = len(self.data_source), self.num_samples
        while left >= 0:  # a round more than is used, as PyTorch draws it
            drawn = generator.integers(0, count, min(left, 32)) if self.replacement else generator.permutation(count)
            yield from drawn[:left].tolist()
            left -= len(drawn) or 1


class SubsetRandomSampler(_Counted):
    """These numbers, in an order by chance."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.num_samples, self.generator = indices, len(indices), generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in (self.generator or DEFAULT).permutation(self.num_samples))


class WeightedRandomSampler(_Counted):
    """Numbers that come the more often, the greater their weights are."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        raise_if(num_samples <= 0, "samples of an order", num_samples)
        self.weights = as_tensor(weights, dtype=float64)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn: Any = multinomial(self.weights, self.num_samples, self.replacement, self.generator)
        return iter(drawn.tolist())


class BatchSampler(Sampler[list[int]]):
    """The numbers of another order in batches."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        raise_if(not isinstance(batch_size, int) or batch_size < 1, "size of batches", batch_size)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


_OF_WORKERS = {"timeout": 0, "worker_init_fn": None, "prefetch_factor": None, "persistent_workers": False}


class DataLoader:
    """Goes through a set in batches."""

    prefetch_factor: int | None

    def __init__(
        self, dataset: Any, batch_size: Any = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable[..., Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, generator: Generator | None = None, **others: Any,
    ) -> None:  # fmt: skip
        missing_if(batch_size is None, "torch.utils.data.DataLoader(batch_size=None)")
        raise_if(sampler is not None and shuffle, "order beside a shuffle")
        other = batch_size != 1 or shuffle or sampler or drop_last
        raise_if(batch_sampler is not None and other, "order of batches")
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.dataset, self.sampler, self.drop_last = dataset, sampler, drop_last
        self.batch_size = batch_size if batch_sampler is None else None
        self.batch_sampler = BatchSampler(sampler, batch_size, drop_last) if batch_sampler is None else batch_sampler
        self.collate_fn, self.generator = collate_fn or default_collate, generator
        # Who loads the batches, which here nobody does but the script.
        self.num_workers, self.pin_memory = num_workers, pin_memory
        vars(self).update({name: others.get(name, usual) for name, usual in _OF_WORKERS.items()})
        if num_workers and self.prefetch_factor is None:
            self.prefetch_factor = 2
        count = cores()
        if num_workers > count:
            warn("more workers than processors", num_workers, count)

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        (self.generator or DEFAULT).long_words(1)  # the seed of workers
        return (self.collate_fn([self.dataset[i] for i in batch]) for batch in self.batch_sampler)


for _class in [c for c in vars().values() if isinstance(c, type) and c.__module__ == __name__]:
    _home = next((base.__name__ for base in (Dataset, Sampler) if issubclass(_class, base)), "dataloader")
    _class.__module__ = f"torch.utils.data.{_home.lower()}"
