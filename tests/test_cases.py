"""The worked examples: every value, Jacobian, gradient, running sum and error, through the JSON of both commands."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

TWO_TO_THREE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")
ASSEMBLED = ("y[0]=3*x[0]**2", "y[1]=x[0]**2+2*x[1]**3", "y[2]=10*x[1]")
CHAIN = ("y=2*x", "z=y**3")
MEAN = (*CHAIN, "out=mean(z)")
X = [[2.5212, 1.273], [0.0366, 0.075]]
X_MEAN = [[1.8528, 0.2083], [1.5296, 0.3136]]
MM = {"x": [[2, 1]], "M": [[1, 2], [3, 4]]}
DOUBLED = [-1.1532162109375, 0.1907734375, 1.7988712890625]
EIGHT = [[1, 2, 3, 4], [5, 6, 7, 8]]
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


def case(
    name: str, system: tuple[str, ...], at: dict[str, Any], v: Any = None, wrt: str | None = None, **expected: Any
):
    return pytest.param(Case(system, at, v, wrt, expected), id=name)


CASES = [
    case("scalar-scalar", ("y=x**2",), {"x": 1}, jacobian=[[2]], grad={"x": 2}),
    case("scalar-scalar-v100", ("y=x**2",), {"x": 1}, "100", grad={"x": 200}),
    case("vector-scalar", ("y=sum(x)",), {"x": [1, 2]}, value={"y": 3}, jacobian=[[1, 1]], grad={"x": [1, 1]}),
    case("vector-scalar-v100", ("y=sum(x)",), {"x": [1, 2]}, "100", grad={"x": [100, 100]}),
    case(
        "vector-vector",
        ("y=3*x**2",),
        {"x": [1, 2]},
        "1,1",
        value={"y": [3, 12]},
        jacobian=[[6, 0], [0, 12]],
        grad={"x": [6, 12]},
    ),
    case("vector-vector-v-1-10", ("y=3*x**2",), {"x": [1, 2]}, "[1,10]", grad={"x": [6, 120]}),
    case(
        "two-to-three",
        TWO_TO_THREE,
        {"x0": 1, "x1": 2},
        "1,10,100",
        value={"y0": 3, "y1": 17, "y2": 20},
        symbolic=[["6*x0", "0"], ["2*x0", "6*x1**2"], ["0", "10"]],
        jacobian=[[6, 0], [2, 24], [0, 10]],
        grad={"x0": 26, "x1": 1240},
    ),
    case(
        "two-to-three-assembled",
        ASSEMBLED,
        {"x": [1, 2]},
        "1,10,100",
        value={"y": [3, 17, 20]},
        jacobian=[[6, 0], [2, 24], [0, 10]],
        grad={"x": [26, 1240]},
    ),
    case(
        "broadcast-scalar", ("y=x**2",), {"x": 1}, "1,10,100,1000", running={"x": [2, 22, 222, 2222]}, grad={"x": 2222}
    ),
    case(
        "broadcast-vector",
        ("y=sum(x)",),
        {"x": [1, 2]},
        "1,10,100,1000",
        running={"x": [[1, 1], [11, 11], [111, 111], [1111, 1111]]},
        grad={"x": [1111, 1111]},
    ),
    case("chain", CHAIN, {"x": 0.6955}, grad={"x": 11.609286}),
    case("chain-v-1", CHAIN, {"x": 0.7207}, "1", grad={"x": 12.46580376}),
    case("chain-v-0.1", CHAIN, {"x": 0.7207}, "0.1", grad={"x": 1.2465803760000003}),
    case("chain-v-0.5", CHAIN, {"x": 0.7207}, "0.5", grad={"x": 6.23290188}),
    case(
        "matrix-all",
        CHAIN,
        {"x": X},
        "[[1,1],[1,1]]",
        grad={"x": [[152.55478655999997, 38.892695999999994], [0.03214944, 0.13499999999999998]]},
    ),
    case(
        "matrix-second-column",
        CHAIN,
        {"x": X},
        "[[0,1],[0,1]]",
        grad={"x": [[0, 38.892695999999994], [0, 0.13499999999999998]]},
    ),
    case(
        "matrix-first-row",
        CHAIN,
        {"x": X},
        "[[1,1],[0,0]]",
        grad={"x": [[152.55478655999997, 38.892695999999994], [0, 0]]},
    ),
    case("mean", MEAN, {"x": X_MEAN}, grad={"x": [[20.59720704, 0.26033334], [14.03805696, 0.59006976]]}),
    case("mm-10", ("y=x@M",), MM, "[[1,0]]", "x", value={"y": [[5, 8]]}, grad={"x": [[1, 3]]}),
    case("mm-01", ("y=x@M",), MM, "[[0,1]]", "x", value={"y": [[5, 8]]}, grad={"x": [[2, 4]]}),
    case("mm-11", ("y=x@M",), MM, "[[1,1]]", "x", value={"y": [[5, 8]]}, grad={"x": [[3, 7]]}),
    case("doubled", ("y=x*512",), {"x": DOUBLED}, "0.1,1.0,0.0001", grad={"x": [51.2, 512, 0.0512]}),
    case(
        "mm-2x3-3x4",
        ("out=x@a",),
        {"x": np.ones((2, 3)).tolist(), "a": np.ones((3, 4)).tolist()},
        json.dumps(EIGHT),
        "x",
        grad={"x": [[10, 10, 10], [26, 26, 26]]},
    ),
    case("target-as-v", ("y=3*x**2",), {"x": [1, 2]}, "5,7", grad={"x": [30, 84]}),
    case("ones-is-the-sum", ("y=3*x**2",), {"x": [1, 2]}, "ones", grad={"x": [6, 12]}),
    case("onehot-is-one-output", ("y=3*x**2",), {"x": [1, 2]}, "onehot:1", grad={"x": [0, 12]}),
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
