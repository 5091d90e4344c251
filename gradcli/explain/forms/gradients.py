"""The gradients of a system of arrays as formulas of matrices: directly, or by the adjoints of intermediates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from gradcli.explain.backward.loss import cotangent, loss_name, uniform
from gradcli.explain.backward.record import BackwardResult
from gradcli.explain.forms.matrix_form import matrix_form
from gradcli.explain.forms.ties import without_ties
from gradcli.explain.results import Named
from gradcli.explain.sections import Computed, Math, quantity
from gradcli.graph.construct import reshape, spread
from gradcli.graph.graph import scheduled
from gradcli.graph.names import AdjointName, ElementName, adjoint_name
from gradcli.graph.node import Exact, Node, const, elementwise, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.nodes import written_size
from gradcli.notation.writer import spread_argument

if TYPE_CHECKING:
    from gradcli.explain.forms.elementwise_form import ElementwiseForm

_SHORT = 14  # operations in a gradient that needs no adjoints of intermediates: half a line
_LONG = 40  # operations in one that is not written: two lines
# Operations without which SymPy has nothing to shorten.
_ALGEBRA = frozenset(("add", "sub", "mul", "div", "pow", "where", "sigmoid"))
_PARTS = 300  # nodes of a gradient that is shortened: the work is their square
# Operations that no short formula can show.
_UNTOLD = frozenset(("scatter", "scatter_add", "put_along", "product_of_others", "recurrence"))


@dataclass(frozen=True)
class Forms:
    """The formula of each gradient that has a readable one, and of the adjoints that they mention, in their order.

    `constants` are the gradients that are the same numbers at every point.
    """

    gradients: Mapping[str, Math]
    adjoints: Mapping[AdjointName, Math]
    constants: Mapping[str, Node] = field(default_factory=dict)

    def covers(self, names: Iterable[str]) -> bool:
        """Return whether the gradient of each of these leaves has a readable formula, or is constant."""
        return all(name in self.gradients or name in self.constants for name in names)


def forms(result: BackwardResult, v: Named, called: Mapping[str, str] | None = None, at: Named | None = None) -> Forms:
    """Return the gradients of the leaves wanted as formulas; none for a system of scalars.

    `called` are what some of the cotangents are called; a system that has such is written in formulas always.
    Formulas of a point, `at`, do not count the ties of an extremum that has none there.
    """
    called = called or {}
    if not called and not any(n.shape for n in result.graph.nodes):
        return Forms({}, {})
    cotangents = result.swept.cotangents
    rest = len(v) - len(called)
    known = {n: k for name, n in cotangents.items() if name not in called and (k := uniform(v[name])) is not None}
    names = dict(result.graph.labels)
    only = cotangent(result.graph, loss_name(result.graph, v)) if rest == 1 else None
    names |= {
        n: called.get(name, only or (f"{name}.v" if v[name].dtype == object else f"v_{name}"))
        for name, n in cotangents.items()
    }
    return _GradientWriter(result, known, names, loss_name(result.graph, v), at).forms()


class _GradientWriter:
    """Writes gradients as formulas in the user's names, or also in adjoints of named intermediates."""

    def __init__(
        self,
        result: BackwardResult,
        known: Mapping[Node, Exact],
        names: Mapping[Node, str],
        loss: str,
        at: Named | None,
    ) -> None:
        self.result = result
        self.known = known
        self.names = names
        self.loss = loss
        self.at = at
        self.bars = self._bars()
        self.all_names = {**names, **self.bars}

    def _bars(self) -> dict[Node, AdjointName]:
        """Return the adjoints of the intermediates that the user named."""
        swept, graph = self.result.swept, self.result.graph
        result: dict[Node, AdjointName] = {}
        for node, name in graph.labels.items():
            adjoint = swept.adjoints.get(node)
            if (
                adjoint is not None
                and node.args
                and adjoint not in swept.cotangents.values()
                and not isinstance(name, ElementName)
            ):
                result.setdefault(adjoint, adjoint_name(name, self.loss))
        return result

    def forms(self) -> Forms:
        """Return all gradients in the inputs alone, or in adjoints of intermediates where that is shorter in all."""
        gradients = {name: self.result.swept.gradients[name] for name in self.result.wrt}
        direct = {name: self.form(g) for name, g in gradients.items()}
        if all(written_size(form, self.names) <= _SHORT for form in direct.values()):
            return self.readable(direct)
        # `W.grad = h.T @ z̄` needs a line `z̄ = …` on the page, whose size counts, too.
        size = partial(written_size, names=self.all_names)
        by_adjoints = {name: min(direct[name], self.form(g, True), key=size) for name, g in gradients.items()}
        shown = [*by_adjoints.values(), *self.adjoints(by_adjoints.values()).values()]
        return self.readable(direct if sum(map(size, direct.values())) <= sum(map(size, shown)) else by_adjoints)

    def readable(self, readable_forms: Mapping[str, Node]) -> Forms:
        """Return the forms that are worth showing, and the adjoints in them."""
        shown = {
            name: form
            for name, form in readable_forms.items()
            if not form.is_constant
            and not self.picks(form)
            and not self.only_indices(form)
            and all(is_readable(f, self.all_names) for f in (form, *self.adjoints([form]).values()))
        }
        others = {n: {k: v for k, v in self.all_names.items() if k is not n} for n in self.bars}
        return Forms(
            {name: quantity(_summed(form, self.all_names), self.all_names) for name, form in shown.items()},
            {
                self.bars[n]: Computed(form, others[n], implicit=True, whole=True)
                for n, form in self.adjoints(shown.values()).items()
            },
            {name: form for name, form in readable_forms.items() if form.is_constant},
        )

    def picks(self, form: Node) -> bool:
        """Return whether a formula has elements of v, which a column of J shows better."""
        seeds = self.result.swept.cotangents.values()
        return any(operand(n, "index") in seeds for n in scheduled([form], self.names))

    def only_indices(self, form: Node) -> bool:
        """Return whether a formula is a number at some indices and 0 elsewhere, which its elements show better."""
        pending, arrays = [form], []
        while pending:
            node = pending.pop()
            if node.shape and node.args and node not in self.all_names:
                pending += node.args
            elif node.shape:
                arrays.append(node)
        nodes = set(self.result.graph.nodes)
        return bool(arrays) and all(n.is_constant and {*n.values} == {0, 1} and n not in nodes for n in arrays)

    # Forms of nodes

    @cached_property
    def algebra(self) -> bool:
        """Whether SymPy shortens the gradients: they have arithmetic, and at most `_PARTS` nodes."""
        return _is_shortened(
            [n for n in scheduled(self.result.swept.gradients.values(), self.names) if n not in self.names]
        )

    @cache  # noqa: B019 - it lives as long as a page
    def elementwise(self, by_adjoints: bool) -> ElementwiseForm:
        from gradcli.explain.forms.elementwise_form import ElementwiseForm

        names = self.all_names if by_adjoints else self.names
        adjoints = [n for n in names if n not in self.result.graph.labels and n not in self.known]
        return ElementwiseForm(names, self.known, adjoints)

    def form(self, node: Node, by_adjoints: bool = False) -> Node:
        """Return the form of a node in the user's names and v, or also in other adjoints."""
        names = self.all_names if by_adjoints else self.names
        shortened = self.elementwise(by_adjoints)(node) if self.algebra else node
        written = matrix_form(shortened, names, self.known)
        return written if self.at is None else without_ties(written, names, self.result.graph, self.at)

    @cache  # noqa: B019 - it lives as long as a page
    def definition(self, adjoint: Node) -> Node:
        """Return the form of a named adjoint in terms of other adjoints."""
        others = {n: name for n, name in self.all_names.items() if n is not adjoint}
        later = matrix_form(self.elementwise(True).definition(adjoint) if self.algebra else adjoint, others, self.known)
        candidates = [later]
        if len(scheduled([adjoint], self.names)) <= _PARTS:  # the form of a longer one would not be shorter
            candidates.insert(0, self.form(adjoint))
        return spread(min(candidates, key=partial(written_size, names=others)), adjoint.shape)

    def adjoints(self, wanted: Iterable[Node]) -> dict[Node, Node]:
        """Return the forms of the adjoints in the wanted forms, each in terms of adjoints of later nodes."""
        result: dict[Node, Node] = {}
        pending, seen = list(wanted), set(self.names)
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                if node in self.bars:
                    result[node] = self.definition(node)
                    pending.append(result[node])
                else:
                    pending += node.args
        return {n: result[n] for n in scheduled(result) if n in result}


def readable_form(node: Node, names: Mapping[Node, str]) -> Node | None:
    """Return a derivative as a formula of arrays in terms of named nodes; None where it would not be read.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> x, t = leaf((3,)), leaf((3,))
    >>> form = readable_form(2 * (x - t) * 3, {x: "x", t: "t"})
    >>> Notation({x: "x", t: "t"}, implicit=True).expression(form)
    '6*(x - t)'
    """
    from gradcli.explain.forms.elementwise_form import ElementwiseForm

    parts = [n for n in scheduled([node], names) if n not in names]
    shorter = ElementwiseForm(names)(node) if _is_shortened(parts) else node
    form = _summed(matrix_form(shorter, names), names)
    return form if not form.is_constant and is_readable(form, names) else None


def _is_shortened(parts: Sequence[Node]) -> bool:
    """Return whether SymPy shortens formulas of these nodes: they have arithmetic, and are at most `_PARTS`."""
    return len(parts) <= _PARTS and not _ALGEBRA.isdisjoint(n.op for n in parts)


def _summed(form: Node, names: Mapping[Node, str]) -> Node:
    """Return a form in which a reshape that drops leading axes of size 1 is a sum over them.

    A formula does not show a reshape, and 2*y has one axis more than the bias of y = x @ W + b.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> y = leaf((1, 3))
    >>> Notation({y: "y"}, implicit=True).expression(_summed(reshape(2 * y, (3,)), {y: "y"}))
    '2*sum(y, axis=0)'
    """
    if form in names:
        return form
    if form.args and OPERATIONS[form.op].broadcasts:
        numbers = {a for a in form.args if a.shape == form.shape and a.dtype != "bool"}
        return form.with_args(tuple(_summed(a, names) if a in numbers else a for a in form.args))
    inner = spread_argument(form)
    extra = 0 if inner is None else len(inner.shape) - len(form.shape)
    if inner is None or extra <= 0 or inner.shape != (1,) * extra + form.shape:
        return form
    match operands(inner, "mul"):
        case number, rest if number.value is not None and inner not in names:
            return elementwise("mul", const(number.value), _summed(reshape(rest, form.shape), names))
    return Node("sum", (inner,), form.shape, (tuple(range(extra)),))


def is_readable(node: Node, names: Mapping[Node, str]) -> bool:
    """Return whether a formula can be typed, and is not too long."""
    parts = [n for n in scheduled([node], names) if n not in names]
    is_short = _UNTOLD.isdisjoint(n.op for n in parts) and not any(map(_takes_windows, parts))
    return is_short and written_size(node, names) <= _LONG


def _takes_windows(node: Node) -> bool:
    """Return whether a node is the windows of an array, as of a convolution: tables of indices that nobody reads."""
    array = operand(node, "take")
    return array is not None and len(node.shape) > len(array.shape) + 1
