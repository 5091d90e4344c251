"""Names of quantities: of an array's elements, of nodes that have none, of adjoints, and all of them as LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import product

# What may be a name, in a regular expression; letters and marks that are not ASCII are looked at later.
NAME = r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*"

MAX_NAME = 1000  # characters of a name that is not ASCII

_GREEK = {c: unicodedata.name(c).split()[-1].lower().replace("lamda", "lambda") for c in "αβγδεζηθικλμνξπρστυφχψω"}
_GREEK |= {c.upper(): _GREEK[c].capitalize() for c in "γδθλξπσυφψω"} | {"ς": "varsigma"}
_GREEK_NAMES = frozenset(_GREEK.values())
_ACCENTS = {
    "\u0300": "grave",
    "\u0301": "acute",
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0306": "breve",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u030c": "check",
    "\u20d7": "vec",
}

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


def normal(name: str) -> str:
    """Return a name in the form in which names are compared: NFKC, as in Python.

    >>> normal("x0"), normal("𝜆")
    ('x0', 'λ')
    """
    # A letter with 100,000 accents would take a minute.
    return name if name.isascii() or len(name) > MAX_NAME else unicodedata.normalize("NFKC", name)


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


def dot(name: str) -> str:
    """Return the name of a tangent: ṫ2 of t2.

    >>> dot("x"), [hex(ord(c)) for c in dot("t2")]
    ('ẋ', ['0x1e6b', '0x32'])
    """
    return unicodedata.normalize("NFC", f"{name[0]}\u0307") + name[1:]


def latex_name(name: str) -> str:
    """Return a variable's name as LaTeX: `x0` and `x[0]` have subscripts, Greek names are letters.

    >>> latex_name("x[0,1]"), latex_name("theta2"), latex_name("loss"), latex_name(bar("t2"))
    ('x_{0,1}', '\\\\theta_{2}', '\\\\mathit{loss}', '\\\\bar{t}_{2}')
    >>> latex_name("λ2"), latex_name("Δx")
    ('\\\\lambda_{2}', '\\\\mathit{\\\\Delta x}')
    """
    if "\u0304" in name:
        first, _, rest = latex_name(name.replace("\u0304", "")).partition("_{")
        return rf"\bar{{{first}}}" + (f"_{{{rest}" if rest else "")
    match = re.fullmatch(rf"({NAME}?)_?([0-9]*)(?:\[([0-9,]*)\])?", name)
    if not match:
        return name  # a number kept as it was typed
    stem, digits, key = match.groups()
    subscript = ",".join(part for part in (digits, key) if part)
    if stem.rstrip("_") in _GREEK_NAMES:
        letter = rf"\{stem.rstrip('_')}"
    else:
        letters = [_latex_letter(c) for c in _letters(stem)]
        letter = letters[0].rstrip() if len(letters) == 1 and stem != "_" else rf"\mathit{{{''.join(letters)}}}"
    return f"{letter}_{{{subscript}}}" if subscript else letter


def _letters(name: str) -> list[str]:
    """Return the letters of a name, each with the accents that follow it."""
    letters: list[str] = []
    for c in name:
        if letters and unicodedata.combining(c):
            letters[-1] += c
        else:
            letters.append(c)
    return letters


def _latex_letter(letter: str) -> str:
    """Return a letter with its accents as LaTeX for math mode; what is neither Latin nor Greek is text in it."""
    base, *accents = list(unicodedata.normalize("NFD", letter))
    if not (base.isascii() or base in _GREEK) or any(a not in _ACCENTS for a in accents):
        return rf"\text{{{letter}}}"
    written = rf"\{_GREEK[base]} " if base in _GREEK else base.replace("_", r"\_")
    for accent in accents:
        written = rf"\{_ACCENTS[accent]}{{{written.rstrip()}}}"
    return written


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
