"""The gradients of a system of arrays as formulas of matrices: which can be read, and adjoints of intermediates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError
from gradcli.graph.construct import reshape, spread
from gradcli.graph.graph import Graph, computed_from, is_larger, scheduled
from gradcli.graph.names import AdjointName, ElementName, adjoint_name
from gradcli.graph.node import Exact, Node, const, elementwise, is_const, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter
from gradcli.graph.shapes import Shape, common_shape
from gradcli.notation.nodes import written_size
from gradcli.notation.writer import spread_argument
from gradcli.pages.backward.loss import cotangent, loss_name, uniform
from gradcli.pages.forms.rules import ArrayForms
from gradcli.pages.question import Result
from gradcli.pages.results import Named
from gradcli.pages.sections import Computed, Math, Name, quantity

_SHORT = 14  # operations in a gradient that needs no adjoints of intermediates: half a line
_WORKED_OUT = 3_000  # nodes of a gradient whose formula is worked out: that of a larger one is not read
_LINES = 200  # adjoints of intermediates that a page has, a line each


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


def forms(result: Result, v: Named, called: Mapping[str, str] | None = None, at: Named | None = None) -> Forms:
    """Return the gradients of the leaves wanted as formulas; none for a system of scalars.

    `called` are what some of the cotangents are called; a system that has such is written in formulas always.
    Formulas of a point, `at`, do not count the ties of an extremum that has none there.
    """
    called = called or {}
    if not called and not result.question.hooks and not any(n.shape for n in result.graph.nodes):
        return Forms({}, {})
    cotangents = result.question.swept.cotangents
    rest = len(v) - len(called)
    known = {n: k for name, n in cotangents.items() if name not in called and (k := uniform(v[name])) is not None}
    names = {**result.graph.labels, **result.question.hooks}
    loss = loss_name(result.graph, v)
    only = cotangent(result.graph, loss) if rest == 1 else None
    names |= {n: called.get(name, only or f"{name}.v") for name, n in cotangents.items()}
    return _GradientWriter(result, known, names, loss, at).forms()


class _GradientWriter:
    """Writes gradients as formulas in the user's names, or also in adjoints of named intermediates."""

    def __init__(
        self, result: Result, known: Mapping[Node, Exact], names: Mapping[Node, str], loss: str, at: Named | None
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
        swept, graph = self.result.question.swept, self.result.graph
        result: dict[Node, AdjointName] = {}
        for node, name in graph.labels.items():
            adjoint = swept.adjoints.get(node)
            if (
                adjoint is not None
                and (node.args or node in swept.hooks)
                and adjoint not in swept.cotangents.values()
                and adjoint not in self.result.question.hooks
                and not isinstance(name, ElementName)
            ):
                result.setdefault(adjoint, adjoint_name(name, self.loss))
        return result

    def forms(self) -> Forms:
        """Return all gradients in the inputs alone, or in adjoints of intermediates where that is shorter in all.

        Where hooks have changed adjoints, these have a line in any case.
        """
        wrt = [name for name in self.result.wrt if name not in self.result.wanted.unwritten]
        gradients = {name: self.result.question.swept.gradients[name] for name in wrt}
        direct = {n: self.form(g) for n, g in gradients.items() if not is_larger(_WORKED_OUT, self.names, g)}
        is_complete = len(direct) == len(gradients)
        is_short = not self.result.question.hooks and is_complete
        if is_short and all(written_size(form, self.names) <= _SHORT for form in direct.values()):
            return self.readable(direct)
        # `W.grad = h.T @ z̄` needs a line `z̄ = …` on the page, whose size counts, too.
        size = partial(written_size, names=self.all_names)
        by_adjoints = dict(direct)
        for name, g in gradients.items():
            if not is_larger(_WORKED_OUT, self.all_names, g):
                form = self.form(g, True)
                by_adjoints[name] = min(direct.get(name, form), form, key=size)
        adjoints = self.adjoints(by_adjoints.values())
        shown = sum(map(size, (*by_adjoints.values(), *adjoints.values())))
        is_longer = len(adjoints) > _LINES or (is_complete and sum(map(size, direct.values())) <= shown)
        return self.readable(direct if is_longer and not self.result.question.hooks else by_adjoints)

    def readable(self, readable_forms: Mapping[str, Node]) -> Forms:
        """Return the forms that are worth showing, and the adjoints in them."""
        definitions = self.adjoints(readable_forms.values())
        is_shown: dict[Node, bool] = {}  # of each adjoint, with all that its definition mentions
        for n, form in definitions.items():
            is_shown[n] = self.is_readable(form, is_shown)
        shown = {
            name: form
            for name, form in readable_forms.items()
            if not form.is_constant
            and not self.picks(form)
            and not self.is_scattered_number(form)
            and self.is_readable(form, is_shown)
        }
        return Forms(
            {name: quantity(summed(form, self.all_names), self.all_names) for name, form in shown.items()},
            {
                self.bars[n]: Name(self.all_names[form])
                if form in self.all_names
                else Computed(form, self.all_names, implicit=True, whole=True)
                for n, form in self.adjoints([*shown.values(), *self.hooked]).items()
            },
            {name: form for name, form in readable_forms.items() if form.is_constant},
        )

    def is_readable(self, form: Node, is_shown: Mapping[Node, bool]) -> bool:
        """Return whether a form can be read, given the adjoints that are shown."""
        if not is_readable(form, self.all_names):
            return False
        read = [form, *(a for n in computed_from(self.all_names, [form]) for a in n.args)]
        return all(is_shown.get(n, False) for n in read if n in self.bars and n not in self.names)

    @property
    def hooked(self) -> list[Node]:
        """The adjoints that hooks have changed and that can be read."""
        swept = self.result.question.swept
        found = (n for node in swept.hooks if (n := swept.adjoints.get(node)) in self.bars)
        return [n for n in found if is_readable(self.definition(n), self.all_names)]

    def picks(self, form: Node) -> bool:
        """Return whether a formula has elements of v, which a column of J shows better."""
        seeds = self.result.question.swept.cotangents.values()
        return any(operand(n, "index") in seeds for n in computed_from(self.names, [form]))

    def is_scattered_number(self, form: Node) -> bool:
        """Return whether a formula is a number at some indices and 0 elsewhere, which its elements show better."""
        pending, seen, arrays = [form], {form}, []
        while pending:
            node = pending.pop()
            if node.shape and node.args and node not in self.all_names:
                pending += set(node.args) - seen
                seen.update(node.args)
            elif node.shape:
                arrays.append(node)
        own = set(self.result.graph.nodes)  # other arrays of 0 and 1 are one-hot: the derivation made them
        return bool(arrays) and all(n.is_constant and {*n.values} == {0, 1} and n not in own for n in arrays)

    # Forms of nodes

    @cache  # noqa: B019 - it lives as long as a page
    def algebra(self, by_adjoints: bool) -> ArrayForms:
        names = self.all_names if by_adjoints else self.names
        adjoints = [n for n in names if n not in self.result.graph.labels and n not in self.known]
        return ArrayForms(names, self.known, adjoints)

    def form(self, node: Node, by_adjoints: bool = False) -> Node:
        """Return the form of a node in the user's names and v, or also in other adjoints."""
        names = self.all_names if by_adjoints else self.names
        written = self.algebra(by_adjoints)(node)
        return written if self.at is None else without_ties(written, names, self.result.graph, self.at)

    @cache  # noqa: B019 - it lives as long as a page
    def definition(self, adjoint: Node) -> Node:
        """Return the form of a named adjoint in terms of other adjoints."""
        candidates = [self.algebra(True).definition(adjoint)]
        if not is_larger(_PARTS, self.names, adjoint):  # the form of a longer one would not be shorter
            candidates.insert(0, self.form(adjoint))
        return spread(min(candidates, key=partial(written_size, names=self.all_names)), adjoint.shape)

    def adjoints(self, wanted: Iterable[Node]) -> dict[Node, Node]:
        """Return the forms of the adjoints in the wanted forms, each in terms of adjoints of later nodes.

        They are no more than one too many for a page.
        """
        result: dict[Node, Node] = {}
        pending, seen = list(wanted), set(self.names)
        while pending and len(result) <= _LINES:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                if node in self.bars:
                    result[node] = self.definition(node)
                    pending.append(result[node])
                else:
                    pending += node.args
        return {n: result[n] for n in scheduled(result) if n in result}


def without_ties(form: Node, names: Collection[Node], graph: Graph, at: Named) -> Node:
    """Return a formula, down to what has a name, without the quotients by a number of ties that is 1 at this point.

    >>> import numpy as np
    >>> from gradcli.graph.construct import reduce
    >>> from gradcli.graph.node import const, elementwise, leaf
    >>> x = leaf((2,))
    >>> graph = Graph.of({"x": x}, {"y": reduce("max", x, (0,), "even")})
    >>> chosen = elementwise("where", elementwise("eq", x, graph.outputs["y"]), const(1), const(0))
    >>> without_ties(chosen / reduce("sum", chosen, (0,)), [x], graph, {"x": np.array([1.0, 2.0])}) is chosen
    True
    """
    nodes = computed_from(names, [form])
    counts = [divisor for n in nodes for divisor in operands(n, "div")[1:] if _counts(divisor)]
    if not counts:
        return form
    ones = {n for n, number in at_point(graph, at, counts).items() if (number == 1).all()}

    def without(node: Node) -> Node | None:
        return spread(node.args[0], node.shape) if node.args[1] in ones else None

    return Rewriter({"div": without}, sharing=False).rewritten(nodes, {n: n for n in names}).get(form, form)


def _counts(node: Node) -> bool:
    """Return whether a node counts the elements of an array that are equal to a number."""
    while (inner := operand(node, "broadcast") or operand(node, "reshape")) is not None:
        node = inner
    chosen = operand(node, "sum")
    match () if chosen is None else operands(chosen, "where"):
        case condition, yes, no:
            return operands(condition, "eq") != () and is_const(yes, 1) and is_const(no, 0)
    return False


_LONG = 40  # operations in a formula that is not written: two lines
_PARTS = 300  # nodes of a gradient whose formula without adjoints may be the shorter one
# Operations that no short formula can show.
_UNTOLD = frozenset(("scatter", "scatter_add", "put_along", "product_of_others", "recurrence"))


def readable_form(node: Node, names: Mapping[Node, str]) -> Node | None:
    """Return a derivative as a formula of arrays in terms of named nodes; None where it would not be read.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> x, t = leaf((3,)), leaf((3,))
    >>> form = readable_form(2 * (x - t) * 3, {x: "x", t: "t"})
    >>> Notation({x: "x", t: "t"}, implicit=True).expression(form)
    '6*(x - t)'
    """
    form = ArrayForms(names)(node)
    return summed(form, names) if not form.is_constant and is_readable(form, names) else None


def summed(form: Node, names: Mapping[Node, str]) -> Node:
    """Return a form in which a reshape that drops leading axes of size 1 is a sum over them.

    A formula does not show a reshape, and 2*y has one axis more than the bias of y = x @ W + b.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> y = leaf((1, 3))
    >>> Notation({y: "y"}, implicit=True).expression(summed(reshape(2 * y, (3,)), {y: "y"}))
    '2*sum(y, axis=0)'
    """
    if form in names:
        return form
    if form.args and OPERATIONS[form.op].broadcasts:
        numbers = {a for a in form.args if a.shape == form.shape and a.dtype != "bool"}
        return form.with_args(tuple(summed(a, names) if a in numbers else a for a in form.args))
    inner = spread_argument(form)
    if inner is None or _written_shape(inner, names) == form.shape:
        return form  # written with its own axes
    extra = len(inner.shape) - len(form.shape)
    if extra <= 0 or inner.shape != (1,) * extra + form.shape:
        return form
    match operands(inner, "mul"):
        case number, rest if number.value is not None and inner not in names:
            return elementwise("mul", const(number.value), summed(reshape(rest, form.shape), names))
    return Node("sum", (inner,), form.shape, (tuple(range(extra)),))


def _written_shape(node: Node, names: Mapping[Node, str]) -> Shape:
    """Return the shape of a formula as it is written, without what broadcasting does by itself."""
    if node in names or not node.args:
        return node.shape
    if (inner := spread_argument(node)) is not None:
        return _written_shape(inner, names)
    if not OPERATIONS[node.op].broadcasts:
        return node.shape
    try:
        return common_shape([_written_shape(a, names) for a in node.args])
    except InputError:  # without their reshapes, which are written then, the arguments do not fit together
        return node.shape


def is_readable(node: Node, names: Mapping[Node, str]) -> bool:
    """Return whether a formula can be typed, and is not too long."""
    parts = computed_from(names, [node])
    is_short = _UNTOLD.isdisjoint(n.op for n in parts) and not any(map(_takes_windows, parts))
    return is_short and written_size(node, names) <= _LONG


def _takes_windows(node: Node) -> bool:
    """Return whether a node is the windows of an array, as of a convolution: tables of indices that nobody reads."""
    array = operand(node, "take")
    return array is not None and len(node.shape) > len(array.shape) + 1
