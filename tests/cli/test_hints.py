"""Hints: what is shown as the way out is what was meant, and following it works."""

from __future__ import annotations

import io
import shlex
import sys

import pytest
from conftest import each, said, some

from gradcli.cli.main import gradcli, in_command_line
from gradcli.errors import Fix, InputError

AT = ("--at", "x=3")
ROUNDS = 4  # mistakes that one command line has at most


def formula(wrong: str, right: str, *options: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the same command with a formula that is wrong, and with the one that was meant."""
    return ("backward", wrong, *(options or AT)), ("backward", right, *(options or AT))


# What is typed, and what was meant by it.
MEANT = [
    # Functions
    formula("y=sin^2(x)", "y=sin(x)**2"),
    formula("y=tan^-1(x)", "y=atan(x)"),
    formula("y=sin²(x)", "y=sin(x)**2"),
    formula("y=sin 2x", "y=sin(2*x)"),
    formula("y=√x", "y=sqrt(x)"),
    formula("y=√(x+1)·½", "y=sqrt(x+1)*(1/2)"),
    formula("y=3*х", "y=3*x"),  # a Cyrillic letter
    formula("y=sinx", "y=sin(x)"),
    formula("y=x*cosx + 2*sin3x", "y=x*cos(x) + 2*sin(3*x)"),
    formula("y=logtheta", "y=log(theta)", "--at", "theta=2"),
    # Products and other signs
    formula("y=2x", "y=2*x"),
    formula("y=x z", "y=x*z", "--at", "x=3,z=2"),
    formula("y=2(x+1)", "y=2*(x+1)"),
    formula("y=(x+1)(x-1)", "y=(x+1)*(x-1)"),
    formula("y=|x-5|", "y=abs(x-5)"),
    formula("y=x!", "y=gamma(x + 1)"),
    formula("y=where(x>0 && x<5, x, 0)", "y=where((x>0) & (x<5), x, 0)"),
    formula("y=where(x=<5, x, 0)", "y=where(x<=5, x, 0)"),
    formula("y=x²", "y=x**2"),
    formula("y=x − 1", "y=x - 1"),
    formula("y=exp(-lambda*x)", "y=exp(-lambda_*x)", "--at", "x=3,lambda_=2"),
    # Decimal commas
    formula("y=1,5*x", "y=1.5*x"),
    formula("y=sin(1,5*x)", "y=sin(1.5*x)"),
    (("backward", "y=x**2", "--at", "x=1,5"), ("backward", "y=x**2", "--at", "x=1.5")),
    (("backward", "y=sum(x**2)", "--at", "x=1,2,3"), ("backward", "y=sum(x**2)", "--at", "x=[1,2,3]")),
    # Values
    (("backward", "y=x*z", "--at", "x=1 z=2"), ("backward", "y=x*z", "--at", "x=1,z=2")),
    (("backward", "y=x@z", "--at", "x=[1,2]; z=[2, 3]"), ("backward", "y=x@z", "--at", "x=[1,2],z=[2,3]")),
    (("backward", "y=x*z", "--at", "x=1", "z=2"), ("backward", "y=x*z", "--at", "x=1,z=2")),
    (("backward", "y=[x,2*x]", *AT, "--v", "1", "2"), ("backward", "y=[x,2*x]", *AT, "--v", "1,2")),
    (("jvp", "y=x*z", "--at", "x=1,z=2", "--u", "x=1", "z=3"), ("jvp", "y=x*z", "--at", "x=1,z=2", "--u", "x=1,z=3")),
    (("backward", "y=x**2", "--x", "3"), ("backward", "y=x**2", *AT)),
    (("backward", "y=x**2*z", "--at", "z=1", "--x", "3"), ("backward", "y=x**2*z", "--at", "z=1,x=3")),
    # Statements
    formula("y=x+", "y=x"),
    formula("a=2*x*; y=a", "a=2*x; y=a"),
    formula("y = x +\n  2*x", "y = x + 2*x"),
    formula("y = 2*x\\", "y = 2*x"),
    formula("y == x**2", "y = x**2"),
    formula("y := x**2", "y = x**2"),
    formula("f(x) = x**2", "f = x**2"),
    formula("input b\ny = x*b", "input b = 1\ny = x*b"),
    # Claims
    (("check", "y=3*x", "y' = 3"), ("check", "y=3*x", "dy/dx = 3")),
    (("check", "f=x**2*z", "f'(x) = 2*x*z"), ("check", "f=x**2*z", "df/dx = 2*x*z")),
    (("check", "y=x**2", "dy/dx == 2*x"), ("check", "y=x**2", "dy/dx = 2*x")),
    # Commands
    (("y=x**2", *AT), ("backward", "y=x**2", *AT)),
    ((*AT, "y=x**2"), ("backward", "y=x**2", *AT)),
    (("y=x**2", *AT, "backward"), ("backward", "y=x**2", *AT)),
    (("y=x**2 $HOME 'z'"[:6], *AT), ("backward", "y=x**2", *AT)),
    (("a=x", "b=x**2", *AT), ("jacobian", "a=x", "b=x**2", *AT)),
    (("y=x**2", *AT, "--u", "x=1"), ("jvp", "y=x**2", *AT, "--u", "x=1")),
    (("y=x**2", "dy/dx = 2*x"), ("check", "y=x**2", "dy/dx = 2*x")),
]  # fmt: skip


def error_of(arguments: tuple[str, ...]) -> InputError | None:
    """Return the error that a command line ends with, or None where it works."""
    try:
        gradcli.main(list(arguments), prog_name="gradcli", standalone_mode=False)
    except Exception as error:
        told = in_command_line(error, arguments)
        assert isinstance(told, InputError), told
        return told
    return None


def followed(arguments: tuple[str, ...], fix: Fix) -> tuple[str, ...]:
    """Return the arguments with a correction made in the one that it is about, or in the whole command line."""
    source = fix.span.source
    if source.text == shlex.join(["gradcli", *arguments]):
        return tuple(shlex.split(fix.corrected)[1:])
    (place,) = [k for k, argument in enumerate(arguments) if argument == source.text]
    return (*arguments[:place], fix.corrected, *arguments[place + 1 :])


@each(("typed", "meant"), some(MEANT))
def test_following_the_hint_gives_what_was_meant(cli, typed, meant, capsys):
    told = cli.refused(*typed)
    for _ in range(ROUNDS):
        error = error_of(typed)
        if error is None:
            break
        assert error.fix is not None, error
        assert error.hint
        typed = followed(typed, error.fix)
    capsys.readouterr()
    result, wanted = (cli.done(*arguments, "-f", "json") for arguments in (typed, meant))
    assert told
    if meant[0] != "check":
        assert result.objects == wanted.objects
    assert result.status == wanted.status == 0


def test_a_file_is_corrected_in_its_text(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"input b\ny = 2*b\n")))
    error = error_of(("jacobian", "-F", "-"))
    assert error.fix.corrected == "input b = 1\ny = 2*b\n"


def test_a_backslash_continues_a_line_as_in_python(cli):
    assert cli.json("backward", "y = x + \\\n  2*x", *AT)["grad"] == {"x": 3}
    assert cli.done("backward", "y = x + \\\n  2*x", *AT).out.startswith("y = x + 2*x = 9 ")
    assert cli.json("backward", "-F", "-", stdin="a = 2*x \\\r\n  + 1  # \\\ny = a \\\n")["grad"] == {"x": "2"}


@pytest.mark.parametrize(("typed", "hint"), [("1,000", "1000"), ("1,234,567.5", "1234567.5"), ("1,5", "1.5")])
def test_a_comma_in_a_cell_is_not_taken_for_another_number(cli, tmp_path, typed, hint):
    """The hint names the number that was meant; where there are two, both."""
    file = tmp_path / "a.csv"
    file.write_text(f'a\n"{typed}"\n')
    told = said(cli.refused("backward", "y=2*a", "--points", str(file)))
    assert f"`{hint}`" in told
    if typed == "1,000":
        assert "`1.000`" in told


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (("--outptu", "o"), "note: --outptu is the script's own argument; gradcli's option is --output"),
        (("3", "--steps"), "note: --steps is the script's own argument; gradcli's option is --steps"),
        (("--epochs", "3", "--output-dir", "o", "--", "-q"), ""),
    ],
)
def test_an_option_behind_the_scripts_name_is_noted_where_gradcli_has_one_like_it(cli, tmp_path, arguments, note):
    script = tmp_path / "s.py"
    script.write_text("import sys; print(sys.argv[1:])")
    outcome = cli.done("run", str(script), *arguments)
    assert outcome.out == f"{[*arguments]}\n"
    assert outcome.err.startswith(note) if note else outcome.err == ""
    assert cli.done("run", "--quiet", str(script), *arguments).err == ""
