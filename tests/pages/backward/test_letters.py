"""`--v v`: gradients as formulas in v, which `gradcli check` proves as claims; and `--v v=…`, with numbers beside."""

from __future__ import annotations

import json

import pytest

SYSTEMS = [
    (("y=x**2*w",), ()),
    (("y=x**2*w", "z=3*x + sin(w)"), ()),
    (("y=3*x**2*w",), ("--shape", "x=3")),
    (("y=tanh(M@x)",), ("--shape", "x=2,M=2x2")),
    (("y=x*exp(w)", "z=sum(x)*w"), ("--shape", "x=2")),
]


@pytest.mark.parametrize(("system", "shapes"), SYSTEMS)
def test_gradients_in_v_are_right_as_claims(cli, system, shapes):
    record = json.loads(cli.done("backward", *system, *shapes, "--v", "v", "-f", "json").out)
    claims = [f"{name}.grad = {json.dumps(grad).replace(chr(34), '')}" for name, grad in record["grad"].items()]
    assert all("v" in claim.partition("=")[2] for claim in claims)
    cli.done("check", *system, *claims, *shapes)


def test_numbers_beside_letters(cli):
    arguments = ("y=x**2*w", "z=3*x", "--at", "x=1,w=2", "--v", "v=1,10")
    record = json.loads(cli.done("backward", *arguments, "-f", "json").out)
    assert record["grad"] == {"w": 1, "x": 34}
    assert record["formulas"] == {"w": "x**2*y.v", "x": "2*w*x*y.v + 3*z.v"}
    assert "x.grad = 2*w*x*y.v + 3*z.v   = 1·4 + 10·3   = 34" in cli.done("backward", *arguments).out


def test_an_output_called_v_has_its_value(cli):
    record = json.loads(cli.done("backward", "v=x**2", "--at", "x=3", "--v", "v=2", "-f", "json").out)
    assert record["grad"] == {"x": 12}
    assert "formulas" not in record


def test_a_letter_at_a_point_is_an_error_that_says_what_to_type(cli):
    outcome = cli("backward", "y=x**2", "--at", "x=1", "--v", "v")
    assert outcome.status == 2
    assert "--v v=1,10 has both" in outcome.err
