"""Laws of verdicts: a right claim is not called wrong, and one that is spoiled, however little, is not proved."""

import ast
from pathlib import Path

import pytest
import sympy
from checked import case_of, verdict
from conftest import EVERYTHING, long

from gradcli.pages.check.trials import TOLERANCE, Tally, drawn
from gradcli.pages.check.verdicts import Settings, check

LINES = Path(__file__).with_name("formulas.txt").read_text("utf-8").strip().partition("\n\n")[2].splitlines()
BOUNDED = ("asin(x/3)", "acos(a*x/4)", "sqrt(1 - x**2/4)", "log(1 - p)", "log(1 - x)")
WANTED = 300
FUNCTIONS = {name: getattr(sympy, name) for name in ("pi", "exp", "log", "sqrt", "sin", "cos", "tanh", "cosh", "sinh")}
FUNCTIONS |= {name: getattr(sympy, name) for name in ("asin", "acos", "atan", "erf")} | {"abs": sympy.Abs}


def claims():
    """Yield formulas, variables, left sides, and SymPy's derivatives: the first ones by all variables, then second."""
    for times in (1, 2):
        for formula in LINES:
            names = sorted({n.id for n in ast.walk(ast.parse(formula)) if isinstance(n, ast.Name)} - {*FUNCTIONS})
            symbols = {name: sympy.Symbol(name, real=True) for name in names}
            whole = sympy.sympify(formula, locals={**FUNCTIONS, **symbols}, rational=True)
            for name in names if times == 1 else names[:1]:
                left = f"dy/d{name}" if times == 1 else f"d2y/d{name}2"
                yield formula, name, left, str(sympy.diff(whole, symbols[name], times)).replace("Abs", "abs")


CLAIMS = [claim for claim in claims() if claim[-1] != "0"][:WANTED]


def spoiled(number, formula, x, right):
    """Yield what is done to a right claim, and the claim: forms take turns."""
    c, far = ("0.37", "0.8") if any(part in formula for part in BOUNDED) else ("0.37", "30")
    at = [
        f"where({x} == {c}, 7, {right})",
        f"({right})*({x} - {c})/({x} - {c})",
        f"({right}) + 0*log(abs({x} - {c}))",
        f"({right})*abs(sign({x} - {c}))",
        f"({right})*({x}**2 - {c}*{x})/({x}**2 - {c}*{x})",
    ]
    yield "at a point", at[number % len(at)]
    half = [f"where({x} < {c}, 2*({right}), {right})", f"({right})*abs({x} - {c})/({x} - {c})"]
    yield "on a half line", half[number % len(half)]
    above = [f"where({x} > {far}, 2*({right}), {right})", f"({right})*(1 + relu({x} - {far}))"]
    yield "above a threshold", above[number % len(above)]
    integers = [f"where(floor({x}) == {x}, 7, {right})", f"where({x} % 1 == 0, 7, {right})"]
    yield "only at integers", integers[number % len(integers)]
    yield "by 1e-9", [f"({right}) + 1e-9", f"({right})*(1 + 1e-9)"][number % 2]


def tried(number):
    """Check the law for one claim; return the number of spoiled ones, but by 1e-9, that are wrong."""
    formula, x, left, right = CLAIMS[number]
    found = verdict(f"y = {formula}", {}, f"{left} = {right}")
    assert (found.verdict, found.why) == ("right", ""), CLAIMS[number]
    wrong = 0
    for how, claim in spoiled(number, formula, x, right):
        found = verdict(f"y = {formula}", {}, f"{left} = {claim}")
        assert found.by != "proof", (how, formula, claim)
        wrong += found.verdict == "wrong" and how != "by 1e-9"
    return wrong


def test_there_are_enough():
    assert len(CLAIMS) == WANTED


@pytest.mark.parametrize("number", range(0, WANTED, 50))
def test_a_right_claim_is_right_and_a_spoiled_one_not_proved(number):
    assert tried(number) >= 3


@long
def test_all_of_them():
    wrong = sum(tried(number) for number in range(WANTED))
    print(f"{wrong} of {4 * WANTED} spoiled claims are wrong, and not only unproved")
    assert wrong > 0.97 * 4 * WANTED  # the others differ where all is 0 in float64, or nowhere in the domain


# Where exponents are large: a claim about y by the first variable, in other forms than the derivative has.
STIFF = [
    ("1/(exp((x - m)/s) + 1)", "x", "-y*(1 - y)/s"),
    ("1/(exp((x - m)/s) - 1)", "x", "-y*(1 + y)/s"),
    ("1/(1 + exp(-(x - m)/s))", "x", "y*(1 - y)/s"),
    ("exp(x/s)/(1 + exp(x/s))", "x", "exp(-x/s)/(1 + exp(-x/s))**2/s"),
    ("4/(exp((x - m)/s) + exp(-(x - m)/s))**2", "x", "-2*y*tanh((x - m)/s)/s"),
    ("tanh((x - m)/s)", "x", "1/cosh((x - m)/s)**2/s"),
    ("1/cosh(x/s)**2", "x", "-2*sinh(x/s)/cosh(x/s)**3/s"),
    ("log(1 + exp((x - m)/s))", "x", "1/(1 + exp(-(x - m)/s))/s"),
    ("exp(-(x - m)**2/(2*s**2))", "x", "-(x - m)/s**2*y"),
    ("exp(-E/(s*T))/(1 + exp(-E/(s*T)))", "T", "E/(s*T**2)*exp(E/(s*T))/(exp(E/(s*T)) + 1)**2"),
    ("exp(a/s)/(exp(a/s) + exp(b/s))", "a", "y*(1 - y)/s"),
    ("s*log(exp(a/s) + exp(b/s))", "a", "1/(1 + exp((b - a)/s))"),
    ("x**2*exp(x/s)/(exp(x/s) - 1)**2", "x", "exp(x/s)*x*(2*(exp(x/s) - 1) - x/s*(exp(x/s) + 1))/(exp(x/s) - 1)**3"),
    ("1/(exp(E/(s*T)) - 1)", "T", "E/(4*s*T**2*sinh(E/(2*s*T))**2)"),
    ("x*tanh(x/s)", "x", "tanh(x/s) + x/s*4/(exp(x/s) + exp(-x/s))**2"),
]  # fmt: skip
SCALES = ("1e-4", "8.617e-5", "1e-3", "0.02")
SEEDS = 10 if EVERYTHING else 1


def test_there_are_sixty():
    assert len(STIFF) * len(SCALES) == 60


@pytest.mark.parametrize("scale", SCALES)
def test_no_right_claim_is_refuted_in_a_stiff_system(scale):
    for formula, x, claim in STIFF if EVERYTHING else STIFF[::4]:
        graph, case = case_of(f"s = {scale}; y = {formula}", {}, f"dy/d{x} = {claim}")
        for seed in range(SEEDS):
            (found,) = check(graph, [case], Settings(seed=seed, tolerance=2e-6)).verdicts  # without a proof
            assert (found.verdict, found.why, formula, seed) == ("right", "", formula, seed)
            assert found.points >= 10


def test_a_wrong_claim_is_found_in_a_stiff_system():
    for formula, x, claim in STIFF:
        _, case = case_of(f"s = 1e-4; y = {formula}", {}, f"dy/d{x} = 1.01*({claim})")
        assert Tally(TOLERANCE).add(drawn(case, 20, 0)).wrong
