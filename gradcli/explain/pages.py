"""The pages of the commands: which sections, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradcli.explain.calls import calls_section
from gradcli.explain.gradients import gradients_section
from gradcli.explain.product import heading, jacobian_sections
from gradcli.explain.pytorch import pytorch_section
from gradcli.explain.results import BackwardPoint, BackwardResult, JacobianPoint, JacobianResult, Shown
from gradcli.explain.sections import Page, Section, Text
from gradcli.explain.system import system_section
from gradcli.explain.tables import steps_sections
from gradcli.explain.weights import weights_section

MAX_STEPPED_ROWS = 6
_LONG = 40  # characters of a derivative that is not shown for each element


@dataclass(frozen=True)
class Choice:
    """Which sections a page has: those in `only`, if there are any; `jacobian` says whether J is among them."""

    only: tuple[str, ...] = ()
    jacobian: bool | None = None


def backward_pages(result: BackwardResult, choice: Choice) -> list[Page]:
    """Return a page for each point."""
    return [_page(result, _backward(result, point, choice)) for point in result.points]


def jacobian_pages(result: JacobianResult, choice: Choice) -> list[Page]:
    """Return a page for each point; a single one without a point."""
    return [_page(result, _jacobian(result, point, choice)) for point in result.points or (None,)]


def _page(result: Shown, sections: Sequence[Section]) -> Page:
    return Page(tuple(sections), result.decimals, result.taken)


def _backward(result: BackwardResult, point: BackwardPoint, choice: Choice) -> list[Section]:
    single = len(point.calls) == 1
    at, values = point.at if result.numeric else None, {**point.intermediates, **point.value}
    build: dict[str, Callable[[], Sequence[Section]]] = {
        "system": lambda: [system_section(result, at, values)],
        "v": lambda: [weights_section(result, point.calls)] if single else [],
        "jacobian": lambda: _product(result, point, choice),
        "steps": lambda: _steps(result, point),
        "calls": lambda: [] if single else [calls_section(result, point)],
        "grad": lambda: [gradients_section(result, point)],
        "pytorch": lambda: [pytorch_section(result.graph.outputs, point.calls)],
    }
    unwanted = {"system"} if result.steps else set()
    if not single and len(result.wrt) == 1 and not point.retained:
        unwanted.add("grad")
    return [s for name, make in build.items() if name in (choice.only or build.keys() - unwanted) for s in make()]


def _product(result: BackwardResult, point: BackwardPoint, choice: Choice) -> list[Section]:
    """Return J beside v, where it is not too large, and not told by the gradients' own lines."""
    wanted = choice.jacobian or "jacobian" in choice.only
    if choice.jacobian is False or (not wanted and _told(result, point)):
        return []
    if result.symbolic is None:
        return [_too_large(result)]
    if len(point.calls) > 1:
        return jacobian_sections(result, point.jacobian)
    return jacobian_sections(result, point.jacobian, point.calls[0], {name: point.grad[name] for name in result.wrt})


def _told(result: BackwardResult, point: BackwardPoint) -> bool:
    """Tell whether J says no more than the gradients' own lines: one row, of scalars or of what is long to read."""
    if result.symbolic is None or len(result.symbolic.rows) > 1:
        return False
    if all(not n.shape for n in result.leaves.values()):
        return len(point.calls) == 1
    long = any(len(result.formula(entry)) > _LONG for entry in result.symbolic.entries.values())
    return result.numeric and (long or bool(result.symbolic.where))


def _too_large(result: BackwardResult) -> Section:
    rows = sum(y.size for y in result.graph.outputs.values())
    columns = sum(n.size for n in result.leaves.values())
    said = f"{rows:,} × {columns:,}; --jacobian shows it, and vᵀJ does not need it"
    return Section("jacobian", (Text((*heading(result), ": ", said)),))


def _steps(result: BackwardResult, point: BackwardPoint) -> list[Section]:
    if not result.steps or point.trace is None:
        return []
    return steps_sections(point.trace, [call.v for call in point.calls])


def _jacobian(result: JacobianResult, point: JacobianPoint | None, choice: Choice) -> list[Section]:
    at, values = (None, {}) if point is None else (point.at, point.value)
    build: dict[str, Callable[[], Sequence[Section]]] = {
        "system": lambda: [system_section(result, at, values)],
        "jacobian": lambda: jacobian_sections(result, None if point is None else point.jacobian),
        "steps": lambda: [],
    }
    return [s for name, make in build.items() if name in (choice.only or build) for s in make()]
