"""The result of `gradcli jacobian --numeric`: J in numbers, without a formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradcli.explain.jacobian.dense import JacobianPoint, JacobianResult
from gradcli.explain.jacobian.product import heading, jacobian_sections
from gradcli.explain.mentions import page_of
from gradcli.explain.results import noted
from gradcli.explain.sections import Page, Section, Text, Typed, chosen, sentence
from gradcli.explain.system import system_section

_ENTRIES = 400  # entries that a page shows: more are several screens


@dataclass(frozen=True)
class NumericJacobianResult(JacobianResult):
    """The result of `gradcli jacobian --numeric`, of which no formula is worked out."""

    @classmethod
    def of(cls, result: JacobianResult) -> NumericJacobianResult:
        """Return a result at points without its formulas."""
        return cls(result.graph, result.wrt, result.style, result.points, symbolic=result.symbolic)

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point."""
        common = {"rows": self.formulas.rows, "columns": self.formulas.columns}
        for p in self.points:
            yield common | {"at": p.at, "value": p.value, "jacobian": p.jacobian, **noted(p.notes)}


def numeric_pages(result: NumericJacobianResult, only: Sequence[str]) -> list[Page]:
    """Return a page for each point."""
    return [page_of(result, chosen(_sections(result, point), tuple(only))) for point in result.points]


def _sections(result: NumericJacobianResult, point: JacobianPoint) -> dict[str, Callable[[], Sequence[Section]]]:
    return {
        "system": lambda: [system_section(result, point.at, point.value)],
        "jacobian": lambda: _numbers(result, point),
    }


def _numbers(result: NumericJacobianResult, point: JacobianPoint) -> list[Section]:
    rows, columns = point.jacobian.shape
    if rows * columns <= _ENTRIES:
        return jacobian_sections(result, point.jacobian, brief=True)
    said = sentence(f": {rows:,} × {columns:,}. {{}} and {{}} write it.", Typed("-f json"), Typed("-f csv"))
    return [Section("jacobian", (Text((*heading(result), *said)),))]
