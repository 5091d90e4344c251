"""What operations on numbers are in C and in JavaScript: their signs are the same, and most names."""

from __future__ import annotations

from collections.abc import Callable

_NAMES = """
sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh hypot
floor ceil
"""
FUNCTIONS = tuple(_NAMES.split())
_TWO = frozenset(["atan2", "hypot"])


def rules(function: Callable[[str], str], helper: Callable[[str], str]) -> dict[str, str]:
    """Return the rules: `function` has the name of a function of the library's, `helper` that of one of the file's."""
    return {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "div": "{} / {}",
        "neg": "-{}",
        "identity": "{}",
        **{op: f"{function(op)}({'{}, {}' if op in _TWO else '{}'})" for op in FUNCTIONS},
        "mod": f"{helper('modulo')}({{}}, {{}})",
        "floor_divide": f"{helper('quotient')}({{}}, {{}})",
        "softplus": f"{helper('softplus')}({{}})",
        "heaviside": f"{helper('heaviside')}({{}}, {{}})",
        "sign": f"{helper('sign')}({{}})",
        "exceeds": f"{helper('exceeds')}({{}}, {{}})",
        "undercuts": f"{helper('undercuts')}({{}}, {{}})",
        "digamma": f"{helper('digamma')}({{}})",
        "polygamma": f"{helper('polygamma')}({{}}, {{}})",
        "where": "{} ? {} : {}",
        "lt": "{} < {}",
        "le": "{} <= {}",
        "gt": "{} > {}",
        "ge": "{} >= {}",
        "and": "{} && {}",
        "or": "{} || {}",
        "not": "!{}",
    }
