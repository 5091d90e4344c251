"""Convolutions and what they pass on, in PyTorch's order of addition.

Source: PyTorch's numbers on a processor with AVX-512.  Its oneDNN adds a window's products row by row, place by place,
each with one rounding, and of each sixteen channels for themselves; one small image, and float64, is a product of
matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.kernels.processor import Threads
from gradcli.kernels.products import chain, is_fused, product
from gradcli.kernels.sums import sums

Array = np.ndarray[Any, Any]

_TOGETHER = 16  # channels
_LARGE = 20480  # numbers of an image from which on oneDNN is called for it alone


def _pair(encoded: Any, first: int) -> tuple[int, int]:
    """Return a setting for both axes of an image; a row of numbers is an image of one row."""
    kind, given = encoded
    numbers = tuple(n for _, n in given) if kind == "list" else (given, given)
    return numbers if len(numbers) == 2 else (first, numbers[0])


@dataclass(frozen=True)
class Convolution:
    """A call of a convolution of images, or of rows of numbers as images of one row."""

    axes: int
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    @classmethod
    def of(cls, settings: Any, shapes: Sequence[Any]) -> Convolution | None:
        """Return the call of a recipe; None for padding by name."""
        if len(settings) != 2 or "groups" not in (named := dict(settings[1])) or not math.prod(shapes[0]):
            return None
        if isinstance(named["padding"][1], str):
            return None
        axes = len(shapes[1]) - 2
        rows = axes == 1
        stride, padding, dilation = (
            (first if rows else pair[0], pair[1])
            for first, pair in ((n, _pair(named[k], n)) for k, n in (("stride", 1), ("padding", 0), ("dilation", 1)))
        )
        return cls(axes, stride, padding, dilation, named["groups"][1])

    def _image(self, x: Array, lead: int) -> Array:
        """Return an array as one of four axes, without that of points."""
        shape = x.shape[:-1]
        shape = shape if len(shape) == self.axes + lead else (1, *shape)
        return x.reshape(shape if self.axes == 2 else (*shape[:2], 1, shape[2]))

    def _positions(self, axis: int, length: int, size: int) -> Array:
        """Return which element each window reads at each of its places; -1 is outside."""
        step, padding, apart = self.stride[axis], self.padding[axis], self.dilation[axis]
        count = (length + 2 * padding - apart * (size - 1) - 1) // step + 1
        found = np.arange(count)[:, None] * step - padding + np.arange(size) * apart
        return np.where(found < length, np.maximum(found, -1), -1)

    def _sources(self, axis: int, length: int, size: int, count: int) -> Array:
        """Return which window reads each element at each of its places; -1 is none."""
        step, padding, apart = self.stride[axis], self.padding[axis], self.dilation[axis]
        found, left = np.divmod(np.arange(length)[:, None] + padding - np.arange(size) * apart, step)
        return np.where((left == 0) & (found >= 0) & (found < count), found, -1)

    def _is_product(self, x: Array, w: Array) -> bool:
        """Tell whether PyTorch does it as a product of matrices."""
        is_large = w.shape[2] > 3 < w.shape[3] or len(x) > 1 or x.size > _LARGE
        return x.dtype != np.float32 or not (self.groups > 1 or is_large)

    def _in_groups(self, x: Array, w: Array, *more: Array) -> list[list[Array]]:
        """Return for each group its windows, its weights, and what else it has of the outputs."""
        taken = _taken(x, *(self._positions(i, x.shape[2 + i], w.shape[2 + i]) for i in (0, 1)))
        axes = [1, 0, *(min(1, a.ndim - 1) for a in more)]
        parts = [np.split(a, self.groups, i) for a, i in zip((taken, w, *more), axes, strict=True)]
        return [list(own) for own in zip(*parts, strict=True)]

    def forward(self, *arrays: Array) -> Array:
        """Return the sums of the products of each window's elements and the weights."""
        x, w = (self._image(a, 2) for a in arrays[:2])
        make = _products if self._is_product(x, w) else _chains
        found = [make(*own) for own in self._in_groups(x, w, *(b[:, 0] for b in arrays[2:]))]
        whole = np.concatenate(found, axis=1)
        kept = whole.shape[4 - self.axes :]
        return whole.reshape(*whole.shape[int(arrays[0].ndim < self.axes + 3) : 2], *kept, 1)

    def backward(self, *arrays: Array) -> dict[int, Array]:
        """Return what is passed on to the images, the weights and the bias."""
        x, w, g = (self._image(a, 2) for a in (*arrays[:2], arrays[-1]))
        sources = [self._sources(i, x.shape[2 + i], w.shape[2 + i], g.shape[2 + i]) for i in (0, 1)]
        is_product = self._is_product(x, w)
        groups = self._in_groups(x, w, g)
        if is_product:
            images = [_spread(passed, weight, sources) for _, weight, passed in groups]
            parts = [(0, len(x))]
        else:
            images = [_chains(_taken(passed, *sources), weight.transpose(1, 0, 2, 3)) for _, weight, passed in groups]
            parts = _parts(x, w, g)
        weights = np.concatenate([_of_weights(own, passed, parts, is_product) for own, _, passed in groups])
        bias = sums((0, 2, 3), np.ascontiguousarray(g)[..., None]) if is_product else _of_bias(g, parts)
        found = np.concatenate(images, axis=1), weights, bias
        shapes = arrays[0].shape, arrays[1].shape, (-1, 1)
        return {i: a.reshape(shape) for i, (a, shape) in enumerate(zip(found, shapes, strict=True))}


def _taken(a: Array, rows: Array, columns: Array) -> Array:
    """Return the elements at these places, 0 at -1: `(batch, channels, rows, their places, columns, their places)`."""
    padded = np.pad(a, ((0, 0), (0, 0), (0, 1), (0, 1)))
    return padded[:, :, rows[:, :, None, None], columns]


def _chains(taken: Array, w: Array, bias: Array | None = None) -> Array:
    """Return sums of products, each with one rounding, of blocks of channels.

    The bias is in front of them; of the terms themselves, where they are few.
    """
    n, channels, rows, high, columns, wide = taken.shape
    is_point = high * wide == 1
    block = channels if is_point else _TOGETHER
    own = taken.transpose(0, 2, 4, 3, 5, 1).reshape(n * rows * columns, high * wide, channels)
    weight = w.transpose(2, 3, 1, 0).reshape(high * wide, channels, -1)
    found: Any = 0 if bias is None else bias
    for c in range(0, channels, block):
        a = own[:, :, c : c + block].reshape(len(own), -1)
        b = weight[:, c : c + block].reshape(-1, len(w))
        if bias is not None and (is_point or len(w) == channels == 1):
            a, b, found = np.insert(a, 0, 1, axis=1), np.insert(b, 0, bias, axis=0), 0
        found = found + chain(a, b)
    return found.reshape(n, rows, columns, -1).transpose(0, 3, 1, 2)  # type: ignore[no-any-return]


def _columns(taken: Array) -> Array:
    """Return a matrix for each image, with a column for each window."""
    return taken.transpose(0, 1, 3, 5, 2, 4).reshape(len(taken), -1, taken.shape[2] * taken.shape[4])


def _products(taken: Array, w: Array, bias: Array | None = None) -> Array:
    """Return sums of products, as a product of matrices for each image."""
    weight, found = w.reshape(len(w), -1), []
    for own in _columns(taken):
        if bias is None or is_fused(weight, own):
            found.append(product(weight, own) if bias is None else _with_bias(bias, weight, own))
        else:  # the bias is there before the terms are added to it
            first = np.broadcast_to(bias[:, None], (1, len(w), own.shape[1]))
            terms = weight.T[:, :, None] * own[:, None]
            found.append(np.add.accumulate(np.concatenate([first, terms]), axis=0)[-1])
    return np.stack(found).reshape(len(found), len(w), taken.shape[2], taken.shape[4])


def _with_bias(bias: Array, a: Array, b: Array) -> Array:
    """Return a product and a bias: of float64 that comes in front of the terms."""
    if a.dtype == np.float64:
        return product(np.insert(a, 0, bias, axis=1), np.insert(b, 0, 1, axis=0))
    return product(a, b) + bias[:, None]


def _spread(g: Array, w: Array, sources: Sequence[Array]) -> Array:
    """Return what is passed on to images by a product of matrices: one place of the windows after the other."""
    n, outputs, rows, columns = g.shape
    weight = w.reshape(outputs, -1).T
    found = np.stack([product(weight, own.reshape(outputs, -1)) for own in g])
    places = found.reshape(n, *w.shape[1:], rows, columns)
    padded = np.pad(places, ((0, 0),) * 4 + ((0, 1), (0, 1)))
    total: Any = 0
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            total = total + padded[:, :, i, j][:, :, sources[0][:, i, None], sources[1][:, j]]
    return total  # type: ignore[no-any-return]


def _parts(x: Array, w: Array, g: Array) -> list[tuple[int, int]]:
    """Return which images PyTorch's threads share: in halves where their channels are not shared."""
    half = -(-len(x) // 2)
    outputs, channels, high, wide = w.shape
    small = 4 <= channels <= 8
    size = 8 if small else _TOGETHER
    blocks = [-(-n // size) for n in (outputs, channels)]
    inner = channels if channels < 4 else size
    shared = 4 * inner * blocks[1] * x[0, 0].size, size * g[0, 0].size, 8 * inner * size * high * wide

    def cost(images: int, of_outputs: int, of_channels: int) -> int:
        return shared[0] * images * of_channels + shared[1] * images * of_outputs + shared[2] * of_outputs * of_channels  # type: ignore[no-any-return]

    halves = cost(half, blocks[0], 1)
    apart = cost(len(x), -(-blocks[0] // 2), 1) if blocks[0] > 1 else halves + (blocks[1] <= 1)
    in_halves = math.prod(blocks) == 1 if small else halves <= apart
    if Threads.count < 2 or len(x) < 2 or not in_halves:
        return [(0, len(x))]
    return [(0, half), (half, len(x))]


def _of_weights(taken: Array, g: Array, parts: Sequence[tuple[int, int]], is_product: bool) -> Array:
    """Return what is passed on to weights: the sums of parts of the images, or of each where a window is a point."""
    columns, passed = _columns(taken), g.reshape(*g.shape[:2], -1)

    def of_images(a: int, b: int) -> Array:
        own, out = np.concatenate([*columns[a:b]], axis=1), np.concatenate([*passed[a:b]], axis=1)
        if not is_product:
            return chain(out, own.T)
        if is_fused(out, own.T):
            return product(out, own.T)
        return np.add.accumulate([product(passed[k], columns[k].T) for k in range(a, b)], axis=0)[-1]  # type: ignore[no-any-return]

    found: Any = 0
    for a, b in parts:
        each = [(k, k + 1) for k in range(a, b)] if taken.shape[3] * taken.shape[5] == 1 else [(a, b)]
        found = found + sum(of_images(*p) for p in each)
    return found.reshape(g.shape[1], taken.shape[1], taken.shape[3], taken.shape[5])  # type: ignore[no-any-return]


def _of_bias(g: Array, parts: Sequence[tuple[int, int]]) -> Array:
    """Return what is passed on to a bias: sums of one number after the other."""
    rows = g.transpose(1, 0, 2, 3).reshape(g.shape[1], len(g), -1)
    each = [np.add.accumulate(rows[:, a:b].reshape(len(rows), -1), axis=1)[:, -1] for a, b in parts]
    return np.add.accumulate(each, axis=0)[-1]  # type: ignore[no-any-return]
