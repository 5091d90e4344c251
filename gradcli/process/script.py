"""A script as it is given: its text, its name and its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Script:
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
