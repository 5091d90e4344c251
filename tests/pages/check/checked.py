"""What `check` says of claims, asked in this process."""

import pytest

from gradcli.cli.inputs.claims import cases
from gradcli.errors import Source
from gradcli.lang.claims import read_claims
from gradcli.lang.system import read_system
from gradcli.pages.check.verdicts import Settings, check


def here(bounded, question):
    """Return what a child process would."""
    found = []
    bounded.work(question, found.append)
    return found[-1] if found else None


@pytest.fixture
def in_this_process(monkeypatch):
    """SymPy remembers from one claim to the next; a child of its own for each would begin anew."""
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
