"""Folded loops of a program: their statements once, the number of rounds, and the result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gradcli.errors import InputError
from gradcli.explain.picture.repeats import repeats
from gradcli.explain.results import Named
from gradcli.explain.sections import (
    Block,
    Code,
    Computed,
    Equal,
    Equations,
    Line,
    Math,
    Name,
    Section,
    Text,
    Value,
    quantity,
)
from gradcli.explain.system import point_parts
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS

_LEAST = 5  # operations that are worth folding, all repetitions together
_CLOSED = 200  # operations whose formula is worked out, to see whether it is short
_SHORT = 24  # characters of such a formula
_DIGITS = 8  # of a number that is written in full
_CODE = 6  # lines of a loop that are shown
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SIGNS = {"*": "×", "/": "÷"}  # as a link of a chain has them


@dataclass(frozen=True)
class Written:
    """A loop in the program: its position, in words, and the repeated statements."""

    where: str
    code: tuple[str, ...]


@dataclass(frozen=True)
class Loop:
    """Isomorphic parts of a graph, one a round; `carried` are pairs of a node before the first and one of the last."""

    parts: tuple[tuple[Node, ...], ...]
    carried: tuple[tuple[Node, Node], ...]
    written: Written

    @property
    def nodes(self) -> set[Node]:
        """All that the loop computes."""
        return {n for part in self.parts for n in part}


Reads = Callable[[Sequence[Sequence[Node]]], Written | None]


def loops(graph: Graph, reads: Reads, keep: Collection[Node] = ()) -> list[Loop]:
    """Return the loops in a graph; `reads` returns the program's loop for isomorphic parts, or None."""
    nodes = [n for n in graph.nodes if n.args]
    result = []
    for start, period, times in repeats(graph, nodes, _LEAST, varying=True):
        parts = tuple(tuple(nodes[start + k * period : start + (k + 1) * period]) for k in range(times))
        written = reads(parts)
        carried = _carried(parts)
        inner = {n for part in parts for n in part} - {end for _, end in carried}
        if written is not None and carried and not inner.intersection(keep):
            result.append(Loop(parts, carried, written))
    return result


def _carried(parts: Sequence[Sequence[Node]]) -> tuple[tuple[Node, Node], ...]:
    """Return the pairs of the values that the loop starts from and those that the last round leaves in their place."""
    first, second, last = parts[0], parts[1], parts[-1]
    positions = {n: k for k, n in enumerate(first)}
    result: dict[int, Node] = {}
    for a, b in zip(first, second, strict=True):
        for mine, other in zip(a.args, b.args, strict=True):
            if other in positions and mine not in positions:
                result[positions[other]] = mine
    return tuple((start, last[k]) for k, start in result.items())


def named(graph: Graph, folded: Sequence[Loop], name_of: Callable[[Node], str]) -> Graph:
    """Return the graph with names for what leaves a loop, and none within; `wanted` says what a node may be called."""
    taken = {*graph.inputs, *graph.names}
    new: dict[str, Node] = {}
    for node in (end for loop in folded for _, end in loop.carried if end not in graph.labels):
        stem = name_of(node) or "t"
        name = stem if stem not in taken else next(fresh_names(taken, stem))
        taken.add(name)
        new[name] = node
    inside = {n for loop in folded for n in loop.nodes} - {end for loop in folded for _, end in loop.carried}
    positions = {n: k for k, n in enumerate(graph.nodes)}
    shown = {name: n for name, n in {**graph.names, **new}.items() if n not in inside}
    names = dict(sorted(shown.items(), key=lambda pair: positions[pair[1]]))
    return replace(graph, names=names)


def folded_system(
    graph: Graph, folded: Sequence[Loop], at: Named, values: Named, above: Sequence[Block] = ()
) -> Section:
    """Return the statements with their values, those of loops once; what leaves a loop has a name.

    The point stands in `above`, or else in the first line.
    """
    names = graph.labels
    ends = {end: loop for loop in folded for _, end in loop.carried}
    blocks = list(above)
    if at and not above:
        blocks.append(Text(point_parts({name: at[name] for name in appearance(graph) if name in at})))
    lines: list[Line] = []
    shown: set[int] = set()
    for node in (n for n in graph.nodes if n.args and n in names):
        loop = ends.get(node)
        if loop is not None and id(loop) not in shown:
            shown.add(id(loop))
            blocks += [*_equations(lines), _loop_line(loop, names, values)]
            lines = []
        value = (Value(values[names[node]]),) if names[node] in values else ()
        if loop is None:
            lines.append(Line((Name(names[node]), _right(node, names), *value)))
        elif isinstance(blocks[-1], Code):
            lines.append(Line((Name(names[node]), *_closed(loop, names), *value)))
    return Section("system", (*blocks, *_equations(lines)))


def _equations(lines: Sequence[Line]) -> list[Block]:
    return [Equations(tuple(lines))] if lines else []


def _right(node: Node, names: Mapping[Node, str]) -> Math:
    return Computed(node, {n: name for n, name in names.items() if n is not node}, implicit=True)


def _loop_line(loop: Loop, names: Mapping[Node, str], values: Named) -> Block:
    """Return a loop of one operation as a chain, x → ×2, ten times (line 5) → y; another one as the program has it."""
    said = f"{_count(len(loop.parts))} times ({loop.written.where})"
    chain = _chain(loop, names)
    if chain:
        ((start, end),) = loop.carried
        sides = [*_closed(loop, names), *([Value(values[names[end]])] if names[end] in values else [])]
        so = ("   so ", Equal((Name(names[end]), *sides))) if sides else ()
        return Text((quantity(start, names), f" → {chain}, {said} → ", Name(names[end]), *so))
    return Code(loop.written.code[:_CODE] + ("…",) * (len(loop.written.code) > _CODE), said)


def _count(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def _chain(loop: Loop, names: Mapping[Node, str]) -> str:
    """Return the only operation of a loop, if it is the same each time: ×2, sin."""
    if len(loop.parts[0]) != 1 or len(loop.carried) != 1:
        return ""
    nodes = [node for (node,) in loop.parts]
    result = {_link(node, before, names) for before, node in pairwise((loop.carried[0][0], *nodes))}
    return result.pop() if len(result) == 1 else ""


def _link(node: Node, before: Node, names: Mapping[Node, str]) -> str:
    """Return an operation on the value before it in a word or two; "" where it takes more."""
    others = [a for a in node.args if a is not before]
    said = [names.get(a) or (str(a.value) if a.value is not None else "") for a in others]
    row = OPERATIONS[node.op]
    backwards = before in node.args[1:] and not row.commutes
    if backwards or len(said) > 1 or "" in said:
        return ""
    if not said:
        return node.op if row.broadcasts else ""
    return _SIGNS.get(row.infix, row.infix) + said[0] if row.infix and row.slopes else ""


def _closed(loop: Loop, names: Mapping[Node, str]) -> Iterator[Math]:
    """Yield the result of a loop as a short formula, if there is one: 1024*x."""
    nodes = [n for part in loop.parts for n in part]
    if len(loop.carried) != 1 or len(nodes) > _CLOSED or loop.carried[0][0] not in names:
        return
    ((start, end),) = loop.carried
    if not _is_plain(nodes, start):
        return
    import sympy

    from gradcli.algebra.formulas import TooDeepError, formulas, symbols
    from gradcli.notation.formulas import code

    x = leaf()
    copies: dict[Node, Node] = {start: x}
    for n in nodes:
        copies[n] = Node(n.op, tuple(copies.get(a, a) for a in n.args), (), n.settings, n.dtype)
    try:
        expr = formulas([copies[end]], {x: symbols(names[start], ())}, {}).exprs[copies[end]].item()
    except (TooDeepError, InputError):
        return
    long = {n: sympy.Rational(f"{float(n):.6g}") for n in expr.atoms(sympy.Rational) if len(str(n)) > _DIGITS}
    expr = expr.xreplace(long)
    if len(code(expr, True, frozenset(names.values()))) <= _SHORT:
        yield Value.of(expr)


def _is_plain(nodes: Sequence[Node], start: Node) -> bool:
    """Return whether nodes are arithmetic, element by element, with what a loop begins with and numbers alone."""
    known = {*nodes, start}
    read = {a for n in nodes for a in n.args if a not in known}
    numbers = all(a.is_constant and a.value is not None for a in read)
    return numbers and all(OPERATIONS[n.op].broadcasts and n.shape == start.shape for n in nodes)
