"""What `gradcli check` shows: for each claim about a derivative whether it is right, by what, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.explain.diagnosis import diagnose
from gradcli.explain.proof import Proof, entry_name, prove
from gradcli.explain.results import Array, Named, Shown
from gradcli.explain.shared import style
from gradcli.explain.trials import Case, Trials, differences, drawn, given
from gradcli.graph.graph import Graph

_WHY = {
    "corner": "the system has a corner there, and no derivative",
    "not finite": "the system or its derivative is not finite there",
    "far": "finite differences cannot tell what the derivative is there",
}


@dataclass(frozen=True)
class Verdict:
    """What was found of one claim.

    `by` is `proof` or `points`, `points` how many counted.  Of a wrong one, `entry` is where the error was found, `at`
    the point, `yours`, `true` and `difference` the numbers there, and `why` what is wrong.
    """

    claim: str
    said: str
    verdict: str
    by: str
    points: int = 0
    wrong: int = 0
    formula: str = ""
    entry: str = ""
    at: Named | None = None
    yours: float = 0.0
    true: float = 0.0
    difference: float = 0.0
    why: str = ""

    def data(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        found: dict[str, Any] = {"claim": self.claim, "verdict": self.verdict, "by": self.by}
        if self.by == "points":
            found["points"] = self.points
        if self.at is not None:
            found |= {"entry": self.entry, "at": self.at, "yours": self.yours, "is": self.true}
            found["difference"] = self.difference
        if self.why:
            found["why"] = self.why
        if self.formula:
            found["formula"] = self.formula
        return found


@dataclass(frozen=True)
class CheckResult(Shown):
    """The result of `gradcli check`."""

    verdicts: tuple[Verdict, ...] = ()
    seed: int = 0

    @property
    def wrong(self) -> bool:
        """Whether a claim is not right."""
        return any(v.verdict != "right" for v in self.verdicts)

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a claim."""
        for v in self.verdicts:
            yield v.data()

    def rows(self) -> Iterator[list[tuple[str, Array]]]:
        """Yield nothing: a verdict is no row of numbers."""
        yield from ()


@dataclass(frozen=True)
class Settings:
    """How claims are tried: at points that are given, or at so many random ones."""

    points: Sequence[Named] = ()
    trials: int = 20
    seed: int = 0
    tolerance: float = 1e-6


@np.errstate(all="ignore")
def check(graph: Graph, cases: Sequence[Case], settings: Settings) -> CheckResult:
    """Return the verdict of each claim; `graph` is the system's."""
    shown = Shown(graph, tuple(graph.inputs), None, *style(graph))
    found = tuple(_verdict(shown, case, settings) for case in cases)
    return CheckResult(graph, tuple(graph.inputs), None, *style(graph), found, settings.seed)


def _verdict(shown: Shown, case: Case, settings: Settings) -> Verdict:
    shown = Shown(case.graph, (), None, shown.decimals, shown.taken)
    trials = (
        given(case, settings.points, settings.seed) if settings.points else drawn(case, settings.trials, settings.seed)
    )
    counted = np.flatnonzero(trials.counted)
    errors = trials.errors.max(axis=0, initial=0)
    wrong = [int(k) for k in counted if errors[k] > settings.tolerance]
    if wrong:
        return _wrong(shown, case, trials, wrong, settings)
    exact = settings.tolerance <= Settings.tolerance
    proof = prove(shown, case.truth, case.yours) if exact else Proof()
    if proof.proved:
        return Verdict(case.text, case.said, "right", "proof", len(counted), formula=proof.formula)
    if len(counted):
        return Verdict(case.text, case.said, "right", "points", len(counted), formula=proof.formula)
    return _undecided(case, trials, proof)


def _undecided(case: Case, trials: Trials, proof: Proof) -> Verdict:
    if not trials.why:
        why = "no point was found where the system, its derivative and the claim are finite: give one with --at"
    else:
        why = _WHY[trials.why[0]]
    return Verdict(case.text, case.said, "undecided", "points", 0, formula=proof.formula, why=why)


def _wrong(shown: Shown, case: Case, trials: Trials, wrong: Sequence[int], settings: Settings) -> Verdict:
    """Return the verdict on a wrong claim, with the plainest point that shows it."""
    errors = trials.errors
    worst = errors[:, wrong].max(axis=0)
    telling = [k for k, e in zip(wrong, worst, strict=True) if e >= min(0.01, worst.max())]
    point = min(telling, key=lambda k: _plainness(trials.at(k)))
    entry = int(errors[:, point].argmax())
    here = {name: value[..., None] for name, value in trials.at(point).items()}
    value = differences(case, here, np.array([entry]))[0]
    proof = prove(shown, case.truth, case.yours, entry)
    why = diagnose(case, trials, settings.tolerance, proof, entry)
    return Verdict(
        case.text,
        case.said,
        "wrong",
        "points",
        int(trials.counted.sum()),
        len(wrong),
        proof.formula,
        entry_name(case.truth.shape, entry),
        trials.at(point),
        float(trials.yours[entry, point]),
        float(trials.truth[entry, point]),
        float(value[0]),
        why,
    )


def _plainness(at: Named) -> float:
    """Return how far the numbers of a point are from 1, in magnitude: a reader checks small numbers by hand."""
    sizes = np.concatenate([np.abs(value).reshape(-1) for value in at.values()])
    return float(np.abs(np.log10(np.maximum(sizes, 1e-12))).max(initial=0))
