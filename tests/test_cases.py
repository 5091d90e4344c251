"""The worked examples: every value, Jacobian, gradient, running sum and error, through the JSON of both commands."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHAIN = ("y=2*x", "z=y**3")
MEAN = (*CHAIN, "out=mean(z)")
X_MEAN = [[1.8528, 0.2083], [1.5296, 0.3136]]
IMPLICIT = "grad can be implicitly created only for scalar outputs"


@dataclass(frozen=True)
class Case:
    """A system at a point, and what is expected there."""

    system: tuple[str, ...]
    at: dict[str, Any]
    v: str | None = None
    wrt: str | None = None
    expected: dict[str, Any] = field(default_factory=dict)

    @property
    def point(self) -> list[str]:
        """The arguments that say what is looked at, and where."""
        at = ",".join(f"{name}={json.dumps(value)}" for name, value in self.at.items())
        return [*self.system, "--at", at, *(["--wrt", self.wrt] if self.wrt else [])]

    @property
    def options(self) -> list[str]:
        """The arguments of `backward`."""
        return [*self.point, *(["--v", self.v] if self.v else [])]


CASES = [
    pytest.param(
        Case(tuple(row.pop("system")), row.pop("at"), row.pop("v", None), row.pop("wrt", None), row), id=row.pop("name")
    )
    for row in json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
]


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check that each variable has its value, in its shape."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.shape(found[name]) == np.shape(value)
        np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_backward(cli, case):
    found = cli.json("backward", *case.options)
    same(found["at"], case.at)
    same(found["grad"], case.expected["grad"])
    same(found["calls"][-1]["grad"], case.expected["grad"])
    if "value" in case.expected:
        same(found["value"], case.expected["value"])
    for name, sums in case.expected.get("running", {}).items():
        same({name: [call["grad"][name] for call in found["calls"]]}, {name: sums})


@pytest.mark.parametrize("case", CASES)
def test_jacobian(cli, case):
    found = cli.json("jacobian", *case.point)
    for key in case.expected.keys() & {"symbolic", "jacobian"}:
        assert found[key] == case.expected[key]
    if "value" in case.expected:
        same(found["value"], case.expected["value"])
    # What backward leaves in .grad is vᵀJ, summed over its calls.
    calls = cli.json("backward", *case.options)["calls"]
    v = sum(np.concatenate([np.ravel(value) for value in call["v"].values()]) for call in calls)
    grad = np.concatenate([np.ravel(value) for value in case.expected["grad"].values()])
    np.testing.assert_allclose(v @ np.array(found["jacobian"]), grad, rtol=1e-12)


@pytest.mark.parametrize(
    ("system", "at", "v", "message"),
    [
        (("y=x**2",), "x=1", "1,10,100,1000", "shape (4,) of v against shape () of y"),
        (("y=sum(x)",), "x=[1,2]", "1,10,100,1000", "shape (4,) of v against shape () of y"),
        (MEAN, f"x={X_MEAN}", "[[1,1],[1,1]]", "shape (2, 2) of v against shape () of out"),
    ],
    ids=["broadcast-scalar", "broadcast-vector", "mean-wrong-v"],
)
def test_strict_refuses_a_longer_v(cli, system, at, v, message):
    assert message in cli.refused("backward", *system, "--at", at, "--v", v, "--strict")


def test_a_longer_v_accumulates_once_for_each_entry(cli):
    once = cli.json("backward", *MEAN, "--at", f"x={X_MEAN}")
    found = cli.json("backward", *MEAN, "--at", f"x={X_MEAN}", "--v", "[[1,1],[1,1]]")
    assert len(found["calls"]) == 4
    np.testing.assert_allclose(found["grad"]["x"], 4 * np.array(once["grad"]["x"]), rtol=1e-12)


@pytest.mark.parametrize("system", [("y=3*x**2",), ("y=3*x", "z=x")], ids=["vector", "two outputs"])
def test_only_a_scalar_output_has_an_implicit_v(cli, system):
    assert IMPLICIT in cli.refused("backward", *system, "--at", "x=[1,2]")


def test_chain_retains_what_it_is_asked_to(cli):
    point = ("backward", *CHAIN, "--at", "x=0.6955")
    assert "retained" not in cli.json(*point)
    same(cli.json(*point, "--retain", "y,z")["retained"], {"y": 5.804643, "z": 1})


def test_layers_backpropagate_through_a_pipe(cli):
    whole = cli.json("backward", "h=x**2", "y=sin(h)", "--at", "x=[1,2]", "--v", "1,1")
    h = cli.json("jacobian", "h=x**2", "--at", "x=[1,2]")["value"]["h"]
    second = cli.done("backward", "y=sin(h)", "--at", f"h={h}", "--v", "1,1", "-f", "json")
    first = cli.json("backward", "h=x**2", "--at", "x=[1,2]", "--v", "-", stdin=second.out)
    same(first["grad"], whole["grad"])
    np.testing.assert_allclose(whole["grad"]["x"], 2 * np.array([1, 2]) * np.cos([1, 4]), rtol=1e-12)


@pytest.mark.parametrize(
    ("v", "loss"),
    [("5,7", "loss=sum(y*[5,7])"), ("ones", "loss=sum(y)"), ("onehot:1", "loss=y[1]")],
    ids=["target-as-v", "ones-is-the-sum", "onehot-is-one-output"],
)
def test_v_is_the_gradient_of_a_loss(cli, v, loss):
    point = ("--at", "x=[1,2]")
    by_v = cli.json("backward", "y=3*x**2", *point, "--v", v)
    by_loss = cli.json("backward", "y=3*x**2", loss, *point)
    same(by_loss["grad"], by_v["grad"])


def test_sin_cos_tape(cli):
    found = cli.json("backward", "y=sin(x)+cos(x)", "--at", "x=0.5", "--steps")
    rules = {step["rule"]: step["local_derivative"] for step in found["steps"]["reverse"]}
    assert rules["∂t1/∂x = cos(x)"] == pytest.approx(np.cos(0.5), rel=1e-12)
    assert rules["∂t2/∂x = -sin(x)"] == pytest.approx(-np.sin(0.5), rel=1e-12)
    same(found["grad"], {"x": np.cos(0.5) - np.sin(0.5)})
