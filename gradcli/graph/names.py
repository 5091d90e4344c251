"""Names of quantities: of an array's elements, of nodes that have none, of adjoints, and all of them as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

_GREEK = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "pi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Pi",
        "Sigma",
        "Upsilon",
        "Phi",
        "Psi",
        "Omega",
    ]
)

# How LaTeX writes the operations between their arguments that it writes in its own way.
LATEX_INFIX = {
    "<=": r"\leq",
    ">=": r"\geq",
    "==": "=",
    "!=": r"\neq",
    "&": r"\wedge",
    "|": r"\vee",
    "~": r"\neg",
    "%": r"\bmod",
}


def element_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the names of an array's elements, in row-major order; a scalar's name is its own.

    >>> element_names("x", (2,)), element_names("M", (1, 2)), element_names("y", ())
    (['x[0]', 'x[1]'], ['M[0,0]', 'M[0,1]'], ['y'])
    """
    if not shape:
        return [name]
    return [f"{name}[{','.join(map(str, key))}]" for key in product(*map(range, shape))]


def fresh_names(taken: set[str], stem: str = "t") -> Iterator[str]:
    """Yield `t1`, `t2`, … without the names that are taken."""
    k = 0
    while True:
        k += 1
        if f"{stem}{k}" not in taken:
            yield f"{stem}{k}"


def bar(name: str) -> str:
    """Return the name of an adjoint: t̄2 of t2.

    >>> [hex(ord(c)) for c in bar("t2")]
    ['0x74', '0x304', '0x32']
    """
    return f"{name[0]}\u0304{name[1:]}"


def latex_name(name: str) -> str:
    """Return a variable's name as LaTeX: `x0` and `x[0]` have subscripts, Greek names are letters.

    >>> latex_name("x[0,1]"), latex_name("theta2"), latex_name("loss"), latex_name(bar("t2"))
    ('x_{0,1}', '\\\\theta_{2}', '\\\\mathit{loss}', '\\\\bar{t}_{2}')
    """
    if "\u0304" in name:
        first, _, rest = latex_name(name.replace("\u0304", "")).partition("_{")
        return rf"\bar{{{first}}}" + (f"_{{{rest}" if rest else "")
    match = re.fullmatch(r"([A-Za-z_]\w*?)_?(\d*)(?:\[([\d,]*)\])?", name)
    if not match:
        return name  # a number kept as it was typed
    stem, digits, key = match.groups()
    subscript = ",".join(part for part in (digits, key) if part)
    if stem.rstrip("_") in _GREEK:
        letter = rf"\{stem.rstrip('_')}"
    else:
        letter = stem if len(stem) == 1 and stem != "_" else rf"\mathit{{{stem}}}".replace("_", r"\_")
    return f"{letter}_{{{subscript}}}" if subscript else letter


def latex_index(name: str, key: str) -> str:
    r"""Return an element of a quantity whose LaTeX may have a subscript already.

    >>> latex_index("a_{1}", "0"), latex_index(r"\bar{t}_{2}", "0")
    ('{a_{1}}_{0}', '{\\bar{t}_{2}{}}_{0}')
    """
    # TeX takes an accent out of its braces, unless it is not alone there.
    alone = "{}" if name.startswith(r"\bar") else ""
    return f"{{{name}{alone}}}_{{{key}}}"


def latex_number(text: str) -> str:
    """Return a number's text as LaTeX: 1e-05 as a power of ten.

    >>> latex_number("2.5e-05")
    '2.5 \\\\times 10^{-5}'
    """
    mantissa, exponent, power = text.lower().partition("e")
    return rf"{mantissa} \times 10^{{{int(power)}}}" if exponent and power.lstrip("+-").isdigit() else text
