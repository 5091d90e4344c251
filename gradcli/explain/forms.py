"""The gradients of a system of arrays as formulas of matrices: directly, or by the adjoints of intermediates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

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
_ALGEBRA = ("add", "sub", "mul", "div", "pow", "where", "sigmoid")  # without which SymPy has nothing to shorten
_PARTS = 300  # nodes of a gradient that is shortened
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
        direct = self.written(self.names)
        if all(written_size(form, self.names) <= _SHORT for form in direct.values()):
            return self.readable(direct, {})
        bars = self.bars()
        names = {**self.names, **bars}
        # W.grad = h.T @ z̄ rather than what z̄ stands for, if z̄ is told anyway.
        by_adjoints = {
            name: min(direct[name], form, key=partial(written_size, names=names))
            for name, form in self.written(names).items()
        }
        told = [*by_adjoints.values(), *self.adjoints(bars, by_adjoints).values()]
        size = sum(written_size(form, self.names) for form in direct.values())
        if size <= sum(written_size(form, names) for form in told):
            return self.readable(direct, {})
        return self.readable(by_adjoints, bars)

    def readable(self, found: Mapping[str, Node], bars: Mapping[Node, str]) -> Forms:
        """Return forms that say something, and the adjoints that they mention."""
        names = {**self.names, **bars}
        shown = {
            name: form
            for name, form in found.items()
            if form.op != "const"
            and all(_is_readable(f, names) for f in (form, *self.adjoints(bars, {name: form}).values()))
        }
        adjoints = self.adjoints(bars, shown)
        return Forms(
            {name: _math(form, names) for name, form in shown.items()},
            {bars[n]: _math(form, {k: v for k, v in names.items() if k is not n}) for n, form in adjoints.items()},
        )

    def written(self, names: Mapping[Node, str]) -> dict[str, Node]:
        """Return the gradients in terms of these names."""
        return {name: self.form(self.result.swept.gradients[name], names) for name in self.result.wrt}

    def form(self, node: Node, names: Mapping[Node, str]) -> Node:
        """Return the shortest form of a node in terms of these names."""
        parts = [n for n in scheduled([node], names) if n not in names]
        if len(parts) <= _PARTS and any(n.op in _ALGEBRA for n in parts):
            from gradcli.explain.elementwise_form import ElementwiseForm

            adjoints = [n for n in names if n not in self.result.graph.labels and n not in self.known]
            node = ElementwiseForm(names, self.known, adjoints)(node)
        return matrix_form(node, names, self.known)

    def bars(self) -> dict[Node, str]:
        """Return the adjoints of the intermediates that the user named."""
        swept, graph = self.result.swept, self.result.graph
        found: dict[Node, str] = {}
        for node, name in graph.labels.items():
            adjoint = swept.adjoints.get(node)
            if adjoint is not None and node.args and adjoint not in swept.cotangents.values() and "[" not in name:
                found.setdefault(adjoint, bar(name))
        return found

    def adjoints(self, bars: Mapping[Node, str], wanted: Mapping[str, Node]) -> dict[Node, Node]:
        """Return the forms of the adjoints that others mention, each in terms of those of later nodes."""
        names = {**self.names, **bars}
        found: dict[Node, Node] = {}
        pending = list(wanted.values())
        while pending:
            for n in scheduled([pending.pop()], names):
                for used in (a for a in (n, *n.args) if a in bars and a not in found and n not in names):
                    others = {k: name for k, name in names.items() if k is not used}
                    tried = [self.form(used, known) for known in (self.names, others)]
                    found[used] = min(tried, key=lambda f: written_size(f, others))
                    pending.append(found[used])
        return {n: found[n] for n in reversed(list(bars)) if n in found}


def _is_readable(node: Node, names: Mapping[Node, str]) -> bool:
    """Tell whether a formula can be typed, and is not too long."""
    untold = any(n.op in _UNTOLD for n in scheduled([node], names) if n not in names)
    return not untold and written_size(node, names) <= _LONG


def _math(node: Node, names: Mapping[Node, str]) -> Math:
    return Name(names[node]) if node in names else Computed(node, names, implicit=True)
