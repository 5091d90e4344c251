"""gradcli check: claims as textbooks, papers and habits have them, claims that are none, and long or hostile ones."""

import time

import pytest

SYSTEM = "y = x**2*z"

# What a claim means that is written in another way.
READ = {
    "∂y/∂x = 2*x*z": "dy/dx",
    "d²y/dx² = 2*z": "d2y/dx2",
    "∂²y/∂x² = 2*z": "d2y/dx2",
    "∂³y/∂x²∂z = 2": "d3y/dx2dz",
    "∂²y/∂x∂z = 2*x": "d2y/dxdz",
    "d3y/dzdx2 = 2": "d3y/dzdx2",
}

# What to write instead, word by word.
FIXED = {
    "dy/dx := 2*x*z": "dy/dx =",
    "d^2y/dx^2 = 2*z": "d2y/dx2 =",
    "d2y/dx**2 = 2*z": "d2y/dx2 =",
    "Dy/Dx = 2*x*z": "dy/dx =",
    "δy/δx = 2*x*z": "dy/dx =",
    "dy/d(x) = 2*x*z": "dy/dx =",
    "d(y)/d(x) = 2*x*z": "dy/dx =",
    "(dy/dx) = 2*x*z": "dy/dx =",
    "dy(x, z)/dx = 2*x*z": "dy/dx =",
    "d/dx y = 2*x*z": "dy/dx =",
    "d/dx(y) = 2*x*z": "dy/dx =",
    "d2/dx2 y = 2*z": "d2y/dx2 =",
    "d y / d x = 2*x*z": "dy/dx =",
    "x.grad() = 2*x*z": "x.grad =",
    "x.gradient = 2*x*z": "x.grad =",
    "2*x*z = dy/dx": "dy/dx = 2*x*z",
    "dy/dx == 2*x*z": "dy/dx = 2*x*z",
    "dy/dx = 2xz": "2*x*z",
}

REFUSED = {
    "dy/dx": "`dy/dx` is not followed by a formula",
    "dy/dx =": "`dy/dx =` is followed by nothing",
    "dy/dx = = 2*x": "`=` is inside an expression",
    "d(x+z)/dx = 1": "`d(x+z)/dx` is not a derivative that can be checked",
    "dy/d(x*z) = 1": "`dy/d(x*z)` is not a derivative that can be checked",
    "dy/dx + 1 = 2*x*z + 1": "`dy/dx + 1` is not a derivative that can be checked",
    "-dy/dx = -2*x*z": "`-dy/dx` is not a derivative that can be checked",
    "grad(y) = 2*x*z": "`grad(y)` is not a derivative that can be checked",
    "∇y = 2*x*z": "U+2207 (NABLA)",
    "y'''''' = 0": "is not a derivative that can be checked",
    "d5y/dx5 = 0": "is not a derivative that can be checked",
    "d2y/dx = 2*z": "`d2y/dx` is of order 2, and by x",
    "dy/dx/dz = 2*x": "`dy/dx/dz` is of order 1, and by x, z",
    "dy/dq = 0": "`q` is not in the system",
    "dsin/dx = 0": "`sin` is not computed in the system",
    "dx/dy = 1": "did you mean dy/dx?",
    "dx/dz = 0": "`x` is an input, and depends on nothing",
    "dy/dx = dy/dz": "unknown name `dy`",
    "dy/dx = [2*x*z]": "write it without brackets",
    "dy/dx = True": "a condition is not a derivative",
    "dy/dx = x > 0": "a condition is not a derivative",
    "dy/dx = sin": "`sin` is a function",
    "dy/dx = 2*x*z for i in 0..2": "`dy/dx` has no index `i`",
    "dy/dx = y.v": "`y.v` is not a cotangent here",
    "x.grad = q.v*2": "`q.v` is not a cotangent here",
    "dy/dх = 2*x*z": "which looks like `x`",
    "dy/dx[i] = 1 for i in 0..99999999999": "this integer is too large",
    "dy/dx[i] = 1 for x in 0..2 for i in 0..2": "`x` is an array of the claim, and the variable of its loop",
    'dy/dx = __import__("os").system("true")': "is not part of the language",
    "y/2 = x": "there is no claim to check",
}

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


@pytest.mark.parametrize("claim", READ)
def test_another_spelling_is_read(cli, claim):
    (found,) = cli("check", SYSTEM, claim, "-f", "json").objects
    assert (found["claim"], found["verdict"], found["by"]) == (READ[claim], "right", "proof")


@pytest.mark.parametrize("claim", FIXED)
def test_what_is_meant_is_told(cli, claim):
    err = cli.refused("check", SYSTEM, claim)
    assert f"`{FIXED[claim]}`" in err
    assert err.splitlines()[1].strip() == claim


@pytest.mark.parametrize("claim", REFUSED)
def test_what_is_no_claim_is_told(cli, claim):
    assert REFUSED[claim] in " ".join(cli.refused("check", SYSTEM, claim).split())


@pytest.mark.parametrize("what", LONG)
def test_long_claims_are_refused_at_once(cli, what):
    claim, told = LONG[what]
    start = time.process_time()
    assert told in " ".join(cli.refused("check", SYSTEM, claim).split())
    assert time.process_time() - start < 2


def test_other_commands_leave_texts_alone_that_are_no_claims(cli):
    for system in ("y = x/dx; z = y*dy/dx", "dy/dx"):
        assert cli("backward", system).status == 0


def test_a_derivative_that_is_nan_proves_nothing(cli):
    (found,) = cli("check", "y = nan*x", "dy/dx = nan", "-f", "json").objects
    assert found["verdict"] == "undecided"
