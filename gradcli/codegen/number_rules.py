"""Operations on numbers in C and in JavaScript, which have the same signs and mostly the same names."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.codegen.spelling import calls_in
from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS

# Operators: Python's signs, from the rows, but for those that are functions here, and that have other signs.
_SIGNS = {op: row.infix for op, row in OPERATIONS.items() if row.broadcasts and row.infix and op not in ("pow", "mod")}
_SIGNS |= {"and": "&&", "or": "||", "not": "!"}
# How tightly they bind: as in Python, but for conditions.
_BINDS = {
    Precedence.OR: 1, Precedence.AND: 2, Precedence.COMPARISON: 4, Precedence.SUM: 5, Precedence.PRODUCT: 6,
    Precedence.SIGN: 7,
}  # fmt: skip
LEVELS = {op: _BINDS[OPERATIONS[op].precedence] for op in _SIGNS} | {"eq": 3, "ne": 3, "where": 0}


def rules(target: str, whole: Callable[[str], str] = str) -> dict[str, str]:
    """Return the text of each operation in a target; `whole` adds a library to the name of a function."""
    return {
        **{op: f"{{}} {sign} {{}}" if OPERATIONS[op].arity > 1 else f"{sign}{{}}" for op, sign in _SIGNS.items()},
        "identity": "{}",
        "where": "{} ? {} : {}",
        **calls_in(target, whole),
        **{op: f"{op}({{}}, {{}})" for op in ("exceeds", "undercuts")},  # of the loop form
    }
