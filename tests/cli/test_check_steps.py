"""gradcli check --steps: the right derivation, whose lines are compared with finite differences."""

import numpy as np
import pytest

FUNCTIONS = {name: getattr(np, name) for name in ("sin", "cos", "exp", "log", "tanh", "sqrt")}
FUNCTIONS["sigmoid"] = lambda z: 1 / (1 + np.exp(-z))
SYSTEMS = [
    ("z = w*x + b; p = sigmoid(z); L = -log(p)*t", "dL/dw = (p - 1)*x*t", "w"),
    ("z = w*x + b; p = sigmoid(z); L = -log(p)*t", "dL/dz = (p - 1)*t", "z"),
    ("u = x**2*w; f = u*sin(u) + exp(x/b)", "df/dx = 0", "x"),
    ("h = tanh(w*x); y = b*h + h**2", "dy/dx = (b + 2*h)*(1 - h)*w", "x"),
    ("f = sin(x**2)*w", "d2f/dx2 = w*(2*cos(x**2) - 4*x**2*sin(x**2))", "x"),
    ("h[0] = x; h[k] = tanh(w*h[k-1]) for k in 1..3", "dh[3]/dw = 1", "w"),
    ("y = x**2*w", "x.grad = 2*x*w", "x"),
]


def _evaluated(text, names):
    names = {name.replace("[", "_").replace("]", "_"): value for name, value in names.items()}
    return eval(text.replace("[", "_").replace("]", "_"), {**FUNCTIONS, **names})


def _forward(steps, names, above=None):
    """Return the values of all nodes; those in `above` are given."""
    names = {**names, **(above or {})}
    for step in steps["forward"]:
        if step["expression"] and step["node"] not in (above or {}):
            names[step["node"]] = _evaluated(step["expression"], names)
    return names


@pytest.mark.parametrize(("system", "claim", "by"), SYSTEMS)
def test_each_line_is_a_derivative_by_finite_differences(cli, system, claim, by):
    (found,) = cli("check", system, claim, "--steps", "-f", "json").objects
    steps = found["steps"]
    values = _forward(steps, {"x": 0.7, "w": 1.3, "b": 0.4, "t": 0.8, "z": 0.3})
    for step in steps["reverse"]:
        forward = {s["node"]: s["expression"] for s in steps["forward"]}
        node, argument = step["node"], step["passes_to"]
        sides = []
        for sign in (1, -1):
            moved = values | {argument: values[argument] + sign * 1e-6}
            sides.append(_evaluated(forward[node], moved))
        slope = (sides[0] - sides[1]) / 2e-6
        same = sum(s["node"] == node and s["passes_to"] == argument for s in steps["reverse"])  # 2 of x*x
        assert same * _evaluated(step["local_derivative"], values) == pytest.approx(slope, rel=1e-6)
    output = steps["reverse"][0]["node"]
    sides = []
    for sign in (1, -1):
        start = {n: v for n, v in values.items() if n in ("x", "w", "b", "t", "z")}
        sides.append(_forward(steps, start, {by: values[by] + sign * 1e-6})[output])
    whole = [s for s in steps["reverse"] if s["passes_to"] == by][-1]["adjoint_so_far"]
    assert _evaluated(whole, values) == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)


def test_the_page_has_the_chain_below_each_claim(cli):
    out = cli("check", "h = tanh(z); y = b*h", "dy/dz = b*(1 - h**2)", "dh/dz = 1 - z**2", "--steps").out
    first, second = out.split("dh/dz = 1 - z**2   wrong:")
    assert "  ∂y/∂h = b                h̄ = 1·b = b" in first
    assert "  ∂h/∂z = 1 - h**2         z̄ = b·(1 - h**2) = b*(1 - h**2)" in first
    assert "∂h/∂z = 1 - h**2" in second
    assert "y  =" not in second


NET = "z = w*x; h = tanh(z); u = b*h; y = tanh(u)"
# The step at which a claim leaves the derivation, and what it has there.
LEFT = [
    ("z = w*x; h = tanh(z)", "dh/dw = x*(1 - z**2)", {("h", "z"): "1 - z**2"}),
    ("z = w*x; h = tanh(z)", "dh/dw = 1 - h**2", {("z", "w"): "1"}),
    (NET, "dy/dw = (1 - u**2)*b*(1 - z**2)*x", {("y", "u"): "1 - u**2", ("h", "z"): "1 - z**2"}),
    ("y = x*sin(a*x)", "dy/dx = a*x*cos(a*x)", {("y", "x"): "0"}),
]


@pytest.mark.parametrize(("system", "claim", "left"), LEFT)
def test_the_step_is_marked_at_which_the_claim_leaves_it(cli, system, claim, left):
    (found,) = cli("check", system, claim, "--steps", "-f", "json").objects
    reverse = found["steps"]["reverse"]
    assert {(s["node"], s["passes_to"]): s["yours"]["wrote"] for s in reverse if "yours" in s} == left
    lines = cli("check", system, claim, "--steps").out.splitlines()
    marked = [line for line in lines if "←" in line]
    assert len(marked) == len(left)
    for line, ((node, argument), wrote) in zip(marked, left.items(), strict=True):
        assert line.startswith(f"  ∂{node}/∂{argument} = ")
        assert line.endswith("← left out" if wrote == "0" else f"← {wrote}")


def test_a_right_claim_leaves_it_nowhere(cli):
    assert "←" not in cli("check", NET, "dy/dw = (1 - y**2)*b*(1 - h**2)*x", "--steps").out


def test_what_does_not_depend_and_what_is_too_long_is_told(cli):
    assert "the derivative is 0" in cli("check", "y = x**2; z = 3*w", "dy/dw = 0", "--steps").out
    chain = "h[0] = x; h[k] = tanh(w*h[k-1]) for k in 1..200"
    assert "too long to be shown" in cli("check", chain, "dh[200]/dx = 1", "--steps", "--trials", "3").out
