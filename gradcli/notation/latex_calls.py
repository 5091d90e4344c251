"""Function calls in LaTeX: names, arguments, and settings after a semicolon."""

from __future__ import annotations

from itertools import starmap
from typing import Any

from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.writer import Writer, Written, called, options_of, settings_of

# Signs of conditions that LaTeX writes in its own way.
SIGNS = {
    "<=": r"\leq",
    ">=": r"\geq",
    "==": "=",
    "!=": r"\neq",
    "&": r"\wedge",
    "|": r"\vee",
    "~": r"\neg",
    "%": r"\bmod",
}
LETTERS = {"gamma": r"\Gamma", "digamma": r"\psi", "polygamma": r"\psi"}  # unless a variable is one


def function(op: str) -> str:
    """Return the name of a function.

    >>> function("sin"), function("leaky_relu")
    ('\\\\sin', '\\\\operatorname{leaky\\\\_relu}')
    """
    return (op in OPERATIONS and OPERATIONS[op].spelling_in("latex")) or rf"\operatorname{{{op}}}".replace("_", r"\_")


def applied(name: str, arguments: list[str], *settings: str) -> Written:
    """Return a function call; the settings follow a semicolon."""
    behind = r";\, " + r",\, ".join(settings) if settings else ""
    return Written(rf"{name}\left({', '.join(arguments)}{behind}\right)")


def call(w: Writer, node: Node, *more: str) -> Written:
    """Return a node as a call of its function, with its settings and `more`."""
    arguments, options = w.arguments(node), options_of(node)
    named = [setting(word, arguments[i]) for i, word in options.items() if word]
    positional = arguments[: len(arguments) - len(options)]
    settings = list(settings_of(node))
    first = [str(value) for word, value in settings if not word]
    behind = starmap(setting, (pair for pair in settings if pair[0]))
    return applied(function(called(node)), [*positional, *first], *named, *behind, *more)


def setting(name: str, value: Any) -> str:
    """Return a setting: axis = (0, 1).

    >>> setting("axis", (0,)), setting("descending", True)
    ('\\\\mathrm{axis} = (0)', '\\\\mathrm{descending} = \\\\mathrm{true}')
    """
    shown = f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)
    return rf"\mathrm{{{name}}} = ".replace("_", r"\_") + (r"\mathrm{true}" if value is True else shown)
