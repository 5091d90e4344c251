"""What `gradcli backward` and `gradcli jacobian` print for a reader: each section says its thing, and once."""

from __future__ import annotations

import pytest

TWO_TO_THREE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")
MAIN = (*TWO_TO_THREE, "--at", "x0=1,x1=2", "--v", "1,10,100")


def section(cli, name: str, *arguments: str, command: str = "backward") -> list[str]:
    """Return the lines of one section of a page."""
    return cli.done(command, *arguments, "--only", name).out.splitlines()


# The gradient


# The cotangent


# Several calls


# Steps


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


def test_only_takes_several_sections_and_knows_no_others(cli):
    out = cli.done("backward", *MAIN, "--only", "grad, system").out
    whole = cli.done("backward", *MAIN).out
    assert out == whole[: whole.index("v weights")] + whole[whole.index("x0.grad") : whole.index("in PyTorch") - 1]
    assert "there is no section `grads`" in cli("backward", *MAIN, "--only", "grads").refused()
    listed = cli.done("backward", "--help").out
    for name in ("system", "v", "jacobian", "steps", "calls", "grad", "pytorch"):
        assert f"{name}:" in listed
