"""The law of slips: in sixty systems, `check` names the slip that made a claim; no right claim is called wrong."""

import pytest
from checked import in_this_process, verdict  # noqa: F401
from conftest import EVERYTHING
from judge import is_named
from spoiler import derivations, differ, right_claims, wrong_claims

pytestmark = pytest.mark.usefixtures("in_this_process")

ONE, TWO, RIGHT = (400, 100, 100) if EVERYTHING else (30, 15, 15)
NAMED = {1: 0.93, 2: 0.55}


def judged(claim):
    """Return the verdict on a wrong claim, and whether it names the slips that made it."""
    found = verdict(claim.system, claim.shapes, claim.text)
    return found, is_named(claim, found.why, found.slips)


def test_there_are_sixty_systems_and_their_derivations_are_right():
    assert len(derivations()) == 60
    for name, found in derivations().items():
        for d in found if EVERYTHING else found[:1]:
            right = d.numbers(d.derivative())
            assert right is not None, name
            assert not differ(right, d.differences()), (name, d.left)


def test_no_right_claim_is_called_wrong():
    for claim in right_claims(RIGHT, 1):
        found = verdict(claim.system, claim.shapes, claim.text)
        assert found.verdict == "right", (claim.system, claim.text, claim.guise, found.why)


def test_a_right_claim_is_right_beside_a_pole_of_its_system():
    """Where a denominator is multiplied out, or underflows, it is 0 in float64 at points where the system is finite."""
    for system, claim in [
        ("P = R*T/(V + b) - a/V**2", "dP/db = -R*T/(V**2 + 2*V*b + b**2)"),
        ("u = h*f/(k*T); B = f**3/(exp(u) - 1)", "dB/dT = h*f**4*exp(u)/(k*T**2*exp(2*u) - 2*k*T**2*exp(u) + k*T**2)"),
        ("k = A*exp(-E/T); N = 1/(1 + exp(-k*t))", "dN/dE = -A*N*t*exp(-k*t)/(T*exp(E/T) + T*exp(-k*t)*exp(E/T))"),
    ]:
        found = verdict(system, {}, claim)
        assert (found.verdict, found.why) == ("right", "")


@pytest.mark.parametrize(("slips", "count"), [(1, ONE), (2, TWO)])
def test_slips_are_named(slips, count):
    missed = []
    for claim in wrong_claims(count, slips, slips):
        found, is_right = judged(claim)
        assert found.verdict == "wrong", (claim.system, claim.text)
        if not is_right:
            missed.append(f"{claim.system}: {claim.text}: {[s[:4] for s in claim.slips]}: {found.why}")
    print(f"{len(missed)} of {count} are not named:", *missed, sep="\n")
    assert len(missed) <= count * (1 - NAMED[slips])
