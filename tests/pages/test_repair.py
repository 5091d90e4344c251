"""The fix of a gradient that is not finite guards the operand that misbehaves, and makes the gradient finite."""

import numpy as np
import pytest

from gradcli import parse
from gradcli.engine.evaluate import evaluate
from gradcli.graph.vjp import vjp
from gradcli.pages.not_finite import fixes

AT_0 = {"x": np.zeros(1), "y.v": np.ones(1)}

# A system, what its fix replaces, and by what.
GUARDS = [
    ("where(x != 0, sin(x)/x, 1)", {"sin(x)/x": "sin(x)/where(x != 0, x, 1)"}),
    ("where(x > 0, 1/x, 0)", {"1/x": "1/where(x != 0, x, 1)"}),
    ("where(x == 0, 0, x*log(x))", {"log(x)": "log(where(x > 0, x, 1))"}),
    ("where(x > 0, sqrt(x), 0)", {"sqrt(x)": "sqrt(where(x > 0, x, 1))"}),
    ("where(abs(x) > 0, x/abs(x), 0)", {"x/abs(x)": "x/where(abs(x) != 0, abs(x), 1)"}),
    (
        "where(x > 0, x**0.5*log(x), 0)",
        {"log(x)": "log(where(x > 0, x, 1))", "x**0.5": "where(x > 0, x, 1)**0.5"},
    ),
    ("where(x > 0, exp(-1/x), 0)", {"-1/x": "-1/where(x != 0, x, 1)"}),
    ("sum(where(x > 0, sum(1/[x, 1]), 0))", {"1/[x, 1]": "1/where([x, 1] != 0, [x, 1], 1)"}),
]


def test_what_lies_behind_a_guarded_operation_is_told_with_it():
    inputs = {"x": np.zeros((2, 1)), "y.v": np.ones(1)}
    root, whole = "sqrt(sum(x**2))", "r = {}; y = where(r > 0, {}, 0)"
    guarded = "x[0]/where(r != 0, r, 1)"
    safe = "sqrt(where(sum(x**2) > 0, sum(x**2), 1))"
    for now, new in (((root, "x[0]/r"), [guarded, safe]), ((root, guarded), [safe]), ((safe, guarded), [])):
        said = fixes(parse(whole.format(*now), x=(2,)), ["x"], inputs)
        assert said == "; ".join(f"`{text}`: a `where` on the result is too late" for text in new)


def test_a_condition_is_written_in_names_that_are_known_there():
    said = fixes(parse("c = 2*x; t = 1/c; y = where(c > 0, t, 0)"), ["x"], AT_0)
    assert said == "`1/where(c != 0, c, 1)`: a `where` on the result is too late"


@pytest.mark.parametrize(("text", "changes"), GUARDS)
def test_guards(text, changes):
    assert not is_finite(text)
    said = fixes(parse(f"y = {text}"), ["x"], AT_0)
    assert said.split("; ") == [f"`{new}`: a `where` on the result is too late" for new in changes.values()]
    repaired = text
    for old, new in changes.items():
        repaired = repaired.replace(old, new)
    assert is_finite(repaired)


def is_finite(text):
    (grad,) = evaluate(vjp(parse(f"y = {text}")), AT_0).values()
    return np.isfinite(grad).all()


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("sqrt(x)", "`sqrt(x + eps)` with a small eps such as 1e-12"),
        ("acos(1 - x)", "`clamp(1 - x, -1 + eps, 1 - eps)` before it, with a small eps such as 1e-6"),
        ("exp(1000 + x)", "`clamp(1000 + x, max=80)` before it; `logsumexp` or `log_softmax` for sums of exponentials"),
        ("sqrt(x - 1)", ""),  # no small number helps
        ("x**2", ""),
    ],
)
def test_operands_are_kept_from_a_pole(text, fix):
    assert fixes(parse(f"y = {text}"), ["x"], AT_0) == fix
