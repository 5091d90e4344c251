"""Arrays that are images: which ones are, their pixels, and the section that shows a value beside its gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.notation.numbers import shape_text
from gradcli.pages.backward.loss import flat
from gradcli.pages.question import Point, Result
from gradcli.pages.results import Array, Named
from gradcli.pages.sections import Equal, Grad, Images, Math, Name, Panel, Section, Typed, Value

_SIDE = 8  # rows and columns that an image has at least: the handwritten digits of scikit-learn have as many
_LONGEST = 4  # times the shorter side: a longer array is a table
_CHANNELS = (1, 3)  # grey, and colours
_WRITTEN = 4  # numbers of a cotangent in a title, which is as wide as an image
_MOST = 8  # calls that have a panel each: two rows
_V = Name("v")


def is_image(shape: Shape) -> bool:
    """Return whether an array of this shape can be an image.

    It has two axes of at least 8, neither more than four times the other, or a third one before or behind them with 1
    or 3 channels.  Leading axes of 1 do not count.

    >>> is_image((8, 8)), is_image((3, 9, 8)), is_image((9, 8, 1)), is_image((1, 1, 8, 8))
    (True, True, True, True)
    >>> is_image((2, 8)), is_image((4, 8, 8)), is_image((8, 400))
    (False, False, False)
    """
    return _layout(shape) is not None


def _layout(shape: Shape) -> Shape | None:
    """Return the shape as rows, columns and channels, or channels, rows and columns; None where it is not an image."""
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    sides = shape
    if len(shape) == 3:
        sides = shape[1:] if shape[0] in _CHANNELS else shape[:2] if shape[2] in _CHANNELS else ()
    fits = len(sides) == 2 and min(sides) >= _SIDE and max(sides) <= _LONGEST * min(sides)
    return shape if fits else None


def pixels(array: Array) -> Array:
    """Return the pixels of an image by row and column, by colour too where it has three channels.

    >>> pixels(np.zeros((3, 8, 9))).shape, pixels(np.zeros((1, 1, 8, 9))).shape
    ((8, 9, 3), (8, 9))
    """
    shape = _layout(array.shape)
    assert shape is not None
    result = array.reshape(shape)
    if len(shape) == 2:
        return result
    result = np.moveaxis(result, 0, -1) if shape[0] in _CHANNELS else result
    return result[..., 0] if result.shape[-1] == 1 else result


def strongest(array: Array) -> Array:
    """Return for each pixel of a gradient the entry that is largest in absolute value among its channels.

    >>> strongest(np.array([1.0, -2.0, 0.5])[:, None, None] * np.ones((3, 8, 8)))[0, 0].item()
    -2.0
    """
    result = pixels(array)
    if result.ndim == 2:
        return result
    largest = np.where(np.isnan(result), np.inf, np.abs(result)).argmax(axis=-1)
    return np.asarray(np.take_along_axis(result, largest[..., None], -1)[..., 0])


def image_nodes(graph: Graph) -> set[Node]:
    """Return the nodes that are images: by their shape, and because no product of matrices reads them.

    >>> from gradcli import parse
    >>> graph = parse("y = sum(x @ W) + sum(z)", x=(8, 8), W=(8, 8), z=(8, 8))
    >>> [name for name, n in graph.inputs.items() if n in image_nodes(graph)]
    ['z']
    """
    return {n for n in graph.nodes if is_image(n.shape)} - set(_matrices(graph))


def _matrices(graph: Graph) -> Iterator[Node]:
    """Yield the arguments of products of matrices, and what they are transposes of."""
    for node in graph.nodes:
        for argument in node.args if node.args and OPERATIONS[node.op].kind == "contraction" else ():
            yield argument
            while (before := operand(argument, "transpose")) is not None:
                argument = before
                yield argument


def images_section(result: Result, point: Point) -> list[Section]:
    """Return the section with the inputs that are images, each beside its gradients; nothing where there are none."""
    images = image_nodes(result.graph) if any(is_image(leaf.shape) for leaf in result.leaves.values()) else set()
    rows = tuple(
        Images(tuple(_panels(point, name)))
        for name, leaf in result.leaves.items()
        if leaf in images and name in point.at and point.grad[name].dtype != object
    )
    return [Section("images", rows)] if rows else []


def _panels(point: Point, name: str) -> Iterator[Panel]:
    """Yield an input, and its gradient: that of each call, and their sum, where there are several."""
    yield value_panel(Name(name), point.at[name])
    calls = point.calls if 1 < len(point.calls) <= _MOST else ()
    for number, call in enumerate(calls, 1):
        yield gradient_panel((f"call {number}", *_cotangent(call.v)), call.vjp[name])
    sum_of = (", the sum of the calls",) if len(point.calls) > 1 else ()
    yield gradient_panel((Grad(name), *sum_of), point.grad[name])


def value_panel(title: Math, array: Array) -> Panel:
    """Return an image under its name and size."""
    return Panel((title, f" ({shape_text(array.shape)})"), pixels(array))


def gradient_panel(title: tuple[Math, ...], array: Array) -> Panel:
    """Return the gradient of an image."""
    one = pixels(array).ndim == 2
    return Panel(title if one else (*title, ", the strongest channel"), strongest(array), signed=True)


def _cotangent(v: Named) -> tuple[Math, ...]:
    """Return a cotangent as a title has room for it: all ones, one-hot, its numbers; nothing of a long one."""
    weights = flat(v)
    if weights.size > 1 and (weights == 1).all():
        return ": ", _V, " = ones"
    if weights.size > 1 and np.count_nonzero(weights) == 1 and weights.sum() == 1:
        names = [element for name, a in v.items() for element in element_names(name, a.shape)]
        return ": ", _V, " = ", Typed(f"onehot:{names[int(weights.argmax())]}")
    if weights.size > _WRITTEN:
        return ()
    return ": ", Equal((_V, Value(weights if weights.size > 1 else weights[0])))
