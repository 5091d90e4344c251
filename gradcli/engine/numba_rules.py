"""What each structural operation is in the loops of a Numba kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.numba_writer import Place, Writer, moved
from gradcli.engine.products import FAR
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape


def _split(shape: Shape, axes: Sequence[int]) -> tuple[Shape, Shape]:
    return tuple(n for i, n in enumerate(shape) if i not in axes), tuple(shape[i] for i in axes)


def _merge(outer: Sequence[str], inner: Sequence[str], axes: Sequence[int]) -> list[str]:
    """Return the counters of all axes, those of `axes` taken from `inner`."""
    rest, taken = iter(outer), iter(inner)
    return [next(taken) if i in axes else next(rest) for i in range(len(outer) + len(inner))]


def _reduce(start: str, update: str) -> Callable[..., None]:
    """Return what writes a reduction: it begins with `start`, and `update`s it with each element."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        axes = node.settings[0]
        outer, inner = _split(node.args[0].shape, axes)
        with w.loops(outer) as k:
            w.line(f"{out.at(k)} = {start.format(x.at(_merge(k, ['0'] * len(inner), axes)))}")
        with w.loops((*outer, *inner)) as km:
            k, m = km[: len(outer)], km[len(outer) :]
            w.line(f"{out.at(k)} = {update.format(out.at(k), x.at(_merge(k, m, axes)))}")

    return write


def _prod(w: Writer, node: Node, out: Place, x: Place) -> None:
    """Write a product as mantissas and exponents, as `products.prod` has it."""
    axes = node.settings[0]
    outer, inner = _split(node.args[0].shape, axes)
    scratch = Node("exponents", (), outer)
    exponents = w.take(scratch)
    w.copy(out, outer, "1.0")
    w.copy(exponents, outer, "0.0")
    with w.loops((*outer, *inner)) as km:
        k, m = km[: len(outer)], km[len(outer) :]
        _times(w, out.at(k), exponents.at(k), x.at(_merge(k, m, axes)))
    with w.loops(outer) as k:
        w.line(f"{out.at(k)} = {_number(out.at(k), exponents.at(k))}")
    w.give_back(scratch)


def _prod_others(w: Writer, node: Node, out: Place, x: Place) -> None:
    """Write for each element the product of those before it, and then times that of those behind it."""
    axes = node.settings[0]
    outer, inner = _split(node.shape, axes)
    scratch = [Node("scratch", (), shape) for shape in (node.shape, outer, outer)]
    own, mantissas, exponents = map(w.take, scratch)
    for behind in (False, True):
        w.copy(mantissas, outer, "1.0")
        w.copy(exponents, outer, "0.0")
        with w.loops((*outer, *inner)) as km:
            k, m = km[: len(outer)], km[len(outer) :]
            m = [f"({n - 1} - {c})" for n, c in zip(inner, m, strict=True)] if behind else m
            here = _merge(k, m, axes)
            if behind:
                found = _number(f"({out.at(here)} * {mantissas.at(k)})", f"({own.at(here)} + {exponents.at(k)})")
                w.line(f"{out.at(here)} = {found}")
            else:
                w.line(f"{out.at(here)} = {mantissas.at(k)}")
                w.line(f"{own.at(here)} = {exponents.at(k)}")
            _times(w, mantissas.at(k), exponents.at(k), x.at(here))
    for rows in scratch:
        w.give_back(rows)


def _times(w: Writer, mantissa: str, exponent: str, factor: str) -> None:
    """Write a multiplication of a mantissa and an exponent by a factor."""
    m, e, more = w.fresh(), w.fresh(), w.fresh()
    w.line(f"{m}, {e} = math.frexp({factor})")
    w.line(f"{mantissa}, {more} = math.frexp({mantissa} * {m})")
    w.line(f"{exponent} += {e} + {more}")


def _number(mantissa: str, exponent: str) -> str:
    return f"math.ldexp({mantissa}, int(min(max({exponent}, -{FAR}), {FAR})))"


def _cumsum(w: Writer, node: Node, out: Place, x: Place) -> None:
    axes = node.settings
    outer, (n,) = _split(node.shape, axes)
    with w.loops(outer) as k:
        w.line(f"{out.at(_merge(k, ['0'], axes))} = {x.at(_merge(k, ['0'], axes))}")
    with w.loops((*outer, n - 1)) as (*k, m):
        here = _merge(k, [f"({m} + 1)"], axes)
        w.line(f"{out.at(here)} = {out.at(_merge(k, [m], axes))} + {x.at(here)}")


def _mask(better: str) -> Callable[..., None]:
    """Return what writes where the first extremum stands; as for NumPy, the first NaN is one."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        axes = node.settings
        outer, inner = _split(node.shape, axes)
        best, where = (w.take(Node(name, (), outer)) for name in ("best", "where"))
        value = w.fresh()
        with w.loops(outer) as k:
            w.line(f"{best.at(k)} = {x.at(_merge(k, ['0'], axes))}")
            w.line(f"{where.at(k)} = 0.0")
        with w.loops((*outer, *inner)) as (*k, m):
            w.line(f"{value} = {x.at(_merge(k, [m], axes))}")
            so_far = best.at(k)
            w.line(f"if {value} {better} {so_far} or ({value} != {value} and {so_far} == {so_far}):")
            w.line(f"    {so_far} = {value}")
            w.line(f"    {where.at(k)} = {m}")
        with w.loops((*outer, *inner)) as (*k, m):
            w.store(out, _merge(k, [m], axes), f"{where.at(k)} == {m}")

    return write


def _matmul(w: Writer, node: Node, out: Place, a: Place, b: Place) -> None:
    left, right = node.args
    w.copy(out, node.shape, "0.0")
    with w.loops((*node.shape, left.shape[-1])) as (*k, m):
        stack = k[: len(node.shape) - (len(left.shape) > 1) - (len(right.shape) > 1)]
        first = [*stack, k[len(stack)], m] if len(left.shape) > 1 else [m]
        second = [*stack, m, k[-1]] if len(right.shape) > 1 else [*stack, m]
        w.line(f"{out.at(k)} += {a.at(first)} * {b.at(second)}")


def _scatter(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    w.copy(out, node.shape, "0.0")
    for key, arg, part in zip(node.settings[1], node.args, parts, strict=True):
        target = _part(out, key)
        with w.loops(arg.shape) as k:
            w.line(f"{target.at(k)} += {part.at(k)}")


def _from_diagonal(w: Writer, node: Node, out: Place, x: Place) -> None:
    w.copy(out, node.shape, "0.0")
    w.copy(out.seen(np.diagonal(out.index)), node.args[0].shape, x)


def _concatenate(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    start, axis = 0, node.settings[0]
    for arg, part in zip(node.args, parts, strict=True):
        stop = start + arg.shape[axis]
        w.copy(_part(out, (*map(range, node.shape[:axis]), range(start, stop))), arg.shape, part)
        start = stop


def _stack(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    before = node.shape[: node.settings[0]]
    for i, (arg, part) in enumerate(zip(node.args, parts, strict=True)):
        w.copy(_part(out, (*map(range, before), i)), arg.shape, part)


def _part(place: Place, key: tuple[Any, ...]) -> Place:
    """Return a part of an array, by an index."""
    return place.seen(moved(Node("index", (), (), (key,)), place.index))


RULES: dict[str, Callable[..., None]] = {
    "sum": _reduce("0.0", "{} + {}"),
    "prod": _prod,
    "prod_others": _prod_others,
    "max": _reduce("{}", "np.maximum({}, {})"),
    "min": _reduce("{}", "np.minimum({}, {})"),
    "cumsum": _cumsum,
    "argmax_mask": _mask(">"),
    "argmin_mask": _mask("<"),
    "matmul": _matmul,
    "scatter": _scatter,
    "from_diagonal": _from_diagonal,
    "concatenate": _concatenate,
    "stack": _stack,
}
