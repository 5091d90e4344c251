"""The names that a page mentions, and the lines that define those of intermediates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gradcli.graph.names import array_name
from gradcli.graph.node import Node, operands
from gradcli.notation.writer import Writer
from gradcli.pages.recurrence import loops_of_formulas
from gradcli.pages.results import Shown
from gradcli.pages.sections import (
    Added,
    Block,
    Computed,
    Difference,
    Equal,
    Equations,
    Formula,
    Grad,
    Grid,
    Line,
    Listed,
    Math,
    Matrix,
    Name,
    Page,
    Partial,
    Product,
    Section,
    Sum,
    Text,
    Value,
    Words,
)

DEFINITIONS = ("where",)  # the heading of a section that defines names


def page_of(result: Shown, sections: Iterable[Section], elements: Iterable[str] = ()) -> Page:
    """Return the page of a result, in which each name that gradcli gave to an intermediate is defined.

    A definition that no section has follows the first section that needs it; the `elements` of what a loop assigns need
    none.
    """
    return Page(tuple(_defining(result, [*sections], elements)), result.style)


def mentioned(sections: Iterable[Section]) -> set[str]:
    """Return the names that sections mention."""
    blocks = (math for section in sections for block in section.blocks for math in _mathematics(block))
    titles = (math for section in sections for math in section.title)
    return {name for math in (*titles, *blocks) for name in names_in(math)}


def _defining(result: Shown, sections: Sequence[Section], elements: Iterable[str]) -> Iterator[Section]:
    names = [] if result.symbolic is None else result.symbolic.worked_out_names
    if not names:
        yield from sections
        return
    shown = loops_of_formulas(result.graph).graph
    known = {*shown.inputs, *shown.outputs, *_defined(sections), *elements}
    if any(section.name in ("system", "steps") for section in sections):  # the user's own statements
        known |= shown.names.keys()
    for section in sections:
        yield section
        wanted = [name for name in names if not known & {name, array_name(name)}]
        if lines := _definitions(result, mentioned([section]), wanted):
            known |= lines.keys()
            yield Section(section.name, (Equations(tuple(lines.values())),), DEFINITIONS)


def _definitions(result: Shown, names: Iterable[str], wanted: Sequence[str]) -> dict[str, Line]:
    """Return the definitions of the names mentioned, and of those that these mention, as far as they are wanted."""
    known = {*wanted}
    pending = known.intersection(names)
    needed: set[str] = set()
    while pending:
        name = pending.pop()
        needed.add(name)
        pending |= known.intersection(names_in(Value.of(result.formulas.where[name]))) - needed
    return {name: Line((Name(name), Value.of(result.formulas.where[name]))) for name in wanted if name in needed}


def _defined(sections: Iterable[Section]) -> Iterator[str]:
    """Yield the names that have an equation of their own."""
    for section in sections:
        for block in section.blocks:
            for line in block.lines if isinstance(block, Equations) else ():
                if isinstance(line.sides[0], Name):
                    yield line.sides[0].name


def _mathematics(block: Block) -> Iterator[Math]:
    match block:
        case Text(parts):
            yield from parts
        case Equations(lines):
            for line in lines:
                yield from (*line.sides, *line.note)
        case Matrix(_, rows, columns, cells, weights, total):
            yield from (*rows, *columns, *cells.values(), *weights, *total)
        case Grid(_, rows):
            for row in rows:
                yield from row


def names_in(math: Math) -> Iterator[str]:
    """Yield the names of quantities in mathematics, those of adjoints and array elements as they are written.

    >>> list(names_in(Product((Name("v"), Partial("y", "x")))))
    ['v', 'y', 'x']
    """
    match math:
        case Name(name) | Grad(name):
            yield name
        case Partial(of, by):
            for side in (of, by):
                yield from filter(None, (side,) if isinstance(side, str) else side)
        case Value(array):
            for element in array.reshape(-1) if array.dtype == object else ():
                yield from sorted(str(symbol) for symbol in getattr(element, "free_symbols", ()))
        case Computed(node, names):
            yield from (names[n] for n in named_operands(node, names))
        case Formula(_, inner):
            yield from names_in(inner)
        case Added(a, b) | Difference(a, b):
            yield from (*names_in(a), *names_in(b))
        case Words(parts) | Product(parts) | Sum(parts) | Listed(parts) | Equal(parts):
            for part in parts:
                yield from names_in(part)


def named_operands(node: Node, names: Mapping[Node, str]) -> Iterator[Node]:
    """Yield the node, if it has a name, and those with a name in terms of which it is written."""
    if node in names:
        yield node
    pending, seen = [*_written(node)], {node}
    while pending:
        n = pending.pop()
        if n not in seen:
            seen.add(n)
            if n in names:
                yield n
            else:
                pending += _written(n)


def _written(node: Node) -> Sequence[Node]:
    """Return the operands that are written: of a long list of arrays the first ones."""
    is_list = operands(node, "stack") or operands(node, "concatenate")
    return node.args[: Writer.shown] if is_list else node.args
