"""Mistakes made in fifty right derivatives are found, and called what they are."""

import numpy as np
import pytest
from conftest import long
from mutations import SAID, mutations
from textbook import TEXTBOOK

from gradcli.cli.claims import cases
from gradcli.errors import Source
from gradcli.explain.check.claim import numbers
from gradcli.explain.check.verdicts import Settings, check
from gradcli.lang.claims import read_claims
from gradcli.lang.system import read_system

pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture
def in_this_process(monkeypatch):
    """SymPy remembers from one claim to the next; a child of its own for each would begin anew."""

    def here(bounded, question):
        found = []
        bounded.work(question, found.append)
        return found[-1] if found else None

    monkeypatch.setattr("gradcli.algebra.bounded.Bounded.ask", here)


def case_of(system, shapes, claim):
    """Return the claim about a system as nodes."""
    rest, claims = read_claims([Source(system), Source(claim)])
    found = read_system(rest)
    graph = found.graph(shapes, found.assigned)
    return graph, cases(claims, graph, found.outputs)[0]


def verdict(system, shapes, claim):
    graph, case = case_of(system, shapes, claim)
    return check(graph, [case], Settings()).verdicts[0]


def values(system, shapes, claim):
    """Return a claim's values at some points, rounded: mistakes that are one have the same."""
    _, case = case_of(system, shapes, claim)
    random = np.random.default_rng(5)
    points = {name: random.uniform(0.2, 0.9, (*x.shape, 5)) for name, x in case.graph.inputs.items()}
    return tuple(np.round(numbers(case.graph, points, [case.yours])[0], 9).reshape(-1).tolist())


def mistakes(system, shapes, claim, inner):
    """Return the mistakes that can be made in a claim, one of a kind, with all the kinds that each of them is."""
    left, _, right = claim.partition(" = ")
    graph, case = case_of(system, shapes, claim)
    inputs = {name: x.shape for name, x in case.graph.inputs.items()}
    found = {}
    for kind, text in mutations(right, inner, (case.truth.shape, inputs), list(graph.inputs)):
        kinds, _ = found.setdefault(values(system, shapes, f"{left} = {text}"), (set(), f"{left} = {text}"))
        kinds.add(kind)
    found.pop(values(system, shapes, claim), None)  # a symmetric matrix has no transpose
    first = {}
    for kinds, wrong in found.values():
        first.setdefault(min(kinds), (kinds, wrong))
    return list(first.values())


def test_right_derivatives_are_right():
    found = {claim: verdict(system, shapes, claim) for system, shapes, claim, _ in TEXTBOOK}
    assert len(TEXTBOOK) >= 50
    assert {claim: v.why for claim, v in found.items() if v.verdict != "right"} == {}
    assert sum(v.by == "proof" for v in found.values()) >= 0.9 * len(found)


@long
def test_mistakes_are_called_what_they_are():
    tried, missed, seen = 0, [], set()
    for entry in TEXTBOOK:
        for kinds, wrong in mistakes(*entry):
            found = verdict(*entry[:2], wrong)
            assert found.verdict == "wrong", wrong
            tried += 1
            seen |= kinds
            if not any(words in found.why for kind in kinds for words in SAID[kind]):
                missed.append(f"{kinds}: {wrong}: {found.why}")
    print(f"{len(missed)} of {tried} mistakes are called something else:", *missed, sep="\n")
    assert seen == set(SAID)
    assert tried > 200
    assert len(missed) <= tried / 10
