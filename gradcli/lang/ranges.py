"""`for i in 0..9`: the iterations that the text of a loop describes, and loops that are computed round by round."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gradcli.errors import Fix, InputError, Span
from gradcli.graph.array import Array
from gradcli.graph.names import NAME, normal
from gradcli.graph.shapes import size_of
from gradcli.lang.expressions import Expression, read_expression
from gradcli.lang.loops import Integers, Loop, integers_of
from gradcli.lang.statements import Clauses, Statement, check_name, for_at

MAX_POINTS = 2**20

_IN = re.compile(rf"for\s+({NAME})\s+in\s+", re.ASCII)
_RANGE = re.compile(r"range\s*\((?:([^(),]+),)?([^(),]+)\)\s*")
_HINT = "a loop is written `for i in 0..9`"


def read_loops(statements: list[Statement]) -> list[Statement]:
    """Return the statements with their loops read; names of integers are those that statements before them define.

    Errors: `InputError`, with its position.

    >>> from gradcli.errors import Source
    >>> from gradcli.lang.statements import read_statements
    >>> read_loops(read_statements(Source("n = 3; y[i] = x[i] for i in 1..n-1")))[1].loop.key
    (array([1, 2]),)
    """
    if not [s for s in statements if s.clauses is not None]:
        return statements
    integers: dict[str, int] = {}
    inputs = {s.name for s in statements if s.declares}
    read = []
    for s in statements:
        if s.clauses is not None:
            s = _with_loop(s, s.clauses, integers, inputs)
        elif s.name and s.key is None and not s.declares and (value := _integer(s.expression, integers)) is not None:
            integers[s.name] = value
        read.append(s)
    return read


def _integer(expression: Expression, integers: Mapping[str, int]) -> int | None:
    """Return the integer that an expression is, or None."""
    try:
        value = integers_of(expression.tree, integers)
    except InputError:
        return None
    return value if type(value) is int else None


def _with_loop(
    statement: Statement, clauses: Clauses, integers: Mapping[str, int], inputs: set[str | None]
) -> Statement:
    loop = read_loop(clauses.loops, integers, inputs)
    key, indices = _key(clauses.key, {**integers, **loop.variables})
    loop = replace(loop, key=key, reads=(loop.reads | indices) - loop.variables.keys())
    expression = statement.expression
    read = tuple(n for n in expression.names if n.id not in loop.variables)
    return statement._replace(expression=expression._replace(names=read), loop=loop)


def read_loop(span: Span, integers: Mapping[str, int], inputs: Collection[str | None]) -> Loop:
    """Return the loop that a text describes, `for i in 0..9`, without an element that it assigns.

    Errors: `InputError`, with its position, for bounds that are not integers, an empty range, or too many iterations.
    """
    bounds: dict[str, range] = {}
    reads: set[str] = set()
    for name, low, high in _loops(span):
        if name.text in bounds:
            raise InputError(f"`{name.text}` is the variable of two loops", name, "each loop has its own")
        ends = [_bound(end, integers, inputs) for end in (low, high)]
        if ends[0] > ends[1]:
            empty = Span(name.source, low.span(low.tree).start, high.span(high.tree).end)
            raise InputError(f"this range is empty: {ends[0]}..{ends[1]}", empty, "`0..2` is 0, 1, 2")
        bounds[normal(name.text)] = range(ends[0], ends[1] + 1)
        reads |= {n.id for n in (*low.names, *high.names)}
    shape = tuple(map(len, bounds.values()))
    if size_of(shape) > MAX_POINTS:
        raise InputError(
            f"this loop has {size_of(shape):,} elements, and at most {MAX_POINTS:,} are supported", span,
            "operations on whole arrays have no such limit: y = x**2",
        )  # fmt: skip
    grid = np.meshgrid(*(np.arange(r.start, r.stop) for r in bounds.values()), indexing="ij")
    variables = {name: axis.reshape(-1) for name, axis in zip(bounds, grid, strict=True)}
    return Loop(variables, dict(integers), frozenset(reads))


def _loops(span: Span) -> Iterator[tuple[Span, Expression, Expression]]:
    """Yield the variable and the two bounds of each loop."""
    text, start = span.text.replace("\n", " "), 0
    while start < len(text):
        end = for_at(text, start + 3)
        yield _loop(Span(span.source, span.start + start, span.start + start + len(text[start:end].rstrip())))
        start = end


def _loop(span: Span) -> tuple[Span, Expression, Expression]:
    text = span.text.replace("\n", " ")
    match = _IN.match(text)
    if match is None:
        raise InputError("this is not a loop", span, _HINT)
    source, start = span.source, span.start
    name = Span(source, start + match.start(1), start + match.end(1))
    check_name(normal(match[1]), name)
    dots = text.find("..", match.end())
    if dots < 0:
        bounds = Span(source, start + match.end(), span.end)
        fix = _written(bounds)
        raise InputError("a range is written with two dots", bounds, None if fix else _HINT, fix=fix)
    ends = []
    for first, last in ((match.end(), dots), (dots + 2, len(text))):
        if not text[first:last].strip():
            raise InputError("a bound is missing", Span(source, start + dots, start + dots + 2), _HINT)
        ends.append(read_expression(source, start + first, start + last))
    return name, ends[0], ends[1]


def _written(bounds: Span) -> Fix | None:
    """Return Python's `range(n)` as it is written here."""
    match = _RANGE.fullmatch(bounds.text)
    if match is None:
        return None
    low, high = (match[1] or "0").strip(), match[2].strip()
    return Fix(bounds, f"{low}..{int(high) - 1 if high.isdecimal() else f'{high}-1'}")


def _bound(bound: Expression, integers: Mapping[str, int], inputs: Collection[str | None]) -> int:
    try:
        value = integers_of(bound.tree, integers)
        if type(value) is not int:
            raise InputError("a bound must be an integer", None, _HINT, bound.tree)
    except InputError as error:
        part = error.about
        if isinstance(part, ast.Name) and part.id in inputs:
            hint = f"an input may change from point to point; define it by `{part.id} = 100`, without `input`"
            raise InputError(f"the input `{part.id}` cannot be a bound", bound.span(part), hint) from None
        raise error.at(bound.span(part)) from None
    return value


def _key(span: Span, names: Integers) -> tuple[tuple[Array, ...], set[str]]:
    """Return the indices of the assigned element in each iteration, and the names that they are computed from."""
    size = max(np.size(value) for value in names.values())
    whole = read_expression(span.source, span.start, span.end)
    result = []
    for part in whole.tree.elts if isinstance(whole.tree, ast.List) else []:
        try:
            index = integers_of(part, names)
        except InputError as error:
            raise error.at(whole.span(error.about)) from None
        if np.asarray(index).dtype == np.bool_ or np.any(np.asarray(index) < 0):
            raise InputError("an element is assigned by integers from 0", whole.span(part), "for example `y[i] = …`")
        result.append(np.broadcast_to(np.asarray(index, dtype=np.int64), (size,)))
    if not result:
        raise InputError("an index is missing", span, "for example `y[i] = …`")
    return tuple(result), {n.id for n in whole.names}


def rounds(statements: Sequence[Statement]) -> list[tuple[Statement, ...]]:
    """Return the statements in order: together those whose loops are computed from each other's elements.

    Errors: `InputError` for such loops that are not over the same range, or do not follow each other.

    >>> from gradcli.errors import Source
    >>> from gradcli.lang.ranges import read_loops
    >>> from gradcli.lang.statements import read_statements
    >>> text = "S[0] = 1; I[0] = 1; S[k] = I[k-1] for k in 1..3; I[k] = S[k-1] for k in 1..3; y = S + I"
    >>> [len(together) for together in rounds(read_loops(read_statements(Source(text))))]
    [1, 1, 2, 1]
    """
    loops = [(i, s) for i, s in enumerate(statements) if s.loop is not None]
    if not loops:
        return [*zip(statements)]  # each by itself
    last = {s.name or "": i for i, s in loops}
    reads: dict[str, set[str]] = {name: set() for name in last}
    for _, s in loops:
        reads[s.name or ""] |= {n.id for n in s.expression.names if n.id in last}
    result, begin = [], 0
    while begin < len(statements):
        i, end = begin, begin + 1  # of the statements that are computed together
        while i < end:
            s, name = statements[i], statements[i].name or ""
            for other in sorted(reads[name]) if s.loop is not None else ():
                if last[other] >= end and _depends(other, name, reads):
                    _check(s, statements[i + 1 : last[other] + 1], other)
                    end = last[other] + 1
            i += 1
        result.append(tuple(statements[begin:end]))
        begin = end
    return result


def _depends(name: str, other: str, reads: Mapping[str, set[str]]) -> bool:
    """Return whether the elements of a name are computed from those of the other one, directly or not."""
    seen, pending = {name}, [name]
    while pending:
        new = reads[pending.pop()] - seen
        seen |= new
        pending += new
    return other in seen


def _check(first: Statement, others: Sequence[Statement], name: str) -> None:
    """Check that statements are loops over the range of the first one."""
    if not all(_same_range(first, s) for s in others):
        assert first.clauses is not None
        loop = first.clauses.loops.line
        raise InputError(
            f"`{first.name}` and `{name}` are computed from each other, but not in loops over one range in a row",
            first.span,
            f"`{first.name}[…] = … {loop}; {name}[…] = … {loop}`, or both in one array: `s[…] = [.., ..] {loop}`",
        )


def _same_range(a: Statement, b: Statement) -> bool:
    if a.loop is None or b.loop is None or [*a.loop.variables] != [*b.loop.variables]:
        return False
    pairs = zip(a.loop.variables.values(), b.loop.variables.values(), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)
