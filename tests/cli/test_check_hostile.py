"""gradcli check: claims as textbooks, papers and habits have them, claims that are none, and long or hostile ones."""

import time

import pytest

SYSTEM = "y = x**2*z"


LONG = {
    "indices": ("dy/dx" + "[0]" * 5000 + " = 1", "is not a derivative"),
    "brackets": ("dy/dx[" + "[" * 5000 + " = 1", "nested more than 150 deep"),
    "variables": ("dy" + "/dx" * 5000 + " = 1", "is of order 1, and by x, x, x, x, …"),
    "a name of many": ("d2y/d" + "xd" * 5000 + "x = 1", "is of order 2"),
    "digits": ("d" + "9" * 5000 + "y/dx2 = 1", "is not a derivative"),
    "a product": ("dy/dx = 2" + "xz" * 5000, "a product is written with `*`"),
    "primes": ("y" + "'" * 5000 + " = 1", "is not a derivative"),
    "a sum": ("dy/dx = " + "+".join(["x"] * 20000), "nested too deeply"),
    "elements": ("dy/dx[" + "0," * 5000 + "0] = 1", "`x` is a scalar"),
}


@pytest.mark.parametrize("what", LONG)
def test_long_claims_are_refused_at_once(cli, what):
    claim, told = LONG[what]
    start = time.process_time()
    assert told in " ".join(cli.refused("check", SYSTEM, claim).split())
    assert time.process_time() - start < 2


def test_other_commands_leave_texts_alone_that_are_no_claims(cli):
    for system in ("y = x/dx; z = y*dy/dx", "dy/dx"):
        assert cli("backward", system).status == 0
