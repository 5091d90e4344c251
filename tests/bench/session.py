"""One run of the suite: what was asked for, and what came out of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.bench.race import Rows


@dataclass
class Session:
    """Settings and results.  `growth` holds rows by size, `races` those of one size."""

    quick: bool = False
    failed: bool = False
    growth: dict[str, dict[int, Rows]] = field(default_factory=dict)
    races: dict[str, Rows] = field(default_factory=dict)

    def points(self, count: int) -> int:
        """Return how many points to take: ten times fewer when it is to be quick."""
        return count // 10 if self.quick else count

    def check(self, rows: Rows) -> None:
        """Remember a result that does not agree."""
        self.failed |= any(row.note == "WRONG" for row in rows.values())

    def take(self, name: str, rows: Rows) -> None:
        """Keep the rows of a race for the picture."""
        self.races[name] = rows
        self.check(rows)
