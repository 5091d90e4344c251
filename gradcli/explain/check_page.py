"""The page of `gradcli check`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradcli.explain.check import CheckResult, Verdict
from gradcli.explain.sections import Math, Name, Page, Section, Text, Value


def check_page(result: CheckResult) -> Page:
    """Return the verdicts, one after the other; of a wrong claim, what is right and a point that shows it."""
    return Page(tuple(_sections(result)), result.decimals, result.taken)


def _sections(result: CheckResult) -> Iterator[Section]:
    """Yield a section for each wrong claim, and one for others that stand below each other."""
    plain: list[Text] = []
    for v in result.verdicts:
        if v.at is None:
            plain.append(Text((f"{v.claim} = {v.said}   {v.verdict}: {_ground(v)}",)))
            continue
        if plain:
            yield Section("claims", tuple(plain))
            plain = []
        yield Section("claims", tuple(_told(v)), (f"{v.claim} = {v.said}   wrong: {v.why}",))
    if plain:
        yield Section("claims", tuple(plain))


def _told(v: Verdict) -> Iterator[Text]:
    assert v.at is not None
    entry = f"{v.entry} " if v.entry else ""
    if v.formula:
        yield Text((f"{entry}is {v.formula}",))
    parts: list[Math] = [] if v.formula else [entry]
    for k, (name, value) in enumerate(v.at.items()):
        parts += [", " if k else "at ", Name(name), " = ", Value(value)]
    told = ((": ", v.true), (", yours ", v.yours), (", finite difference ", v.difference))
    yield Text((*parts, *(part for word, number in told for part in (word, Value(np.asarray(number))))))
    if v.wrong < v.points:
        yield Text((f"wrong at {v.wrong} of {_points(v.points)}",))


def _ground(v: Verdict) -> str:
    """Return why a claim is right, or why nothing is decided."""
    if v.verdict != "right":
        return v.why
    if v.by == "proof":
        return "proved" + (f", and finite differences agree at {_points(v.points)}" if v.points else "")
    return f"at {_points(v.points)}, as finite differences say too; that is no proof"


def _points(count: int) -> str:
    return f"{count} point{'s' * (count != 1)}"
