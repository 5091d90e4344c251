"""The result of `gradcli check`: for each claim about a derivative its verdict, how it was reached, and a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gradcli.activity import doing
from gradcli.explain.check.claim import Case
from gradcli.explain.check.diagnosis import diagnose
from gradcli.explain.check.proof import Proof, entry_name, prover
from gradcli.explain.check.trials import TOLERANCE, Tally, drawn, trials_at
from gradcli.explain.check.witness import difference
from gradcli.explain.results import Array, Named, Row, Shown
from gradcli.explain.shared import style_of
from gradcli.graph.graph import Graph

WHY = {
    "corner": "the system has a corner there, and no derivative",
    "not finite": "the system or its derivative is not finite there",
    "kind": "an input there is not symmetric, positive or orthogonal, as its line declares it",
    "far": "finite differences are inconclusive there",
}
NOT_PROVED = "not proved"
_TELLING = 0.01  # the relative error that six digits show plainly
_NARROW = "yours is not finite at every point where the derivative is"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim.

    `by` is `proof` or `points`; `points` is how many were tried, `left_out` why some of them did not count, and `wrong`
    at how many of the others the claim is.  Of a wrong one, `entry` is where the error was found, `at` the point,
    `row` its number among those of a file, `yours`, `true` and `difference` the numbers there, `error` about
    how far the last may be off, and `why` what is wrong.  `formula` is the right entry, `derivative` the right array.
    Of a right one, `note` says where it is not.
    """

    claim: str
    said: str
    verdict: str
    by: str
    points: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    wrong: int = 0
    formula: str = ""
    derivative: str = ""
    entry: str = ""
    at: Named | None = None
    row: int = 0
    yours: float = 0.0
    true: float = 0.0
    difference: float = 0.0
    error: float = 0.0
    why: str = ""
    note: str = ""

    @property
    def counted(self) -> int:
        """The number of points that count for the verdict."""
        return self.points - sum(self.left_out.values())

    def data(self) -> dict[str, Any]:
        """Return its JSON object."""
        result: dict[str, Any] = {"claim": self.claim, "said": self.said, "verdict": self.verdict, "by": self.by}
        if self.by == "points":
            result["points"] = self.counted
        if self.at is not None:
            result |= {"wrong": self.wrong, "entry": self.entry, "at": self.at}
            result |= {"point": self.row} if self.row else {}
            result |= {"yours": self.yours, "is": self.true, "difference": self.difference}
            result["difference_error"] = self.error
        if self.why:
            result["why"] = self.why
        if self.note:
            result["note"] = self.note
        if self.formula:
            result["formula"] = self.formula
        if self.derivative:
            result["derivative"] = self.derivative
        return result


@dataclass(frozen=True)
class CheckResult(Shown):
    """The result of `gradcli check`; `source` is the file of the points, and `file` one of several files of claims.

    Both are "" where there is none.
    """

    verdicts: tuple[Verdict, ...] = ()
    source: str = ""
    file: str = ""

    @property
    def right(self) -> bool:
        """Whether all claims are right."""
        return all(v.verdict == "right" for v in self.verdicts)

    def __bool__(self) -> bool:
        """Return whether all claims are right."""
        return self.right

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a claim."""
        for v in self.verdicts:
            yield ({"file": self.file} if self.file else {}) | v.data()

    def rows(self) -> Iterator[Row]:
        """Yield nothing: a verdict is no row of numbers."""
        yield from ()


@dataclass(frozen=True)
class CheckResults:
    """The results of several files, at least one, as one answer."""

    results: tuple[CheckResult, ...]

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""
        return self.results[0].formula(expr)

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a claim, file by file."""
        for result in self.results:
            yield from result.objects()

    def rows(self) -> Iterator[Row]:
        """Yield nothing, as for one result."""
        yield from ()


@dataclass(frozen=True)
class Settings:
    """The settings of a check: points that are given, or the number of random ones.

    `usual` holds the powers of ten that inputs usually have, where they are known.  If `require_proof`, a claim that is
    only right at the points is undecided.
    """

    points: Sequence[Named] = ()
    trials: int = 20
    seed: int = 0
    tolerance: float = TOLERANCE
    usual: Mapping[str, float] = field(default_factory=dict)
    require_proof: bool = False


@np.errstate(all="ignore")
def check(graph: Graph, cases: Sequence[Case], settings: Settings) -> CheckResult:
    """Return the verdict of each claim; `graph` is the system's."""
    points = settings.points
    joined = {name: np.stack([p[name] for p in points], axis=-1) for name in (points[0] if points else ())}

    def tallies() -> Iterator[Tally]:
        for case in cases:
            trials = (
                trials_at(case, joined, settings.seed)
                if joined
                else drawn(case, settings.trials, settings.seed, settings.usual)
            )
            yield Tally(settings.tolerance).add(trials)

    return _result(graph, cases, tallies(), settings)


@np.errstate(all="ignore")
def check_blocks(
    graph: Graph, cases: Sequence[Case], blocks: Iterable[Named], settings: Settings, source: str
) -> CheckResult:
    """Return the verdict of each claim at many points, which come in blocks and are called `source`.

    A block has what the claims' graphs have for inputs, with its points along the last axis; cotangents may be missing.
    """
    tallies = [Tally(settings.tolerance) for _ in cases]
    for block in blocks:
        for case, tally in zip(cases, tallies, strict=True):
            points = {name: value for name, value in block.items() if name in case.graph.inputs}
            tally.add(trials_at(case, points, settings.seed, tally.points))
    return _result(graph, cases, tallies, settings, source)


def _result(
    graph: Graph, cases: Sequence[Case], tallies: Iterable[Tally], settings: Settings, source: str = ""
) -> CheckResult:
    """Return the verdict of each claim, from what was found at the points."""
    shown = Shown(graph, tuple(graph.inputs), style_of(graph))
    result = []
    with prover(shown, cases) as prove:
        for index, (case, tally) in enumerate(zip(cases, tallies, strict=True)):
            doing("proving")
            if tally.wrong:
                result.append(_wrong(case, tally, partial(prove, index), bool(source)))
            else:
                exact = settings.tolerance <= Settings.tolerance
                verdict = _not_wrong(case, tally, prove(index, None) if exact else Proof(), source)
                result.append(_unproved(verdict) if settings.require_proof else verdict)
    return CheckResult(graph, shown.wrt, shown.style, tuple(result), source)


def _tried(case: Case, tally: Tally, proof: Proof) -> Verdict:
    """Return the verdict on a claim that all trials confirm."""
    return Verdict(case.text, case.said, "right", "points", tally.points, dict(tally.why), formula=proof.formula)


def _not_wrong(case: Case, tally: Tally, proof: Proof, source: str) -> Verdict:
    """Return the verdict on a claim that no point shows to be wrong."""
    result = replace(_tried(case, tally, proof), note=_NARROW if tally.narrow else "")
    if proof.proved:
        return replace(result, by="proof")
    return result if tally.counted else replace(result, verdict="undecided", why=_undecided(tally, source))


def _unproved(verdict: Verdict) -> Verdict:
    """Return the verdict where a proof is required: undecided, if the claim is right at the points alone."""
    if verdict.verdict != "right" or verdict.by == "proof":
        return verdict
    return replace(verdict, verdict="undecided", why=NOT_PROVED)


def _undecided(tally: Tally, source: str) -> str:
    """Return why no point says anything."""
    if tally.why:
        return WHY[tally.why.most_common(1)[0][0]]
    if source:
        return f"{source} contains no points"
    return "no point was found where the system and its derivative are finite: give one with `--at`"


def _wrong(case: Case, tally: Tally, prove: Callable[[int], Proof], numbered: bool) -> Verdict:
    """Return the verdict on a wrong claim, with the plainest point that shows it."""
    trials = tally.kept
    assert trials is not None
    wrong = np.flatnonzero(trials.wrong(tally.tolerance)).tolist()
    errors = trials.errors
    worst = errors[:, wrong].max(axis=0)
    telling = [k for k, e in zip(wrong, worst, strict=True) if e >= min(_TELLING, worst.max())]
    point = min(telling, key=lambda k: _plainness(trials.at(k)))
    entry = _largest(trials.truth[:, point], trials.yours[:, point], errors[:, point])
    value, error = difference(case, trials.at(point), entry)
    proof = prove(entry)
    return replace(
        _tried(case, tally, proof),
        verdict="wrong",
        wrong=tally.wrong,
        derivative=proof.whole,
        entry=entry_name(case.truth.shape, entry),
        at=trials.at(point),
        row=int(trials.indices[point]) + 1 if numbered else 0,
        yours=float(trials.yours[entry, point]),
        true=float(trials.truth[entry, point]),
        difference=value,
        error=error,
        why=diagnose(case, trials, tally.tolerance, proof, entry),
    )


def _largest(truth: Array, yours: Array, errors: Array) -> int:
    """Return the entry with the largest error, relative to numbers above the mean: small ones are off by little."""
    sizes = np.nan_to_num(np.maximum(np.abs(truth), np.abs(yours)), nan=0, posinf=0)
    return int((errors * sizes / np.maximum(sizes, sizes.mean()) if np.isfinite(errors).all() else errors).argmax())


def _plainness(at: Named) -> float:
    """Return how far the numbers of a point are from 1, in magnitude: a reader checks small numbers by hand."""
    sizes = np.concatenate([np.abs(value).reshape(-1) for value in at.values()])
    return float(np.abs(np.log10(np.maximum(sizes, 1e-12))).max(initial=0))
