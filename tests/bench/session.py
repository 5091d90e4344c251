"""One run of the suite: what was asked for, and what came out of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.bench.race import Rows


@dataclass
class Session:
    """Settings and results: `growth` holds for each system the rows at each number of points."""

    quick: bool = False
    most: int = 10**6  # points
    failed: bool = False
    growth: dict[str, dict[int, Rows]] = field(default_factory=dict)

    def points(self, count: int) -> int:
        """Return how many points to take: ten times fewer when it is to be quick, and no more than were asked for."""
        return min(count // 10 if self.quick else count, self.most)

    def check(self, rows: Rows) -> None:
        """Remember a result that does not agree."""
        self.failed |= any(row.note == "WRONG" for row in rows.values())
