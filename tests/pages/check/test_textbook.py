"""Fifty derivatives from textbooks are right, and most are proved."""

import pytest
from checked import in_this_process, verdict  # noqa: F401
from textbook import TEXTBOOK

pytestmark = pytest.mark.usefixtures("in_this_process")


def test_right_derivatives_are_right():
    found = {claim: verdict(system, shapes, claim) for system, shapes, claim in TEXTBOOK}
    assert len(TEXTBOOK) >= 50
    assert {claim: v.why for claim, v in found.items() if v.verdict != "right"} == {}
    assert sum(v.by == "proof" for v in found.values()) >= 0.9 * len(found)
