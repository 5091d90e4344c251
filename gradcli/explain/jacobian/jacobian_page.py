"""The page of `gradcli jacobian`: which sections, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from gradcli.explain.backward.tables import steps_sections
from gradcli.explain.jacobian.collected import collected
from gradcli.explain.jacobian.dense import JacobianPoint, JacobianResult, one_hots
from gradcli.explain.jacobian.extent import shown_sections
from gradcli.explain.jacobian.product import jacobian_sections
from gradcli.explain.jacobian.sweeps import modes
from gradcli.explain.mentions import page_of
from gradcli.explain.sections import Name, Page, Section, Text, Typed, chosen, sentence
from gradcli.explain.system import system_section
from gradcli.explain.trace import Trace


@np.errstate(all="ignore")
def jacobian_pages(result: JacobianResult, only: Sequence[str]) -> list[Page]:
    """Return a page for each point; a single one without a point."""
    return [page_of(result, _jacobian(result, point, only)) for point in result.points or (None,)]


def _jacobian(result: JacobianResult, point: JacobianPoint | None, only: Sequence[str]) -> Iterator[Section]:
    at, values = (None, {}) if point is None else (point.at, point.value)
    build: dict[str, Callable[[], Sequence[Section]]] = {
        "system": lambda: [system_section(result, at, values)],
        "jacobian": lambda: [*_whole_or_shown(result, point, only), *_calls_for_rows(result)],
        "steps": lambda: _rows(result, result.trace if point is None else point.trace),
    }
    unwanted = {"system"} if point is not None and point.trace is not None else set()
    return chosen(build, only, unwanted)


def _whole_or_shown(result: JacobianResult, point: JacobianPoint | None, only: Sequence[str]) -> list[Section]:
    matrix = None if point is None else point.jacobian
    return jacobian_sections(result, matrix) if "jacobian" in only else shown_sections(result, matrix)


def _calls_for_rows(result: JacobianResult) -> list[Section]:
    """Return how calls of `backward` give the rows of J, and in which mode gradcli computes them."""
    mode = modes(result)
    if len(result.formulas.rows) == 1:
        return [Section("jacobian", (Text(mode),))] if mode else []
    y = result.formulas.rows[0]
    said = "Row i is what backward leaves in {} for a one-hot {} ({} gives the first), one call per row."
    rows = sentence(said, Typed(".grad"), Name("v"), Typed(f"--v onehot:{y}"))
    blocks = (Text(rows), collected(result.graph, result.wrt), Text(mode) if mode else None)
    return [Section("jacobian", (block,)) for block in blocks if block is not None]


def _rows(result: JacobianResult, trace: Trace | None) -> list[Section]:
    """Return the calls of `backward` that give the first rows of J."""
    if trace is None:
        return []
    vectors = list(islice(one_hots(result.graph), len(trace.calls)))
    names = [f"the row of {row}" for row in result.formulas.rows[: len(vectors)]]
    sections = steps_sections(trace, vectors, names)
    left_out = len(result.formulas.rows) - len(vectors)
    said = [Section("steps", (Text((f"… and {left_out:,} more rows",)),))] if left_out else []
    return [*sections, *said]
