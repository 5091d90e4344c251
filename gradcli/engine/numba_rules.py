"""What each structural operation is in the loops of a Numba kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.numba_writer import Place, Writer, moved
from gradcli.engine.products import FAR
from gradcli.graph.einsum import parts
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape

Array = np.ndarray[Any, Any]


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


def _scan(update: str) -> Callable[..., None]:
    """Return what writes a scan: it begins with the first element of the last argument.

    `update` has the result so far, the argument's next element and, of another argument, the one before that.
    """

    def write(w: Writer, node: Node, out: Place, *args: Place) -> None:
        axes, x = node.settings, args[-1]
        outer, (n,) = _split(node.shape, axes)
        with w.loops(outer) as k:
            w.line(f"{out.at(_merge(k, ['0'], axes))} = {x.at(_merge(k, ['0'], axes))}")
        with w.loops((*outer, n - 1)) as (*k, m):
            here, before = _merge(k, [f"({m} + 1)"], axes), _merge(k, [m], axes)
            w.line(f"{out.at(here)} = {update.format(out.at(before), x.at(here), args[0].at(before))}")

    return write


def _argument(better: str) -> Callable[..., None]:
    """Return what writes where the first extremum stands; as for NumPy, the first NaN is one."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        axes = node.settings
        outer, inner = _split(node.args[0].shape, axes)
        scratch = Node("best", (), outer)
        best, value = w.take(scratch), w.fresh()
        with w.loops(outer) as k:
            w.line(f"{best.at(k)} = {x.at(_merge(k, ['0'], axes))}")
            w.line(f"{out.at(k)} = 0.0")
        with w.loops((*outer, *inner)) as (*k, m):
            w.line(f"{value} = {x.at(_merge(k, [m], axes))}")
            so_far = best.at(k)
            w.line(f"if {value} {better} {so_far} or ({value} != {value} and {so_far} == {so_far}):")
            w.line(f"    {so_far} = {value}")
            w.line(f"    {out.at(k)} = {m}")
        w.give_back(scratch)

    return write


def _mask(better: str) -> Callable[..., None]:
    """Return what writes for each element whether it is the first extremum."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        axes = node.settings
        outer, inner = _split(node.shape, axes)
        scratch = Node("where", (), outer)
        where = w.take(scratch)
        _argument(better)(w, node, where, x)
        with w.loops((*outer, *inner)) as (*k, m):
            w.store(out, _merge(k, [m], axes), f"{where.at(k)} == {m}")
        w.give_back(scratch)

    return write


def _matmul(w: Writer, node: Node, out: Place, a: Place, b: Place) -> None:
    left, right = node.args
    w.copy(out, node.shape, "0.0")
    with w.loops((*node.shape, left.shape[-1])) as (*k, m):
        stack = k[: len(node.shape) - (len(left.shape) > 1) - (len(right.shape) > 1)]
        first = [*stack, k[len(stack)], m] if len(left.shape) > 1 else [m]
        second = [*stack, m, k[-1]] if len(right.shape) > 1 else [*stack, m]
        w.line(f"{out.at(k)} += {a.at(first)} * {b.at(second)}")


def _einsum(w: Writer, node: Node, out: Place, a: Place, b: Place) -> None:
    first, second, result = parts(node.settings[0])
    sizes = dict(zip(first + second, node.args[0].shape + node.args[1].shape, strict=True))
    inner = [c for c in first if c not in result]
    w.copy(out, node.shape, "0.0")
    with w.loops((*node.shape, *(sizes[c] for c in inner))) as k:
        at = dict(zip([*result, *inner], k, strict=True))
        w.line(f"{out.at(k[: len(result)])} += {a.at([at[c] for c in first])} * {b.at([at[c] for c in second])}")


def _take(w: Writer, node: Node, out: Place, x: Place) -> None:
    axis, places = node.settings
    _from_table(w, out, out.index, x, x.index.take(places.numbers, axis=axis), "=")


def _put(w: Writer, node: Node, out: Place, x: Place) -> None:
    axis, places, _ = node.settings
    w.copy(out, node.shape, "0.0")
    _from_table(w, out, out.index.take(places.numbers, axis=axis), x, x.index, "+=")


def _from_table(w: Writer, to: Place, targets: Array, x: Place, sources: Array, sign: str) -> None:
    """Write a loop over elements whose numbers stand in tables."""
    k, target, source = w.fresh("k"), w.fresh(), w.fresh()
    w.line(f"for {k} in range({targets.size}):")
    for name, numbers in ((target, targets), (source, sources)):
        w.line(f"    {name} = int(u[{w.table(numbers)} + {k}])")
    w.line("    for i in range(n):")
    w.line(f"        {to.base.format(target)} {sign} {x.base.format(source)}")


def _triangle(sign: str) -> Callable[..., None]:
    """Return what writes one triangle of each matrix, and zeros beside it."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        with w.loops(node.shape) as k:
            w.line(f"{out.at(k)} = {x.at(k)} if {k[-1]} - {k[-2]} {sign} {node.settings[0]} else 0.0")

    return write


def _scatter(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    w.copy(out, node.shape, "0.0")
    for key, arg, part in zip(node.settings[1], node.args, parts, strict=True):
        target = _part(out, key)
        with w.loops(arg.shape) as k:
            w.line(f"{target.at(k)} += {part.at(k)}")


def _from_diagonal(w: Writer, node: Node, out: Place, x: Place) -> None:
    w.copy(out, node.shape, "0.0")
    w.copy(out.seen(moved(Node("diagonal"), out.index)), node.args[0].shape, x)


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
    "cumsum": _scan("{} + {}"),
    "cumprod": _scan("{} * {}"),
    "recurrence": _scan("{1} + {2} * {0}"),
    "argmax_mask": _mask(">"),
    "argmin_mask": _mask("<"),
    "argmax": _argument(">"),
    "argmin": _argument("<"),
    "matmul": _matmul,
    "einsum": _einsum,
    "take": _take,
    "put": _put,
    "triu": _triangle(">="),
    "tril": _triangle("<="),
    "scatter": _scatter,
    "from_diagonal": _from_diagonal,
    "concatenate": _concatenate,
    "stack": _stack,
}
