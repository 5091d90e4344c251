"""What operations on numbers are in C and in JavaScript: their signs are the same, and most names."""

from __future__ import annotations

from collections.abc import Callable

_NAMES = """
sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh hypot
floor ceil
"""
FUNCTIONS = tuple(_NAMES.split())
_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&&", "or": "||",
}  # fmt: skip
# Functions that the file brings along, by the names that they have there.
_HELPERS = {"mod": "modulo", "floor_divide": "quotient"} | {
    op: op for op in ("softplus", "heaviside", "sign", "exceeds", "undercuts", "digamma", "polygamma")
}
_TWO = ("atan2", "hypot", "mod", "floor_divide", "heaviside", "exceeds", "undercuts", "polygamma")


def rules(function: Callable[[str], str], helper: Callable[[str], str]) -> dict[str, str]:
    """Return the rules: `function` has the name of a function of the library's, `helper` that of one of the file's."""
    return {
        **{op: f"{{}} {sign} {{}}" for op, sign in _SIGNS.items()},
        "neg": "-{}",
        "not": "!{}",
        "identity": "{}",
        "where": "{} ? {} : {}",
        **{op: f"{function(op)}({'{}, {}' if op in _TWO else '{}'})" for op in FUNCTIONS},
        **{op: f"{helper(name)}({'{}, {}' if op in _TWO else '{}'})" for op, name in _HELPERS.items()},
    }
