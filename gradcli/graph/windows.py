"""Windows that move over the last axes of an array: convolution multiplies and pooling reduces their elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import concatenate, reduce, reshape, scatter
from gradcli.graph.einsum import einsum
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, cast, const
from gradcli.graph.shapes import Shape, check_size, size_of


@dataclass(frozen=True)
class Window:
    """Windows along one axis: their size, stride and padding, and the dilation between their elements.

    `padding` elements are added at both ends, `more` at the far one.  With `ceil`, a last window may reach beyond them.

    >>> Window(3, stride=2, padding=1).positions(4).tolist()
    [[-1, 0, 1], [1, 2, 3]]
    """

    size: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    ceil: bool = False
    more: int = 0

    @property
    def reach(self) -> int:
        """The number of elements from the first to the last of a window."""
        return self.dilation * (self.size - 1) + 1

    def count(self, length: int) -> int:
        """Return the number of windows on an axis of that length.

        Errors: `InputError` where there is none.
        """
        size, count = self.padded(length), self.fitting(length)
        if size < self.reach or count < 1:
            message = f"a window of {self.reach} elements does not fit into {size}"
            raise InputError(message, hint=f"`padding` is included in the {size}")
        return count

    def padded(self, length: int) -> int:
        """Return the length of an axis with its padding."""
        return length + 2 * self.padding + self.more

    def fitting(self, length: int) -> int:
        """Return how many windows fit an axis of that length: less than 1 where it is too short."""
        count = (self.padded(length) - self.reach + (self.stride - 1) * self.ceil) // self.stride + 1
        # As in PyTorch, the last window begins in the array.
        return count - int(self.ceil and (count - 1) * self.stride >= length + self.padding)

    def positions(self, length: int) -> Array:
        """Return for each window the positions of its elements; those outside of the axis lie in the padding."""
        first = np.arange(self.count(length)) * self.stride - self.padding
        return first[:, None] + np.arange(self.size) * self.dilation


def convolve(x: Node, weight: Node, windows: Sequence[Window], groups: int) -> Node:
    """Return the sums of the products of each window's elements and the weights: `(batch, out, …)`, or without a batch.

    `x` is `(batch, in, …)` and `weight` `(out, in/groups, …)`: the outputs are in as many groups as the inputs are.
    Source: PyTorch's `conv1d` and `conv2d`, which are cross-correlations: the weights are not flipped.
    """
    taken = in_windows(x, windows)
    lead = x.shape[: len(x.shape) - len(windows) - 1]
    n, length, inner = "n" * len(lead), "hwd"[: len(windows)], "ijk"[: len(windows)]
    if groups == 1:
        return einsum(f"{n}c{length}{inner},oc{inner}->{n}o{length}", taken, weight)
    outputs, channels = weight.shape[:2]
    taken = reshape(taken, (*lead, groups, channels, *taken.shape[len(lead) + 1 :]))
    kernels = reshape(weight, (groups, outputs // groups, *weight.shape[1:]))
    result = einsum(f"{n}gc{length}{inner},goc{inner}->{n}go{length}", taken, kernels)
    return reshape(result, (*lead, outputs, *result.shape[len(lead) + 2 :]))


def largest(x: Node, windows: Sequence[Window]) -> Node:
    """Return the largest element of each window; of equal ones the first gets the gradient.

    Errors: `InputError` where a whole window lies in the padding.
    """
    _check(x, windows)
    positions = []
    for n, w in _axes(x, windows):
        index = w.positions(n)
        inside = (index >= 0) & (index < n)
        if not inside.any(axis=1).all():
            raise InputError("a whole window lies in the padding", hint="let `padding` or `dilation` be smaller")
        # What lies outside never wins: it is replaced by the first element inside.
        first = np.take_along_axis(index, inside.argmax(axis=1)[:, None], axis=1)
        positions.append(np.where(inside, index, first))
    return _largest_at(x, positions)


def _largest_at(x: Node, positions: Sequence[Array]) -> Node:
    taken = _taken(x, positions)
    flat = reshape(taken, (*taken.shape[: -len(positions)], size_of(taken.shape[-len(positions) :])))
    return reduce("max", flat, (len(flat.shape) - 1,), "first")


def adaptive_largest(x: Node, counts: Sequence[int]) -> Node:
    """Return the largest element of each of so many windows, which cover each of the last axes evenly."""
    return _largest_at(x, [at for at, _ in _covering(x, counts)])


def adaptive_average(x: Node, counts: Sequence[int]) -> Node:
    """Return the mean of the elements of each of so many windows, which cover each of the last axes evenly."""
    rows = _covering(x, counts)
    lead, sizes = x.shape[: -len(counts)], x.shape[-len(counts) :]
    more = tuple(n + int((at.shape[1] > size).any()) for n, (at, size) in zip(sizes, rows, strict=True))
    if more != sizes:  # a 0 for what a window has less than the longest one
        x = scatter((*lead, *more), [((*map(range, lead), *map(range, sizes)), x)])
    places = [
        np.where(np.arange(at.shape[1]) < size[:, None], at, n) for n, (at, size) in zip(sizes, rows, strict=True)
    ]
    taken = _taken(x, places)
    axes = tuple(range(len(taken.shape) - len(counts), len(taken.shape)))
    return _divided(reduce("sum", taken, axes), [size for _, size in rows])


def _covering(x: Node, counts: Sequence[int]) -> list[tuple[Array, Array]]:
    """Return for each of the last axes the positions of the elements of its windows, and how many there are.

    A window that is shorter than the longest one repeats its first position.
    """
    check_size((*x.shape[: -len(counts)], *counts))
    result = []
    for n, count in zip(x.shape[-len(counts) :], counts, strict=True):
        start = np.arange(count) * n // count
        size = -(-np.arange(1, count + 1) * n // count) - start
        along = np.arange(size.max(initial=0))
        result.append((start[:, None] + np.where(along < size[:, None], along, 0), size))
    check_size((*x.shape[: -len(counts)], *counts, *(at.shape[1] for at, _ in result)))
    return result


def average(x: Node, windows: Sequence[Window], count_padding: bool, divisor: int | None) -> Node:
    """Return the mean of each window's elements; of those in the array and its padding, or of those in the array.

    With a divisor, it is the sum over it.
    """
    taken = in_windows(x, windows)
    axes = tuple(range(len(taken.shape) - len(windows), len(taken.shape)))
    if divisor is not None:
        return reduce("sum", taken, axes) / divisor
    counts = [_element_counts(n, w, w.padding if count_padding else 0) for n, w in _axes(x, windows)]
    if all((count == w.size).all() for count, w in zip(counts, windows, strict=True)):
        return reduce("mean", taken, axes)
    return _divided(reduce("sum", taken, axes), counts)


def _divided(sums: Node, counts: Sequence[Array]) -> Node:
    """Return the sums of windows over their numbers of elements, which are the products of those along each axis."""
    whole: Node = const(1)
    for i, count in enumerate(counts):
        whole = whole * reshape(_constants(count), (len(count), *(1,) * (len(counts) - 1 - i)))
    return sums / cast(whole, sums.dtype)


def _axes(x: Node, windows: Sequence[Window]) -> list[tuple[int, Window]]:
    """Return the lengths of the last axes with their windows."""
    return list(zip(x.shape[len(x.shape) - len(windows) :], windows, strict=True))


def _check(x: Node, windows: Sequence[Window]) -> None:
    """Check the number of windows.

    Errors: `InputError` where an axis has none, and where all windows together are too large.
    """
    counts = [w.count(n) for n, w in _axes(x, windows)]
    check_size((*x.shape[: len(x.shape) - len(windows)], *counts, *(w.size for w in windows)))


def in_windows(x: Node, windows: Sequence[Window]) -> Node:
    """Return the elements of each window, those in the padding as zeros: the last axes are positions in the windows.

    Errors: `InputError` where an axis has no window, and where all windows together are too large.

    >>> from gradcli.graph.node import leaf
    >>> in_windows(leaf((1, 5)), [Window(3, padding=1)]).shape
    (1, 5, 3)
    """
    _check(x, windows)
    lead = x.shape[: len(x.shape) - len(windows)]
    shape, key, positions = [], [], []
    for n, w in _axes(x, windows):
        last = (w.count(n) - 1) * w.stride - w.padding + w.reach
        shape.append(w.padding + max(n + w.padding + w.more, last))
        key.append(range(w.padding, w.padding + n))
        positions.append(w.positions(n) + w.padding)
    whole = check_size((*lead, *shape))
    if whole != x.shape:
        x = scatter(whole, [((*map(range, lead), *key), x)])
    return _taken(x, positions)


def _taken(x: Node, positions: Sequence[Array]) -> Node:
    """Return the elements at these positions along the last axes: for each axis, a row of positions a window."""
    lead, sizes = x.shape[: len(x.shape) - len(positions)], x.shape[len(x.shape) - len(positions) :]
    return take(reshape(x, (*lead, size_of(sizes))), len(lead), flat_positions(positions, sizes))


def flat_positions(positions: Sequence[Array], sizes: Shape) -> IndexArray:
    """Return the positions in windows along each axis as those in the flattened axes, of these sizes.

    >>> flat_positions([np.array([[0, 1], [1, 2]])], (3,))
    [[0, 1], [1, 2]]
    """
    grids = []
    for i, line in enumerate(positions):
        shape = [1] * (2 * len(positions))
        shape[i], shape[len(positions) + i] = line.shape
        grids.append(line.reshape(shape))
    return IndexArray.of(np.ravel_multi_index(np.broadcast_arrays(*grids), sizes))


def _element_counts(length: int, w: Window, padding: int) -> Array:
    """Return how many elements of each window lie in the array, or in as much padding."""
    positions = w.positions(length)
    return np.asarray(((positions >= -padding) & (positions < length + padding)).sum(axis=1))


def _constants(numbers: Array) -> Node:
    """Return a vector of constants: a piece for each run of equal ones."""
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return concatenate([const(int(numbers[a]), (b - a,)) for a, b in pairwise(starts)], 0)
