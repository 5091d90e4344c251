"""The loops of structural operations: the general ones, and products that keep their exponents apart.

A product of many factors overflows long before its result does.  As `products.prod` does, these loops keep a mantissa
and an exponent.
"""

from __future__ import annotations

import numpy as np

from gradcli.engine.llvm.expressions import frexp, ldexp
from gradcli.engine.llvm.writer import InstructionWriter, Rows
from gradcli.graph.node import Node
from gradcli.loops import rules
from gradcli.loops.index_map import Counter
from gradcli.loops.rules import Rule, axes_of


def _times(w: InstructionWriter, product: tuple[str, ...], x: str) -> tuple[str, str]:
    """Return a product, as mantissa and exponent, times a factor."""
    mantissa, exponent = product
    factor, more = frexp(w, x)
    mantissa, less = frexp(w, w.do("fmul", mantissa, factor))
    return mantissa, w.do("fadd", exponent, w.do("fadd", more, less))


def _prod(w: InstructionWriter, node: Node, out: Rows, x: Rows) -> None:
    x, start = x.last(axes_of(node)), (w.number(1), w.number(0))
    inner = x.index.shape[len(node.shape) :]
    with w.loops(node.shape) as k:
        w.store(out, k, ldexp(w, *w.fold(inner, start, lambda m, *product: _times(w, product, w.load(x, [*k, *m])))))


def _product_of_others(w: InstructionWriter, node: Node, out: Rows, x: Rows) -> None:
    """Write for each element the product of those before it, and then times that of those after it."""
    axes, scratch = axes_of(node), Node("exponents", (), node.shape)
    arrays = [a.last(axes) for a in (out, w.allocate(scratch), x)]
    start = w.number(1), w.number(0)
    outer, inner = x.last(axes).index.shape[: -len(axes)], x.last(axes).index.shape[-len(axes) :]
    last = tuple(range(-len(axes), 0))
    reverse = [a.seen(np.flip(a.index, last)) for a in arrays]
    with w.loops(outer) as k:

        def before(m: list[Counter], *product: str) -> tuple[str, ...]:
            for array, value in zip(arrays, product, strict=False):
                w.store(array, [*k, *m], value)
            return _times(w, product, w.load(arrays[2], [*k, *m]))

        def after(m: list[Counter], *product: str) -> tuple[str, ...]:
            result, exponent, factor = (w.load(array, [*k, *m]) for array in reverse)
            value = ldexp(w, w.do("fmul", result, product[0]), w.do("fadd", exponent, product[1]))
            w.store(reverse[0], [*k, *m], value)
            return _times(w, product, factor)

        w.fold(inner, start, before)
        w.fold(inner, start, after)
    w.release(scratch)


RULES: dict[str, Rule] = {**rules.RULES, "prod": _prod, "product_of_others": _product_of_others}
