"""Hints: what is shown as the way out is what was meant, and following it works."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest
from conftest import each, said, some

from gradcli.cli.main import gradcli, in_command_line
from gradcli.errors import Fix, InputError

AT = ("--at", "x=3")
ROUNDS = 4  # mistakes that one command line has at most

# What is typed, and what was meant by it.
PAIRS = Path(__file__).with_name("meant.txt").read_text("utf-8").strip().split("\n\n")[1:]
MEANT = [tuple(tuple(shlex.split(line.replace("\\n", "\n"))) for line in pair.splitlines()) for pair in PAIRS]


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
