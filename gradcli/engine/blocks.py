"""The arrays that kernels read and write: contiguous float64, with the points along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.shapes import Shape

Arrays = Mapping[str, Array]
Work = Callable[[list[Array], int, int], None]  # with a thread's buffers, at the points from one to another

_SMALL = 2**16  # bytes of an array: a larger one is an allocation of its own, which can be freed alone

_is_contiguous, _dtype = attrgetter("flags.c_contiguous"), attrgetter("dtype")


def are_contiguous(arrays: Collection[Array]) -> bool:
    """Return whether arrays are contiguous float64, as kernels need them; it is quick: a call may have a thousand."""
    return all(map(_is_contiguous, arrays)) and set(map(_dtype, arrays)) <= {np.dtype(float)}


def new_arrays(shapes: Mapping[str, Shape], count: int) -> dict[str, Array]:
    """Return new arrays for so many points; many small numbers of them are rows of one.

    >>> {name: a.shape for name, a in new_arrays({"y": (), "z": (2,)}, 3).items()}
    {'y': (3,), 'z': (2, 3)}
    """
    if 8 * count > _SMALL or any(shapes.values()):
        return {name: np.empty((*shape, count)) for name, shape in shapes.items()}
    return dict(zip(shapes, np.empty((len(shapes), count)), strict=True))


def on_views(
    run: Callable[[list[Array], Arrays, Arrays], None],
    points: Arrays,
    results: Arrays,
    checked: Collection[Array] | None = None,
) -> Work | None:
    """Return the work of `run` on views of a block of points.

    None unless the arrays `checked`, or all, are contiguous float64.
    """
    if not are_contiguous([*points.values(), *results.values()] if checked is None else checked):
        return None
    count = next((a.shape[-1] for a in results.values()), 0)

    def work(buffers: list[Array], start: int, stop: int) -> None:
        def part(arrays: Arrays) -> Arrays:
            return arrays if stop - start == count else {name: a[..., start:stop] for name, a in arrays.items()}

        run(buffers, part(points), part(results))

    return work
