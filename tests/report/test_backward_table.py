"""What `gradcli backward` prints for a reader: the arithmetic, the steps, the running sums, the same in other words."""

from __future__ import annotations

import pytest

TWO_TO_THREE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")
MAIN = (*TWO_TO_THREE, "--at", "x0=1,x1=2", "--v", "1,10,100")

PRINTED = """\
system at x0 = 1, x1 = 2
  y0 = 3*x0**2         = 3
  y1 = x0**2+2*x1**3   = 17
  y2 = 10*x1           = 20

Jacobian  J[i, j] = ∂y_i/∂x_j
       ∂/∂x0      ∂/∂x1
  y0   6*x0 = 6   0
  y1   2*x0 = 2   6*x1**2 = 24
  y2   0          10

v = [1, 10, 100]
  one weight for each of y0, y1, y2

grad = vᵀJ
  x0.grad = 1·6 + 10·2 + 100·0 = 26
  x1.grad = 1·0 + 10·24 + 100·10 = 1240

the same in other words
  gradient of  L = 1·y0 + 10·y1 + 100·y2
  PyTorch      (1*y0 + 10*y1 + 100*y2).backward()

x0.grad = 26
x1.grad = 1240
"""

IN_FORMULAS = """\
system
  y0 = 3*x0**2
  y1 = x0**2+2*x1**3
  y2 = 10*x1

Jacobian  J[i, j] = ∂y_i/∂x_j
       ∂/∂x0   ∂/∂x1
  y0   6*x0    0
  y1   2*x0    6*x1**2
  y2   0       10
"""


def test_the_main_example(cli):
    outcome = cli.done("backward", *MAIN)
    assert outcome.out == PRINTED
    assert outcome.err == ""


def test_the_jacobian_is_the_first_half_of_it(cli):
    assert cli.done("jacobian", *MAIN[:5]).out == PRINTED[: PRINTED.index("\nv = ")]
    assert cli.done("jacobian", *TWO_TO_THREE).out == IN_FORMULAS


def test_two_points_one_after_the_other(cli):
    out = cli.done("backward", "y=x**2", "--at", "x=1", "--at", "x=2").out
    one, two = (cli.done("backward", "y=x**2", "--at", f"x={x}").out for x in (1, 2))
    assert out == f"{one}\n{two}"


def section(out: str, heading: str) -> list[list[str]]:
    """Return the cells of the grid below a heading."""
    _, _, rest = out.partition(f"{heading}\n")
    assert rest, f"no {heading!r} in\n{out}"
    lines = rest.partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in lines]


HEADER = ["node", "adjoint", "passes to", "local derivative", "contribution", "adjoint so far"]


def test_steps_accumulate_where_a_value_is_used_twice(cli):
    out = cli.done("backward", "y=x*x+x", "--at", "x=3", "--steps").out
    assert section(out, "forward") == [
        ["node", "operation", "arguments", "value"],
        ["x", "leaf", "3"],
        ["t1", "mul", "x, x", "x*x = 9"],
        ["y", "add", "t1, x", "t1 + x = 12"],
    ]
    assert section(out, "reverse") == [
        HEADER,
        ["y", "1", "t1", "∂y/∂t1 = 1", "1·1 = 1", "t̄1 = 1"],
        ["y", "1", "x", "∂y/∂x = 1", "1·1 = 1", "x̄ = 1"],
        ["t1", "1", "x", "∂t1/∂x = x = 3", "1·3 = 3", "x̄ = 4"],
        ["t1", "1", "x", "∂t1/∂x = x = 3", "1·3 = 3", "x̄ = 7"],
    ]
    assert out.endswith("\nx.grad = 7\n")


def test_steps_in_formulas(cli):
    out = cli.done("backward", "y=x*x+x", "--steps").out
    assert section(out, "forward")[1:] == [["x", "leaf"], ["t1", "mul", "x, x", "x*x"], ["y", "add", "t1, x", "t1 + x"]]
    assert section(out, "reverse")[1:] == [
        ["y", "1", "t1", "∂y/∂t1 = 1", "1·1 = 1", "t̄1 = 1"],
        ["y", "1", "x", "∂y/∂x = 1", "1·1 = 1", "x̄ = 1"],
        ["t1", "1", "x", "∂t1/∂x = x", "1·x = x", "x̄ = x + 1"],
        ["t1", "1", "x", "∂t1/∂x = x", "1·x = x", "x̄ = 2·x + 1"],
    ]


def test_steps_of_an_intermediate_with_two_readers(cli):
    out = cli.done("backward", "h=x**2", "a=3*h", "b=5*h", "y=a+b", "--at", "x=1", "--steps").out
    so_far = [row[-1] for row in section(out, "reverse") if row[2] == "h"]
    assert sorted(so_far) in (["h̄ = 3", "h̄ = 8"], ["h̄ = 5", "h̄ = 8"])
    assert [row[-1] for row in section(out, "reverse") if row[2] == "x"] == ["x̄ = 16"]


def test_structural_rules_are_named(cli):
    out = cli.done("backward", "y=x@M", "--at", "x=[[2,1]],M=[[1,2],[3,4]]", "--v", "[[1,0]]", "--steps").out
    forward, reverse = section(out, "forward"), section(out, "reverse")
    assert ["y", "matmul", "x, M", "1×2", "x @ M = [[5, 8]]"] in forward
    assert ["y", "[[1, 0]]", "x", "x̄ = v @ M.T", "[[1, 3]]", "x̄ = [[1, 3]]"] in reverse
    assert ["y", "[[1, 0]]", "M", "M̄ = x.T @ v", "[[2, 0], [1, 0]]", "M̄ = [[2, 0], [1, 0]]"] in reverse


@pytest.mark.parametrize("point", [("--at", "x=3"), ()], ids=["numbers", "formulas"])
def test_steps_of_many_calls_are_shown_for_the_first_of_them(cli, point):
    calls = ("--v", ",".join(map(str, range(17))))
    outcome = cli.done("backward", "y=x**2", *point, *calls, "--steps")
    assert "reverse, call 16: v = 15" in outcome.out
    assert "reverse, call 17" not in outcome.out
    assert "note: steps are shown for the first 16 of 17 calls\n" in outcome.err
    assert "steps are shown" not in cli.done("backward", "y=x**2", *point, *calls).err


def test_a_zero_is_shown_with_its_sign(cli):
    assert "system at a = -0.0, b = 1\n" in cli.done("backward", "y=b/a", "--at", "a=-0.0,b=1").out


def test_large_arrays_are_shown_by_their_shape(cli):
    out = cli.done("backward", "y=sum(x**2)", "--at", f"x={[1] * 13}", "--steps").out
    assert ["x", "leaf", "13", "13 numbers"] in section(out, "forward")


def test_wide_steps_are_listed_instead(cli):
    out = cli.done("backward", "y=sin(x)*x", "--at", "x=2", "--steps").out
    assert "  local derivative   ∂t1/∂x = cos(x) = -0.4161468365471424\n" in out
    assert "  contribution       2·(-0.4161468365471424) = -0.8322936730942848\n" in out


def test_running_sums(cli):
    outcome = cli.done("backward", "y=x**2", "--at", "x=1", "--v", "1,10,100,1000", "--steps")
    assert section(outcome.out, "4 calls of backward: gradients accumulate in .grad") == [
        ["call", "v", "x.grad after it"],
        ["1", "1", "2"],
        ["2", "10", "2 + 20 = 22"],
        ["3", "100", "22 + 200 = 222"],
        ["4", "1000", "222 + 2000 = 2222"],
    ]
    assert section(outcome.out, "reverse, call 3: v = 100")[1][-1] == "x̄ = 200"
    assert outcome.out.endswith("\nx.grad = 2222\n")


def test_running_sums_of_a_vector_and_of_formulas(cli):
    out = cli.done("backward", "y=3*x**2", "--at", "x=[1,2]", "--v", "1,10", "--v", "ones").out
    rows = section(out, "2 calls of backward: gradients accumulate in .grad")
    assert rows[-1] == ["2", "[1, 1]", "[6, 120] + [6, 12] = [12, 132]"]
    out = cli.done("backward", "y=x**2", "--v", "1", "--v", "10").out
    rows = section(out, "2 calls of backward: gradients accumulate in .grad")
    assert [row[-1] for row in rows[1:]] == ["2*x", "22*x"]


@pytest.mark.parametrize(
    ("arguments", "loss", "pytorch"),
    [
        (("y=x**2", "--at", "x=1"), "L = 1·y", ["y.backward()"]),
        (("y=x**2", "--at", "x=1", "--v", "0.5"), "L = 0.5·y", ["y.backward(torch.tensor(0.5))"]),
        (
            ("y=3*x**2", "--at", "x=[1,2]", "--v", "1,-10"),
            "L = 1·y[0] + (-10)·y[1]",
            ["y.backward(torch.tensor([1., -10.]))"],
        ),
        (("a=x", "b=2*x", "--at", "x=1", "--v", "a=1,b=-2"), "L = 1·a + (-2)·b", ["(1*a + (-2)*b).backward()"]),
        (
            ("a=x*2", "b=sum(x)", "--at", "x=[1,2]", "--v", "1,10,100"),
            "L = 1·a[0] + 10·a[1] + 100·b",
            ["((a * torch.tensor([1., 10.])).sum() + 100*b).backward()"],
        ),
        (
            ("y=x**2", "--at", "x=1", "--v", "1,10"),
            "L = 11·y",
            ["y.backward(retain_graph=True)", "y.backward(torch.tensor(10.))"],
        ),
        (("y=2*x", "--at", f"x={[1] * 13}", "--v", "ones"), "L = sum(v·y)", ["y.backward(v)"]),
    ],
)
def test_the_same_in_other_words(cli, arguments, loss, pytorch):
    lines = cli.done("backward", *arguments).out.partition("the same in other words\n")[2].splitlines()
    words = [line[15:] for line in lines[: lines.index("")]]
    assert words == [loss, *pytorch]


def test_none_is_explained_unless_it_is_retained(cli):
    system = ("y=2*x", "z=y**3", "--at", "x=0.6955")
    told = cli.done("backward", *system)
    assert told.err.startswith("note: y.grad: None in PyTorch, which keeps the gradients of leaves only.")
    assert "y.grad" not in told.out
    retained = cli.done("backward", *system, "--retain", "y")
    assert retained.err == ""
    assert retained.out.endswith("\nx.grad = 11.609286\ny.grad = 5.804643   (retained)\n")


def test_entries_too_deep_to_read_are_named(cli):
    system = [f"a{k + 1}=sin(a{k})*a{k}" for k in range(20)]
    out = cli.done("jacobian", "a0=x", *system, "y=a20").out
    assert section(out, "where")
    assert max(map(len, out.splitlines())) < 300


def test_a_jacobian_too_large_to_show_is_not_shown(cli):
    out = cli.done("backward", "y=x*2", "--at", f"x={[1] * 30}", "--v", "ones").out
    assert "Jacobian  30 × 30\n" in out
    assert out.endswith(f"x.grad = {[2] * 30}\n")


def test_no_line_ends_in_a_space(cli):
    for arguments in (MAIN, (*MAIN, "--steps"), ("y=x@M", "--shape", "x=2,M=2x2", "--v", "ones", "--steps")):
        out = cli.done("backward", *arguments).out
        assert [line for line in out.splitlines() if line != line.rstrip()] == []
