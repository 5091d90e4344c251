"""A script as it is given: its text, its name and its arguments."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple


class Script(NamedTuple):
    """A script: its text, its name in tracebacks, its folder (None where it has none), and its arguments.

    `data` are the bytes of a file, which Python decodes by the encoding that they declare.
    """

    source: str
    name: str
    folder: str | None
    arguments: Sequence[str] = ()
    data: bytes | None = None

    def line(self, number: int) -> str:
        """Return a line, stripped; "" where there is none.

        >>> script = Script("x = 2\\n  y = x\\n", "-c", None)
        >>> script.line(2), script.line(3)
        ('y = x', '')
        """
        lines = self.source.splitlines()
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def statement_at(line: str, column: int | None) -> str:
    """Return the statement at a column of a line that has several; of another line all, stripped.

    >>> statement_at("  a.step(); b.step()  # both", 12), statement_at("y = f(x,", 4)
    ('b.step()', 'y = f(x,')
    """
    text = line.encode()
    stripped = text.strip()
    before = (column or 0) - (len(text) - len(text.lstrip()))
    with suppress(SyntaxError, ValueError):  # the line may be a part of a statement
        for node in ast.walk(ast.parse(stripped)) if b";" in stripped and column is not None else ():
            if isinstance(node, ast.stmt) and not hasattr(node, "body"):
                span = slice(node.col_offset, node.end_col_offset)
                if span.start <= before < (span.stop or 0):
                    return stripped[span].decode()
    return stripped.decode()
