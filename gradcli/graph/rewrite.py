"""The rewriter: one pass over nodes, in the order of computation, by rules and with equal nodes made one.

The pass is `interpret`, whose results may be of any kind: nodes here, and elsewhere terms, formulas, sets of columns.
Equal nodes, the same operation on the same arguments, are found by hash-consing (J.-C. Filliâtre and S. Conchon,
"Type-safe modular hash-consing", 2006).  Common subexpressions, lowering, substitution, exported functions and their
elements are this pass with other rules.  Those of arithmetic are `ARITHMETIC`, which operators between nodes apply
at once; those of signs are `SIGNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from gradcli.graph.array import Weights
from gradcli.graph.graph import Graph, computed_from
from gradcli.graph.node import Node, Rule, operand
from gradcli.graph.operations import OPERATIONS

_COMMUTATIVE = frozenset(op for op, row in OPERATIONS.items() if row.commutes)

Result = TypeVar("Result")


def interpret(
    nodes: Iterable[Node], step: Callable[[Node, list[Result]], Result], results: dict[Node, Result]
) -> dict[Node, Result]:
    """Add to `results` those of further nodes, in the order of computation, and return them.

    `step` gets a node and the results of its arguments; a node that has a result keeps it.

    >>> from gradcli.graph.graph import scheduled
    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> y = elementwise("sin", 2 * x)
    >>> interpret(scheduled([y]), lambda node, sizes: 1 + sum(sizes), {x: 0})[y]
    3
    """
    for node in nodes:
        if node not in results:
            results[node] = step(node, list(map(results.__getitem__, node.args)))
    return results


def operation_key(node: Node) -> Hashable:
    """Return a key that is equal for nodes of one operation with the same settings, whichever their arguments are.

    1, 1.0 and Decimal(1) are equal but print differently, and 0.0 is not -0.0.  Weights are equal to themselves alone.
    """
    listed = node.is_constant and not isinstance(node.settings[0], Weights)
    return node.op, len(node.args), node.shape, repr(node.settings) if listed else node.settings, node.dtype


def structure(node: Node) -> Hashable:
    """Return a key that is equal for equal nodes: the same operation on the same arguments; that of a leaf is the leaf.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x, z = leaf(), leaf()
    >>> structure(elementwise("mul", x, z)) == structure(elementwise("mul", z, x))
    True
    """
    if not node.args:
        return node if node.is_leaf else operation_key(node)
    args: Hashable = frozenset(node.args) if node.op in _COMMUTATIVE else node.args
    return node.op, args, node.shape, node.settings, node.dtype


class Rewriter:
    """Rewrites nodes by `rules` and `definitions`, each by operation, and makes equal nodes one if it is `sharing`.

    A rule gets a node whose arguments are rewritten, and its result is final; what a definition returns is rewritten
    again, down to the node's arguments.  `every` is the rule of operations without one.  `note` gets each node and
    what it becomes.

    >>> from gradcli.graph.graph import scheduled
    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> y = elementwise("sin", -x)
    >>> Rewriter(rules={"neg": lambda n: n.args[0]}).rewritten(scheduled([y]))[y].args[0] is x
    True
    """

    def __init__(
        self,
        rules: Mapping[str, Rule] | None = None,
        definitions: Mapping[str, Rule] | None = None,
        sharing: bool = True,
        every: Rule | None = None,
        note: Callable[[Node, Node], None] | None = None,
    ) -> None:
        self.rules = rules or {}
        self.every = every
        self.note = note
        self.definitions = definitions or {}
        self.ruled = dict.fromkeys([*self.definitions, *self.rules], True)
        self.sharing = sharing
        self.first: dict[Hashable, Node] = {}
        self.several: dict[Hashable, dict[Node, Node]] = {}  # what definitions of several results have become

    def rewritten(self, nodes: Iterable[Node], known: Mapping[Node, Node] | None = None) -> dict[Node, Node]:
        """Return for each node, in the order of computation, the one it becomes; those in `known` are rewritten."""
        return interpret(nodes, self._moved, dict(known or {}))

    def _moved(self, node: Node, args: list[Node]) -> Node:
        """Return the new node of a node, given its new arguments."""
        result = node if args == [*node.args] else node.with_args(tuple(args))
        if self.sharing or self.every or self.ruled.get(node.op):
            result = self.node(result)
        if self.note is not None:
            self.note(node, result)
        return result

    def node(self, node: Node) -> Node:
        """Return the new node of a node whose arguments are rewritten."""
        definition = self.definitions.get(node.op)
        if definition is not None and (simpler := definition(node)) is not None:
            # Simplification may have taken the definition to an argument's argument: -(-x) is x.
            known = {n: n for arg in node.args for n in (arg, *arg.args)}
            if OPERATIONS[node.op].results == 1:
                return self.rewritten(computed_from(known, [simpler]), known)[simpler]
            call = node.op, node.args, node.settings[:-1]
            known = self.several.get(call, known)
            new = self.several[call] = self.rewritten(computed_from(known, [simpler]), known)
            return new[simpler]
        rule = self.rules.get(node.op, self.every)
        result = rule(node) if rule is not None else None
        return self.unique(node if result is None else result)

    def unique(self, node: Node) -> Node:
        """Return the first node that is equal to this one."""
        return self.first.setdefault(structure(node), node) if self.sharing else node


def common_subexpressions(nodes: Iterable[Node]) -> dict[Node, Node]:
    """Return for each node, in the order of computation, the first of all nodes that are equal to it."""
    return Rewriter().rewritten(nodes)


def optimise(graph: Graph) -> Graph:
    """Return the graph without repeated and without unread nodes.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> y = elementwise("add", elementwise("sin", x), elementwise("sin", x))
    >>> [n.op for n in optimise(Graph.of({"x": x}, {"y": y})).nodes]
    ['input', 'sin', 'add']
    """
    new = common_subexpressions(graph.nodes)
    return Graph.of(graph.inputs, {name: new[n] for name, n in graph.outputs.items()})


def are_equal(a: Node, b: Node) -> bool:
    """Return whether two nodes are the same operations on the same leaves and constants, in the same order.

    >>> from gradcli.graph.node import leaf
    >>> x, z = leaf(), leaf()
    >>> are_equal(2 * x + z, 2 * x + z), are_equal(2 * x, 2 * z)
    (True, False)
    """
    pairs, seen = [(a, b)], set()
    while pairs:
        a, b = pair = pairs.pop()
        if a is not b and pair not in seen:
            if a.is_leaf or operation_key(a) != operation_key(b):
                return False
            seen.add(pair)
            pairs += zip(a.args, b.args, strict=True)
    return True


def rewritten(nodes: Iterable[Node], rule: Rule | None, known: Mapping[Node, Node] | None = None) -> dict[Node, Node]:
    """Return for each node, in the order of computation, the node that it becomes by one rule for all operations.

    The rule gets a node whose arguments are rewritten; those in `known` are rewritten already.

    >>> from gradcli.graph.graph import scheduled
    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> nodes = scheduled([y := elementwise("sin", -x)])
    >>> rewritten(nodes, lambda n: n.args[0] if n.op == "neg" else n)[y].args[0] is x
    True
    """
    return Rewriter(sharing=False, every=rule).rewritten(nodes, known)


def substituted(wanted: Iterable[Node], meant: Mapping[Node, Node], kept: Iterable[Node] = ()) -> list[Node]:
    """Return the nodes with those that `meant` names replaced by its values; `kept` ones stay as they are.

    >>> from gradcli.graph.node import leaf
    >>> x, z = leaf(), leaf()
    >>> [y] = substituted([2 * x], {x: z})
    >>> y.args[1] is z
    True
    """
    wanted = list(wanted)
    known = dict(meant) | {n: n for n in kept if n not in meant}
    new = rewritten(computed_from(known, wanted), None, known)
    return [new[n] for n in wanted]


def _sum(node: Node) -> Node | None:
    """Return a + (−b) as a − b, and (−a) + b as b − a."""
    a, b = node.args
    for x, y in ((a, b), (b, a)):
        if (positive := operand(y, "neg")) is not None:
            return Node("sub", (x, positive), node.shape, (), node.dtype)
    return None


def _difference(node: Node) -> Node | None:
    """Return a − (−b) as a + b."""
    a, b = node.args
    positive = operand(b, "neg")
    return None if positive is None else Node("add", (a, positive), node.shape, (), node.dtype)


def _product(node: Node) -> Node | None:
    """Return a product or quotient of negatives as that of what they are the negatives of, with one sign or none."""
    a, b = node.args
    args = operand(a, "neg") or a, operand(b, "neg") or b
    if args == node.args:
        return None
    plain = node.with_args(args)
    return plain if (args[0] is a) == (args[1] is b) else Node("neg", (plain,), plain.shape)


def _negative(node: Node) -> Node | None:
    """Return x for −(−x)."""
    return operand(node.args[0], "neg")


SIGNS: dict[str, Rule] = {
    "add": _sum, "sub": _difference, "mul": _product, "div": _product, "neg": _negative,
}  # fmt: skip
