"""What `gradcli backward` and `gradcli jacobian` print for a reader: each section says its thing, and once."""

from __future__ import annotations

import re

import pytest

TWO_TO_THREE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")
MAIN = (*TWO_TO_THREE, "--at", "x0=1,x1=2", "--v", "1,10,100")


def section(cli, name: str, *arguments: str, command: str = "backward") -> list[str]:
    """Return the lines of one section of a page."""
    return cli.done(command, *arguments, "--only", name).out.splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


# The gradient


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("y=x**2", "--at", "x=3"), "x.grad = v·∂y/∂x = 1·(2*x) = 1·6 = 6"),
        (("y=x**2", "--at", "x=3", "--v", "-100"), "x.grad = v·∂y/∂x = -100·(2*x) = -100·6 = -600"),
        (("y=x**2", "--v", "100"), "x.grad = v·∂y/∂x = 100·(2*x) = 200*x"),
        (("y=-3*x", "--at", "x=1"), "x.grad = v·∂y/∂x = 1·(-3) = -3"),
        (("h=2*x", "z=h**3", "--at", "x=0.5"), "x.grad = v·∂z/∂x = 1·(3*h**2)·2 = 1·3·2 = 6"),
        (("y=3*x**2", "--at", "x=[1,2]", "--v", "1,-10"), "x.grad = 6*v*x = [1·6, -10·12] = [6, -120]"),
        (("y=3*x**2", "--at", "x=[1,2]", "--v", "0,1"), "x.grad = 6*v*x = [0, 1·12] = [0, 12]"),
        (
            ("y=x@M", "--at", "x=[2,1],M=[[1,2],[3,4]]", "--v", "1,10", "--wrt", "x"),
            "x.grad = M @ v = [1·1 + 10·2, 1·3 + 10·4] = [21, 43]",
        ),
        (("a=x", "b=-2*x", "--at", "x=1", "--v", "a=1,b=-2"), "x.grad = 1·1 + (-2)·(-2) = 5"),
        (("y=0*x", "--at", "x=1"), "x.grad = v·∂y/∂x = 1·0 = 0"),
        (("a=0*x", "b=0*x", "--at", "x=1", "--v", "ones"), "x.grad = 0"),
    ],
)  # fmt: skip
def test_a_gradient_and_its_arithmetic(cli, arguments, line):
    assert section(cli, "grad", *arguments) == [line]


def test_the_factors_of_a_mean_and_of_a_norm(cli):
    at = ("--at", "x=[[1.8528,0.2083],[1.5296,0.3136]]")
    lines = section(cli, "grad", "out=mean((2*x)**3)", *at)
    assert lines[0] == "x.grad = 1·1/4·(3*(2*x)**2)·2 = 6*x**2"
    assert lines[1] == "       = [[20.5972, 0.260333], [14.0381, 0.59007]]"
    (line,) = section(cli, "grad", "y=norm(2*x)", "--at", "x=[3,4]")
    assert line == "x.grad = 1·(2*x/y)·2 = 4*x/y = [1.2, 1.6]"


@pytest.mark.parametrize(
    ("system", "told"),
    [
        ("y=x[1]**2+x[0]", "∂y/∂x[0] = 1\n∂y/∂x[1] = 2*x[1]\n∂y/∂x[2] = 0\n∂y/∂x[3] = 0\n"),
        ("y=x[2]**2", "∂y/∂x[2] = 2*x[2]\n"),
        ("y=sum(floor(x))", "All 4 derivatives are 0.\n"),
        ("y=x[5]", "∂y/∂x[5] = 1\n\nThe other 5 of 6 derivatives are 0.\n"),
    ],
)
def test_few_zeros_are_listed_and_many_are_counted(cli, system, told):
    out = cli.done("jacobian", system, "--shape", f"x={6 if '5' in system else 4}").out
    assert told in out


def test_retained_gradients_have_formulas_and_say_what_they_are(cli):
    system = ("y=2*x", "z=y**3", "--at", "x=0.6955")
    told = cli.done("backward", *system)
    assert told.err.startswith("note: y.grad: None in PyTorch, which keeps the gradients of leaves only.")
    assert "y.grad" not in told.out
    retained = cli.done("backward", *system, "--retain", "y")
    assert retained.err == ""
    assert re.search(r"^y\.grad = ∂z/∂y += 3\*y\*\*2 += 5\.80464$", retained.out, re.MULTILINE)
    assert "PyTorch leaves y.grad None" in retained.out


# The cotangent


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("y=x**2", "--at", "x=1"), ["v = 1, the default for a scalar: the gradient of y itself"]),
        (("y=x**2", "--at", "x=1", "--v", "0.5"), ["v = ∂L/∂y = 0.5: the gradient of  L = 0.5·y"]),
        (
            ("y=3*x**2", "--at", "x=[1,2]", "--v", "1,-10"),
            [
                "v weights the outputs: the gradient is that of",
                "  L = sum(v*y) = 1·y[0] + (-10)·y[1]",
                "v = ∂L/∂y = [1, -10]: all that `backward` needs of L",
            ],
        ),
        (
            ("y=3*x**2", "--at", "x=[1,2]", "--v", "ones"),
            [
                "v = ones: the gradient is that of the sum  L = sum(v*y) = 1·y[0] + 1·y[1]",
                "v = ∂L/∂y = [1, 1]: all that `backward` needs of L",
            ],
        ),
        (
            ("y=3*x**2", "--at", "x=[1,2]", "--v", "onehot:1"),
            [
                "v is one-hot: the gradient is that of  L = sum(v*y) = 1·y[1]",
                "v = ∂L/∂y = [0, 1]: all that `backward` needs of L",
            ],
        ),
        (
            ("L=x", "b=2*x", "--at", "x=1", "--v", "1,-2"),
            [
                "v weights the outputs: the gradient is that of  loss = 1·L + (-2)·b",
                "v = [∂loss/∂L, ∂loss/∂b] = [1, -2]: all that `backward` needs of loss",
            ],
        ),
        (
            ("y=2*x", "--at", f"x={[1] * 13}", "--v", "ones"),
            [
                "v = ones: the gradient is that of the sum  L = sum(v*y)",
                "v = ∂L/∂y = [1, 1, 1, …] (13 numbers): all that `backward` needs of L",
            ],
        ),
    ],
)
def test_what_v_is(cli, arguments, lines):
    assert section(cli, "v", *arguments) == lines


BAR = "\u0304"  # of an adjoint


def test_the_cotangent_has_another_name_where_the_user_has_a_v(cli):
    kinetic = ("E=m*v**2/2", "--at", "m=2,v=3")
    assert section(cli, "v", *kinetic) == [f"E{BAR} = 1, the default for a scalar: the gradient of E itself"]
    assert f"v.grad = E{BAR}·∂E/∂v   = 1·1/2·m·(2*v)" in cli.done("backward", *kinetic).out
    product = ("y=v@M", "--at", "v=[1,2],M=[[1,2],[3,4]]", "--v", "1,10")
    assert section(cli, "v", *product)[1] == f"y{BAR} = ∂L/∂y = [1, 10]: all that `backward` needs of L"
    assert f"M.grad = outer(v, y{BAR})" in cli.done("backward", *product).out
    calls = section(cli, "calls", *kinetic, "--v", "1", "--v", "10")
    assert f"Each call has its own E{BAR} = ∂L/∂E, and adds vᵀJ to .grad." in calls
    several = section(cli, "v", "y=v**2", "z=v", "--at", "v=3", "--v", "1,2")
    assert several == [
        "the cotangent weights the outputs: the gradient is that of  L = 1·y + 2·z",
        "[∂L/∂y, ∂L/∂z] = [1, 2]: all that `backward` needs of L",
    ]


@pytest.mark.parametrize(
    ("arguments", "pytorch"),
    [
        (("y=x**2", "--at", "x=1"), ["in PyTorch: y.backward()"]),
        (("y=x**2", "--at", "x=1", "--v", "0.5"), ["in PyTorch: y.backward(torch.tensor(0.5))"]),
        (("y=3*x**2", "--at", "x=[1,2]", "--v", "1,-10"), ["in PyTorch: y.backward(torch.tensor([1., -10.]))"]),
        (
            ("a=x", "b=2*x", "--at", "x=1", "--v", "a=1,b=-2"),
            [
                "in PyTorch:",
                "  (1*a + (-2)*b).backward()",
                "  # or: torch.stack((a, b)).backward(torch.tensor([1., -2.]))",
            ],
        ),
        (
            ("a=x*2", "b=sum(x)", "--at", "x=[1,2]", "--v", "1,10,100"),
            ["in PyTorch: ((a * torch.tensor([1., 10.])).sum() + 100*b).backward()"],
        ),
        (
            ("y=x**2", "--at", "x=1", "--v", "1,10"),
            ["in PyTorch:", "  y.backward(retain_graph=True)", "  y.backward(torch.tensor(10.))"],
        ),
        (("y=2*x", "--at", f"x={[1] * 13}", "--v", "ones"), ["in PyTorch: y.backward(v)"]),
    ],
)
def test_the_line_of_pytorch(cli, arguments, pytorch):
    lines = cli.done("backward", *arguments).out.splitlines()
    assert lines[-len(pytorch) :] == pytorch


# Several calls


# Steps


def steps(cli, *arguments: str) -> tuple[list[str], list[list[str]]]:
    """Return the forward lines, and the rows of the first reverse table."""
    out = cli.done("backward", *arguments, "--only", "steps").out
    forward, reverse = out.split("\n\n")[:2]
    assert forward.startswith("forward\n")
    _, header, *rows = reverse.splitlines()
    assert cells(header) == ["this line's derivative", "adjoint so far", "rule"]
    return [" ".join(line.split()) for line in forward.splitlines()[1:]], [cells(row) for row in rows]


def test_rules_have_names(cli):
    _, reverse = steps(cli, "y=sum((x*a - b/c)**2)", "--at", "x=[1,2],a=2,b=[3,4],c=5")
    assert [row[-1] for row in reverse] == [
        "sum", "power", "difference", "difference", "quotient", "quotient, broadcast", "product", "product, broadcast",
    ]  # fmt: skip


@pytest.mark.parametrize("point", [("--at", "x=3"), ()], ids=["numbers", "formulas"])
@pytest.mark.parametrize("count", [16, 17])
def test_steps_of_many_calls_are_shown_for_the_first_of_them(cli, point, count):
    calls = ("--v", ",".join(map(str, range(count))))
    outcome = cli.done("backward", "y=x**2", *point, *calls, "--steps")
    assert "reverse, call 16: v = 15" in outcome.out
    assert "reverse, call 17" not in outcome.out
    told = "note: steps are shown for the first 16 of 17 calls\n"
    assert (told in outcome.err) == (count == 17)
    assert "steps are shown" not in cli.done("backward", "y=x**2", *point, *calls).err


# Large systems


@pytest.mark.parametrize("count", [24, 27, 28, 1100])
def test_statements(cli, count):
    chain = ["h1=x+1", *(f"h{k}=h{k - 1}+1" for k in range(2, count + 1))]
    lines = [line for line in section(cli, "system", *chain, "--at", "x=1") if line]
    if count <= 27:
        assert len(lines) == count
    else:
        left = count - 24
        assert lines[20] == f"… {left:,} more statement{'s' * (left > 1)}: h{count - 4} = {count - 3}"
        assert len(lines) == 25
    assert lines[-1].split() == [f"h{count}", "=", f"h{count - 1}+1", "=", str(count + 1)]


@pytest.mark.parametrize("count", [6, 7])
def test_a_jacobian_too_large_to_show_is_not_shown(cli, count):
    at = ("--at", f"x={[1] * count}", "--v", "ones")
    out = cli.done("backward", "y=x*2", *at).out
    assert ("∂/∂x[0]" in out) == (count == 6)
    assert ("Jacobian J[i, j] = ∂y[i]/∂x[j]: 7 × 7" in out) == (count == 7)
    assert "∂/∂x[0]" in cli.done("backward", "y=x*2", *at, "--jacobian").out
    assert "Jacobian" not in cli.done("backward", "y=x*2", *at, "--no-jacobian").out
    assert f"{[2] * count}" in out


def test_only_takes_several_sections_and_knows_no_others(cli):
    out = cli.done("backward", *MAIN, "--only", "grad, system").out
    whole = cli.done("backward", *MAIN).out
    assert out == whole[: whole.index("v weights")] + whole[whole.index("x0.grad") : whole.index("in PyTorch") - 1]
    assert "there is no section `grads`" in cli("backward", *MAIN, "--only", "grads").refused()
    listed = cli.done("backward", "--help").out
    for name in ("system", "v", "jacobian", "steps", "calls", "grad", "pytorch"):
        assert f"{name}:" in listed


@pytest.mark.parametrize(
    ("digits", "shown"), [((), "0.333333"), (("--digits", "2"), "0.33"), (("--digits", "full"), "0.3333333333333333")]
)
def test_digits(cli, digits, shown):
    out = cli.done("backward", "y=x/3", "--at", "x=1", *digits).out
    assert f"y = x/3 = {shown}   at x = 1\n" in out
    for wrong in ("0", "18", "six"):
        assert "is not a number of digits" in cli("backward", "y=x", "--at", "x=1", "--digits", wrong).refused()


def test_a_zero_that_was_given_is_shown_with_its_sign_and_no_other(cli):
    assert "at a = -0.0" in cli.done("backward", "y=b/a", "--at", "a=-0.0,b=1").out.replace("b = 1, ", "")
    out = cli.done("backward", "y=x**3*z", "--at", "x=0,z=-2", "--steps").out
    assert "x̄ = -2·0 = 0" in out
    assert "-0.0" not in out
