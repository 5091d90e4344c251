"""`gradcli run --check`: each own function of a script, its backward against its own forward."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.explain.check import CheckResult, Settings, Verdict, check
from gradcli.explain.claim import Case, derivative
from gradcli.explain.claim import numbers as values
from gradcli.explain.shared import style
from gradcli.graph.construct import reduce
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, leaf

if TYPE_CHECKING:
    from gradcli.script.replay import Applied, Replay

MOST = 20  # calls of a function that are checked
_TOLERANCE = 1.5e-6  # by points alone: no proof is asked for
_STEP = 1e-5

Point = dict[str, Any]


class Calls:
    """The calls of own functions in a script, the first of each kind."""

    def __init__(self) -> None:
        self.kept: dict[type, list[Applied]] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take down the calls while the script runs."""
        from gradcli.pytorch.record import Recorder

        Recorder.applied = self.add
        try:
            yield
        finally:
            Recorder.applied = None

    def add(self, cls: type, arguments: tuple[Any, ...], needed: tuple[bool, ...]) -> None:
        """Keep a call."""
        from gradcli.pytorch.record import script_line
        from gradcli.script.replay import Applied

        found = self.kept.setdefault(cls, [])
        if len(found) < MOST and cls.__module__ != "gradcli.pytorch.autograd.function":
            found.append(Applied.of(cls, arguments, needed, script_line()))

    def result(self) -> CheckResult:
        """Return a verdict for each argument of each function; what they print when they are run again is not shown."""
        from gradcli.script.replay import double_by_default

        with redirect_stdout(io.StringIO()), warnings.catch_warnings(), double_by_default():
            warnings.simplefilter("ignore")
            found = [v for calls in self.kept.values() if calls for v in _verdicts(calls)]
        empty = Graph.of({}, {})
        return CheckResult(empty, (), None, *style(empty), tuple(found))


def _verdicts(calls: Sequence[Applied]) -> Iterator[Verdict]:
    """Yield the verdict on the gradient of each argument, at all calls together."""
    found: dict[str, list[Verdict]] = {}
    waiting = list(calls)
    while waiting:
        first = waiting[0]
        alike = [c for c in waiting if _kind(c) == _kind(first)]
        waiting = [c for c in waiting if _kind(c) != _kind(first)]
        for verdict in _of_kind(alike):
            found.setdefault(verdict.claim, []).append(verdict)
    for each in found.values():
        yield _joined(each)


def _kind(call: Applied) -> Any:
    return tuple(getattr(a, "shape", None) or repr(a) for a in call.arguments), call.needed


def _joined(each: Sequence[Verdict]) -> Verdict:
    """Return one verdict for several: a wrong one counts, then a right one."""
    order = {"wrong": 0, "right": 1, "undecided": 2}
    first = min(each, key=lambda v: order[v.verdict])
    left_out = sum((Counter(v.left_out) for v in each), Counter[str]())
    return replace(first, points=sum(v.points for v in each), left_out=left_out, wrong=sum(v.wrong for v in each))


def _of_kind(calls: Sequence[Applied]) -> Iterator[Verdict]:
    """Yield the verdicts at calls with the same shapes: those that compute the same are points of one system."""
    from gradcli.script.replay import replayed

    replays: list[tuple[Applied, Replay | None]] = []
    for k, call in enumerate(calls):
        try:
            replays.append((call, replayed(call, k)))
        except Exception as error:
            yield _undecided(call, f"it failed: {type(error).__name__}: {error}")
    while replays:
        call, first = replays[0]
        if first is None:
            yield from _in_numbers(call)
            replays = replays[1:]
            continue
        cases = list(_cases(call, first))
        points: list[Point] = []
        rest = []
        for other, replay in replays:
            if replay is not None and (replay is first or _same(cases, list(_cases(other, replay)), replay.at)):
                points.append(replay.at)
            else:
                rest.append((other, replay))
        for case in cases:
            yield from check(case.graph, [case], Settings(points, tolerance=_TOLERANCE)).verdicts
        replays = rest


def _undecided(call: Applied, why: str) -> Verdict:
    name = next((n for n, needed in zip(call.names, call.needed, strict=True) if needed), "x")
    return Verdict(f"{name}.grad", _said(call, 1, 0), "undecided", "points", why=why)


def _said(call: Applied, outputs: int, place: int) -> str:
    """Return what is claimed: Square.backward(v), an element of it where there are several."""
    v = "v" if outputs == 1 else ", ".join(f"v{k}" for k in range(outputs))
    return f"{call.cls.__name__}.backward({v})" + (f"[{place}]" if len(call.arguments) > 1 else "")


def _cases(call: Applied, replay: Replay) -> Iterator[Case]:
    """Yield the claim of a backward about each argument."""
    inputs = dict(replay.recorded.graph.inputs)
    for name, y in zip(replay.weights, replay.outputs, strict=True):
        inputs.setdefault(name, leaf(y.shape))
    terms = [_total(y * inputs[name]) for name, y in zip(replay.weights, replay.outputs, strict=True)]
    base = sum(terms[1:], terms[0])
    graph = Graph.of(inputs, {"": base})
    for place, (name, needed) in enumerate(zip(call.names, call.needed, strict=True)):
        if not needed or name not in inputs:
            continue
        truth = derivative(graph, base, inputs[name])
        yours = replay.gradients.get(name)
        yours = Node("broadcast", (_zero(),), truth.shape, (truth.shape,)) if yours is None else yours
        if yours.shape == truth.shape:
            said = _said(call, len(replay.weights), place)
            yield Case(f"{name}.grad", said, graph, base, inputs[name], (), truth, yours, tuple(replay.weights))


def _zero() -> Node:
    from gradcli.graph.node import const

    return const(0)


def _total(y: Node) -> Node:
    return reduce("sum", y, tuple(range(len(y.shape)))) if y.shape else y


def _same(cases: Sequence[Case], others: Sequence[Case], at: Point) -> bool:
    """Tell whether a system computes at another call's point what that call computed: it went the same way."""
    if len(cases) != len(others):
        return False
    for case, other in zip(cases, others, strict=True):
        if case.graph.inputs.keys() != other.graph.inputs.keys():
            return False
        point = {name: np.asarray(at[name])[..., None] for name in case.graph.inputs if name in at}
        if len(point) != len(case.graph.inputs):
            return False
        mine = values(case.graph, point, [case.base, case.truth, case.yours])
        theirs = values(other.graph, point, [other.base, other.truth, other.yours])
        if not all(np.allclose(a, b, equal_nan=True) for a, b in zip(mine, theirs, strict=True)):
            return False
    return True


# A forward that leaves no history, as NumPy's functions do: its finite differences are what there is.


def _in_numbers(call: Applied) -> Iterator[Verdict]:
    from gradcli.pytorch.record import Make
    from gradcli.script.recorded import decimal
    from gradcli.script.replay import backward, drawn, forward, numbers

    arrays = {i: decimal(a._a) for i, a in enumerate(call.arguments) if call.needed[i]}
    given = [Make.tensor(arrays[i].copy()) if i in arrays else a for i, a in enumerate(call.arguments)]
    try:
        weights = [drawn(y.shape, k) for k, y in enumerate(numbers(call, arrays))]
        context, _ = forward(call.cls, given, call.needed)
        found = backward(call.cls, context, [Make.tensor(w) for w in weights])
    except Exception as error:
        yield _undecided(call, f"it failed: {type(error).__name__}: {error}")
        return
    for i, array in arrays.items():
        yours = getattr(found[i] if i < len(found) else None, "_a", np.zeros_like(array))
        if yours.shape == array.shape:
            yield _compared(call, i, array, weights, yours.astype(float))


def _compared(call: Applied, place: int, array: Any, weights: Sequence[Any], yours: Any) -> Verdict:
    """Return the verdict on the gradient of one argument, by finite differences alone."""
    from gradcli.script.replay import numbers

    def total(moved: Any) -> float:
        return float(sum((y * w).sum() for y, w in zip(numbers(call, {place: moved}), weights, strict=True)))

    true, error = np.zeros_like(array), np.zeros_like(array)
    for k in range(array.size):
        direction = np.zeros(array.size)
        direction[k] = 1
        step = _STEP * max(1.0, abs(float(array.reshape(-1)[k])))
        side = direction.reshape(array.shape) * step
        true.reshape(-1)[k] = (total(array + side) - total(array - side)) / (2 * step)
        coarse = (total(array + 2 * side) - total(array - 2 * side)) / (4 * step)
        error.reshape(-1)[k] = abs(true.reshape(-1)[k] - coarse)
    off = np.abs(yours - true) / np.maximum(1, np.abs(true))
    wrong = off > 1e-4 + 10 * error
    name, said = call.names[place], _said(call, len(weights), place)
    if not wrong.any():
        return Verdict(f"{name}.grad", said, "right", "points", 1)
    k = int(np.argmax(np.where(wrong, off, 0)))
    shape = array.shape[:-1]
    entry = f"[{','.join(str(int(i)) for i in np.unravel_index(k, shape))}]" if shape else ""
    mine, its = float(yours.reshape(-1)[k]), float(true.reshape(-1)[k])
    return Verdict(
        f"{name}.grad", said, "wrong", "points", points=1, wrong=1, entry=entry, at={name: array[..., 0]},
        yours=mine, true=its, difference=its, error=float(error.reshape(-1)[k]),
        why=_ratio(yours, true) or "it differs from the derivative",
    )  # fmt: skip


def _ratio(yours: Any, true: Any) -> str:
    some = np.abs(true) > 1e-6
    if not some.any():
        return ""
    ratio = (yours[some] / true[some]).mean()
    if not np.allclose(yours, ratio * true, rtol=1e-3, atol=1e-5):
        return ""
    if abs(ratio + 1) < 1e-3:
        return "the sign: yours is -1 times it"
    return "yours is 0" if abs(ratio) < 1e-3 else f"yours is {ratio:.4g} times it"
