"""Convolutions and what they pass on, in PyTorch's order of addition.

Source: PyTorch's numbers on a processor with AVX-512.  Its oneDNN adds a window's products row by row, place by place,
each with one rounding, and of each sixteen channels for themselves; one small image, and float64, is a product of
matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.kernels.chains import chain
from gradcli.kernels.processor import Threads
from gradcli.kernels.products import is_fused, product
from gradcli.kernels.rounding import Array
from gradcli.kernels.sums import in_order, sums

_TOGETHER = 16  # channels
_LARGE = 20480  # numbers of an image from which on oneDNN is called for it alone
_SETTINGS = (("stride", 1), ("padding", 0), ("dilation", 1))


class Convolution:
    """A call of a convolution of images, or of rows of numbers as images of one row."""

    def __init__(self, given: dict[str, Any], shapes: Sequence[Any]) -> None:
        self.axes, self.groups = len(shapes[1]) - 2, given["groups"]
        self.reads, self.passes = (0, 1), range(len(shapes))
        own = [(*(none,) * (2 - self.axes), *np.broadcast_to(given[k], self.axes)) for k, none in _SETTINGS]
        windows = zip(*(self._of_four(s)[2:] for s in shapes[:2]), *own, strict=True)
        self.positions, self.sources = zip(*(_windows(*axis) for axis in windows), strict=True)

    def _of_four(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape as one of four axes."""
        shape = shape if len(shape) == self.axes + 2 else (1, *shape)
        return shape if self.axes == 2 else (*shape[:2], 1, shape[2])

    def _image(self, x: Array) -> Array:
        """Return an array as one of four axes, without that of points."""
        return x.reshape(self._of_four(x.shape[:-1]))

    def _is_product(self, x: Array, w: Array) -> bool:
        """Tell whether PyTorch does it as a product of matrices."""
        is_large = w.shape[2] > 3 < w.shape[3] or len(x) > 1 or x.size > _LARGE
        return x.dtype != np.float32 or not (self.groups > 1 or is_large)

    def _in_groups(self, x: Array, w: Array, *more: Array) -> list[tuple[Array, ...]]:
        """Return for each group its windows, its weights, and what else it has of the outputs."""
        axes = (1, 0, *(min(1, a.ndim - 1) for a in more))
        own = zip((_taken(x, *self.positions), w, *more), axes, strict=True)
        return [*zip(*(np.split(a, self.groups, i) for a, i in own), strict=True)]

    def forward(self, *arrays: Array) -> Array:
        """Return the sums of the products of each window's elements and the weights."""
        x, w = map(self._image, arrays[:2])
        make = _products if self._is_product(x, w) else _chains
        whole = np.concatenate([make(*own) for own in self._in_groups(x, w, *(b[:, 0] for b in arrays[2:]))], axis=1)
        is_single = arrays[0].ndim < self.axes + 3
        return whole.reshape(*whole.shape[is_single:2], *whole.shape[4 - self.axes :], 1)

    def backward(self, *arrays: Array) -> dict[int, Array]:
        """Return what is passed on to the images, the weights and the bias."""
        x, w, g = map(self._image, (*arrays[:2], arrays[-1]))
        is_product, groups = self._is_product(x, w), self._in_groups(x, w, g)
        parts = [(0, len(x))] if is_product else _parts(x, w, g)
        if is_product:
            images = [_spread(passed, weight, self.sources) for _, weight, passed in groups]
            bias = sums((0, 2, 3), np.ascontiguousarray(g)[..., None])
        else:
            images = [
                _chains(_taken(passed, *self.sources), weight.transpose(1, 0, 2, 3)) for _, weight, passed in groups
            ]
            rows = g.swapaxes(0, 1)
            bias = in_order([in_order(rows[:, a:b].reshape(len(rows), -1).T) for a, b in parts])
        weights = np.concatenate([_of_weights(own, passed, parts, is_product) for own, _, passed in groups])
        return {
            0: np.concatenate(images, axis=1).reshape(arrays[0].shape),
            1: weights.reshape(arrays[1].shape),
            2: bias.reshape(-1, 1),
        }


def _windows(length: int, size: int, step: int, padding: int, apart: int) -> tuple[Array, Array]:
    """Return which element each window reads at each of its places, and which window each element is read by there.

    -1 is none.
    """
    count = (length + 2 * padding - apart * (size - 1) - 1) // step + 1
    read = np.arange(count)[:, None] * step - padding + np.arange(size) * apart
    by, left = np.divmod(np.arange(length)[:, None] + padding - np.arange(size) * apart, step)
    positions = np.where((read >= 0) & (read < length), read, -1)
    return positions, np.where((left == 0) & (by >= 0) & (by < count), by, -1)


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
    weight = w.reshape(len(w), -1)
    found = [product(weight, a) if bias is None else _with_bias(bias, weight, a) for a in _columns(taken)]
    return np.stack(found).reshape(len(found), len(w), taken.shape[2], taken.shape[4])


def _with_bias(bias: Array, a: Array, b: Array) -> Array:
    """Return a product and a bias: that of float32 with one rounding is added last, all else is added to the bias."""
    if not is_fused(a, b):
        first = np.broadcast_to(bias[:, None], (1, len(a), b.shape[1]))
        return in_order(np.concatenate([first, a.T[:, :, None] * b[:, None]]))
    if a.dtype == np.float64:
        return product(np.insert(a, 0, bias, axis=1), np.insert(b, 0, 1, axis=0))
    return product(a, b) + bias[:, None]


def _spread(g: Array, w: Array, sources: Sequence[Array]) -> Array:
    """Return what is passed on to images by a product of matrices: one place of the windows after the other."""
    n, outputs, rows, columns = g.shape
    weight = w.reshape(outputs, -1).T
    found = np.stack([product(weight, own.reshape(outputs, -1)) for own in g])
    padded = np.pad(found.reshape(n, *w.shape[1:], rows, columns), ((0, 0),) * 4 + ((0, 1), (0, 1)))
    total: Any = 0
    for i, j in np.ndindex(w.shape[2:]):
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

    def cost(images: int, of_outputs: int) -> int:
        return shared[0] * images + shared[1] * images * of_outputs + shared[2] * of_outputs  # type: ignore[no-any-return]

    halves = cost(half, blocks[0])
    apart = cost(len(x), -(-blocks[0] // 2)) if blocks[0] > 1 else halves + (blocks[1] <= 1)
    in_halves = math.prod(blocks) == 1 if small else halves <= apart
    return [(0, half), (half, len(x))] if Threads.count > 1 < len(x) and in_halves else [(0, len(x))]


def _of_weights(taken: Array, g: Array, parts: Sequence[tuple[int, int]], is_product: bool) -> Array:
    """Return what is passed on to weights: the sums of parts of the images, or of each where a window is a point."""
    columns, passed = _columns(taken), g.reshape(*g.shape[:2], -1)

    def of_images(a: int, b: int) -> Array:
        own, out = np.concatenate([*columns[a:b]], axis=1), np.concatenate([*passed[a:b]], axis=1)
        if not is_product:
            return chain(out, own.T)
        if is_fused(out, own.T):
            return product(out, own.T)
        return in_order([product(passed[k], columns[k].T) for k in range(a, b)])

    found: Any = 0
    for a, b in parts:
        each = [(k, k + 1) for k in range(a, b)] if taken.shape[3] * taken.shape[5] == 1 else [(a, b)]
        found = found + sum(of_images(*p) for p in each)
    return found.reshape(g.shape[1], taken.shape[1], taken.shape[3], taken.shape[5])  # type: ignore[no-any-return]
