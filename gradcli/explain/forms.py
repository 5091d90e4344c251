"""The gradients of a system of arrays as formulas of matrices: directly, or by the adjoints of intermediates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from gradcli.explain.matrix_form import matrix_form
from gradcli.explain.results import Array, BackwardResult, Named
from gradcli.explain.sections import Computed, Math, Name
from gradcli.graph.graph import scheduled
from gradcli.graph.names import bar
from gradcli.graph.node import Exact, Node
from gradcli.notation.nodes import written_size

_SHORT = 14  # operations in a gradient that needs no adjoints of intermediates
_LONG = 40  # operations in one that is not written
_UNTOLD = ("scatter", "put", "put_along", "prod_others", "recurrence")  # that no formula can say in a few words


@dataclass(frozen=True)
class Forms:
    """The formula of each gradient that has a readable one, and of the adjoints that they mention, in their order."""

    gradients: Mapping[str, Math]
    adjoints: Mapping[str, Math]


def forms(result: BackwardResult, v: Named, called: Mapping[str, str] | None = None) -> Forms:
    """Return the gradients of the leaves wanted as formulas; none for a system of scalars.

    `called` are what some of the cotangents are called; a system that has such is written in formulas always.
    """
    called = called or {}
    if not called and not any(n.shape for n in result.graph.nodes):
        return Forms({}, {})
    cotangents = result.swept.cotangents
    rest = len(v) - len(called)
    known = {n: k for name, n in cotangents.items() if name not in called and (k := _uniform(v[name])) is not None}
    names = dict(result.graph.labels)
    names |= {n: called.get(name, "v" if rest == 1 else f"v_{name}") for name, n in cotangents.items()}
    return _Writer(result, known, names).forms()


def _uniform(v: Array) -> Exact | None:
    """Return the one number of all weights."""
    if not v.size or not np.isfinite(v).all() or (v != v.reshape(-1)[0]).any() or not v.any():
        return None
    number = float(v.reshape(-1)[0])
    return int(number) if number.is_integer() else Decimal(repr(number))


@dataclass(frozen=True)
class _Writer:
    result: BackwardResult
    known: Mapping[Node, Exact]
    names: Mapping[Node, str]

    def forms(self) -> Forms:
        found: dict[str, Node] = {}
        bars = self.bars()
        for name in self.result.wrt:
            gradient = self.result.swept.gradients[name]
            direct = matrix_form(gradient, self.names, self.known)
            by_adjoints = matrix_form(gradient, {**self.names, **bars}, self.known)
            found[name] = direct if written_size(direct, self.names) <= _SHORT else by_adjoints
        names = {**self.names, **bars}
        readable = {n: g for n, g in found.items() if _is_readable(g, names)}
        adjoints = self.adjoints(bars, readable)
        return Forms({name: _math(node, names) for name, node in readable.items()}, adjoints)

    def bars(self) -> dict[Node, str]:
        """Return the adjoints of the intermediates that the user named."""
        swept, graph = self.result.swept, self.result.graph
        found: dict[Node, str] = {}
        for node, name in graph.labels.items():
            adjoint = swept.adjoints.get(node)
            if adjoint is not None and node.args and adjoint not in swept.cotangents.values() and "[" not in name:
                found.setdefault(adjoint, bar(name))
        return found

    def adjoints(self, bars: Mapping[Node, str], wanted: Mapping[str, Node]) -> dict[str, Math]:
        """Return the formulas of the adjoints that others mention, each in terms of those of later nodes."""
        names = {**self.names, **bars}
        found: dict[Node, Node] = {}
        pending = list(wanted.values())
        while pending:
            for n in scheduled([pending.pop()], names):
                for used in (a for a in (n, *n.args) if a in bars and a not in found and n not in names):
                    others = {k: name for k, name in names.items() if k is not used}
                    found[used] = matrix_form(used, others, self.known)
                    pending.append(found[used])
        order = [node for node in bars if node in found]
        return {bars[n]: _math(found[n], {k: v for k, v in names.items() if k is not n}) for n in reversed(order)}


def _is_readable(node: Node, names: Mapping[Node, str]) -> bool:
    """Tell whether a formula says something, can be typed, and is not too long."""
    untold = any(n.op in _UNTOLD for n in scheduled([node], names))
    return node.op != "const" and not untold and written_size(node, names) <= _LONG


def _math(node: Node, names: Mapping[Node, str]) -> Math:
    return Name(names[node]) if node in names else Computed(node, names, implicit=True)
