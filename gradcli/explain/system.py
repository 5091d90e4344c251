"""The section `system`: what is computed, and its values at a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradcli.explain.results import Named, Shown
from gradcli.explain.sections import Block, Computed, Equations, Line, Math, Name, Section, Text, Value
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.node import Node
from gradcli.notation.nodes import readable_names

_FIRST, _LAST = 20, 4  # statements of a longer system that are shown
_BEHIND = 6  # numbers of a point that stand behind the first statement
_LEAVES = 12


def system_section(result: Shown, at: Named | None, values: Named) -> Section:
    """Return the statements with their values; `at` is the point, None without one."""
    lines = list(_lines(result.graph, values))
    at = at and {name: at[name] for name in appearance(result.graph)}
    first: list[Block] = []
    if at is not None:
        point = point_parts(at)
        if sum(v.size for v in at.values()) <= _BEHIND:
            lines[0] = Line(lines[0].sides, point)
        else:
            first = [Text(point)]
    if len(lines) <= _FIRST + _LAST:
        return Section("system", (*first, Equations(tuple(lines))))
    left_out = Text((f"… {len(lines) - _FIRST - _LAST:,} statements more …",))
    return Section("system", (*first, Equations(tuple(lines[:_FIRST])), left_out, Equations(tuple(lines[-_LAST:]))))


def point_parts(at: Named) -> tuple[Math, ...]:
    """Return a point as words: at x0 = 1, x1 = 2."""
    parts: list[Math] = []
    for name, value in list(at.items())[:_LEAVES]:
        parts += [", " if parts else "at ", Name(name), " = ", Value(value, given=True)]
    return (*parts, f", … ({len(at):,} inputs)") if len(at) > _LEAVES else tuple(parts)


def _lines(graph: Graph, values: Named) -> Iterator[Line]:
    """Yield an equation for each statement, and for each part of one that is too deep to read as a whole."""
    names = readable_names(graph)
    deep = any(n not in graph.labels for n in names)
    for node, name in names.items() if deep else ():
        if node not in graph.labels:
            yield Line((Name(name), Computed(node, names)))
    assembled = {name.partition("[")[0] for name in graph.names if "[" in name}
    for name, node in graph.names.items():
        value = (Value(values[name]),) if name in values else ()
        written = "" if deep or name in assembled else _written(graph, node)
        yield Line((Name(name), _right(name, node, names, written), *value))


def _right(name: str, node: Node, names: Mapping[Node, str], written: str) -> Math:
    """Return what a name was given: what its node computes, or the name that the node has already."""
    return Computed(node, names, written) if names.get(node, name) == name else Name(names[node])


def _written(graph: Graph, node: Node) -> str:
    """Return a node as the user wrote it."""
    return " ".join(graph.spans[node].text.split()) if node in graph.spans else ""
