"""Where a page leaves something out it says how much, and up to there it is whole."""

from __future__ import annotations

import re

import pytest


def lines_below(out: str, heading: str) -> list[str]:
    """Return the lines of a section, without their indent."""
    _, found, rest = out.partition(f"{heading}\n")
    assert found, out
    return [line.strip() for line in rest.partition("\n\n")[0].splitlines()]


def calls(count: int) -> list[str]:
    return [option for k in range(1, count + 1) for option in ("--v", str(k))]


def ones(count: int) -> str:
    return f"x={[1] * count}"


@pytest.mark.parametrize(("count", "written", "left_out"), [(2, 2, 0), (6, 6, 0), (7, 5, 2), (8, 5, 3), (20, 5, 15)])
@pytest.mark.parametrize("style", ["table", "markdown"])
def test_lines_of_pytorch(cli, style, count, written, left_out):
    out = cli.done("backward", "y=x**2", "--at", "x=1", *calls(count), "-f", style).out
    written_calls = [line[line.index("y.backward") :] for line in out.splitlines() if "y.backward(" in line]
    arguments = ["", *(f"torch.tensor({k}.)" for k in range(2, count + 1))][:written]
    kept = [count > k for k in range(1, written + 1)]  # all calls but the last one keep the graph
    expected = [", ".join([a] * bool(a) + ["retain_graph=True"] * k) for a, k in zip(arguments, kept, strict=True)]
    assert written_calls == [f"y.backward({text})" for text in expected]
    assert [line.strip() for line in out.splitlines() if "calls more" in line] == (
        [f"# … and {left_out} calls more"] if left_out else []
    )


@pytest.mark.parametrize("count", [40, 41, 100])
def test_rows_of_running_sums(cli, count):
    out = cli.done("backward", "y=x", "--at", "x=1", "--v", str([1] * count)).out
    header, *rows = lines_below(out, f"{count} calls of backward: gradients accumulate in .grad")
    assert header.split() == ["call", "v", "x.grad", "after", "it"]
    numbers = [row.split()[0] for row in rows]
    if count <= 40:
        assert numbers == [str(k) for k in range(1, count + 1)]
    else:
        assert numbers == [*map(str, range(1, 40)), "…", str(count)]
    assert rows[-1].endswith(f"{count - 1} + 1 = {count}")


@pytest.mark.parametrize(
    ("system", "point", "sums"),
    [
        # Up to eight terms a sum is whole, zeros and all; of a longer one the terms that are 0 are left out.
        ("y=0*x", ones(2), ["1·0 + 1·0 = 0"] * 2),
        ("y=x*[1,0,0,2,0,0,0,3]", ones(8), ["1·1" + " + 1·0" * 7 + " = 1", "1·0 + 1·0" + " + 1·0" * 6 + " = 0"]),
        ("y=0*x", ones(9), ["1·0 = 0"] * 9),
        ("y=x*[1,0,0,2,0,0,0,-3,0]", ones(9), ["1·1 = 1", "1·0 = 0", "1·0 = 0", "1·2 = 2"]),
        ("y=[x,0*x,0*x,2*x,0*x,0*x,0*x,-3*x,0*x]", "x=1", ["1·1 + 1·2 + 1·(-3) = 0"]),
    ],
    ids=["two zeros", "eight terms", "nine zeros", "nine rows of one", "nine terms"],
)
def test_zeros_in_a_sum(cli, system, point, sums):
    out = cli.done("backward", system, "--at", point, "--v", "ones").out
    found = [line.partition(" = ")[2] for line in lines_below(out, "grad = vᵀJ")]
    assert found[: len(sums)] == sums


def test_weights_that_are_zero_in_a_sum(cli):
    v = "[0,0,0,0,-5,0,0,0,7]"
    out = cli.done("backward", "y=[x,2*x,3*x,4*x,5*x,6*x,7*x,8*x,9*x]", "--at", "x=1", "--v", v).out
    assert lines_below(out, "grad = vᵀJ") == ["x.grad = -5·5 + 7·9 = 38"]


@pytest.mark.parametrize("count", [60, 61, 100])
def test_lines_of_arithmetic(cli, count):
    out = cli.done("backward", "y=sum(x)", "--at", ones(count)).out
    lines = lines_below(out, "grad = vᵀJ")
    assert lines[:60] == [f"x.grad[{k}] = 1·1 = 1" for k in range(60)]
    assert lines[60:] == ([f"… and {count - 60} more"] if count > 60 else [])


@pytest.mark.parametrize("count", [12, 13, 40])
def test_outputs_in_words(cli, count):
    system = [f"y{k}={k}*x" for k in range(1, count + 1)]
    out = cli.done("backward", *system, "--at", "x=1", "--v", "ones").out
    _, weights = lines_below(out, f"v = {[1] * count}")[0].split("for each of ")
    names = ", ".join(f"y{k}" for k in range(1, 13))
    assert weights == names + (f", … ({count} in all)" if count > 12 else "")
    loss, pytorch = lines_below(out, "the same in other words")
    numbers = [*range(1, 12), count]
    dots = " + …" if count > 12 else ""
    for text, sign in ((loss, "·"), (pytorch, "*")):
        assert " + ".join(f"1{sign}y{k}" for k in numbers[:-1]) + f"{dots} + 1{sign}y{count}" in text


@pytest.mark.parametrize(
    ("count", "loss"), [(6, "L = " + " + ".join(f"1·y[{k}]" for k in range(6))), (7, "L = sum(v·y)")]
)
def test_elements_in_a_loss(cli, count, loss):
    out = cli.done("backward", "y=2*x", "--at", ones(count), "--v", "ones").out
    assert lines_below(out, "the same in other words")[0] == f"gradient of  {loss}"


@pytest.mark.parametrize("count", [12, 13])
def test_elements_in_a_line_of_pytorch(cli, count):
    tensor = f"torch.tensor([{', '.join(['1.'] * count)}])" if count == 12 else "v"
    out = cli.done("backward", "y=2*x", "--at", ones(count), "--v", "ones").out
    assert lines_below(out, "the same in other words")[1] == f"PyTorch      y.backward({tensor})"
    out = cli.done("backward", "y=2*x", "z=sum(x)", "--at", ones(count), "--v", "ones").out
    assert lines_below(out, "the same in other words")[1] == f"PyTorch      ((y * {tensor}).sum() + 1*z).backward()"


@pytest.mark.parametrize("count", [4, 5])
def test_elements_in_a_running_sum(cli, count):
    out = cli.done("backward", "y=x", "--at", ones(count), "--v", "ones", "--v", "ones").out
    first, second = [1] * count, [2] * count
    expected = f"{first} + {first} = {second}" if count == 4 else str(second)
    assert lines_below(out, "2 calls of backward: gradients accumulate in .grad")[2].endswith(f"   {expected}")


@pytest.mark.parametrize("count", [60, 62, 1100])
def test_statements(cli, count):
    chain = ["h1=x+1", *(f"h{k}=h{k - 1}+1" for k in range(2, count + 1))]
    lines = lines_below(cli.done("backward", *chain, "--at", "x=1").out, "system at x = 1")
    assert lines[59].split() == ["h60", "=", "h59+1", "=", "61"]
    assert lines[60:] == ([f"… and {count - 60:,} statements more"] if count > 60 else [])


@pytest.mark.parametrize("count", [8, 9])
def test_arguments_of_a_step(cli, count):
    parts = [f"x{k}" for k in range(count)]
    at = ",".join(f"{name}=1" for name in parts)
    out = cli.done("backward", f"y=[{','.join(parts)}]", "--at", at, "--v", "ones", "--steps").out
    (arguments,) = re.findall("^  arguments +(.*)$", out, re.MULTILINE)
    assert arguments == ", ".join(parts[:8]) + (", …" if count > 8 else "")


@pytest.mark.parametrize("count", [12, 13])
def test_elements_in_a_table_of_steps(cli, count):
    out = cli.done("backward", "y=sum(x)", "--at", ones(count), "--steps").out
    shown = str([1] * 12) if count == 12 else "13 numbers"
    assert f"x̄ = {shown}" in out


@pytest.mark.parametrize("point", [("--at", "x=3"), ()], ids=["numbers", "formulas"])
def test_steps_of_sixteen_calls_are_whole(cli, point):
    outcome = cli.done("backward", "y=x**2", *point, *calls(16), "--steps")
    assert "reverse, call 16: v = 16\n" in outcome.out
    assert outcome.err == ""


def test_steps_of_more_calls_are_of_the_first(cli):
    outcome = cli.done("backward", "y=x**2", "--at", "x=3", *calls(20), "--steps")
    assert "reverse, call 16: v = 16\n" in outcome.out
    assert "reverse, call 17" not in outcome.out
    assert outcome.err == "note: steps are shown for the first 16 of 20 calls\n"
    assert outcome.out.endswith(f"\nx.grad = {6 * 20 * 21 // 2}\n")


@pytest.mark.parametrize("count", [16, 17])
def test_a_point_in_a_heading(cli, count):
    out = cli.done("jacobian", "y=sum(x)", "--at", ones(count)).out
    assert out.startswith(f"system at x = {[1] * 16 if count == 16 else 'an array of shape 17'}\n")
    (table,) = [
        line
        for line in cli.done("jacobian", "y=sum(x)", "--at", ones(count), "-f", "markdown").out.split("\n")
        if "System" in line
    ]
    assert table == f"### System at `x = {[1] * 16 if count == 16 else 'an array of shape 17'}`"


@pytest.mark.parametrize(("count", "sums"), [(12, 12), (13, 12)])
def test_running_sums_in_latex(cli, count, sums):
    out = cli.done("backward", "y=x", "--at", "x=1", "--v", str([1] * count), "-f", "latex").out
    numbers = [str(k) for k in range(count - sums + 1, count + 1)]
    dots = [r"\dots"] if count > sums else []
    assert r"x\mathtt{.grad} &= " + r" \to ".join(dots + numbers) + "\n" in out


@pytest.mark.parametrize("count", [40, 41])
def test_a_matrix_in_latex(cli, count):
    out = cli.done("jacobian", "y=sum(2*x)", "--at", ones(count), "-f", "latex").out
    assert ("J &= " in out) == (count == 40)
    assert out.count(r"\frac{\partial y}{\partial x[") == (0 if count == 40 else 41)


@pytest.mark.parametrize("count", [10, 11])
def test_columns_of_a_matrix_in_latex(cli, count):
    out = cli.done("jacobian", "y=sum(2*x)", "--at", ones(count), "-f", "latex").out
    row = " & ".join(["2"] * count)
    narrow, wide = rf"\begin{{pmatrix}} {row} ", rf"\left(\begin{{array}}{{{'c' * count}}} {row} "
    assert (narrow if count == 10 else wide) in out
