"""`gradcli run --check`: the backward of each custom function of a script, compared with its forward."""

from __future__ import annotations

import ast
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradcli.engine.differences import along
from gradcli.graph.construct import broadcast, total
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import const, leaf
from gradcli.graph.rewrite import are_equal, substituted
from gradcli.pages.check.claim import Case, derivative, numbers
from gradcli.pages.check.page import check_page
from gradcli.pages.check.reasons import times_the_right_value
from gradcli.pages.check.verdicts import WHY, CheckResult, Settings, Verdict, check
from gradcli.pages.results import PLAIN
from gradcli.pages.sections import Section, Text
from gradcli.process.script import Script
from gradcli.process.tracebacks import text_of
from gradcli.pytorch.replay import OUTPUT, Applications, Applied, as_double, replayed
from gradcli.report.data import json
from gradcli.report.render import Look, render_pages
from gradcli.script.errors import edits
from gradcli.script.errors.source import Change
from gradcli.script.errors.source import Text as Source
from gradcli.script.errors.syntax import methods, parts
from gradcli.script.recorded import recorded
from gradcli.script.shown import Printed

_LOOSE = 1e-4  # the relative error of a gradient that finite differences alone call right
_TOLERANCE = 1.5e-6  # by points alone: no proof is asked for
Array = np.ndarray[Any, Any]
_POINTS = 20
_DIGITS = 1e-6  # the relative error of a factor

Point = dict[str, Any]


@dataclass
class Calls:
    """The calls of custom functions in a script, which are run again once it has ended."""

    script: Script
    shown: Printed
    note: Callable[[str], None]
    style: str
    applications: Applications = field(default_factory=Applications)

    def listening(self) -> AbstractContextManager[None]:
        """Keep the calls within a block."""
        return self.applications.listening()

    def failed(self, error: BaseException, text: str) -> None:
        """Print nothing of why a script failed."""

    def again(self) -> bool:
        """Run the calls again, and print the verdicts; return whether one is wrong.

        What they print when they are run again is not shown.
        """
        with redirect_stdout(io.StringIO()), warnings.catch_warnings(), as_double():
            warnings.simplefilter("ignore")
            fixes: list[Change] = []
            verdicts = [
                v for calls in self.applications.kept.values() if calls for v in _verdicts(calls, self.script, fixes)
            ]
        empty = Graph.of({}, {})
        result = CheckResult(empty, (), PLAIN, tuple(verdicts))
        if not verdicts:
            self.note("note: the script calls no autograd.Function, so there is nothing to check")
        elif self.style == "json":
            self.shown.text("\n".join(json.lines(result)))
        else:
            page = check_page(result)
            lines = [Text((f"fix: line {c.first}: `{' '.join(c.shown())}`",)) for c in dict.fromkeys(fixes)]
            sections = (*page.sections, *([Section("fix", tuple(lines))] if lines else []))
            self.shown.text(render_pages([replace(page, sections=sections)], Look(self.style)).rstrip("\n"))
        return not result.right


def _verdicts(calls: Sequence[Applied], script: Script, fixes: list[Change]) -> Iterator[Verdict]:
    """Yield the verdict on the gradient of each argument at all calls: wrong, if it is so at one of them."""
    result: dict[str, list[Verdict]] = {}
    for verdict in _at_each(calls, script, fixes):
        result.setdefault(verdict.claim, []).append(verdict)
    for each in result.values():
        first = min(each, key=lambda v: ("wrong", "right", "undecided").index(v.verdict))
        points, wrong = sum(v.points for v in each), sum(v.wrong for v in each)
        left_out = sum((Counter(v.left_out) for v in each), Counter[str]())
        yield replace(first, points=points, left_out=left_out, wrong=wrong)


def _at_each(calls: Sequence[Applied], script: Script, fixes: list[Change]) -> Iterator[Verdict]:
    """Yield the verdicts at calls: those that compute the same are points of one system; `fixes` gets changes."""
    systems: list[tuple[list[Case], list[Point]]] = []
    for k, call in enumerate(calls):
        try:
            again = _replayed(call, k)
            if again is None:
                yield from _in_numbers(call)
                continue
        except Exception as error:
            name = next((n for n, needed in zip(call.names, call.needed, strict=True) if needed), "x")
            why = f"it failed: {type(error).__name__}: {text_of(error)}"
            yield Verdict(f"{name}.grad", _said(call, 1, 0), "undecided", "points", why=why)
            continue
        cases, point = again
        points = next((points for known, points in systems if _same(known, cases)), None)
        if points is None:
            systems.append((cases, points := []))
        points.append(point)
    for cases, points in systems:
        for case in cases:
            for verdict in check(case.graph, [case], Settings(points, tolerance=_TOLERANCE)).verdicts:
                yield verdict
                if verdict.verdict == "wrong":
                    index = next(i for i, name in enumerate(calls[0].names) if f"{name}.grad" == verdict.claim)
                    fixes += corrected(Source(script.name, script.source), calls[0].cls, index, case)


def _said(call: Applied, outputs: int, position: int) -> str:
    """Return the text of the claim: Square.backward(v), or one of its results."""
    v = "v" if outputs == 1 else ", ".join(f"v{k}" for k in range(outputs))
    return f"{call.cls.__name__}.backward({v})" + (f"[{position}]" if len(call.arguments) > 1 else "")


def _replayed(call: Applied, seed: int) -> tuple[list[Case], Point] | None:
    """Run a call again, and return the claim of its backward about each argument, and the point.

    None is returned where the forward leaves no history, or calls a custom function itself.
    """
    again = replayed(call, seed)
    system = None if again is None else recorded(again.record, again.record.backwards[0])
    if again is None or system is None or system.functions:
        return None
    roots = [system.graph.outputs[OUTPUT.format(k)] for k in range(len(again.weights) + len(again.traced))]
    outputs = dict(zip(again.weights, roots, strict=False))
    gradients = dict(zip(again.traced, roots[len(outputs) :], strict=True))
    gradients |= {name: const(tuple(map(float, a.reshape(-1))), a.shape) for name, a in again.constant.items()}
    inputs = dict(system.graph.inputs)
    inputs |= {name: leaf(y.shape) for name, y in outputs.items() if name not in inputs}
    first, *rest = (total(y * inputs[name]) for name, y in outputs.items())
    base = sum(rest, first)
    graph, cases = Graph.of(inputs, {"": base}), []
    for position, (name, needed) in enumerate(zip(call.names, call.needed, strict=True)):
        if not needed or name not in inputs:
            continue
        truth = derivative(graph, base, inputs[name])
        yours = gradients.get(name, broadcast(const(0), truth.shape))
        if yours.shape == truth.shape:
            said = _said(call, len(outputs), position)
            cases.append(Case(f"{name}.grad", said, graph, base, inputs[name], truth, yours, tuple(outputs)))
    return cases, system.at


def _same(cases: Sequence[Case], others: Sequence[Case]) -> bool:
    """Return whether two calls have computed the same operations, of inputs with the same names and shapes."""
    return len(cases) == len(others) and all(map(_same_case, cases, others))


def _same_case(case: Case, other: Case) -> bool:
    inputs, theirs = case.graph.inputs, other.graph.inputs
    if case.text != other.text or {n: x.shape for n, x in inputs.items()} != {n: x.shape for n, x in theirs.items()}:
        return False
    meant = {x: inputs[name] for name, x in theirs.items()}
    return all(map(are_equal, (case.base, case.yours), substituted([other.base, other.yours], meant)))


# A forward that leaves no history, as NumPy's functions do: its finite differences are what there is.


def _in_numbers(call: Applied) -> Iterator[Verdict]:
    weights, gradients = call.backward()
    for i, array in call.numbers.items():
        if gradients[i].shape == array.shape:
            yield _compared(call, i, array, weights, gradients[i].astype(float).reshape(-1))


def _compared(call: Applied, position: int, array: Any, weights: Sequence[Any], yours: Any) -> Verdict:
    """Return the verdict on the gradient of one argument, by finite differences alone."""

    def totals(moved: Any) -> Any:
        result = [call.forward({position: column.reshape(array.shape)}) for column in moved.T]
        return np.array([sum((y * w).sum() for y, w in zip(ys, weights, strict=True)) for ys in result])

    size, shape = array.size, array.shape[:-1]
    result = along(totals, np.repeat(array.reshape(-1, 1), size, axis=1), np.eye(size))
    off = np.abs(yours - result.value) - 10 * result.error - result.rounding
    wrong = off > _LOOSE * np.maximum(np.abs(result.value), np.abs(yours))
    claim = f"{call.names[position]}.grad", _said(call, len(weights), position)
    if not wrong.any():
        size = np.abs(result.value).max(initial=0)
        if (result.error > np.maximum(1e-2 * size, 1e4 * result.rounding)).any():
            return Verdict(*claim, "undecided", "points", 1, {"far": 1}, why=WHY["far"])
        return Verdict(*claim, "right", "points", 1)
    k = int(np.argmax(np.where(wrong, off, 0)))
    true = float(result.value[k])
    return Verdict(
        *claim, "wrong", "points", points=1, wrong=1, entry=element_names("", shape)[k],
        at={call.names[position]: array[..., 0]},
        yours=float(yours[k]), true=true, difference=true, error=float(result.error[k]),
        why=_ratio(yours, result.value) or "it differs from the derivative",
    )  # fmt: skip


def _ratio(yours: Any, true: Any) -> str:
    size = np.abs(true).max(initial=0)
    some = np.abs(true) > 1e-6 * size
    ratio = (yours[some] / true[some]).mean() if some.any() else np.nan
    if not np.allclose(yours, ratio * true, rtol=1e-3, atol=1e-5 * size):
        return ""
    text = "-1" if abs(ratio + 1) < 1e-3 else f"{ratio:.4g}"
    return "yours is 0" if abs(ratio) < 1e-3 else times_the_right_value(ratio, text)


# The factor that corrects a wrong backward


def corrected(text: Source, cls: type, position: int, case: Case) -> list[Change]:
    """Return the change to what a class's backward returns for an argument; none where no single factor corrects it.

    The factor is a constant, the incoming gradient, or an input that backward has a name for, at random points.
    """
    classes = [c for c in parts(text.tree, ast.ClassDef) if c.name == cls.__name__]
    functions = [f for c in classes for f in methods(c, "backward")]
    returned = [(f, r.value) for f in functions for r in parts(f, ast.Return) if r.value is not None]
    if len(functions) != 1 or len(returned) != 1:
        return []
    ((function, value),) = returned
    if isinstance(value, ast.Tuple) and position < len(value.elts):
        value = value.elts[position]
    sizes = [(name, (*node.shape, _POINTS)) for name, node in case.graph.inputs.items()]
    points = {name: np.random.default_rng(k).uniform(0.3, 1.4, size) for k, (name, size) in enumerate(sizes)}
    yours, truth = numbers(case.graph, points, [case.yours, case.truth])
    known = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    names = {name: points[name].reshape(-1, _POINTS) for name in points if name in known}
    weights = dict(zip(case.cotangents, (a.arg for a in function.args.args[1:]), strict=False))
    names |= {weights[name]: points[name].reshape(-1, _POINTS) for name in case.cotangents if name in weights}
    said = next(_with_a_factor(yours, truth, names, text.of(value), edits.is_simple(value)), "")
    return text.edited(edits.instead(value, said)) if said else []


def _with_a_factor(yours: Array, truth: Array, names: Mapping[str, Array], code: str, is_simple: bool) -> Iterator[str]:
    """Yield the expression with a factor that makes it the derivative.

    >>> x = np.array([[1.0, 2.0, 3.0]])
    >>> [*_with_a_factor(2 * x, 6 * x, {"x": x}, "2*x", False)]
    ['3 * (2*x)']
    """
    bare = code if is_simple else f"({code})"
    with np.errstate(all="ignore"):
        ratio = truth / yours
    ratios = ratio[np.isfinite(ratio)]
    if not ratios.size:
        return
    factor = float(np.round(ratios[0], 9))
    if _is_close(truth, factor * yours):
        yield f"-{bare}" if factor == -1 else f"{factor:.6g} * {bare}"
    for name, array in names.items():
        for sign in (1, -1):
            if array.shape in (yours.shape, (1, _POINTS)) and _is_close(truth, sign * array * yours):
                yield f"{'-' * (sign < 0)}{name} * {bare}"


def _is_close(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=_DIGITS, atol=_DIGITS * np.abs(a).max(initial=0)))
