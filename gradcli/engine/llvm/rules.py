"""What each structural operation is in the loops of an LLVM kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from gradcli.engine.llvm.expressions import first, frexp, ldexp
from gradcli.engine.llvm.places import Place
from gradcli.engine.llvm.writer import Counter, Writer
from gradcli.graph.array import Array
from gradcli.graph.einsum import labels
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape

Update = Callable[[Writer, str, str], str]
Load = Callable[[list[Counter]], str]  # the element at these counters


def _split(shape: Shape, axes: Sequence[int]) -> tuple[Shape, Shape]:
    return tuple(n for i, n in enumerate(shape) if i not in axes), tuple(shape[i] for i in axes)


def _merge(outer: Sequence[Counter], inner: Sequence[Counter], axes: Sequence[int]) -> list[Counter]:
    """Return the counters of all axes, those of `axes` taken from `inner`."""
    rest, taken = iter(outer), iter(inner)
    return [next(taken) if i in axes else next(rest) for i in range(len(outer) + len(inner))]


def _axes(node: Node) -> tuple[int, ...]:
    """Return the axes of a node whose first setting is one, or several."""
    first = node.settings[0]
    return first if isinstance(first, tuple) else (first,)


def _reduction(value: Callable[[Writer, Shape, Load], str]) -> Callable[..., None]:
    """Return what writes a reduction, of which `value` writes a number from the elements of an array of that shape."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        axes = _axes(node)
        outer, inner = _split(node.args[0].shape, axes)
        with w.loops(outer) as k:
            w.store(out, k, value(w, inner, lambda m: w.load(x, _merge(k, m, axes))))

    return write


def _folded(w: Writer, shape: Shape, start: str, step: Callable[[list[Counter], str], str]) -> str:
    """Return what becomes of one value in a loop over elements."""
    return w.fold(shape, (start,), lambda m, value: (step(m, value),))[0]


def _sum(w: Writer, shape: Shape, load: Load) -> str:
    return _folded(w, shape, w.number(0), lambda m, total: w.do("fadd", total, load(m)))


def _extremum(better: Update) -> Callable[[Writer, Shape, Load], str]:
    """Return what writes a reduction that begins with the first element."""
    return lambda w, shape, load: _folded(w, shape, load([0] * len(shape)), lambda m, best: better(w, best, load(m)))


def _times(w: Writer, product: tuple[str, ...], x: str) -> tuple[str, str]:
    """Return a product, as mantissa and exponent, times a factor, as `products.prod` has it."""
    mantissa, exponent = product
    factor, more = frexp(w, x)
    mantissa, less = frexp(w, w.do("fmul", mantissa, factor))
    return mantissa, w.do("fadd", exponent, w.do("fadd", more, less))


def _prod(w: Writer, shape: Shape, load: Load) -> str:
    return ldexp(w, *w.fold(shape, (w.number(1), w.number(0)), lambda m, *product: _times(w, product, load(m))))


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

            def turn(m: list[Counter], so_far: str) -> str:
                here = _merge(k, m, axes)
                more = [w.load(before, here)] if len(args) > 1 else []
                result = update(w, so_far, w.load(rest, here), *more)
                w.store(behind, here, result)
                return result

            first = w.load(x, _merge(k, [0], axes))
            w.store(out, _merge(k, [0], axes), first)
            if n > 1:
                _folded(w, (n - 1,), first, turn)

    return write


def _place(better: str) -> Callable[[Writer, Shape, Load], str]:
    """Return what writes where the first extremum stands; as for NumPy, the first NaN is one."""

    def value(w: Writer, shape: Shape, load: Load) -> str:
        def turn(m: list[Counter], best: str, place: str) -> tuple[str, str]:
            value = load(m)
            # NaN is better than a number, and nothing is better than NaN.
            news = w.new(f"and {w.masks} {w.compare('uno', value, value)}, {w.compare('ord', best, best)}", "m")
            taken = w.new(f"or {w.masks} {news}, {w.compare(better, value, best)}", "m")
            return w.select(taken, value, best), w.select(taken, w.counted(m[0]), place)

        return w.fold(shape, (load([0]), w.number(0)), turn)[1]

    return value


def _mask(better: str) -> Callable[..., None]:
    """Return what writes for each element whether it is the first extremum."""

    def write(w: Writer, node: Node, out: Place, x: Place) -> None:
        axes = _axes(node)
        outer, inner = _split(node.shape, axes)
        with w.loops(outer) as k:
            place = _place(better)(w, inner, lambda m: w.load(x, _merge(k, m, axes)))

            def turn(m: list[Counter]) -> tuple[()]:
                w.store(out, _merge(k, m, axes), w.compare("oeq", place, w.counted(m[0])))
                return ()

            w.fold(inner, (), turn)

    return write


def _contraction(w: Writer, node: Node, out: Place, a: Place, b: Place) -> None:
    first, second, result = labels(node)
    sizes = dict(zip(first, node.args[0].shape, strict=True))
    inner = [label for label in first if label not in result]
    with w.loops(node.shape) as k:

        def plus(m: list[Counter], total: str) -> str:
            at = dict(zip([*result, *inner], [*k, *m], strict=True))
            return w.plus_product(total, w.load(a, [at[c] for c in first]), w.load(b, [at[c] for c in second]))

        w.store(out, k, _folded(w, tuple(sizes[c] for c in inner), w.number(0), plus))


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
    (axis,) = node.settings
    stops = accumulate(a.shape[axis] for a in node.args)
    for arg, part, stop in zip(node.args, parts, stops, strict=True):
        own = range(stop - arg.shape[axis], stop)
        w.copy(out.part((*map(range, node.shape[:axis]), own)), arg.shape, part)


def _stack(w: Writer, node: Node, out: Place, *parts: Place) -> None:
    before = node.shape[: node.settings[0]]
    for i, (arg, part) in enumerate(zip(node.args, parts, strict=True)):
        w.copy(out.part((*map(range, before), i)), arg.shape, part)


RULES: dict[str, Callable[..., None]] = {
    "sum": _reduction(_sum),
    "prod": _reduction(_prod),
    "prod_others": _prod_others,
    "max": _reduction(_extremum(first("oge"))),
    "min": _reduction(_extremum(first("ole"))),
    "cumsum": _scan(lambda w, total, x: w.do("fadd", total, x)),
    "cumprod": _scan(lambda w, total, x: w.do("fmul", total, x)),
    "recurrence": _scan(lambda w, total, x, a: w.do("fadd", x, w.do("fmul", a, total))),
    "argmax_mask": _mask("ogt"),
    "argmin_mask": _mask("olt"),
    "argmax": _reduction(_place("ogt")),
    "argmin": _reduction(_place("olt")),
    "matmul": _contraction,
    "einsum": _contraction,
    "take": _take,
    "put": _put,
    "triu": _triangle(np.triu),
    "tril": _triangle(np.tril),
    "scatter": _scatter,
    "from_diagonal": _from_diagonal,
    "concatenate": _concatenate,
    "stack": _stack,
}
