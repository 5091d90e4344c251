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
