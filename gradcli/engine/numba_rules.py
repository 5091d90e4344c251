"""What each structural operation is in the loops of a Numba kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gradcli.engine.numba_math import first, frexp, ldexp
from gradcli.engine.numba_places import Place
from gradcli.engine.numba_writer import Counter, Writer
from gradcli.graph.array import Array
from gradcli.graph.einsum import parts
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape

Update = Callable[[Writer, str, str], str]


def _split(shape: Shape, axes: Sequence[int]) -> tuple[Shape, Shape]:
    return tuple(n for i, n in enumerate(shape) if i not in axes), tuple(shape[i] for i in axes)


def _merge(outer: Sequence[Counter], inner: Sequence[Counter], axes: Sequence[int]) -> list[Counter]:
    """Return the counters of all axes, those of `axes` taken from `inner`."""
    rest, taken = iter(outer), iter(inner)
    return [next(taken) if i in axes else next(rest) for i in range(len(outer) + len(inner))]


def _sum(w: Writer, node: Node, out: Place, x: Place) -> None:
    axes = node.settings[0]
    outer, inner = _split(node.args[0].shape, axes)
    with w.loops(outer) as k:
        (total,) = w.fold(inner, (w.number(0),), lambda m, total: (w.do("fadd", total, w.load(x, _merge(k, m, axes))),))
        w.store(out, k, total)


def _extremum(better: Update) -> Callable[..., None]:
    """Return what writes a reduction that begins with the first element."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        axes = node.settings[0]
        outer, inner = _split(node.args[0].shape, axes)
        with w.loops(outer) as k:
            start = w.load(x, _merge(k, [0] * len(inner), axes))
            (best,) = w.fold(inner, (start,), lambda m, best: (better(w, best, w.load(x, _merge(k, m, axes))),))
            w.store(out, k, best)

    return write


def _times(w: Writer, product: tuple[str, ...], x: str) -> tuple[str, str]:
    """Return a product, as mantissa and exponent, times a factor, as `products.prod` has it."""
    mantissa, exponent = product
    factor, more = frexp(w, x)
    mantissa, less = frexp(w, w.do("fmul", mantissa, factor))
    return mantissa, w.do("fadd", exponent, w.do("fadd", more, less))


def _prod(w: Writer, node: Node, out: Place, x: Place) -> None:
    axes = node.settings[0]
    outer, inner = _split(node.args[0].shape, axes)
    with w.loops(outer) as k:
        start = (w.number(1), w.number(0))
        product = w.fold(inner, start, lambda m, *p: _times(w, p, w.load(x, _merge(k, m, axes))))
        w.store(out, k, ldexp(w, *product))


def _prod_others(w: Writer, node: Node, out: Place, x: Place) -> None:
    """Write for each element the product of those before it, and then times that of those behind it."""
    axes = node.settings[0]
    outer, inner = _split(node.shape, axes)
    scratch = Node("exponents", (), node.shape)
    exponents, start = w.take(scratch), (w.number(1), w.number(0))
    back = tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(len(node.shape)))
    behind = [place.seen(place.index[back]) for place in (out, exponents, x)]
    with w.loops(outer) as k:

        def forwards(m: list[Counter], *product: str) -> tuple[str, ...]:
            here = _merge(k, m, axes)
            w.store(out, here, product[0])
            w.store(exponents, here, product[1])
            return _times(w, product, w.load(x, here))

        def backwards(m: list[Counter], *product: str) -> tuple[str, ...]:
            here = _merge(k, m, axes)
            result, exponent, factor = (w.load(place, here) for place in behind)
            found = ldexp(w, w.do("fmul", result, product[0]), w.do("fadd", exponent, product[1]))
            w.store(behind[0], here, found)
            return _times(w, product, factor)

        w.fold(inner, start, forwards)
        w.fold(inner, start, backwards)
    w.give_back(scratch)


def _scan(update: Callable[..., str]) -> Callable[..., None]:
    """Return what writes a scan: it begins with the first element of the last argument.

    `update` has the result so far, the argument's next element and, of another argument, the one before that.
    """

    def write(w: Writer, node: Node, out: Place, *args: Place) -> None:
        (axis,) = axes = node.settings
        outer, (n,) = _split(node.shape, axes)
        x, before = args[-1], args[0]
        rest, behind = (place.seen(place.index[(slice(None),) * axis + (slice(1, None),)]) for place in (x, out))
        with w.loops(outer) as k:

            def turn(m: list[Counter], so_far: str) -> tuple[str]:
                here = _merge(k, m, axes)
                more = [w.load(before, here)] if len(args) > 1 else []
                found = update(w, so_far, w.load(rest, here), *more)
                w.store(behind, here, found)
                return (found,)

            first = w.load(x, _merge(k, [0], axes))
            w.store(out, _merge(k, [0], axes), first)
            if n > 1:
                w.fold((n - 1,), (first,), turn)

    return write


def _argument(w: Writer, better: str, axis: int, x: Place, k: Sequence[Counter]) -> str:
    """Return where the first extremum stands; as for NumPy, the first NaN is one."""
    axes = (axis,)

    def turn(m: list[Counter], best: str, place: str) -> tuple[str, str]:
        value = w.load(x, _merge(k, m, axes))
        # NaN is better than a number, and nothing is better than NaN.
        news = w.new(f"and {w.masks} {w.compare('uno', value, value)}, {w.compare('ord', best, best)}", "m")
        taken = w.new(f"or {w.masks} {news}, {w.compare(better, value, best)}", "m")
        return w.select(taken, value, best), w.select(taken, w.counted(m[0]), place)

    start = w.load(x, _merge(k, [0], axes))
    return w.fold((x.index.shape[axis],), (start, w.number(0)), turn)[1]


def _place(better: str) -> Callable[..., None]:
    """Return what writes where the first extremum stands."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        (axis,) = axes = node.settings
        outer, _ = _split(node.args[0].shape, axes)
        with w.loops(outer) as k:
            w.store(out, k, _argument(w, better, axis, x, k))

    return write


def _mask(better: str) -> Callable[..., None]:
    """Return what writes for each element whether it is the first extremum."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        (axis,) = axes = node.settings
        outer, inner = _split(node.shape, axes)
        with w.loops(outer) as k:
            place = _argument(w, better, axis, x, k)

            def turn(m: list[Counter]) -> tuple[()]:
                w.store(out, _merge(k, m, axes), w.compare("oeq", place, w.counted(m[0])))
                return ()

            w.fold(inner, (), turn)

    return write


def _matmul(w: Writer, node: Node, out: Place, a: Place, b: Place) -> None:
    left, right = node.args
    stack = len(node.shape) - (len(left.shape) > 1) - (len(right.shape) > 1)
    with w.loops(node.shape) as k:

        def turn(m: list[Counter], total: str) -> tuple[str]:
            first = [*k[:stack], k[stack], *m] if len(left.shape) > 1 else m
            second = [*k[:stack], *m, k[-1]] if len(right.shape) > 1 else [*k[:stack], *m]
            return (w.plus_product(total, w.load(a, first), w.load(b, second)),)

        w.store(out, k, *w.fold(left.shape[-1:], (w.number(0),), turn))


def _einsum(w: Writer, node: Node, out: Place, a: Place, b: Place) -> None:
    first, second, result = parts(node.settings[0])
    sizes = dict(zip(first + second, node.args[0].shape + node.args[1].shape, strict=True))
    inner = [c for c in first if c not in result]
    with w.loops(node.shape) as k:

        def turn(m: list[Counter], total: str) -> tuple[str]:
            at = dict(zip([*result, *inner], [*k, *m], strict=True))
            x, y = w.load(a, [at[c] for c in first]), w.load(b, [at[c] for c in second])
            return (w.plus_product(total, x, y),)

        w.store(out, k, *w.fold(tuple(sizes[c] for c in inner), (w.number(0),), turn))


def _take(w: Writer, node: Node, out: Place, x: Place) -> None:
    axis, places = node.settings
    targets, sources = out.index, x.index.take(places.numbers, axis=axis)
    _from_table(w, targets, sources, lambda to, at: w.store_at(out, to, w.load_at(x, at)))


def _put(w: Writer, node: Node, out: Place, x: Place) -> None:
    axis, places, _ = node.settings
    w.copy(out, node.shape, 0.0)
    targets = out.index.take(places.numbers, axis=axis)
    _from_table(
        w, targets, x.index, lambda to, at: w.store_at(out, to, w.do("fadd", w.load_at(out, to), w.load_at(x, at)))
    )


def _from_table(w: Writer, targets: Array, sources: Array, write: Callable[[Counter, Counter], None]) -> None:
    """Write a loop over elements whose numbers stand in tables."""
    tables = w.table(targets), w.table(sources)
    with w.loops((targets.size,)) as k:
        to, at = (w.number_at(start, k, (targets.size,)) for start in tables)
        write(to, at)


def _triangle(keep: Callable[[Array, int], Array]) -> Callable[..., None]:
    """Return what writes one triangle of each matrix, and zeros beside it."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        start = w.table(keep(np.ones(node.shape[-2:]), node.settings[0]))
        kept = Place("u", start + np.arange(node.shape[-2] * node.shape[-1]).reshape(node.shape[-2:]), condition=True)
        with w.loops(node.shape) as k:
            w.store(out, k, w.select(w.read(kept, k), w.load(x, k), w.number(0)))

    return write


def _scatter(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    w.copy(out, node.shape, 0.0)
    for key, arg, part in zip(node.settings[1], node.args, parts, strict=True):
        target = out.part(key)
        with w.loops(arg.shape) as k:
            w.store(target, k, w.do("fadd", w.load(target, k), w.load(part, k)))


def _from_diagonal(w: Writer, node: Node, out: Place, x: Place) -> None:
    w.copy(out, node.shape, 0.0)
    w.copy(out.seen(OPERATIONS["diagonal"].moved((), out.index)), node.args[0].shape, x)


def _concatenate(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    start, axis = 0, node.settings[0]
    for arg, part in zip(node.args, parts, strict=True):
        stop = start + arg.shape[axis]
        w.copy(out.part((*map(range, node.shape[:axis]), range(start, stop))), arg.shape, part)
        start = stop


def _stack(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    before = node.shape[: node.settings[0]]
    for i, (arg, part) in enumerate(zip(node.args, parts, strict=True)):
        w.copy(out.part((*map(range, before), i)), arg.shape, part)


def _add(w: Writer, total: str, x: str) -> str:
    return w.do("fadd", total, x)


RULES: dict[str, Callable[..., None]] = {
    "sum": _sum,
    "prod": _prod,
    "prod_others": _prod_others,
    "max": _extremum(first("oge")),
    "min": _extremum(first("ole")),
    "cumsum": _scan(_add),
    "cumprod": _scan(lambda w, total, x: w.do("fmul", total, x)),
    "recurrence": _scan(lambda w, total, x, a: w.do("fadd", x, w.do("fmul", a, total))),
    "argmax_mask": _mask("ogt"),
    "argmin_mask": _mask("olt"),
    "argmax": _place("ogt"),
    "argmin": _place("olt"),
    "matmul": _matmul,
    "einsum": _einsum,
    "take": _take,
    "put": _put,
    "triu": _triangle(np.triu),
    "tril": _triangle(np.tril),
    "scatter": _scatter,
    "from_diagonal": _from_diagonal,
    "concatenate": _concatenate,
    "stack": _stack,
}
