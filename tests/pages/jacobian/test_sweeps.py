"""A page of J says whether it was worked out in forward or in reverse mode, and why."""

import pytest

TOLD = [
    (
        ("y=M@x", "--wrt", "x", "--shape", "M=9x5,x=5"),
        "forward mode: 5 passes, one per column, where reverse mode takes 9.",
    ),
    (
        ("y=M@x", "--wrt", "x", "--shape", "M=5x9,x=9"),
        "reverse mode: 5 passes, one per row, where forward mode takes 9.",
    ),
    (("y=3*x[1:]-x[:-1]**2", "--shape", "x=8"), "in reverse mode: 2 passes, rows that share no input go together."),
    (("y=sin(x)", "--shape", "x=8"), "in reverse mode: 1 pass, rows that share no input go together."),
    (("y0=3*x0**2; y1=x0**2+2*x1**3; y2=10*x1",), "in reverse mode: 2 passes, rows that share no input go together."),
    (
        ("y=x@M", "--shape", "x=2,M=2x2"),
        "2 passes, one per row, where forward mode takes 4: columns that share no output go together.",
    ),
    (("y0=x; y1=x**2; y2=x**3",), "in forward mode: 1 pass, one per column, where reverse mode takes 3."),
]


@pytest.mark.parametrize(("command", "told"), TOLD)
def test_the_mode_is_told_with_its_reason(cli, command, told):
    assert told in " ".join(cli.done("jacobian", *command).out.split())


def test_a_gradient_is_one_pass_in_reverse_and_says_nothing(cli):
    assert "gradcli computes" not in cli.done("jacobian", "y=x**2*z").out
