"""Derivations of different fields: right ones are right, and what people get wrong in them is called what it is."""

import pytest
from derivations import DERIVATIONS
from test_mutations import in_this_process, verdict  # noqa: F401

pytestmark = pytest.mark.usefixtures("in_this_process")
IDS = [d.source.partition(":")[0] for d in DERIVATIONS]


def test_there_are_twenty_and_half_of_them_are_spoiled():
    assert len({d.source for d in DERIVATIONS}) >= 20
    assert sum(bool(d.wrong) for d in DERIVATIONS) >= 10


@pytest.mark.parametrize("derivation", DERIVATIONS, ids=IDS)
def test_as_it_stands_in_the_book(derivation):
    found = {claim: verdict(derivation.system, derivation.shapes, claim) for claim in derivation.right}
    assert {claim: v.why for claim, v in found.items() if v.verdict != "right"} == {}


@pytest.mark.parametrize("derivation", [d for d in DERIVATIONS if d.wrong], ids=IDS)
def test_as_people_get_it_wrong(derivation):
    for claim, told in derivation.wrong:
        found = verdict(derivation.system, derivation.shapes, claim)
        assert found.verdict == "wrong"
        assert told in found.why
        assert found.difference == pytest.approx(found.true, rel=1e-5, abs=10 * found.error)
