"""Function calls in LaTeX: names, arguments, and settings after a semicolon."""

from __future__ import annotations

from itertools import starmap
from typing import Any

from gradcli.graph.node import Node
from gradcli.notation.writer import Writer, Written, called, settings_of

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
# Functions that have a sign of their own; the others have their name.
FUNCTIONS = {name: rf"\{name}" for name in ("sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "log")}
FUNCTIONS |= {f"a{name}": rf"\arc{name}" for name in ("sin", "cos", "tan")}
FUNCTIONS |= {"maximum": r"\max", "minimum": r"\min", "det": r"\det", "trace": r"\operatorname{tr}"}
FUNCTIONS |= {"log2": r"\log_{2}", "log10": r"\log_{10}", "sign": r"\operatorname{sgn}"}
FUNCTIONS |= {"max": r"\max", "min": r"\min"}
LETTERS = {"gamma": r"\Gamma", "digamma": r"\psi", "polygamma": r"\psi"}  # unless a variable is one
BRACKETS = {"floor": (r"\lfloor ", r"\rfloor"), "ceil": (r"\lceil ", r"\rceil"), "abs": ("|", "|")}


def function(op: str) -> str:
    """Return the name of a function.

    >>> function("sin"), function("leaky_relu")
    ('\\\\sin', '\\\\operatorname{leaky\\\\_relu}')
    """
    return FUNCTIONS.get(op) or rf"\operatorname{{{op}}}".replace("_", r"\_")


def applied(name: str, arguments: list[str], *settings: str) -> Written:
    """Return a function call; the settings follow a semicolon."""
    behind = r";\, " + r",\, ".join(settings) if settings else ""
    return Written(rf"{name}\left({', '.join(arguments)}{behind}\right)")


def call(w: Writer, node: Node, *more: str) -> Written:
    """Return a node as a call of its function, with its settings and `more`."""
    return applied(function(called(node)), w.arguments(node), *starmap(setting, settings_of(node)), *more)


def setting(name: str, value: Any) -> str:
    """Return a setting: axis = (0, 1).

    >>> setting("axis", (0,)), setting("descending", True)
    ('\\\\mathrm{axis} = (0)', '\\\\mathrm{descending} = \\\\mathrm{true}')
    """
    shown = f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)
    return rf"\mathrm{{{name}}} = ".replace("_", r"\_") + (r"\mathrm{true}" if value is True else shown)
