"""Names that are read as variables, and may be functions whose brackets were left out: sinx, cos2x, exp."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from gradcli.errors import Fix, Notes, Span
from gradcli.graph.names import NAME
from gradcli.lang.system import System
from gradcli.vocabulary import FUNCTIONS

# Functions that textbooks write without brackets. Others, such as gamma, sign and norm, are names of variables as well.
_TRIGONOMETRIC = [
    f"{prefix}{name}" for prefix in ("", "a", "arc") for name in ("sin", "cos", "tan", "cot", "sec", "csc")
]
_HYPERBOLIC = [f"{name}h" for name in _TRIGONOMETRIC]
WITH_BRACKETS = {*_TRIGONOMETRIC, *_HYPERBOLIC, "exp", "log", "ln", "log2", "log10", "sqrt", "abs"} & FUNCTIONS.keys()
_JOINED = re.compile(rf"({'|'.join(sorted(WITH_BRACKETS, key=len, reverse=True))})_?(\d*)({NAME})")
_LETTER = re.compile(r"[^\W\d_]\d*")


def as_call(name: str, arguments: Collection[str]) -> str | None:
    """Return the call of a function that a name may be, of one of the arguments or of a single letter.

    >>> as_call("sinx", []), as_call("cos2theta", ["theta"]), as_call("expected", []), as_call("cosh", ["h"])
    ('sin(x)', 'cos(2*theta)', None, None)
    """
    match = _JOINED.fullmatch(name)
    if match is None or name in FUNCTIONS:
        return None
    function, factor, argument = match.groups()
    if argument not in arguments and not _LETTER.fullmatch(argument):
        return None
    return f"{function}({factor}*{argument})" if factor else f"{function}({argument})"


def with_brackets(system: System, argument: str) -> Fix | None:
    """Return the correction of the first statement with inputs that may be calls of functions of an argument."""
    for statement in system.statements:
        result: dict[Span, str] = {}
        for tree in statement.expression.names:
            call = as_call(tree.id, [argument]) if tree.id in system.uses and tree.id not in system.defaults else None
            if call and f"{argument})" in call:
                result[statement.expression.span(tree)] = call
        if result:
            return _replaced(sorted(result.items(), key=lambda item: item[0].start))
    return None


def _replaced(calls: list[tuple[Span, str]]) -> Fix:
    """Return one correction for several in one text, in order."""
    text, end = "", calls[0][0].start
    for span, call in calls:
        text += span.source.text[end : span.start] + call
        end = span.end
    return Fix(Span(calls[0][0].source, calls[0][0].start, end), text)


def note_joined(system: System, supplied: Iterable[str], notes: Notes) -> None:
    """Add a note about each input without a value that may be a call of a function."""
    known = {*system.uses, *system.assigned}
    for name in sorted(system.uses.keys() - system.defaults.keys() - {*supplied}):
        if call := as_call(name, known):
            notes.add("note", f"`{name}` is read as a variable: the function is written `{call}`")
        elif name in WITH_BRACKETS:
            notes.add("note", f"`{name}` is read as a variable: the function is called with brackets, `{name}(x)`")
