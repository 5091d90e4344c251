"""Formulas as the commands show them: numbers that are not too long, squares as typed, names that do not clash."""

from __future__ import annotations

import re

import numpy as np
from conftest import each, long

FORMATS = ["table", "json", "csv", "latex", "markdown"]


@each("style", FORMATS)
@each(
    "arguments",
    [
        ("backward", "y=x**2", "--v", "1e300"),
        ("backward", "y=x**2/3", "--v", "-1e300"),
        ("backward", "y=x/3", "--v", "1e300"),
        ("backward", "y=x**2/7e300"),
        ("backward", "h=x**2", "y=sin(h)", "--v", "1e300", "--retain", "h", "--steps"),
        ("backward", "y=0.1*x**2", "--v", "2e300", "--steps"),
        ("jacobian", "y=x**2+1e300*x"),
        ("jacobian", "y=10**300*x**2"),
        ("jacobian", "y=x**2*exp(1e300*x)/3e200"),
    ],
)
def test_a_number_has_no_digits_that_say_nothing(cli, arguments, style):
    out = cli.done(*arguments, "-f", style).out
    assert not re.search(r"\d{20}", out)
    assert re.search(r"e[+-]?(200|300|299)|10\^\{-?(200|300|299)\}", out)


# Names that formulas make up


def deep(x: str, z: str) -> list[str]:
    """Return a system whose formulas are shown through intermediates with names, the user's and others."""
    return [f"a0={x}*{z}", *(f"a{k + 1}=sin(a{k})*a{k}+{x}" for k in range(30)), f"y=a30*{z}"]


def made_up(where: dict[str, str]) -> list[str]:
    return [name for name in where if not re.fullmatch(r"a\d+", name)]


def check_given_back(cli, system: list[str], point: dict[str, float]) -> None:
    """Check that the formulas of a system, given back as expressions, are worth what its Jacobian is."""
    at = ("--at", ",".join(f"{name}={value}" for name, value in point.items()))
    found = cli.json("jacobian", *system, *at, "--outputs", "y")
    assert not set(found["where"]) & set(point)
    definitions = [f"{name}={text}" for name, text in found["where"].items()]
    every = "+".join(f"0*{name}" for name in point)
    entries = [f"entry{k}={text}+{every}" for k, text in enumerate(found["symbolic"][0])]
    names = ",".join(f"entry{k}" for k in range(len(entries)))
    values = cli.json("jacobian", *definitions, *entries, "--outputs", names, *at)["value"]
    np.testing.assert_allclose(list(values.values()), found["jacobian"][0], rtol=1e-9)


@long
def test_a_made_up_name_is_not_one_of_the_users(cli):
    """Nor is the name that is made up in its place: the user may have that as well."""
    first = made_up(cli.json("jacobian", *deep("x", "z"))["where"])
    assert first
    second = [name for name in made_up(cli.json("jacobian", *deep(first[0], "z"))["where"]) if name not in first]
    assert second
    check_given_back(cli, deep(first[0], "z"), {first[0]: 1.3, "z": 0.7})
    check_given_back(cli, deep(first[0], second[0]), {first[0]: 1.3, second[0]: 0.7})


def test_made_up_names_are_not_each_others(cli):
    """An element of `a` and a variable whose name is written like one, each with an adjoint that needs a name."""
    step = "sin({0})*{0}*exp(-{0}**2)+x*cos({0})"
    lines = ["a_0=x*sin(x)", "a=[x*cos(x), x]"]
    lines += ["b=" + step.format("a_0"), "c=" + step.format("a[0]")]
    lines += [f"d{k}=" + step.format(f"d{k - 1}" if k else "(b*c)") for k in range(4)]
    check_given_back(cli, [*lines, "y=d3*b*c"], {"x": 0.7})
