"""Operations on numbers in C and in JavaScript, which have the same signs and mostly the same names."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS

_NAMES = """
sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh hypot
floor ceil
"""
FUNCTIONS = tuple(_NAMES.split())
# Operators: Python's signs, from the rows, but for those that are functions here, and that have other signs.
_SIGNS = {op: row.infix for op, row in OPERATIONS.items() if row.broadcasts and row.infix and op not in ("pow", "mod")}
_SIGNS |= {"and": "&&", "or": "||", "not": "!"}
# How tightly they bind: as in Python, but for conditions.
_BINDS = {
    Precedence.OR: 1, Precedence.AND: 2, Precedence.COMPARISON: 4, Precedence.SUM: 5, Precedence.PRODUCT: 6,
    Precedence.SIGN: 7,
}  # fmt: skip
LEVELS = {op: _BINDS[OPERATIONS[op].precedence] for op in _SIGNS} | {"eq": 3, "ne": 3, "where": 0}
# Functions that the file brings along, by the names that they have there.
_HELPERS = {"mod": "modulo", "floor_divide": "quotient"} | {
    op: op for op in ("softplus", "heaviside", "sign", "exceeds", "undercuts", "digamma", "polygamma")
}
_TWO = ("atan2", "hypot", "mod", "floor_divide", "heaviside", "exceeds", "undercuts", "polygamma")


def rules(function: Callable[[str], str], helper: Callable[[str], str]) -> dict[str, str]:
    """Return the rules: `function` has the name of a function of the library's, `helper` that of one of the file's."""
    return {
        **{op: f"{{}} {sign} {{}}" if OPERATIONS[op].arity > 1 else f"{sign}{{}}" for op, sign in _SIGNS.items()},
        "identity": "{}",
        "where": "{} ? {} : {}",
        **{op: f"{function(op)}({'{}, {}' if op in _TWO else '{}'})" for op in FUNCTIONS},
        **{op: f"{helper(name)}({'{}, {}' if op in _TWO else '{}'})" for op, name in _HELPERS.items()},
    }
