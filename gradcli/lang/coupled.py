"""Coupled recurrences: loops over the same range whose elements are computed from each other, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.errors import InputError
from gradcli.lang.statements import Statement


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
