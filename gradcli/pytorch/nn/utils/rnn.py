"""`torch.nn.utils.rnn`: sequences of different lengths as one tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.operations.creation import as_tensor
from gradcli.pytorch.operations.joining import cat
from gradcli.pytorch.tensor import Tensor


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    raise_if(not isinstance(sequences, Iterable), "no sequences to pad", type(sequences))
    tensors: list[Any] = list(sequences)
    length = max(len(x) for x in tensors)
    sizes = (len(tensors), length) if batch_first else (length, len(tensors))
    result = tensors[0].new_full((*sizes, *tensors[0].shape[1:]), padding_value)
    for i, x in enumerate(tensors):
        start = length - len(x) if padding_side == "left" else 0
        (result[i] if batch_first else result[:, i])[start : start + len(x)] = x
    return result


class PackedSequence(NamedTuple):
    """The numbers of sequences, the longest first: of all sequences the first, then the second; and how many these are.

    Where the sequences were not sorted, it has their places in this order, and this order's places among them.
    """

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


PackedSequence.__module__ = "torch.nn.utils.rnn"


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> Any:
    ordered, rows, order = as_tensor(lengths), input if batch_first else input.transpose(0, 1), None
    if not enforce_sorted:
        ordered, order = ordered.sort(descending=True)
        rows = rows.index_select(0, order)
    sizes = ordered.tolist()
    raise_if(len(sizes) != len(rows), "count of lengths", len(sizes), len(rows))
    raise_if(sizes != sorted(sizes, reverse=True), "lengths out of order")
    raise_if(sizes[-1] <= 0, "empty sequence")
    counts = [sum(n > t for n in sizes) for t in range(sizes[0])]
    data = set_grad_fn_name(cat([rows[:n, t] for t, n in enumerate(counts)]), "PackPaddedSequenceBackward0")
    return PackedSequence(data, as_tensor(counts), order, None if order is None else order.argsort())


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    counts = sequence.batch_sizes.tolist()
    length, order = total_length or len(counts), sequence.unsorted_indices
    raise_if(length < len(counts), "total length", length, len(counts))
    result = sequence.data.new_full((length, counts[0], *sequence.data.shape[1:]), padding_value)
    for t, (x, n) in enumerate(zip(sequence.data.split(counts), counts, strict=True)):
        result[t, :n] = x
    lengths = as_tensor([sum(n > i for n in counts) for i in range(counts[0])])
    if order is not None:
        lengths, result = lengths[order], result.index_select(1, order)
    return result.transpose(0, 1) if batch_first else result, lengths


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> Any:
    return pack_padded_sequence(pad_sequence(sequences), list(map(len, sequences)), False, enforce_sorted)
