"""Borders of a formula, where its value may jump or be missing: zeros of denominators, equal numbers compared.

On both sides of such a border a formula may be a right one, and wrong on the border itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import isnan

from gradcli.engine.evaluate import number
from gradcli.graph.construct import broadcast, call, where
from gradcli.graph.graph import scheduled
from gradcli.graph.matrices import det
from gradcli.graph.node import Node, compare, const, elementwise, leaf, lift
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import interpret

_OF_MATRIX = 2  # axes of an array that has one determinant

Replace = Callable[[Node, Node], Node]  # of the mask of a border, and of the node with new arguments


@dataclass(frozen=True)
class Border:
    """The zeros of a node `zero`, and `on`, which gives the node that has this border its value there.

    Without `on`, the value there follows from those of its arguments, among which `zero` is.
    """

    node: Node
    zero: Node
    on: Replace | None = None


def borders(wanted: Iterable[Node], inputs: Mapping[Node, bool]) -> list[Border]:
    """Return the borders of nodes; `inputs` are the leaves, and whether each is positive.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> [b.zero.op for b in borders([(x + 1) / (x * (x**2 + 1)), x / elementwise("exp", x)], {x: False})]
    ['input']
    """
    nodes = scheduled(wanted)
    signs = signs_of(nodes, inputs)
    result = []
    for node in nodes:
        for border in _borders(node):
            signs = signs_of(scheduled([border.zero]), inputs, signs)
            result += [Border(node, zero, border.on) for zero in _factors(border.zero, signs)]
    return result


def on_borders(wanted: Iterable[Node], borders: Iterable[Border]) -> tuple[list[Node], dict[Node, Border]]:
    """Return nodes that have their values on borders where leaves, one for each border, are above 0."""
    wanted = list(wanted)
    masks = {leaf(b.zero.shape): b for b in borders}
    of_node: dict[Node, list[tuple[Node, Border]]] = {}
    for mask, border in masks.items():
        of_node.setdefault(border.zero if border.on is None else border.node, []).append((mask, border))

    def step(node: Node, args: list[Node]) -> Node:
        result = node if args == [*node.args] else node.with_args(tuple(args))
        for mask, border in of_node.get(node, ()):
            condition = compare("gt", mask, lift(0))
            result = where(condition, 0, result) if border.on is None else border.on(condition, result)
        return result

    new = interpret(scheduled(wanted), step, {}) if masks else {n: n for n in wanted}
    return [new[n] for n in wanted], masks


def _argument(position: int, value: Callable[[Node], Node]) -> Replace:
    """Return the replacement of an argument by a value made of it."""

    def on(mask: Node, node: Node) -> Node:
        args = list(node.args)
        args[position] = where(mask, value(args[position]), args[position])
        return node.with_args(tuple(args)) if args[position].shape == node.args[position].shape else node

    return on


def _result(value: float) -> Replace:
    """Return the replacement of a result by a number."""

    def on(mask: Node, node: Node) -> Node:
        return where(mask if mask.shape == node.shape else broadcast(mask, node.shape), const(value), node)

    return on


def _tie(node: Node) -> Replace:
    """Return the replacement of a comparison by its result where both sides are equal."""
    holds = node.op in ("eq", "le", "ge")

    def on(mask: Node, node: Node) -> Node:
        return elementwise("or", node, mask) if holds else elementwise("and", node, elementwise("not", mask))

    return on


def _borders(node: Node) -> Iterator[Border]:
    """Yield the borders of one operation."""
    if node.op in OPERATIONS and OPERATIONS[node.op].compares:
        yield Border(node, node.args[0] - node.args[1], _tie(node))
    elif node.op in _OF_ARGUMENT:
        for position, zero, value in _OF_ARGUMENT[node.op]:
            yield Border(node, zero(node.args[position]), _argument(position, value))
    elif node.op in _AT_0:
        yield Border(node, node.args[_AT_0[node.op]])
    elif node.op in _OF_RESULT and (OPERATIONS[node.op].broadcasts or len(node.args[0].shape) == _OF_MATRIX):
        zero, result = _OF_RESULT[node.op]
        yield Border(node, zero(*node.args), _result(result))
    elif node.op == "pow":
        yield from _of_power(node)


def _of_power(node: Node) -> Iterator[Border]:
    base, exponent = node.args
    if exponent.value is None:
        yield Border(node, _from_integer(exponent), _argument(1, _rounded))
    if exponent.value is None or number(exponent.value) < 0:
        yield Border(node, base)


def _from_integer(x: Node) -> Node:
    return x - _rounded(x)


def _rounded(x: Node) -> Node:
    return call("round", x)


def _half(x: Node) -> Node:
    return call("floor", x) + const(1) / 2


Position = tuple[int, Callable[[Node], Node], Callable[[Node], Node]]
_AT_INTEGERS: Position = (0, _from_integer, _rounded)

# The position of an argument, the function of it that is 0 on the border, and its value there.
_OF_ARGUMENT: Mapping[str, tuple[Position, ...]] = {
    "log1p": ((0, lambda x: x + 1, lambda x: const(-1, x.shape)),),
    "atanh": ((0, lambda x: 1 - x, lambda x: const(1, x.shape)), (0, lambda x: 1 + x, lambda x: const(-1, x.shape))),
    **dict.fromkeys(("floor", "ceil", "trunc", "frac", "gamma", "lgamma", "digamma"), (_AT_INTEGERS,)),
    "polygamma": ((1, _from_integer, _rounded),),
    "round": ((0, lambda x: x - _half(x), _half),),
}

# The position of an argument that is 0 on the border.
_AT_0: Mapping[str, int] = {"div": 1, **dict.fromkeys(("log", "log2", "log10", "sign", "heaviside"), 0)}

# The function of the arguments that is 0 on the border, and the result there.
_OF_RESULT: Mapping[str, tuple[Callable[..., Node], float]] = {
    **dict.fromkeys(("tan", "sec"), (lambda x: call("cos", x), float("inf"))),
    **dict.fromkeys(("cot", "csc"), (lambda x: call("sin", x), float("inf"))),
    **dict.fromkeys(("mod", "fmod"), (lambda a, b: _from_integer(a / b), 0.0)),
    "inv": (det, float("nan")),
    "solve": (lambda a, b: det(a), float("nan")),
}


Signs = frozenset[int]  # that the elements of a node may have
_ANY, _NOT_NEGATIVE, _POSITIVE = frozenset((-1, 0, 1)), frozenset((0, 1)), frozenset((1,))


def signs_of(
    nodes: Iterable[Node], inputs: Mapping[Node, bool], known: Mapping[Node, Signs] | None = None
) -> dict[Node, Signs]:
    """Return what signs nodes have wherever they are defined, as far as their operations tell.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> nodes = [x, y := x**2, z := 1 + y]
    >>> signs_of(scheduled([z]), {x: False})[z]
    frozenset({1})
    """
    known = dict(known or {n: _POSITIVE if positive else _ANY for n, positive in inputs.items()})
    return interpret(nodes, _signs, known)


def _signs(node: Node, args: list[Signs]) -> Signs:
    if node.is_constant:
        return frozenset().union(*(_ANY if isnan(v) else {(v > 0) - (v < 0)} for v in map(number, node.values)))
    if node.dtype == "bool" or not args:
        return _ANY
    if (rule := _SIGNS.get(node.op)) is not None:
        return rule(node, *args)
    return frozenset().union(*args) if node.op in _MOVES else _ANY


def _each(sign: Callable[..., int]) -> Callable[..., Signs]:
    """Return the rule of an operation whose result has the `sign` of those of its arguments."""
    return lambda node, *args: frozenset(sign(*signs) for signs in product(*args))


def _sum(node: Node, a: Signs, b: Signs) -> Signs:
    return frozenset(k for i, j in product(a, b) for k in (_ANY if i * j < 0 else (i or j,)))


def _product(node: Node, a: Signs, b: Signs) -> Signs:
    return frozenset(i * i for i in a) if node.args[0] is node.args[1] else frozenset(i * j for i, j in product(a, b))


def _power(node: Node, a: Signs, b: Signs) -> Signs:
    value = node.args[1].value
    if a == _POSITIVE or value is None:
        return a if a == _POSITIVE else _ANY
    exponent = number(value)
    return frozenset(i if exponent % 2 == 1 else abs(i) for i in a) - (
        frozenset((0,)) if exponent <= 0 else frozenset()
    )


def _of_matrices(node: Node, a: Signs, b: Signs) -> Signs:
    return _product(node, a, b) if node.args[0] is node.args[1] and not node.shape else _ANY


_MOVES = frozenset(["index", "reshape", "broadcast", "transpose", "stack", "concatenate", "diagonal", "max", "min"])
_SIGN_OF_ITS_ARGUMENT = ("expm1", "log1p", *(op for op, row in OPERATIONS.items() if row.odd))
_SIGNS: Mapping[str, Callable[..., Signs]] = {
    "add": _sum,
    "sub": lambda node, a, b: _sum(node, a, frozenset(-k for k in b)),
    "neg": _each(lambda a: -a),
    "mul": _product,
    "div": lambda node, a, b: frozenset(i * j for i, j in product(a, b - {0})),
    "pow": _power,
    "hypot": _each(lambda a, b: abs(a or b)),
    "maximum": _each(max),
    "matmul": _of_matrices,
    **dict.fromkeys(("corner", "where"), lambda node, c, a, b: a | b),
    **dict.fromkeys(("exp", "exp2", "cosh", "sech", "sigmoid", "softplus", "softmax"), lambda node, *args: _POSITIVE),
    **dict.fromkeys(("abs", "sqrt", "norm"), _each(abs)),
    **dict.fromkeys(("relu", "var", "std"), lambda node, a: _NOT_NEGATIVE),
    **dict.fromkeys(("sum", "mean"), lambda node, a: _sum(node, a, a)),
    **dict.fromkeys(_SIGN_OF_ITS_ARGUMENT, _each(int)),
}
# Functions that are 0 where their argument is.
_LIKE_ITS_ARGUMENT = frozenset([*_SIGN_OF_ITS_ARGUMENT, "abs", "neg", "sqrt"])


def _factors(zero: Node, signs: Mapping[Node, Signs]) -> Iterator[Node]:
    """Yield simpler nodes, of which one is 0 wherever this one is; none where none ever is."""
    if zero.is_constant or 0 not in signs[zero]:
        return
    if zero.op in _LIKE_ITS_ARGUMENT:
        yield from _factors(zero.args[0], signs)
    elif zero.op == "mul":
        for factor in dict.fromkeys(zero.args):
            yield from _factors(factor, signs)
    elif zero.op == "div" or (zero.op == "pow" and zero.args[1].is_constant):
        yield from _factors(zero.args[0], signs)
    else:
        yield zero
