"""Whatever is typed, gradcli answers in time, with status 0 or 2, and without a traceback."""

from __future__ import annotations

import string

import pytest
from conftest import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradcli.vocabulary import FUNCTIONS, METHODS

SYSTEMS = [
    "y0=3*x0**2; y1=x0**2+2*x1**3; y2=10*x1",
    "y[0]=3*x[0]**2; y[1]=x[0]**2+2*x[1]**3",
    "h=x**2; y=sin(h)/(1+exp(-h))",
    "y=where((x>0)&(z<1), x**2, -z)+Piecewise((x, x<1), (z, True))",
    "y=max(x,z)+norm([x,z])*softmax([x,2*z])[0]",
    "y=x@M+[1,2]; L=mean((y-[0,1])**2)",
    "y=gamma(x)**z-lgamma(abs(z)+1)",
    "input x = [1, 2]\ninput z = 3 # three\ny = sum(x*z, axis=0)\n",
    "y=x.pow(2).sum()+M.T[0,:].mean(dim=0)",
    "λ=2·x; σ_1=λ^2*z; y=π*σ_1+F.T",
]
POINTS = [
    (),
    ("--at", "x=2,z=-0.5"),
    ("--at", "x=0,z=0"),
    ("--at", "x=inf,z=nan"),
    ("--at", "x=[1,2],z=3,M=[[1,2],[3,4]]"),
    ("--at", "x=[0.5,-1.5],z=1e308", "--at", "x=[0,0],z=1"),
    ("--at", "x0=1,x1=2"),
    ("--shape", "x=2,M=2x2"),
    ("--shape", "z=2"),
]
FULL_POINTS = [
    ("--at", "x=2,z=-0.5,M=1"),
    ("--at", "x=0,z=0,M=[[0,0],[0,0]]"),
    ("--at", "x=inf,z=nan,M=[[1,2],[3,4]]"),
    ("--at", "x=[1,2],z=3,M=[[1,2],[3,4]]"),
    ("--at", "x=[0.5,-1.5],z=1e308,M=[[1],[2]]", "--at", "x=[0,0],z=1,M=[[0],[-1]]"),
    ("--shape", "x=2,M=2x2"),
    ("--shape", "z=2"),
    (),
]
COTANGENTS = [
    (),
    ("--v", "ones"),
    ("--v", "1,10"),
    ("--v", "onehot:0", "--v", "ones"),
    ("--v", "y=1"),
    ("--v", "[[1,0],[0,1]]"),
    ("--v", "nan"),
]
MORE = [(), ("--steps",), ("--retain", "all"), ("--steps", "--retain", "all", "--strict"), ("--wrt", "x")]
FORMATS = ["table", "json", "csv", "latex", "markdown"]
SIGNS = "()[]{}=;#,.*+-/^@%<>!&|~:'\"\\ \n\t0123456789exyzMh_²х·\0$?`λ変é\u0301\u0304√ᵀ⁻₁½≤"


def commands(points):
    """Return commands with their options, to which a system is added."""
    at = st.sampled_from(points)
    jacobian = st.tuples(st.just(("jacobian",)), at)
    backward = st.tuples(st.just(("backward",)), at, st.sampled_from(COTANGENTS), st.sampled_from(MORE))
    style = st.sampled_from(FORMATS).map(lambda name: ("-f", name))
    return st.tuples(jacobian | backward, style).map(lambda parts: [*sum(parts[0], ()), *parts[1]])


def answered(cli, command: list[str], *system: str, stdin: bytes = b"") -> None:
    outcome = cli(*command, "--", *system, stdin=stdin)
    assert outcome.status in (0, 2), outcome
    for trace in ("Traceback", "gradcli failed", "Warning: "):
        assert trace not in outcome.err, (command, system, outcome.err)
    if outcome.status == 2:
        assert outcome.out == ""
        assert outcome.err


def fuzz(count: int):
    return settings(max_examples=examples(count), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def near_misses(draw):
    """Return a valid system with a few characters deleted, doubled, swapped or typed in between."""
    text = list(draw(st.sampled_from(SYSTEMS)))
    for _ in range(draw(st.integers(1, 3))):
        if not text:
            break
        i, j = (draw(st.integers(0, len(text) - 1)) for _ in range(2))
        match draw(st.sampled_from(["delete", "double", "swap", "insert"])):
            case "delete":
                del text[i]
            case "double":
                text.insert(i, text[i])
            case "swap":
                text[i], text[j] = text[j], text[i]
            case "insert":
                text.insert(i, draw(st.sampled_from(SIGNS)))
    return "".join(text)


def nested(parts):
    """Return operations and calls of everything that the language knows, with arguments that often do not fit."""
    settings_ = st.sampled_from(
        ["axis=0", "axis=-1", "axis=(0,1)", "keepdims=True", "1", "(2,1)", "p=1", "min=0", "0.5"]
    )
    comparison = st.tuples(parts, st.sampled_from(["<", "<=", "==", "!="]), parts).map("".join)
    return st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-", "*", "/", "**", "^", "@", "%", "**-"]), parts).map("".join),
        parts.map("({})".format),
        parts.map("-{}".format),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), parts).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), parts, parts | settings_).map(lambda p: f"{p[0]}({p[1]},{p[2]})"),
        st.tuples(parts, st.sampled_from(sorted(METHODS))).map(lambda p: f"({p[0]}).{p[1]}()"),
        st.lists(parts, max_size=3).map(lambda p: f"[{','.join(p)}]"),
        st.tuples(comparison, parts, parts).map(lambda p: f"where({p[0]},{p[1]},{p[2]})"),
        st.tuples(parts, comparison, parts).map(lambda p: f"Piecewise(({p[0]},{p[1]}),({p[2]},True))"),
        st.tuples(parts, st.sampled_from(["[0]", "[-1]", "[0,1]", "[:,0]", "[1:]", "[::-1]", "[None]", ".T"])).map(
            "".join
        ),
    )


LEAVES = [
    "x", "x", "x", "z", "M", "0", "1", "-2", "0.5", "1/3", "1e300", "1e-320", "9**99", "pi", "e", "inf", "nan",
    "True",
]  # fmt: skip
EXPRESSIONS = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=6)


@fuzz(200)
@given(text=st.text(max_size=60) | st.text(string.printable, max_size=60), command=commands(POINTS))
def test_random_text(cli, text, command):
    answered(cli, command, text)


@fuzz(250)
@given(text=near_misses(), command=commands(POINTS))
def test_near_misses(cli, text, command):
    answered(cli, command, text)


@fuzz(300)
@given(expression=EXPRESSIONS, command=commands(FULL_POINTS))
def test_random_expressions(cli, expression, command):
    answered(cli, [*command, "--outputs", "y"], f"y={expression}", "all=sum(x)+sum(z)+sum(M)")


OTHERS = st.sampled_from(
    [
        ("jvp", "--u", "x=1"),
        ("jvp", "--u", "z=2,x=[1,0]", "--steps"),
        ("jvp", "-f", "json"),
        ("hessian",),
        ("hessian", "--u", "x=[1,0]", "-f", "latex"),
        ("export", "--to", "numpy"),
        ("export", "--to", "c", "--what", "value,vjp,jacobian,jvp"),
        ("export", "--to", "javascript", "--what", "hessian"),
    ]
)


@fuzz(200)
@given(expression=EXPRESSIONS, command=OTHERS, at=st.sampled_from(FULL_POINTS))
def test_random_expressions_of_other_commands(cli, expression, command, at):
    command = [*command, *at[:2], "--outputs", "y"]
    answered(cli, command, f"y={expression}", "all=sum(x)+sum(z)+sum(M)")


@fuzz(100)
@given(claim=EXPRESSIONS, expression=EXPRESSIONS, what=st.sampled_from(["dy/dx", "d2y/dx2", "x.grad", "dy/dz"]))
def test_random_claims(cli, claim, expression, what):
    statements = (f"y={expression}", f"{what}={claim}", "all=sum(x)+sum(z)+sum(M)")
    outcome = cli("check", "--trials", "4", "--", *statements)
    assert outcome.status in (0, 1, 2), outcome
    assert not any(trace in outcome.err for trace in ("Traceback", "gradcli failed", "Warning: ")), outcome.err


@fuzz(200)
@given(
    text=st.text(string.printable, max_size=20) | st.text(max_size=9),
    option=st.sampled_from(["--at", "--v", "--shape", "--wrt", "--retain"]),
)
def test_random_options(cli, text, option):
    answered(cli, ["backward", "--at", "x=[1,2]", f"{option}={text}"], "y=3*x**2")


@fuzz(100)
@given(stdin=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_random_standard_input(cli, stdin):
    answered(cli, ["jacobian"], stdin=stdin)
    answered(cli, ["backward", "--at", "x=1", "--v", "-"], "y=x", stdin=stdin)


# What such tests, and longer runs of them, have found.
FOUND = [
    ("jacobian", "y=lgamma(x)", "-f", "latex"),
    ("jacobian", "y=gamma(x)", "-f", "markdown"),
    ("jacobian", "y=x*amin(3)"),
    ("jacobian", "y=x*max(1/3)"),
    ("jacobian", "y=x/1e-320"),
    ("jacobian", "y=x/1e-320", "--at", "x=1", "-f", "csv"),
    ("jacobian", "y=1e-320**x"),
    ("jacobian", "y=log(x)**1e-3**1e-320"),
    ("jacobian", "y=x**100**1e-320", "-f", "json"),
    ("backward", "y=x**100**1e-320", "--at", "x=1", "--steps"),
    ("jacobian", "y=where(0<3<1,pi,x)"),
    ("jacobian", "y=where(~(0>0),x,z)"),
    ("jacobian", "y=leaky_relu(0,x)"),
    ("jacobian", "h=x; y=True"),
    ("jacobian", "y=x[2:1]", "--shape", "x=3"),
    ("jacobian", "y=x[11:]", "--at", "x=[1,2]", "-f", "csv"),
    ("backward", "y=x[11:]", "--at", "x=[1,2]", "--v", "ones"),
    ("backward", "y=M[0]", "-f", "json"),
    ("backward", "y=M[0,1]", "-f", "latex"),
    ("backward", "y=x*x+x", "--steps"),
    ("backward", "y=x@M", "--shape", "x=2,M=2x2", "--v", "ones"),
    ("backward", "y=x@M", "--shape", "x=2,M=2x2", "--v", "ones", "-f", "markdown", "--steps"),
    ("backward", "y=x**2", "--v", "1,10", "--retain", "all"),
    ("backward", "y=x**0.5", "--at", "x=0", "--v", "1,2"),
    ("backward", "y=x*x", "--at", "x=1e308", "--steps"),
    ("backward", "y=cot(x-x)", "--at", "x=1", "--v", "1", "--v", "1", "--steps"),
    ("backward", "y=x*z", "--at", "x=1e308,z=1", "--v", "1", "--v", "1"),
    ("backward", "y=" + "[" * 70 + "x" + "]" * 70, "--at", "x=1", "--v", "ones"),
    ("jacobian", "y=(x+x).median()", "--at", "x=2"),
    ("jvp", "y=(-rnn_relu(M,x))", "--at", "x=0,M=[[0,0],[0,0]]"),
    ("backward", "y=x" + "[None]" * 70, "--at", "x=1", "--v", "ones"),
]


@pytest.mark.parametrize("arguments", FOUND, ids=lambda arguments: " ".join(arguments)[:60])
def test_found(cli, arguments):
    answered(cli, [arguments[0], *arguments[2:]], arguments[1])
