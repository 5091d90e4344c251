"""Run a graph with exponents that have no limit, so that a quotient of two large numbers is the number that it is.

exp(z)/(exp(z) + 1)**2 is 0 in float64 as soon as the square overflows; here it is about exp(-z) as far as float64 goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.engine.numpy_target import forward
from gradcli.graph.array import Array
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

_BITS = 4096  # more than any two numbers of float64 are apart in their exponents
_LARGEST = 2.0**52  # of an argument of exp: beyond it not even the exponent is known
_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log(2), whose first part has trailing zeros
_STEEP = 40.0  # from which exp(x) - 1 is exp(x), and cosh(x) half of it
_GROWING = frozenset(["gamma", "polygamma", "zeta"])  # which overflow as well as having poles
_FADING = frozenset(["erfc", "softplus", "prod", "cumprod"])  # which underflow


class Wide(NamedTuple):
    """Numbers `mantissa * 2**exponent`, whose mantissas are in [1/2, 1) in size, or 0, infinite or NaN."""

    mantissa: Array
    exponent: Array

    @staticmethod
    def of(mantissa: Array, exponent: Array | float = 0.0) -> Wide:
        """Return numbers with mantissas of any size."""
        mantissa, more = np.frexp(mantissa)
        return Wide(mantissa, more + exponent)

    @property
    def value(self) -> Array:
        """The numbers as float64: 0 or infinite where they are beyond it."""
        return _scaled(self.mantissa, self.exponent)


def _scaled(mantissa: Array, exponent: Array) -> Array:
    return np.asarray(np.ldexp(mantissa, np.clip(exponent, -_BITS, _BITS).astype(int)))


@np.errstate(all="ignore")
def wide_values(graph: Graph, values: Mapping[str, Array], wanted: Iterable[Node]) -> tuple[dict[Node, Array], Array]:
    """Return what `values_of` does, and at which points an overflow or underflow was met that is beyond this, too.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> z = leaf()
    >>> large = elementwise("exp", z)
    >>> slope = large / (large + 1) ** 2
    >>> results, lost = wide_values(Graph.of({"z": z}, {}), {"z": np.array([500.0])}, [slope])
    >>> results[slope] / np.exp(-500.0), lost
    (array([1.]), array([False]))
    """
    hook = _Hook({node: values[name] for name, node in graph.inputs.items() if name in values})
    results = values_of(graph, values, wanted, hook)
    count = max(value.shape[-1] for value in values.values())
    return results, np.broadcast_to(hook.lost, (count,))


class _Hook:
    """Computes each result anew from the wide ones of its arguments."""

    def __init__(self, leaves: Mapping[Node, Array]) -> None:
        self.values = dict(leaves)
        self.wide: dict[Node, Wide] = {}
        self.lost = np.zeros(1, dtype=bool)

    def __call__(self, node: Node, value: Array) -> Array:
        if node.dtype in FLOATING:
            value = self._computed(node, value)
        self.values[node] = value
        return value

    def _computed(self, node: Node, value: Array) -> Array:
        row = OPERATIONS.get(node.op)
        if row is not None and row.kind in ("view", "move"):
            parts = [self._of(a) for a in node.args]
            move = forward(node)
            self.wide[node] = Wide(move(*(p.mantissa for p in parts)), move(*(p.exponent for p in parts)))
            return value
        if rule := _RULES.get(node.op):
            self.wide[node] = result = rule(node, value, *map(self._of, node.args))
            return result.value
        if row is not None and not row.exact:
            self.lost = self.lost | self._is_lost(node, value)
        return value

    def _of(self, node: Node) -> Wide:
        """Return the wide numbers of an argument."""
        if node not in self.wide:
            self.wide[node] = Wide.of(self.values[node].astype(float), 0.0)
        return self.wide[node]

    def _is_lost(self, node: Node, value: Array) -> Array:
        """Return at which points a result overflows, or underflows."""
        bad = np.zeros_like(value, dtype=bool)
        if not OPERATIONS[node.op].poles or node.op in _GROWING:
            bad |= np.isinf(value)
        if node.op in _FADING:
            bad |= value == 0
        for a in node.args:
            bad = bad & np.isfinite(self.values[a]).all(axis=tuple(range(self.values[a].ndim - 1)))
        return np.asarray(bad.any(axis=tuple(range(bad.ndim - 1))))


def _sum_of(a: Wide, b: Wide) -> Wide:
    top = np.maximum(np.where(a.mantissa == 0, -np.inf, a.exponent), np.where(b.mantissa == 0, -np.inf, b.exponent))
    top = np.where(np.isfinite(top), top, 0)
    return Wide.of(_scaled(a.mantissa, a.exponent - top) + _scaled(b.mantissa, b.exponent - top), top)


def _negative(a: Wide) -> Wide:
    return Wide(-a.mantissa, a.exponent)


def _total(node: Node, value: Array, a: Wide) -> Wide:
    axes = node.settings[0]
    assert isinstance(axes, tuple)
    top = np.where(a.mantissa == 0, -np.inf, a.exponent).max(axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    return Wide.of(_scaled(a.mantissa, a.exponent - top).sum(axis=axes), top.squeeze(axes))


def _exp(x: Array) -> Wide:
    known = np.abs(x) < _LARGEST
    count = np.where(known, np.rint(x / math.log(2)), 0)
    rest = np.where(known, x - count * _LN2[0] - count * _LN2[1], x)
    return Wide.of(np.exp(rest), count)


def _chosen(condition: Array, a: Wide, b: Wide) -> Wide:
    return Wide(np.where(condition, a.mantissa, b.mantissa), np.where(condition, a.exponent, b.exponent))


def _hyperbolic(sign: int, node: Node, value: Array, a: Wide) -> Wide:
    x = a.value
    grown = _exp(np.abs(x))
    half = Wide(np.where((sign < 0) & (x < 0), -1, 1) * grown.mantissa, grown.exponent - 1)
    return _chosen(np.abs(x) > _STEEP, half, Wide.of(value))


def _root(node: Node, value: Array, a: Wide) -> Wide:
    odd = a.exponent % 2
    return Wide.of(np.sqrt(a.mantissa * (1 + odd)), (a.exponent - odd) / 2)


def _log(node: Node, value: Array, a: Wide) -> Wide:
    far = np.log(a.mantissa) + a.exponent * math.log(2)
    return Wide.of(np.where(_is_ordinary(a.value), value, far))


def _pow(node: Node, value: Array, a: Wide, b: Wide) -> Wide:
    exponent = b.value
    size = exponent * (np.log2(np.abs(a.mantissa)) + a.exponent)
    whole = np.rint(size)
    sign = np.where(a.mantissa < 0, np.where(exponent % 2 == 0, 1, np.where(exponent % 1 == 0, -1, np.nan)), 1)
    far = Wide.of(sign * np.exp2(size - whole), whole)
    beyond = ~_is_ordinary(value) & np.isfinite(size)
    return _chosen(beyond, far, Wide.of(value))


def _is_ordinary(value: Array) -> Array:
    """Return where numbers have all bits of float64."""
    size = np.abs(value)
    return np.asarray((size >= np.finfo(float).tiny) & (size < np.inf))


def _extremum(sign: int, node: Node, value: Array, a: Wide, b: Wide) -> Wide:
    difference = _sum_of(a, _negative(b)).mantissa
    result = _chosen(sign * difference > 0, a, b)
    return Wide(np.where(np.isnan(value), value, result.mantissa), result.exponent)


_RULES: dict[str, Callable[..., Wide]] = {
    "add": lambda node, value, a, b: _sum_of(a, b),
    "sub": lambda node, value, a, b: _sum_of(a, _negative(b)),
    "mul": lambda node, value, a, b: Wide.of(a.mantissa * b.mantissa, a.exponent + b.exponent),
    "div": lambda node, value, a, b: Wide.of(a.mantissa / b.mantissa, a.exponent - b.exponent),
    "neg": lambda node, value, a: _negative(a),
    "abs": lambda node, value, a: Wide(np.abs(a.mantissa), a.exponent),
    "exp": lambda node, value, a: _exp(a.value),
    "expm1": lambda node, value, a: _chosen(a.value > _STEEP, _exp(a.value), Wide.of(value)),
    "cosh": partial(_hyperbolic, 1),
    "sinh": partial(_hyperbolic, -1),
    "sqrt": _root,
    "log": _log,
    "pow": _pow,
    "maximum": partial(_extremum, 1),
    "minimum": partial(_extremum, -1),
    "sum": _total,
}
