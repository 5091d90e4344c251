"""The page of `gradcli check`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gradcli.pages.check.verdicts import NOT_PROVED, WHY, CheckResult, Verdict
from gradcli.pages.sections import Formula, Page, Section, Text, Value, assigned
from gradcli.pages.system import system_section

_EXACT = 1e-6  # the relative error of a finite difference that six digits do not show


def check_page(result: CheckResult, only: Collection[str] = (), is_document: bool = False) -> Page:
    """Return the page: the verdict of each claim, and for a wrong one the right derivative and a counterexample.

    With `only`, it has the sections of these names alone; a document, which is read by itself, begins with the system.
    """
    system = [system_section(result, None, {})] if is_document and not only else []
    return Page((*system, *(s for s in _sections(result) if not only or s.name in only)), result.style)


def _sections(result: CheckResult) -> Iterator[Section]:
    """Yield a section for each wrong claim, and one for others that stand below each other."""
    if result.verdicts and result.verdicts[0].file:
        yield Section("claims", (Text((f"{result.verdicts[0].file}:",)),))
    plain: list[Text] = []
    for v in result.verdicts:
        if v.at is None:
            plain.append(Text((_claim(v), f"   {v.verdict}: {_ground(v, result.source)}{'; ' * bool(v.note)}{v.note}")))
        if plain and (v.at is not None or v.steps is not None):
            yield Section("claims", tuple(plain))
            plain = []
        if v.at is not None:
            title = (_claim(v), f"   wrong: {v.why}")
            yield Section("claims", tuple(_wrong_claim(v, result.source)), title)
        if v.steps is not None:
            yield from v.steps.sections()
    if plain:
        yield Section("claims", tuple(plain))


def _claim(v: Verdict) -> Formula:
    text = f"{v.claim} = {v.said}"
    return Formula(text, text)


def _wrong_claim(v: Verdict, source: str) -> Iterator[Text]:
    """Yield the right derivative, a counterexample with the three numbers there, and how many points are wrong."""
    assert v.at is not None
    entry = f"{'the entry ' * v.entry.startswith('[')}{v.entry or 'the derivative'}"
    if v.derivative:
        yield Text((f"{v.claim} is ", Formula(v.derivative, v.derivative)))
    elif v.formula and not v.why.endswith(f"the derivative is {v.formula}"):
        yield Text((f"{entry} is ", Formula(v.formula, v.formula)))
    parts = assigned(f"at point {v.row:,}, " if v.row else "at ", v.at.items())
    parts += [f" {entry} is ", Value.of(v.true), " (finite difference ", Value.of(v.difference)]
    if v.error > _EXACT * max(abs(v.difference), abs(v.true), abs(v.yours)):
        parts += [" ± ", Value.of(float(f"{v.error:.1g}"))]
    yield Text((*parts, "), yours is ", Value.of(v.yours)))
    if v.wrong < v.counted or source:
        yield Text((f"wrong at {v.wrong:,} of {_points(v, source)}{_without(v)}",))


def _ground(v: Verdict, source: str) -> str:
    """Return why a claim is right, or why nothing is decided."""
    counted = f"at {_points(v, source)}"
    if v.why == NOT_PROVED:
        return f"{v.why}, but right {counted}"
    if v.verdict != "right":
        return v.why
    if v.by == "proof" and not v.counted:
        return f"proved{_without(v) or ', though no point was found where the system is finite'}"
    if v.by == "proof":
        return f"proved, and finite differences agree {counted}{_without(v)}"
    return f"{counted} (finite differences agree); not proved{_without(v)}"


def _points(v: Verdict, source: str) -> str:
    of = f" of {source}" if source else ""
    return f"{v.counted:,} point{'s' * (v.counted != 1)}{of}"


def _without(v: Verdict) -> str:
    """Return how many points were not compared, and why."""
    more = "more" if v.counted else "point"
    shown_parts = [
        f"{n:,} {more}{'s' * (n > 1 and not v.counted)} {'do' if n > 1 else 'does'} not count: {WHY[w]}"
        for w, n in sorted(v.left_out.items())
    ]
    return f" ({'; '.join(shown_parts)})" if shown_parts else ""
