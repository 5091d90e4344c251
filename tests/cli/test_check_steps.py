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
