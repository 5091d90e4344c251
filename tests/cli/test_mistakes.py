"""Mistakes of any length and in any character; `tests/docs/pinned/mistakes.md` has what is said of all others."""

from __future__ import annotations

import pytest

from gradcli.errors import InputError


@pytest.mark.parametrize(
    ("system", "stdin", "says"),
    [
        ((), "a = x\nb = a*foo(x)\n", "standard input, line 2:\n  b = a*foo(x)\n        ^^^\n"),
        ((), "\ufeffa = x\r\ny = foo(a)\r\n", "standard input, line 2:\n  y = foo(a)\n      ^^^\n"),
        ((), b"y = x\xff", "is not UTF-8 text"),
        ((), b"y = x\0", "NUL"),
        (("y = \0x",), "", "U+0000"),
        (("y = \x1b[31mx",), "", "U+001B"),
    ],
)
def test_the_place_is_told_whatever_stands_there(cli, system, stdin, says):
    assert says in cli.refused("jacobian", *system, stdin=stdin) + "\n"


@pytest.mark.parametrize("name", ["λ" * 1001, "x" + "\u0301\u0323" * 100_000], ids=["letters", "accents"])
def test_names_that_are_too_long(cli, name):
    assert "characters is too long" in cli.refused("jacobian", f"y = {name}")
    assert "characters is too long" in cli.refused("backward", "y = x", "--at", f"{name}=1")


def test_a_message_of_any_length_is_cut(cli):
    name = "a" * 100_000
    assert len(cli.refused("backward", f"{name} = b", "--at", "c=1")) < 10_000
    assert len(cli("backward", f"y = {name} + b", "--at", f"{name}=1,b=2", "--only", "grad").err) < 10_000
    assert len(str(InputError("x" * 10**6, hint="y" * 10**6))) < 10_000
