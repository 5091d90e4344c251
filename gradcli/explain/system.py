"""The section `system`: what is computed, and its values at a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from gradcli.explain.results import Named, Shown
from gradcli.explain.sections import Block, Computed, Equations, Line, Math, Name, Section, Text, Value, assigned
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import ElementName, dot
from gradcli.graph.node import Node
from gradcli.graph.weights import Weights
from gradcli.notation.nodes import readable_names
from gradcli.notation.numbers import shape_text

_FIRST, _LAST = 20, 4  # statements of a longer system that are shown: a screen
_BEHIND = 6  # numbers of a point that stand behind the first statement: more are wider than a line
_LEAVES = 12  # inputs of a point that are listed: two lines


def system_section(result: Shown, at: Named | None, values: Named, above: Sequence[Block] = ()) -> Section:
    """Return the statements with their values at the point `at`; `above` is a title that has the point already."""
    equations = list(_equations(result.graph))
    left_out = len(equations) - _FIRST - _LAST
    lines = [line(values) for line in (equations if left_out <= 0 else equations[:_FIRST] + equations[-_LAST:])]
    at = at and {name: at[name] for name in appearance(result.graph)}
    first = list(above)
    if at is not None and not above:
        point = point_parts(at)
        if sum(v.size for v in at.values()) <= _BEHIND:
            lines[0] = Line(lines[0].sides, point)
        else:
            first = [Text(point)]
    if left_out <= 0:
        return Section("system", (*first, Equations(tuple(lines))))
    omitted = Text((f"… {left_out:,} more statements …",))
    return Section("system", (*first, Equations(tuple(lines[:_FIRST])), omitted, Equations(tuple(lines[_FIRST:]))))


def shown_names(graph: Graph) -> list[str]:
    """Return the names whose values the section may show."""
    names = list(graph.names)
    return names if len(names) <= _FIRST + _LAST else names[:_FIRST] + names[-_LAST:]


def point_parts(at: Named) -> tuple[Math, ...]:
    """Return a point as words: at x0 = 1, x1 = 2."""
    parts = assigned("at ", list(at.items())[:_LEAVES], signed_zero=True)
    return (*parts, f", … ({len(at):,} inputs)") if len(at) > _LEAVES else tuple(parts)


def rates(u: Named) -> Text:
    """Return the sentence on the tangents u: the rates at which the inputs change."""
    moving = ((dot(name), value) for name, value in u.items() if value.any() or len(u) == 1)
    return Text(tuple(assigned("u: the inputs change at the rates ", moving)) or ("u: no input changes",))


def _equations(graph: Graph) -> Iterator[Callable[[Named], Line]]:
    """Yield an equation for each statement, and for each part of a statement that is too deep to read."""
    names = readable_names(graph)
    deep = any(n not in graph.labels for n in names)
    parts = [(name, node) for node, name in names.items() if node not in graph.labels] if deep else []
    assembled = {name.array for name in graph.names if isinstance(name, ElementName)}

    def line(name: str, node: Node, values: Named) -> Line:
        if node.is_constant and isinstance(node.settings[0], Weights) and node.size > 1:
            return Line((Name(name), f"constant, {shape_text(node.shape)}"))
        value = (Value(values[name]),) if name in values else ()
        written = "" if deep or name in assembled else written_by_user(graph, node)
        if node.is_constant and value and not written:
            return Line((Name(name), *value))
        return Line((Name(name), _right(name, node, names, written), *value))

    yield from (partial(line, name, node) for name, node in (*parts, *graph.names.items()))


def _right(name: str, node: Node, names: Mapping[Node, str], written: str) -> Math:
    """Return the right side of a name's statement: the formula of its node, or another name of that node."""
    return Computed(node, names, written) if names.get(node, name) == name else Name(names[node])


def written_by_user(graph: Graph, node: Node) -> str:
    """Return a node as the user wrote it, in the language of formulas."""
    span = graph.spans.get(node)
    return span.line if span is not None and not span.source.is_python else ""
