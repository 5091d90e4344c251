"""Claims in formulas: whether they are proved, the right derivative written out, and what sums differ in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np

from gradcli.graph.construct import spread
from gradcli.graph.graph import scheduled
from gradcli.graph.kinds import is_symmetric_matrix
from gradcli.graph.names import ElementName
from gradcli.graph.node import Node, operands
from gradcli.graph.rewrite import substituted
from gradcli.notation.numbers import array_text
from gradcli.pages.check.claim import Case, named_constants
from gradcli.pages.results import Shown

SECONDS = 2.0  # of SymPy for each claim: most proofs take less, and what takes longer is mostly not found
MAX_ENTRIES = 400  # of a claim that is proved: a matrix of 20 by 20, each entry an equation for SymPy
_SHOWN = 36  # entries of a derivative that is shown: a matrix of 6 by 6
_LENGTH = 200  # characters of a formula that is shown: three lines
_LINE = 60  # characters of a formula of arrays, which says it in one line or not at all
_ONE_HOT = 64  # one-hot arrays that are tried one by one: more take the time of a proof
_NAMED = 6  # intermediates that formulas are written in: each doubles the forms that are compared

Prove = Callable[[int, int | None], "Proof"]  # of a claim's place, and of the entry that is wrong if one is


@dataclass(frozen=True)
class Proof:
    """The result of algebra within its time limit.

    `proved` is whether all entries are right, `formula` is the right derivative, and `difference` what a claim needs to
    be right (`plus x`).  `terms` are the terms that are missing, extra or wrong, all of one entry, and `whole` is the
    derivative as a formula of arrays, where a wrong claim is about one.
    """

    proved: bool = False
    whole: str = ""
    formula: str = ""
    difference: str = ""
    terms: str = ""


@contextmanager
def prover(shown: Shown, cases: Sequence[Case]) -> Iterator[Prove]:
    """Yield a function that proves a claim, or returns the difference of an entry, in a child process.

    It computes for two seconds at most; what was found by then is the result.
    """
    import gradcli.algebra.display
    import gradcli.algebra.equality
    import gradcli.notation.formulas  # noqa: F401  # what the child needs is loaded once
    from gradcli.algebra.bounded import Bounded

    with Bounded(partial(_report, shown, cases), SECONDS) as bounded:
        yield lambda index, wrong: bounded.ask((index, wrong)) or Proof()


def _report(
    shown: Shown, cases: Sequence[Case], question: tuple[int, int | None], report: Callable[[Proof], None]
) -> None:
    """Report better and better proofs of a claim."""
    from gradcli.algebra.formulas import TooDeepError

    index, wrong = question
    case = cases[index]
    with suppress(TooDeepError):
        for result in _of_a_right_one(shown, case) if wrong is None else _of_a_wrong_one(shown, case, wrong):
            report(result)


def _of_a_wrong_one(shown: Shown, case: Case, wrong: int) -> Iterator[Proof]:
    """Yield the right derivative, that of a wrong entry, and the terms in which the claim differs there."""
    from gradcli.algebra.display import tidy

    result = Proof(whole=_whole(case))
    yield result
    if case.truth.size > MAX_ENTRIES:
        return
    names = {**case.graph.names, **case.graph.inputs}
    constants = named_constants([case.truth, case.yours], names)
    meant = {n: multiple for n, (_, _, multiple) in constants.items()}
    symbols = {symbol: name for name, symbol, _ in constants.values()}
    right, said = (_entries(case, node, symbols)[wrong] for node in substituted([case.truth, case.yours], meant))
    result = replace(result, formula=_short(shown, tidy(right)))
    yield result
    result = replace(result, terms=_differing(shown, said, right))
    yield result
    more = tidy(right - said)
    word, size = ("minus", tidy(-more)) if not more.is_Add and more.could_extract_minus_sign() else ("plus", more)
    text = _short(shown, size)
    subtracted = 0 < len(result.formula) < len(text) and not more.is_number  # the claim again: this explains nothing
    if text and not subtracted:
        yield replace(result, difference=f"{word} {text}")


def _whole(case: Case) -> str:
    """Return the derivative of a scalar by an array as a formula of arrays in the user's names; "" for no short one."""
    from gradcli.notation.nodes import Notation
    from gradcli.pages.forms.gradients import readable_form

    class Complete(Notation):
        shown = MAX_ENTRIES

    if case.base.shape or case.entries is not None or case.truth.shape != case.by.shape or case.truth.size == 1:
        return ""
    names: dict[Node, str] = {n: name for name, n in [*case.graph.names.items(), *case.graph.inputs.items()]}
    form = readable_form(case.truth, names)
    text = "" if form is None else Complete(names, implicit=True).expression(spread(form, case.truth.shape), whole=True)
    return text if len(text) <= _LINE else ""


def _of_a_right_one(shown: Shown, case: Case) -> Iterator[Proof]:
    """Yield the proof that a claim holds for all values, and the derivative written out."""
    from gradcli.algebra.display import tidy
    from gradcli.algebra.equality import is_zero

    if case.truth.size > MAX_ENTRIES:
        return
    result = Proof(proved=_proved(case))
    yield result
    right, said = (_entries(case, node, {}) for node in (case.truth, case.yours))
    if case.truth.size <= _SHOWN:
        texts = [_short(shown, tidy(e)) for e in right]
        text = array_text(np.array(texts, dtype=object).reshape(case.truth.shape), str) if all(texts) else ""
        result = replace(result, formula=text if len(text) <= 4 * _LENGTH else "")
        yield result
    if not result.proved and all(map(is_zero, _assumed(case, _minus(said, right), {}))):
        yield replace(result, proved=True)


def _proved(case: Case) -> bool:
    """Return whether the claim equals the derivative with some intermediates as free variables.

    Formulas in them are short.  What is found equal so, is equal.  What is not may be so because one is made of another
    in a way that counts: those are taken that leave both equal in numbers, one after the other.
    """
    from gradcli.algebra.equality import is_zero

    named = [(name, n) for name, n in case.graph.names.items() if n.args and not isinstance(name, ElementName)][:_NAMED]
    known = {n: name for name, n in named}
    differences = _differences(case, known)
    if differences is None:
        known = {}
        for name, n in named:
            if (result := _differences(case, {**known, n: name})) is not None:
                known[n], differences = name, result
    if differences is not None and all(is_zero(d, patient=False) for d in differences):
        return True
    whole = _differences(case, {}) if known else differences
    return whole is not None and all(is_zero(d, patient=False) for d in whole)


def _differences(case: Case, known: Mapping[Node, str]) -> list[Any] | None:
    """Return the differences claim - derivative as formulas; None where numbers show that one is not 0."""
    from gradcli.algebra.equality import is_refuted
    from gradcli.algebra.formulas import TooDeepError

    try:
        right, said = (_entries(case, node, known) for node in (case.truth, case.yours))
    except TooDeepError:
        return None
    result = _assumed(case, _minus(said, right), known)
    return None if any(map(is_refuted, result)) else result


def _minus(said: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    import sympy

    none = {sympy.Symbol(name) for name in ("nan", "inf")}  # a derivative that is one of these does not exist
    return [sympy.nan if b in none else a - b for a, b in zip(said, right, strict=True)]


def _entries(case: Case, node: Node, known: Mapping[Node, str]) -> list[Any]:
    """Return the formulas of a node's elements, in those of the leaves and of what is `known`."""
    from gradcli.algebra.formulas import formulas

    return list(formulas([node], _variables(case, known), {}).exprs[node].reshape(-1))


def _variables(case: Case, known: Mapping[Node, str]) -> dict[Node, Any]:
    """Return the variables of formulas: the elements of the leaves and of what is `known`."""
    from gradcli.algebra.formulas import symbols

    names = {**{n: name for name, n in case.graph.inputs.items()}, **known}
    result = {n: symbols(name, n.shape) for n, name in names.items()}
    for name, kind in case.kinds.items():
        node = case.graph.inputs.get(name)
        if node is not None and is_symmetric_matrix(kind, node.shape):
            result[node] = np.where(np.tri(len(result[node])) > 0, result[node].T, result[node])
    return result


def _assumed(case: Case, formulas: Sequence[Any], known: Mapping[Node, str]) -> list[Any]:
    """Return the forms of formulas where inputs are what they are declared to be, and what the system needs.

    Each has as many forms as there are one-hot arrays, if these are few; of many, what counts is that rows sum to 1.
    """
    positive = _positive(case, known)
    most = min(_ONE_HOT, MAX_ENTRIES // max(1, len(formulas)))
    return [f.xreplace(values).xreplace(positive) for values in _of_rows(case, most) for f in formulas]


def _of_rows(case: Case, most: int) -> list[dict[Any, Any]]:
    """Return what replaces elements of arrays whose rows sum to 1: the other elements, or all one-hot arrays."""
    from gradcli.algebra.formulas import symbols

    result: list[dict[Any, Any]] = [{}]
    for name, kind in case.kinds.items():
        if kind not in ("onehot", "simplex") or name not in case.graph.inputs:
            continue
        shape = case.graph.inputs[name].shape
        rows = symbols(name, shape).reshape(-1, shape[-1])
        choices = [{row[-1]: 1 - sum(row[:-1]) for row in rows}]
        if kind == "onehot" and shape[-1] ** len(rows) * len(result) <= most:
            each = product(np.eye(shape[-1], dtype=int).tolist(), repeat=len(rows))
            choices = [dict(zip(rows.flat, chain(*ones), strict=True)) for ones in each]
        result = [{**before, **choice} for before in result for choice in choices]
    return result


def _positive(case: Case, known: Mapping[Node, str]) -> dict[Any, Any]:
    """Return positive variables in the place of those that are declared to be, or that a logarithm or root is taken of.

    The system is defined for no others, but maybe for 0.
    """
    import sympy

    variables = _variables(case, known)
    positive = [n.args[0] for n in scheduled([case.base, case.truth]) if _is_of_positive(n)]
    declared = ((case.graph.inputs.get(name), kind) for name, kind in case.kinds.items())
    positive += [n for n, kind in declared if n and (kind == "simplex" or (kind == "positive" and len(n.shape) < 2))]
    return {s: sympy.Dummy(positive=True) for x in positive if x in variables for s in variables[x].flat}


def _is_of_positive(node: Node) -> bool:
    match operands(node, "pow"):
        case _, exponent:
            return isinstance(exponent.value, str) or (exponent.value is not None and exponent.value % 1 != 0)
    return node.op in ("log", "log2", "log10", "sqrt")


def _short(shown: Shown, expr: Any) -> str:
    text = shown.formula(expr)
    return text if len(text) <= _LENGTH else ""


def _differing(shown: Shown, said: Any, right: Any) -> str:
    """Return the one term of a sum that a claim misses or has too many, as it is written, or with the wrong sign."""
    import sympy

    from gradcli.algebra.display import tidy
    from gradcli.algebra.equality import is_nothing

    for term in sympy.Add.make_args(said):
        if term != said and is_nothing(said - term - right):
            return f"extra term: {_signed(shown, term)}"
    for form in dict.fromkeys([right, tidy(right)]):
        for term in sympy.Add.make_args(form):
            if term != form and is_nothing(form - term - said):
                return f"missing: {_signed(shown, term)}"
            if term != form and is_nothing(form - 2 * term - said):
                return f"the sign of the term {shown.formula(abs(term) if term.is_number else term)}"
    return ""


def _signed(shown: Shown, term: Any) -> str:
    """Return a term with its sign: `+ x*cos(x)`."""
    minus = term.could_extract_minus_sign()
    return f"{'-' if minus else '+'} {shown.formula(-term if minus else term)}"
