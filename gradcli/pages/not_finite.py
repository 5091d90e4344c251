"""Numbers that are not finite: the operation at which they arose, and changes that keep gradients finite."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from gradcli.engine.evaluate import at_point, values_of
from gradcli.errors import Notes
from gradcli.graph.graph import Graph, depending
from gradcli.graph.names import element_names
from gradcli.graph.node import Node, compare, const, elementwise
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Sweep, sweep
from gradcli.notation.numbers import number_text
from gradcli.pages.evaluation import sweep_inputs
from gradcli.pages.results import Array, Named

_STATEMENT = 60  # characters of a statement in a warning, which is two lines then
# By operation; {} is its input.
SAFER = {
    "sqrt": "`sqrt({} + eps)` with a small eps such as 1e-12",
    "rsqrt": "`rsqrt({} + eps)` with a small eps such as 1e-12",
    "norm": "`sqrt(sum({}**2) + eps)` with a small eps such as 1e-12",
    "log": "`log(clamp({}, min=eps))` with a small eps such as 1e-12, or `log1p` for log(1 + …)",
    "log1p": "`log1p(clamp({}, min=eps - 1))` with a small eps such as 1e-12",
    "log2": "`log2(clamp({}, min=eps))` with a small eps such as 1e-12",
    "log10": "`log10(clamp({}, min=eps))` with a small eps such as 1e-12",
    "div": "keep the divisor away from 0: add a small eps, or use `clamp(…, min=eps)`",
    "pow": "`clamp({}, min=eps)` before the power, with a small eps such as 1e-12",
    "asin": "`clamp({}, -1 + eps, 1 - eps)` before it, with a small eps such as 1e-6",
    "acos": "`clamp({}, -1 + eps, 1 - eps)` before it, with a small eps such as 1e-6",
    "exp": "`clamp({}, max=80)` before it; `logsumexp` or `log_softmax` for sums of exponentials",
    **dict.fromkeys(("var", "std"), "give it more elements: it divides by n - correction, which is 0 here"),
}

# The number at which an operation and its slopes are finite, where that is not 1.
_FINITE = dict.fromkeys(("exp", "exp2", "expm1", "tan", "acos", "asin", "atanh"), 0)
_NODES = 5_000  # of a system that is looked into: a reverse pass
_SHORT = 30  # characters of an input in a sentence: with the operation it fits on a line
_LINE = 70  # characters of a guarded operation
_ROOTS = ("sqrt", "rsqrt")  # of a negative number, which no small one helps

# By operation, how its operand is compared with 0 where it is not at the pole.
_POLES = {"div": "ne", **dict.fromkeys(("sqrt", "rsqrt", "log", "log2", "log10", "pow"), "gt")}


def origin(swept: Sweep, inputs: Named) -> str:
    """Return where in a sweep the first number arose that is not finite, in words."""
    values, is_bad = _evaluated(swept, inputs)
    if any(map(is_bad, swept.cotangents.values())):
        return "v itself is not finite"
    for p in swept.passes:
        if is_bad(p.contribution):
            if (first := next(filter(is_bad, (p.node, *p.node.args)), None)) is not None:
                return _value_origin(swept.graph, first, values)
            hidden = (values[p.adjoint] == 0).any() and np.isnan(values[p.contribution]).any()
            texts = f"it arises in {_words(p.node, swept.graph)}, whose local derivative is not finite here"
            return texts + ": 0·inf is nan" * bool(hidden)
    return "it arises where contributions are summed"


def _evaluated(swept: Sweep, inputs: Named) -> tuple[Mapping[Node, Array], Callable[[Node], bool]]:
    """Return the values of a sweep, and the function that returns whether a computed one is not finite."""
    values = values_of(swept.graph, inputs, swept.traced())
    return values, lambda node: not node.is_constant and not np.isfinite(values[node]).all()


def _value_origin(graph: Graph, y: Node, values: Mapping[Node, Array]) -> str:
    """Return where a node's first number arose that is not finite, in words; `values` has all that it depends on."""
    node = _first(y, values)
    if node.is_leaf:
        return f"the input {graph.labels[node]} itself is not finite"
    return f"it arises in {_words(node, graph)}, whose value is not finite"


def _first(node: Node, values: Mapping[Node, Array]) -> Node:
    """Return the operation or leaf that a node's number comes from, which is not finite."""
    while (read := _not_finite_argument(node, values)) is not None:
        node = read
    return node


def _not_finite_argument(node: Node, values: Mapping[Node, Array]) -> Node | None:
    """Return an argument that is not finite where the node reads it."""
    for k, argument in enumerate(node.args):
        bad = ~np.isfinite(values[argument])
        if OPERATIONS[node.op].selects and k > 0:
            bad = bad & (values[node.args[0]].astype(bool) == (k == 1))
        if bad.any() and not argument.is_constant:
            return argument
    return None


def _words(node: Node, graph: Graph) -> str:
    """Return an operation with the place where the user wrote it."""
    written = f" ({graph.spans[node].line[:_STATEMENT]})" if node in graph.spans else ""
    return f"`{node.op}`{written}"


def not_finite(swept: Sweep, inputs: Named, grads: Named) -> list[str]:
    """Return a warning for each gradient that is not finite, with the operation where the first such number arose."""
    texts = [_first_not_finite(f"{name}.grad", grad) for name, grad in grads.items()]
    where = origin(swept, inputs) if any(texts) else ""
    return [f"{what}: {where}" for what in texts if what]


def not_finite_values(graph: Graph, at: Named, same: Collection[str] = ()) -> list[str]:
    """Return a warning for each output that is not finite at a point, with the operation where that arose.

    `same` as for `at_points`.
    """
    values = at_point(graph, at, graph.nodes, same)
    texts = [(_first_not_finite(name, values[y]), y) for name, y in graph.outputs.items()]
    return [f"{what}: {_value_origin(graph, y, values)}" for what, y in texts if what]


def warn_of_values(graph: Graph, at: Named, values: Named, notes: Notes) -> None:
    """Add warnings of the outputs that are not finite."""
    if not all(np.isfinite(value).all() for value in values.values()):
        for text in not_finite_values(graph, at):
            notes.add("warning", text)


def _first_not_finite(name: str, array: Array) -> str:
    """Return the first element that is not finite, with its number; nothing where there is none."""
    bad = np.flatnonzero(~np.isfinite(array))
    if not len(bad):
        return ""
    return f"{element_names(name, array.shape)[bad[0]]} is {number_text(array.reshape(-1)[bad[0]])}"


def not_finite_entry(graph: Graph, wrt: Sequence[str], at: Named, matrix: Array, of: str = "") -> str:
    """Return a warning for the first entry of J that is not finite, with the operation where it arose.

    `of` is what J's rows are derivatives of, where they are.
    """
    i, j = (int(k[0]) for k in np.nonzero(~np.isfinite(matrix)))
    return entry_not_finite(graph, wrt, at, (i, j), float(matrix[i, j]), of)


def entry_not_finite(
    graph: Graph, wrt: Sequence[str], at: Named, entry: tuple[int, int], value: float, of: str = ""
) -> str:
    """Return the warning for the entry of J at that row and column, which has this value."""
    i, j = entry
    indices = ((name, y, k) for name, y in graph.outputs.items() for k in range(y.size))
    name, y, k = next(itertools.islice(indices, i, None))
    row = element_names(name, y.shape)[k]
    column = next(itertools.islice((e for n in wrt for e in element_names(n, graph.inputs[n].shape)), j, None))
    v = np.zeros(y.size)
    v[k] = 1
    alone = sweep(Graph.of(graph.inputs, {name: y}, names=graph.names, spans=graph.spans), wrt)
    rows = f"d2{of}/d{row}" if of else f"d{row}"
    result = origin(alone, sweep_inputs(at, [{name: v.reshape(y.shape)}]))
    return f"{rows}/d{column} is {number_text(value)}: {result}"


def safer(op: str, name: str) -> str:
    """Return a fix for an operation on an input of that name; "" for an operation that has no usual one.

    >>> safer("sqrt", "x")
    '`sqrt(x + eps)` with a small eps such as 1e-12'
    """
    return SAFER.get(op, "").format(name)


def safer_operation(node: Node, names: Mapping[Node, str]) -> str:
    """Return what keeps an operation finite, on its operand as it is written."""
    from gradcli.notation.nodes import short_text  # where all is finite, nothing is written

    operand = node.args[min(misbehaving(node.op), len(node.args) - 1)]
    return safer(node.op, short_text(operand, names, _SHORT) or names.get(operand, "x"))


def misbehaving(op: str) -> int:
    """Return the position of the operand that a `where` has to guard: the divisor of a quotient."""
    return int(op == "div")


def guard(op: str, condition: str, keeps: bool, where: str = "where", point: str = "") -> tuple[str, str]:
    """Return what to write before and behind an operand, so that it is a finite number where its result is not used.

    The result is used where the condition holds if `keeps`, and elsewhere if not.  A number has `point` behind it.

    >>> "n".join(guard("div", "n == 0", keeps=False)), "x".join(guard("log", "x > 0", keeps=True))
    ('where(n == 0, 1, n)', 'where(x > 0, x, 1)')
    """
    number = f"{_FINITE.get(op, 1)}{point}"
    return (f"{where}({condition}, ", f", {number})") if keeps else (f"{where}({condition}, {number}, ", ")")


def fixes(graph: Graph, wrt: Sequence[str], inputs: Named) -> str:
    """Return what to write instead where gradients began not to be finite; "" where an input or v is not.

    `inputs` are the leaves and the cotangents, as for a sweep.

    >>> from gradcli.graph.construct import where
    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> y = where(compare("ne", x, const(0)), elementwise("sin", x) / x, const(1))
    >>> fixes(Graph.of({"x": x}, {"y": y}), ["x"], {"x": np.zeros(1), "y.v": np.ones(1)})
    '`sin(x)/where(x != 0, x, 1)`: a `where` on the result is too late'
    """
    if len(graph.nodes) > _NODES:
        return ""
    swept = sweep(graph, wrt)
    values, is_bad = _evaluated(swept, inputs)
    texts: dict[str, None] = {}
    for p in swept.passes if not any(map(is_bad, swept.cotangents.values())) else ():
        begins = p.slope is not None and is_bad(p.slope)  # whatever arrives from the operations behind it
        if is_bad(p.contribution) and (begins or not is_bad(p.adjoint)):
            node = _first(next(filter(is_bad, (p.node, *p.node.args)), p.node), values)
            if node.args and not (node.op in _ROOTS and np.isnan(values[node]).any()):
                texts[_fix(graph, node, bool(np.isnan(values[p.contribution]).any()))] = None
    return "; ".join(filter(None, texts))


def _fix(graph: Graph, node: Node, is_nan: bool) -> str:
    """Return an operation with its operand guarded, where its result is not used, or else kept from the pole."""
    from gradcli.notation.nodes import short_text

    before = {*graph.inputs.values(), *graph.nodes[: graph.nodes.index(node)]}
    names = {n: name for n, name in graph.labels.items() if n in before}  # those that its statement can read
    if is_nan and node.op in _POLES and _is_selected(graph, node):
        args, i = [*node.args], misbehaving(node.op)
        harmless = const(_FINITE.get(node.op, 1))
        args[i] = elementwise("where", compare(_POLES[node.op], args[i], const(0)), args[i], harmless)
        if text := short_text(node.with_args(tuple(args)), names, _LINE):
            return f"`{text}`: a `where` on the result is too late"
    return safer_operation(node, names)


def _is_selected(graph: Graph, node: Node) -> bool:
    """Return whether a `where` behind a node leaves elements of it out."""
    behind = depending(graph.nodes, [node])
    return any(OPERATIONS[n.op].selects and not behind.isdisjoint(n.args[1:]) for n in graph.nodes if n.args)
