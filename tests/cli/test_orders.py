"""The order of exported parameters, claims that other commands leave out, and points that are answers."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.usefixtures("own_folder")

DECLARED = "input m = 2\ninput a = 3\nF = a*m + b"


def parameters(cli, *command, stdin=""):
    """Return the parameters of the function of values, in C."""
    text = cli.done("export", *command, "--to", "c", "--what", "value,jacobian", stdin=stdin).out
    return re.findall(r"double (\w+)[,)]", re.search(r"^void model\(.*\)$", text, re.MULTILINE)[0])


@pytest.mark.parametrize(
    ("command", "order"),
    [
        (("p = F/A",), ["F", "A"]),
        (("p = F/A", "--wrt", "A"), ["A", "F"]),
        (("p = F/A + c", "--wrt", "A", "--arguments", "c,F"), ["c", "F", "A"]),
        ((DECLARED,), ["m", "a", "b"]),
        ((DECLARED, "--arguments", "b"), ["b", "m", "a"]),
    ],
)
def test_the_order_of_parameters(cli, command, order):
    assert parameters(cli, *command) == order


@pytest.mark.parametrize("command", ["backward", "jacobian", "hessian", "graph", "export"])
def test_claims_in_a_file_are_left_out(cli, command):
    text = "f = x**2*y\n{}\nz = 0*x"
    claims = "df/dx = 2*x*y; x.grad = v*2*x*y\n∂²f/∂x² = 2*y".replace("²", "2", 0)
    options = ("--outputs", "f", *(("--to", "numpy") if command == "export" else ()))
    with_claims = cli.done(command, *options, stdin=text.format(claims.partition("\n")[0])).out
    assert with_claims == cli.done(command, *options, stdin=text.format("")).out


def test_a_point_of_an_earlier_answer(cli):
    system = "y = a*b + sum(x)"
    answer = cli.done("backward", system, "--at", "a=0.1,b=2,x=[1,2]", "-f", "json").out
    with open("answer.json", "w") as file:
        file.write(answer)
    again = cli.done("backward", system, "--at", "@answer.json", "-f", "json").out
    assert again == answer
    with open("point.json", "w") as file:
        json.dump({"a": "Infinity", "x[0]": 1, "x[1]": 2.5}, file)
    assert cli.json("jacobian", system, "--at", "@point.json,b=3")["at"] == {
        "a": "Infinity",
        "b": 3.0,
        "x": [1.0, 2.5],
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "is not a JSON object"),
        ('{"x": ' + "[" * 900 + "1" + "]" * 900 + "}", "`x`"),
    ],
)
def test_what_is_no_point(cli, text, says):
    with open("p.json", "w") as file:
        file.write(text)
    assert says in cli.refused("backward", "y=x**2", "--at", "@p.json")
