"""The result of `gradcli check`: for each claim about a derivative its verdict, how it was reached, and a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.kinds import KINDS
from gradcli.pages.check.claim import Case, difference
from gradcli.pages.check.magnitudes import magnitudes
from gradcli.pages.check.parting import Parting, all_on_borders, parting
from gradcli.pages.check.proof import Proof, prover
from gradcli.pages.check.trials import TOLERANCE, Tally, Trials, drawn, trials_at
from gradcli.pages.results import Array, Named, Row, Shown, style_of

if TYPE_CHECKING:
    from gradcli.pages.check.slip_text import SlipText
    from gradcli.pages.check.steps import Steps

WHY = {
    "corner": "the system has a corner there, and no derivative",
    "not finite": "the system or its derivative is not finite there",
    "kind": f"an input there is not {', '.join([*KINDS][:-1])} or {[*KINDS][-1]}, as its line declares it",
    "far": "finite differences are inconclusive there",
}
NOT_PROVED = "not proved"
_FEW = 4  # points: a reason that is true at fewer may be true by chance
_TELLING = 0.01  # the relative error that six digits show plainly
_NARROW = "yours is not finite at every point where the derivative is"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim.

    `by` is `proof` or `points`; `points` is how many were tried, `left_out` why some of them did not count, and `wrong`
    at how many of the others the claim is.  Of a wrong one, `entry` is where the error was found, `at` the point,
    `row` its number among those of a file, `yours`, `true` and `difference` the numbers there, `error` about
    how far the last may be off, and `why` what is wrong.  `formula` is the right entry, `derivative` the right array.
    Of a right one, `note` says where it is not.  `steps` has the right derivation, if it is wanted.
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
    slips: tuple[SlipText, ...] = ()
    index: int = 0  # of the entry
    note: str = ""
    steps: Steps | None = None
    file: str = ""  # of claims, where there are several

    @property
    def counted(self) -> int:
        """The number of points that count for the verdict."""
        return self.points - sum(self.left_out.values())

    def data(self) -> dict[str, Any]:
        """Return its JSON object."""
        result: dict[str, Any] = {"file": self.file} if self.file else {}
        result |= {"claim": self.claim, "said": self.said, "verdict": self.verdict, "by": self.by}
        if self.by == "points":
            result["points"] = self.counted
        if self.at is not None:
            result |= {"wrong": self.wrong, "entry": self.entry, "at": self.at}
            result |= {"point": self.row} if self.row else {}
            result |= {"yours": self.yours, "is": self.true, "difference": self.difference}
            result["difference_error"] = self.error
        slips = [slip.data() for slip in self.slips]
        more = {"why": self.why, "slips": slips, "note": self.note, "formula": self.formula}
        result |= {name: text for name, text in {**more, "derivative": self.derivative}.items() if text}
        return result if self.steps is None else result | self.steps.data()


@dataclass(frozen=True)
class CheckResult(Shown):
    """The result of `gradcli check`; `source` is the file of the points, or ""."""

    verdicts: tuple[Verdict, ...] = ()
    source: str = ""

    @property
    def right(self) -> bool:
        """Whether all claims are right."""
        return all(v.verdict == "right" for v in self.verdicts)

    def __bool__(self) -> bool:
        """Return whether all claims are right."""
        return self.right

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a claim."""
        return (v.data() for v in self.verdicts)

    def rows(self) -> Iterator[Row]:
        """Yield nothing: a verdict is no row of numbers."""
        yield from ()


@dataclass(frozen=True)
class Settings:
    """The settings of a check: points that are given, or the number of random ones.

    `usual` holds the powers of ten that inputs usually have, where they are known.  If `require_proof`, a claim that is
    only right at the points is undecided.  If `steps`, each verdict has the right derivation.
    """

    points: Sequence[Named] = ()
    trials: int = 20
    seed: int = 0
    tolerance: float = TOLERANCE
    usual: Mapping[str, float] = field(default_factory=dict)
    require_proof: bool = False
    steps: bool = False


@np.errstate(all="ignore")
def check(
    graph: Graph, cases: Sequence[Case], settings: Settings, blocks: Iterable[Named] = (), source: str = ""
) -> CheckResult:
    """Return the verdict of each claim; `graph` is the system's.

    Points of a `source` come in blocks, along the last axis.  A block has what the claims' graphs have for inputs;
    cotangents may be missing.
    """
    cases, points = [case.opened() for case in cases], settings.points
    if points:
        blocks = [{name: np.stack([p[name] for p in points], axis=-1) for name in points[0]}]
    tallies = [Tally(settings.tolerance) for _ in cases]
    for block in blocks:
        for case, tally in zip(cases, tallies, strict=True):
            tally.add(trials_at(case, block, settings.seed, tally.points))
    shown = Shown(graph, tuple(graph.inputs), style_of(graph))
    result = []
    with prover(shown, cases) as prove:
        for index, (case, tally) in enumerate(zip(cases, tallies, strict=True)):
            if not points and not source:
                tally.add(drawn(case, settings.trials, settings.seed, settings.usual))
            result.append(_verdict(case, tally, partial(prove, index), settings, source))
    if settings.steps:
        from gradcli.pages.check.steps import Steps  # most checks need none, and start sooner

        result = [replace(v, steps=Steps(c, v.index, v.slips)) for v, c in zip(result, cases, strict=True)]
    return CheckResult(graph, shown.wrt, shown.style, tuple(result), source)


def _verdict(
    case: Case, tally: Tally, prove: Callable[[int | None], Proof], settings: Settings, source: str
) -> Verdict:
    """Return the verdict on a claim, from what was found at the points."""
    parting = _parting(case, tally, settings)
    if tally.wrong:
        return _wrong(case, tally, prove, bool(source), settings)
    if parting.trials is not None and not source and not settings.points:
        return _wrong(case, tally.add(parting.trials), prove, False, settings, parting)
    # With a wider tolerance numbers decide: of a constant that is rounded, or of what a function's backward computed.
    exact = settings.require_proof or settings.tolerance <= Settings.tolerance
    proof = prove(None) if exact else Proof()
    narrow = parting.narrow or tally.narrow
    result = replace(_tried(case, tally, proof), note=_NARROW if narrow else "")
    if proof.proved and parting.trials is None and not (parting.unknown or narrow):
        return replace(result, by="proof")
    if not tally.counted:
        return replace(result, verdict="undecided", why=_undecided(tally, source))
    return replace(result, verdict="undecided", why=NOT_PROVED) if settings.require_proof else result


def _parting(case: Case, tally: Tally, settings: Settings) -> Parting:
    """Return where a claim that is right at all points parts from the derivative at single ones."""
    if tally.wrong or not tally.counted:
        return Parting()
    assert tally.kept is not None
    powers = magnitudes(case.graph.inputs, [case.base], settings.usual)
    return parting(case, tally.kept, powers, settings.tolerance, settings.seed)


def _evidence(case: Case, tally: Tally, settings: Settings) -> Trials:
    """Return the trials of a wrong claim, and further ones where they are few: at one point, many a reason is true."""
    assert tally.kept is not None
    if tally.counted >= _FEW:
        return tally.kept
    more = drawn(case, Settings.trials, settings.seed, settings.usual)
    return tally.kept.followed_by(more.chosen(np.flatnonzero(more.counted)))


def _exceptions(case: Case, trials: Trials, settings: Settings) -> Parting | None:
    """Return the points at which a claim is wrong, if it is wrong at single points alone."""
    wrong = trials.wrong(settings.tolerance)
    if wrong.sum() == trials.counted.sum():
        return None
    powers = magnitudes(case.graph.inputs, [case.base], settings.usual)
    return all_on_borders(case, trials.chosen(np.flatnonzero(wrong)), powers)


def _tried(case: Case, tally: Tally, proof: Proof) -> Verdict:
    """Return the verdict on a claim that all trials confirm."""
    return Verdict(case.text, case.said, "right", "points", tally.points, dict(tally.why), formula=proof.formula)


def _undecided(tally: Tally, source: str) -> str:
    """Return why no point says anything."""
    if tally.why:
        return WHY[tally.why.most_common(1)[0][0]]
    if source:
        return f"{source} contains no points"
    return "no point was found where the system and its derivative are finite: give one with `--at`"


def _wrong(
    case: Case,
    tally: Tally,
    prove: Callable[[int | None], Proof],
    numbered: bool,
    settings: Settings,
    parting: Parting | None = None,
) -> Verdict:
    """Return the verdict on a wrong claim, with the plainest point that shows it: maybe one of single points."""
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
    evidence = _evidence(case, tally, settings)
    single = parting or _exceptions(case, evidence, settings)
    slips: tuple[SlipText, ...] = ()
    if single is None:
        from gradcli.pages.check.reasons import diagnose  # of a wrong claim alone

        reason = diagnose(case, evidence, tally.tolerance, proof, entry)
        why, slips = reason.text, reason.slips
    else:
        at, (yours, truth) = trials.at(point), (a[entry, point] for a in (trials.yours, trials.truth))
        why = _exception(case, single, at, yours, truth)
    return replace(
        _tried(case, tally, proof),
        verdict="wrong",
        wrong=tally.wrong,
        derivative=proof.whole,
        entry=case.entry_name(entry),
        at=trials.at(point),
        row=int(trials.indices[point]) + 1 if numbered else 0,
        yours=float(trials.yours[entry, point]),
        true=float(trials.truth[entry, point]),
        difference=value,
        error=error,
        why=why,
        slips=slips,
        index=entry,
    )


def _exception(case: Case, parting: Parting, at: Named, yours: float, truth: float) -> str:
    """Return where a claim is wrong that is right elsewhere, and how to leave that out."""
    assert parting.trials is not None
    where, names = parting.where(at)
    there = ", where" if names else ": there"
    result = f"right except {where}{there} yours is {yours + 0:.6g} and the derivative is {truth + 0:.6g}"
    for name in names:
        values = parting.trials.points[name]
        axes = tuple(range(values.ndim - 1))
        if name not in case.kinds and len(axes) < 2 and (values <= 0).any(axis=axes).all():
            takes = "takes the point out" if values.shape[-1] == 1 else "takes these points out"
            return f"{result}; `input {name} positive = {'…' if axes else 1}` {takes}"
    return result


def _largest(truth: Array, yours: Array, errors: Array) -> int:
    """Return the entry with the largest error, relative to numbers above the mean: small ones are off by little."""
    sizes = np.nan_to_num(np.maximum(np.abs(truth), np.abs(yours)), nan=0, posinf=0)
    return int((errors * sizes / np.maximum(sizes, sizes.mean()) if np.isfinite(errors).all() else errors).argmax())


def _plainness(at: Named) -> tuple[int, float]:
    """Return how many zeros a point has, and how far its other numbers are from 1: a reader checks these by hand."""
    sizes = np.concatenate([np.abs(value).reshape(-1) for value in at.values()])
    return int((sizes == 0).sum()), float(np.abs(np.log10(sizes[sizes > 0])).max(initial=0))
