"""The section `system`: what is computed, and its values at a point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from gradcli.graph.array import Weights
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import ElementName, dot, element_name
from gradcli.graph.node import Node
from gradcli.notation.nodes import readable_names
from gradcli.notation.numbers import shape_text
from gradcli.notation.text import exact_text
from gradcli.pages.mentions import named_operands, names_in
from gradcli.pages.recurrence import SCREEN, Folded, Recurrence, loops_of_formulas
from gradcli.pages.results import Array, Named, Shown
from gradcli.pages.rounds import closed_form
from gradcli.pages.sections import (
    Block,
    Computed,
    Equations,
    Formula,
    Line,
    Math,
    Name,
    Section,
    Text,
    Typed,
    Value,
    Words,
    assigned,
    quantity,
)

_FIRST, _LAST = SCREEN - 4, 4  # statements of a longer system that are shown
_FEW = 3  # statements that are not left out: a line tells that others are
_BEHIND = 6  # numbers of a point that stand behind the first statement: more are wider than a line
_LEAVES = 12  # inputs of a point that are listed: two lines


def system_section(
    result: Shown,
    at: Named | None,
    values: Named,
    above: Sequence[Block] = (),
    folded: Folded | None = None,
    whole: bool = False,
    read: Collection[str] = (),
) -> Section:
    """Return the statements with their values at the point `at`; `above` is a title that has the point already.

    Loops are recurrences, those that are `folded` or those of formulas.  The `whole` of a long system is shown, round
    by round, where it is asked for.  Of what is left out otherwise the names have their numbers that shown statements
    read, or other sections, whose names are `read`.
    """
    if folded is None:
        folded = Folded(result.graph) if whole else loops_of_formulas(result.graph)
    graph = folded.graph
    known = {n: values[name] for n, name in result.graph.labels.items() if name in values}
    values = {**values, **{name: known[n] for name, n in graph.names.items() if n in known}}
    statements = [*_statements(graph, folded.loops)]
    gaps = [] if whole else _gaps(statements, folded)
    omitted = {k for gap, _ in gaps for k in gap}
    lines = {k: s.line(values) for k, s in enumerate(statements) if k not in omitted}
    at = at and {name: at[name] for name in appearance(graph) if name in at}
    first = list(above)
    if at is not None and not above:
        point = point_parts(at)
        if sum(v.size for v in at.values()) <= _BEHIND:
            begin = min(lines)
            lines[begin] = Line(lines[begin].sides, point)
        else:
            first = [Text(point)]
    modules = sorted({name for loop in folded.loops for name in loop.modules})
    said = [Text((", ".join(f"{name}[k] is {name}.k" for name in modules),))] if modules else []
    if gaps:
        read = {*read, *(name for line in lines.values() for side in line.sides[1:] for name in names_in(side))}
        read -= {name for line in lines.values() for side in line.sides[:1] for name in names_in(side)}
    begin, blocks = 0, first
    for gap, what in gaps:
        numbers = {name: n for k in gap for name, n in statements[k].values(values, known) if name in read}
        blocks += [_with_sides(lines, range(begin, gap.start)), _omission(what, numbers)]
        begin = gap.stop
    return Section("system", (*blocks, _with_sides(lines, range(begin, len(statements))), *said))


def _with_sides(lines: Mapping[int, Line], shown: range) -> Equations:
    return Equations(tuple(lines[k] for k in shown if lines[k].sides))


def _gaps(statements: Sequence[_Statement], folded: Folded) -> list[tuple[range, str]]:
    """Return the positions of statements that are left out, and what they are: rounds of loops, or statements."""
    gaps = []
    for part in folded.left_out:
        positions = [k for k, s in enumerate(statements) if s.node in part]
        gaps.append((range(positions[0], positions[-1] + 1), "more rounds"))
    count = len(statements)
    if count - sum(len(gap) for gap, _ in gaps) > _FIRST + _LAST + _FEW:
        gap = _around_loops(statements, range(_FIRST, count - _LAST))
        gaps = [(gap, f"{len(gap):,} more statements")] if len(gap) > _FEW else []
    return sorted(gaps, key=lambda pair: pair[0].start)


def _around_loops(statements: Sequence[_Statement], gap: range) -> range:
    """Return a gap that does not begin or end between the statements of one loop, unless these are a screen."""
    first, stop = gap.start, gap.stop
    for loop in {id(s.loop): s.loop for s in statements if s.loop is not None}.values():
        positions = [k for k, s in enumerate(statements) if s.loop is loop]
        if len(positions) <= SCREEN:
            first = positions[-1] + 1 if positions[0] < gap.start <= positions[-1] else first
            stop = positions[0] if positions[0] < gap.stop <= positions[-1] else stop
    return range(first, max(first, stop))


def _omission(what: str, numbers: Named) -> Text:
    """Return what is left out, with the numbers of names that are read elsewhere."""
    how = (" (", Typed("--unroll"), " shows them)") if what.endswith("rounds") else ()
    return Text((f"… {what}", *how, *(assigned(": ", numbers.items()) or [" …"] * (not how))))


def shown_nodes(graph: Graph) -> list[Node]:
    """Return the nodes whose values the section may show."""
    shown = loops_of_formulas(graph).graph
    nodes, labels = list(shown.names.values()), shown.labels
    first = _FIRST + _FEW
    if len(nodes) <= first + _LAST:
        return nodes
    last = nodes[-_LAST:]
    read = {a for n in last for a in named_operands(n, labels)}
    return nodes[:first] + [n for n in nodes[first:-_LAST] if n in read] + last


def point_parts(at: Named) -> tuple[Math, ...]:
    """Return a point as words: at x0 = 1, x1 = 2."""
    parts = assigned("at ", list(at.items())[:_LEAVES], signed_zero=True)
    return (*parts, f", … ({len(at):,} inputs)") if len(at) > _LEAVES else tuple(parts)


def rates(u: Named) -> Text:
    """Return the sentence on the tangents u: the rates at which the inputs change."""
    moving = ((dot(name), value) for name, value in u.items() if value.any() or len(u) == 1)
    return Text(tuple(assigned("u: the inputs change at the rates ", moving)) or ("u: no input changes",))


class _Statement(NamedTuple):
    """A statement of a page: what it computes, its name, and its line, given the values; and the loop that it is."""

    node: Node
    name: str
    line: Callable[[Named], Line]
    loop: Recurrence | None = None

    def values(self, values: Named, known: Mapping[Node, Array]) -> Iterator[tuple[str, Array]]:
        """Yield the numbers of the names that it defines, as far as they are known."""
        if self.name in values:
            yield self.name, values[self.name]
        for stem, members in self.loop.members.items() if self.loop is not None else ():
            yield from ((element_name(stem, (k,)), known[n]) for k, n in members.items() if n in known)


def _statements(graph: Graph, loops: Sequence[Recurrence] = ()) -> Iterator[_Statement]:
    """Yield each statement, each part of one that is too deep to read, and each of a loop."""
    inside = {n: loop for loop in loops for part in loop.rounds for n in part}
    names = readable_names(graph) if not inside else dict(graph.labels)
    deep = any(n not in graph.labels for n in names)
    parts = [(name, node) for node, name in names.items() if node not in graph.labels] if deep else []
    assembled = {name.array for name in graph.names if isinstance(name, ElementName)}
    begun: set[int] = set()
    ends = {members[max(members)] for loop in loops for members in loop.members.values()}

    def line(name: str, node: Node, values: Named) -> Line:
        if node.is_constant and isinstance(node.settings[0], Weights) and node.size > 1:
            return Line((Name(name), f"constant, {shape_text(node.shape)}"))
        value = (Value(values[name]),) if name in values else ()
        is_of_loop = not inside.keys().isdisjoint(node.args)  # which a model writes as a call of what is not shown
        written = "" if deep or is_of_loop or name in assembled else written_by_user(graph, node)
        if node in inside and name != graph.labels[node]:
            return Line((Name(name), Name(graph.labels[node]), *value))
        if node in inside:  # where it has no number, its statement says all
            sides = (Name(name), *closed_form(inside[node], graph.labels), *value)
            return Line(sides if len(sides) > 1 else ())
        if node.is_constant and value and not written:
            return Line((Name(name), *value))
        return Line((Name(name), _right(name, node, names, written), *value))

    yield from (_Statement(node, name, partial(line, name, node)) for name, node in parts)
    for name, node in graph.names.items():
        if any(name in loop.members for loop in loops):
            continue  # a list, whose elements a loop has assigned
        if (loop := inside.get(node)) is not None and id(loop) not in begun:
            begun.add(id(loop))
            yield from (_Statement(node, "", partial(_unvalued, each), loop) for each in recurrence_lines(loop))
        if loop is None or node in ends:
            yield _Statement(node, name, partial(line, name, node))


def _unvalued(line: Line, _: Named) -> Line:
    return line


def recurrence_lines(loop: Recurrence) -> Iterator[Line]:
    """Yield the statements of a loop: what it starts from, and what each round assigns."""
    for name, numbers in loop.lists.items():
        yield Line((Name(name), Formula(f"[{', '.join(map(exact_text, numbers))}]", Value(np.array(numbers, float)))))
    for name, node in loop.initial:
        yield Line((Name(name), quantity(node, loop.names)))
    for name, node in loop.statements:
        yield Line(
            (
                Name(name),
                Words((quantity(node, loop.names), " for ", Name(loop.index), f" in {loop.first}..{loop.last}")),
            )
        )


def _right(name: str, node: Node, names: Mapping[Node, str], written: str) -> Math:
    """Return the right side of a name's statement: the formula of its node, or another name of that node."""
    return Computed(node, names, written) if names.get(node, name) == name else Name(names[node])


def written_by_user(graph: Graph, node: Node) -> str:
    """Return a node as the user wrote it, in the language of formulas; "" where only its name is written."""
    span = graph.spans.get(node)
    written = span.line if span is not None and not span.source.is_python else ""
    return "" if written in graph.names else written
