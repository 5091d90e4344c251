"""The section `system`: what is computed, and its values at a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import ElementName, dot
from gradcli.graph.node import Node
from gradcli.graph.weights import Weights
from gradcli.notation.nodes import readable_names
from gradcli.notation.numbers import shape_text
from gradcli.notation.text import exact_text
from gradcli.pages.recurrence import SCREEN, Folded, Recurrence, loops_of_formulas
from gradcli.pages.results import Named, Shown
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
    Value,
    Words,
    assigned,
    quantity,
)

_FIRST, _LAST = SCREEN - 4, 4  # statements of a longer system that are shown
_BEHIND = 6  # numbers of a point that stand behind the first statement: more are wider than a line
_LEAVES = 12  # inputs of a point that are listed: two lines


def system_section(
    result: Shown,
    at: Named | None,
    values: Named,
    above: Sequence[Block] = (),
    folded: Folded | None = None,
    whole: bool = False,
) -> Section:
    """Return the statements with their values at the point `at`; `above` is a title that has the point already.

    Loops are recurrences, those that are `folded` or those of formulas.  The `whole` of a long system is shown, round
    by round, where it is asked for.
    """
    if folded is None:
        folded = Folded(result.graph) if whole else loops_of_formulas(result.graph)
    graph = folded.graph
    known = {n: values[name] for n, name in result.graph.labels.items() if name in values}
    values = {**values, **{name: known[n] for name, n in graph.names.items() if n in known}}
    equations = [*_equations(graph, folded.loops)]
    left_out = 0 if whole else len(equations) - _FIRST - _LAST
    lines = [line(values) for line in (equations if left_out <= 0 else equations[:_FIRST] + equations[-_LAST:])]
    at = at and {name: at[name] for name in appearance(graph) if name in at}
    first = list(above)
    if at is not None and not above:
        point = point_parts(at)
        if sum(v.size for v in at.values()) <= _BEHIND:
            lines[0] = Line(lines[0].sides, point)
        else:
            first = [Text(point)]
    modules = sorted({name for loop in folded.loops for name in loop.modules})
    said = [Text((", ".join(f"{name}[k] is {name}.k" for name in modules),))] if modules else []
    if left_out <= 0:
        return Section("system", (*first, _with_sides(lines), *said))
    omitted = Text((f"… {left_out:,} more statements …",))
    return Section("system", (*first, _with_sides(lines[:_FIRST]), omitted, _with_sides(lines[_FIRST:]), *said))


def _with_sides(lines: Sequence[Line]) -> Equations:
    return Equations(tuple(line for line in lines if line.sides))


def shown_nodes(graph: Graph) -> list[Node]:
    """Return the nodes whose values the section may show."""
    nodes = list(loops_of_formulas(graph).graph.names.values())
    return nodes if len(nodes) <= _FIRST + _LAST else nodes[:_FIRST] + nodes[-_LAST:]


def point_parts(at: Named) -> tuple[Math, ...]:
    """Return a point as words: at x0 = 1, x1 = 2."""
    parts = assigned("at ", list(at.items())[:_LEAVES], signed_zero=True)
    return (*parts, f", … ({len(at):,} inputs)") if len(at) > _LEAVES else tuple(parts)


def rates(u: Named) -> Text:
    """Return the sentence on the tangents u: the rates at which the inputs change."""
    moving = ((dot(name), value) for name, value in u.items() if value.any() or len(u) == 1)
    return Text(tuple(assigned("u: the inputs change at the rates ", moving)) or ("u: no input changes",))


def _equations(graph: Graph, loops: Sequence[Recurrence] = ()) -> Iterator[Callable[[Named], Line]]:
    """Yield an equation for each statement, for each part of one that is too deep to read, and for each of a loop."""
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

    yield from (partial(line, name, node) for name, node in parts)
    for name, node in graph.names.items():
        if any(name in loop.members for loop in loops):
            continue  # a list, whose elements a loop has assigned
        if (loop := inside.get(node)) is not None and id(loop) not in begun:
            begun.add(id(loop))
            yield from (partial(_unvalued, each) for each in recurrence_lines(loop))
        if loop is None or node in ends:
            yield partial(line, name, node)


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
    """Return a node as the user wrote it, in the language of formulas."""
    span = graph.spans.get(node)
    return span.line if span is not None and not span.source.is_python else ""
