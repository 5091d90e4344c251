"""Loops of formulas on a page: the recurrence as typed, the numbers of its rounds, and each round with --unroll."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gradcli import parse
from gradcli.pages.recurrence import loops_of_formulas

CHAIN = "s[0] = x; s[k] = sin(w*s[k-1]) for k in 1..40; y = s[40]"


def chain(w, x, rounds=40):
    """Return the elements of s, and the adjoint of each: both loops by hand."""
    s = [x]
    for _ in range(rounds):
        s.append(np.sin(w * s[-1]))
    adjoint = [1.0]
    for k in range(rounds, 0, -1):
        adjoint.insert(0, adjoint[0] * np.cos(w * s[k - 1]) * w)
    return s, adjoint


def test_a_long_loop_is_the_recurrence_that_was_typed(cli):
    out = cli.done("backward", CHAIN, "--at", "w=0.9,x=1").out
    s, _ = chain(0.9, 1.0)
    assert re.search(r"^s\[k\] +=( sin\(w\*s\[k-1\]\)) for k in 1\.\.40\n", out, re.MULTILINE)
    assert re.search(rf"^s\[40\] += {s[40]:.6g}\n", out, re.MULTILINE)
    assert "where\n" not in out
    assert "more statements" not in out


def test_the_last_round_of_a_short_loop_has_its_formula(cli):
    out = cli.done("backward", "h[0] = x; h[t] = a*h[t-1] for t in 1..3; y = h[3]", "--at", "x=2,a=2").out
    assert re.search(r"^h\[3\] = a\*h\[2\] += 16$", out, re.MULTILINE)


def test_what_each_round_adds_is_told(cli):
    out = cli.done("backward", CHAIN, "--at", "w=0.9,x=1").out
    s, adjoint = chain(0.9, 1.0)
    added = {k: adjoint[k] * np.cos(0.9 * s[k - 1]) * s[k - 1] for k in range(1, 41)}
    text = " ".join(out.split())
    assert f"w̄ by round: k=40 {added[40]:.3g} · k=39 {added[39]:.3g} · " in text
    assert f" · k=2 {adjoint[2]:.3g} · k=1 {adjoint[1]:.3g}" in text


def test_a_loop_that_starts_from_a_sum_has_its_closed_form(cli):
    text = "s[0] = sum(x); s[k] = s[k-1]*2 for k in 1..26; y = s[26]"
    out = cli.done("backward", text, "--at", "x=[1,2]", "--only", "system").out
    assert f"= {3 * 2**26:.6g}" in out
    assert re.search(r"^s\[26\] = 67108864\*s\[0\]", out, re.MULTILINE)


def test_statements_of_the_users_own_are_no_loop():
    text = "; ".join(["t1 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(1, 40))])
    assert not loops_of_formulas(parse(text)).loops


@pytest.mark.parametrize("option", [(), ("--unroll",)])
def test_a_picture_has_each_round_where_it_is_unrolled(cli, option):
    out = cli.done("graph", CHAIN, "--at", "w=0.9,x=1", *option).out
    assert (out.count("sin(") >= 40) == bool(option)


@pytest.mark.parametrize("command", [("jacobian",), ("hessian",), ("jvp", "--u", "1,1"), ("backward",)])
@pytest.mark.parametrize("at", [(), ("--at", "w=0.9,x=1")])
def test_every_command_has_the_recurrence_and_no_name_without_a_side(cli, command, at):
    if command[0] == "jvp" and not at:
        return  # which is at a point
    out = cli.done(*command, CHAIN, *at, "--only", "system").out
    assert re.search(r"^s\[k\] += sin\(w\*s\[k-1\]\) for k in 1\.\.40\n", out, re.MULTILINE)
    assert not re.search(r"^s\[40\]$", out, re.MULTILINE)


FUNCTION = """\
import numpy as np
def rnn(x, w):
    h = np.zeros(2)
    for t in range(30):
        h = np.tanh(w @ h + x[t])
    return h.sum()
def power(a):
    v = np.ones(2)
    for _ in range(28):
        u = a @ v
        v = u / np.sqrt(np.sum(u**2))
    return v @ a @ v
"""


@pytest.mark.parametrize("command", [("hessian",), ("jvp", "--u", "x=1,w=2")])
def test_the_names_that_a_recurrence_replaces_are_defined_where_formulas_read_them(cli, tmp_path, command):
    """Each definition is Python, and the first line of the derivative is its number."""
    path = tmp_path / "f.py"
    path.write_text(
        "import numpy as np\ndef f(x, w):\n    for t in range(26):\n        x = np.sin(w*x)\n    return x\n", "utf-8"
    )
    out = cli.done(*command, "-F", f"{path}:f", "--at", "x=1,w=0.9", "--digits", "full").out
    names = {"x": 1.0, "w": 0.9, "sin": np.sin, "cos": np.cos}
    for line in re.sub(r"\n {5,}", " ", out.partition("where\n")[2].partition("\n\n")[0]).splitlines():
        name, formula = line.split("=", 1)
        names[name.strip()] = eval(formula, {}, names)
    formula, number = re.search(r"(?:∂/∂x  |∂f/∂x =) (.*) = (.*)$", out, re.MULTILINE).groups()
    assert eval(formula, {}, names) == pytest.approx(float(number))


def test_a_loop_of_a_function_is_a_recurrence_with_its_numbers(cli, tmp_path):
    path = tmp_path / "f.py"
    path.write_text(FUNCTION, "utf-8")
    x, w = [round(0.1 * k - 1, 1) for k in range(30)], [[0.5, -0.2], [0.3, 0.4]]
    out = cli.done("backward", "-F", f"{path}:rnn", "--at", f"x={x},w={w}").out
    h = np.zeros(2)
    for k in range(30):
        h = np.tanh(np.array(w) @ h + x[k])
    assert re.search(r"^h\[t\] +=( tanh\(w @ h\[t-1\] \+ x\[t-1\]\)) for t in 1\.\.30\n", out, re.MULTILINE)
    (shown,) = re.findall(r"^h\[30\] += \[(.*), (.*)\]\n", out, re.MULTILINE)
    assert np.allclose(np.array(shown, float), h, rtol=1e-5)
    assert "rnn   = sum(h[30])" in out
    assert "h_" not in out


def test_what_is_retained_in_a_loop_of_a_function_has_the_name_that_the_recurrence_has(cli, tmp_path):
    path = tmp_path / "f.py"
    path.write_text(
        "import numpy as np\ndef f(w, x):\n    h = np.zeros(2)\n    for t in range(30):\n"
        "        h = np.tanh(w*h + x)\n    return np.sum(h)\n",
        "utf-8",
    )
    h = [np.zeros(2)]
    for _ in range(30):
        h.append(np.tanh(0.9 * h[-1] + np.array([0.1, 0.2])))
    adjoint = np.ones(2)
    for k in range(30, 27, -1):
        adjoint = adjoint * 0.9 * (1 - h[k] ** 2)
    asked = ("backward", "-F", f"{path}:f", "--at", "w=0.9,x=[0.1,0.2]", "--retain")
    for name in ("h[27]", "h_27"):
        out = cli.done(*asked, name).out
        (shown,) = re.findall(r"^h\[27\]\.grad = .*\[(.*), (.*)\]$", out, re.MULTILINE)
        assert np.allclose(np.array(shown, float), adjoint, rtol=1e-5)
        assert "h[27].retain_grad()" in out
        assert "h_27" not in out
    out = cli.done(*asked, "h[1]", "--only", "grad").out
    assert "h[1].grad" in out
    assert not re.search(r"^ *h\[1\] +=", out, re.MULTILINE)  # it is no element of an array h
    assert "h_27.grad" in cli.done(*asked, "h_27", "--unroll").out
    assert "`h[31]` is not in the system" in cli.refused(*asked, "h[31]")


def test_windows_of_an_array_have_both_ends_in_the_index(cli, tmp_path):
    path = tmp_path / "f.py"
    path.write_text(
        "import numpy as np\ndef f(w, x):\n    h = 0.5\n    for t in range(30):\n"
        "        h = np.tanh(w*h + np.sum(x[t:t+2]*x[-2:]))\n    return h**2\n",
        "utf-8",
    )
    x = [round(0.05 * k - 0.7, 2) for k in range(31)]
    out = cli.done("backward", "-F", f"{path}:f", "--at", f"w=0.9,x={x}", "--only", "system").out
    (right,) = re.findall(r"^h\[t\] += (.* for t in 1\.\.30)$", out, re.MULTILINE)
    assert "x[t-1:t+1]" in right
    h = 0.5
    for t in range(30):
        h = np.tanh(0.9 * h + np.sum(np.array(x[t : t + 2]) * x[-2:]))
    typed = cli.json("backward", f"h[0] = 0.5; h[t] = {right}; f = h[30]**2", "--at", f"w=0.9,x={x}", "-f", "json")
    assert np.isclose(typed["value"]["f"], h**2)


def test_what_the_last_statements_read_of_those_left_out_has_its_number(cli):
    text = "; ".join(["t1 = sin(x)", *(f"t{k + 1} = cos(t{k})*t{max(1, k - 9)}" for k in range(1, 40))])
    out = cli.done("backward", text, "--at", "x=1").out
    t = [np.sin(1.0)]
    for k in range(1, 40):
        t.append(np.cos(t[-1]) * t[max(1, k - 9) - 1])
    read = ", ".join(f"t{k} = {t[k - 1]:.6g}" for k in (27, 28, 29, 30, 36))
    assert f"… 16 more statements: {read}" in " ".join(out.split())
