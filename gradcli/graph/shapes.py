"""Shapes of arrays: their size, its limits, and how they broadcast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from gradcli.errors import InputError

Shape = tuple[int, ...]

MAX_ELEMENTS = 2**24  # of one array: 128 MiB of float64
MAX_RANK = 32


def size_of(shape: Shape) -> int:
    """Return the number of elements of a shape.

    >>> size_of((2, 3)), size_of(())
    (6, 1)
    """
    return math.prod(shape)


def indices(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yield the indices of an array in row-major order, also of one that is too large for `np.ndindex`.

    >>> list(indices((1, 2)))
    [(0, 0), (0, 1)]
    """
    for flat in range(size_of(shape)):
        key: list[int] = []
        for n in reversed(shape):
            flat, i = divmod(flat, n)
            key.insert(0, i)
        yield tuple(key)


def inside(key: Sequence[int], shape: Shape) -> bool:
    """Return whether an array of a shape has an element with that index, which is counted from 0.

    >>> inside((1, 2), (2, 3)), inside((1, 3), (2, 3)), inside((1,), (2, 3))
    (True, False, False)
    """
    return len(key) == len(shape) and all(k < n for k, n in zip(key, shape, strict=True))


def check_size(shape: Shape) -> Shape:
    """Return the shape, unless an array of it would be absurdly large.

    Errors: `InputError` above `MAX_ELEMENTS` elements.
    """
    if len(shape) > MAX_RANK:
        raise InputError(f"an array of {len(shape)} dimensions has too many", hint=f"at most {MAX_RANK} fit")
    if size_of(shape) > MAX_ELEMENTS:
        size = "×".join(str(n) if n < 10**12 else f"{min(n, 10**18):.3g}" for n in shape)
        raise InputError(
            f"an array of shape {size} is too large",
            hint=f"at most {MAX_ELEMENTS:,} elements fit",
            key="size of an array",
            facts=shape,
        )
    return shape


def bare(shape: Shape) -> Shape:
    """Return a shape without the axes of size 1 in front, which broadcasting adds.

    >>> bare((1, 1, 3, 1)), bare((1,)), bare((0, 1))
    ((3, 1), (), (0, 1))
    """
    return shape[next((i for i, n in enumerate(shape) if n != 1), len(shape)) :]


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    """Return the shape to which arrays of these shapes broadcast, by NumPy's rule.

    Errors: `InputError` when they do not fit, or the result is too large.

    >>> broadcast_shapes([(3, 1), (4,), ()])
    (3, 4)
    """
    first = shapes[0]
    for shape in shapes:
        if shape and shape != first:
            break
    else:
        return first
    return check_size(common_shape(shapes))


def common_shape(shapes: Iterable[Shape]) -> Shape:
    """Return the shape to which arrays of these shapes broadcast, however large it is.

    Errors: `InputError` when they do not fit; its facts are the two sizes that differ, and their axis.

    >>> common_shape([(10**9, 1), (10**9,)])
    (1000000000, 1000000000)
    """
    shapes = [tuple(s) for s in shapes]
    common: list[int] = []  # from the last axis to the first
    for shape in shapes:
        for i, n in enumerate(reversed(shape)):
            if i == len(common):
                common.append(n)
            elif common[i] == 1:
                common[i] = n
            elif n not in (1, common[i]):
                listed = " and ".join(str(s) for s in dict.fromkeys(shapes))
                raise InputError(
                    f"shapes {listed} do not fit together",
                    hint="shapes are aligned from the right; sizes must be equal, or one of them 1",
                    key="broadcast",
                    facts=(common[i], n, max(len(common), len(shape)) - i - 1),
                )
    return tuple(reversed(common))
