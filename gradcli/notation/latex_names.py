"""Names of quantities as LaTeX, all different on a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from gradcli.graph.names import NAME, AdjointName, ElementName, array_name, bar
from gradcli.text.wrapping import visible

GREEK = {c: unicodedata.name(c).split()[-1].lower().replace("lamda", "lambda") for c in "αβγδεζηθικλμνξπρστυφχψω"}
GREEK |= {c.upper(): GREEK[c].capitalize() for c in "γδθλξπσυφψω"} | {"ς": "varsigma"}
_SPELLED = {name: name for name in GREEK.values()} | {"eps": "varepsilon"}
_SPELLED |= {name: name for name in ("varepsilon", "vartheta", "varpi", "varrho", "varphi")}
GREEK |= {"ε": "varepsilon", "φ": "varphi"}
_CONSTANTS = ("pi", "π")  # as variables they are not to look like the number
ACCENTS = {
    "\u0300": "grave", "\u0301": "acute", "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0306": "breve",
    "\u0307": "dot", "\u0308": "ddot", "\u030c": "check", "\u20d7": "vec",
}  # fmt: skip
_DOTS = r"\dots"  # of names that are left out
_MARKS = {"\u0304": "bar", "\u0307": "dot"}  # of adjoints, and of tangents
WORDS = (r"\mathit{", r"\mathtt{", r"\texttt{")  # what names of several letters begin with
_STEM = re.compile(rf"({NAME}?)_?([0-9]*)")
_CALL = re.compile(r"([A-Za-z_][\w.]*)\((.*)\)((?:\[\d+\])?)")
_SUBSCRIPT = re.compile(r"(?<!\\)_\{(?:[^{}]|\{[^{}]*\})*\}$")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?")
_PLAIN = re.compile(r"[\w.]*", re.ASCII)
_ESCAPES = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"} | {
    c: f"\\{c}" for c in "&%$#_{}"
}
_ACCENTED = re.compile(r"(.+?)_?([0-9]*)_(hat|bar|tilde|dot|ddot|vec|check)_?([0-9]*)")


class LatexNames:
    r"""The names of a page: each as a textbook prints it, unless another one is printed so already.

    The index of an element is a subscript; beside a variable `x1`, the elements of a vector `x` keep their brackets.

    >>> from gradcli.graph.names import element_name, indexed_name
    >>> names = LatexNames(["x1", "x_1", "y_hat", "W1", "M"])
    >>> names("x1"), names("x_1"), names("y_hat")
    ('x_{1}', '\\mathtt{x\\_1}', '\\hat{y}')
    >>> names(element_name("M", (0, 2))), names(element_name("W1", (0, 2))), names(indexed_name("M", ":,0"))
    ('M_{0,2}', '(W_{1})_{0,2}', 'M_{{:},0}')
    >>> LatexNames()("x_1"), LatexNames()("t̄2"), LatexNames()("h̄idden"), LatexNames(["x", "x1"])(element_name("x", [1]))
    ('x_{1}', '\\bar{t}_{2}', '\\overline{\\mathit{hidden}}', 'x[1]')
    """

    def __init__(self, taken: Iterable[str] = (), single: tuple[str, str] | None = None) -> None:
        """`taken` are the names that the user gave, with or without elements.

        `single` is the output and the input of a system that has one of each, both scalar.
        """
        self.single = single
        self._written: dict[str, str] = {}
        self._used: set[str] = set()
        self._marked: set[str] = set()
        self._taken = bases = {array_name(n) for n in taken}
        marked = {name for name in bases if name[1:2] in _MARKS and _unmarked(name)[0] in bases}
        for name in sorted(bases - marked, key=lambda n: (len(n), n)):
            self._written[name] = written = self._distinct(name)
            self._used.add(written)
            self._marked |= {_marked(written, mark) for mark in _MARKS.values()}
        # The elements of these would be printed like a variable: x[1] like x1.
        self._numbered = {stem for stem, digits, _ in (w.partition("_{") for w in self._used | self._marked) if digits}

    def __call__(self, name: str) -> str:
        """Return a name as LaTeX: of a variable, of an element `x[0]`, of an adjoint of one, or of a call `F(x̄)`."""
        if isinstance(name, AdjointName) and not name.barred:
            return self.derivative(name.loss, name.by)
        if isinstance(name, AdjointName) and isinstance(name.by, ElementName):
            return self(bar(name.by))
        if (call := _CALL.fullmatch(name)) is not None:
            arguments = ", ".join(map(self, call[2].split(", ")))
            return rf"{_literal(call[1])}({arguments}){call[3]}"
        if isinstance(name, ElementName):
            return self.indexed(self(name.array), name.key.replace(":", "{:}"))
        return self._base(name)

    def indexed(self, written: str, index: str) -> str:
        """Return an element of a quantity: x_{0}, or (W_{1})_{0} of one that has a subscript itself."""
        if written in self._numbered and index.isdigit():
            return f"{written}[{index}]"
        stem = f"({written})" if _SUBSCRIPT.search(written) else written
        return f"{stem}_{{{index}}}"

    def derivative(
        self, of: str | tuple[str, ...], by: str | tuple[str, ...], order: int = 1, local: bool = False
    ) -> str:
        r"""Return a derivative; a `local` one is partial, also where the system has one input.

        >>> LatexNames().derivative("y", "x"), LatexNames(single=("y", "x")).derivative("y", "x", 2)
        ('\\frac{\\partial y}{\\partial x}', '\\frac{d^{2}y}{dx^{2}}')
        """
        whole = not local and self.single is not None and by == self.single[1] and of in (self.single[0], "")
        power = "" if order == 1 else f"^{{{order}}}"
        above, below = (rf"d{power}", "d") if whole else (rf"\partial{power} ", r"\partial ")
        return rf"\frac{{{above}{self._side(of)}}}{{{below}{self._side(by)}{power}}}"

    def _side(self, names: str | tuple[str, ...]) -> str:
        """Return a name, or several in brackets; nothing for none."""
        if isinstance(names, tuple):
            return f"({', '.join(_DOTS if name == '…' else self(name) for name in names)})"
        return self(names) if names else ""

    def _base(self, name: str) -> str:
        if name in self._written:
            return self._written[name]
        inner, mark = _unmarked(name)
        if not mark:
            return self._distinct(name)
        written = _marked(self._base(inner), mark)
        return written if written not in self._used else _marked(_literal(inner), mark)

    def _distinct(self, name: str) -> str:
        written = textbook(name)
        if written in self._used or written in self._marked:
            return _literal(name)
        stem, digits, _ = written.partition("_{")
        stems = {stem, *(_marked(stem, mark) for mark in _MARKS.values())}  # its adjoint has the subscript, too
        element = digits and name not in self._taken and stems & (self._used | self._marked)  # t1 of ours, like t[1]
        return _literal(name) if element else written

    def symbol(self, letter: str, spelled: str) -> str:
        """Return a function's letter, or its name where a variable is printed so."""
        return rf"\operatorname{{{spelled}}}" if letter in self._used else letter


def textbook(name: str) -> str:
    """Return a variable's name as a textbook prints it: digits as a subscript, Greek names as letters, accents.

    >>> textbook("x1_hat"), textbook("varphi"), textbook("under_score"), textbook("model.0.weight")
    ('\\\\hat{x}_{1}', '\\\\varphi', '\\\\mathit{under\\\\_score}', '\\\\mathtt{model.0.weight}')
    """
    if (match := _ACCENTED.fullmatch(name)) and (letter := _one_letter(match[1])) and not (match[2] and match[4]):
        return _subscripted(rf"\{match[3]}{{{letter}}}", match[2] or match[4])
    match = _STEM.fullmatch(name)
    if not match and "." in name and name[0].isalpha():
        return _literal(name)  # what a module has: model.0.weight
    if not match or not name.isprintable():
        return name if _NUMBER.fullmatch(name) else _literal(name)  # a number is kept as it was typed
    stem, digits = match.groups()
    if name not in _CONSTANTS and (letter := _one_letter(stem)):
        return _subscripted(letter, digits)
    if not stem.strip("_"):  # underscores and digits alone
        stem, digits = name, ""
    return _subscripted(rf"\mathit{{{''.join(map(_letter, _letters(stem)))}}}", digits)


def _one_letter(stem: str) -> str:
    """Return a letter with its accents, or the letter that is spelled out; nothing for a word."""
    if stem.rstrip("_") in _SPELLED:
        return rf"\{_SPELLED[stem.rstrip('_')]}"
    letters = _letters(stem)
    return _letter(letters[0]).rstrip() if len(letters) == 1 and stem != "_" else ""


def _subscripted(letter: str, digits: str) -> str:
    return f"{letter}_{{{digits}}}" if digits else letter


def _unmarked(name: str) -> tuple[str, str]:
    """Return the variable whose adjoint or tangent a name is, and which of the two; "" for any other name."""
    if name[1:2] in _MARKS:
        return name[0] + name[2:], _MARKS[name[1]]
    first = unicodedata.normalize("NFD", name[:1])
    if first[1:] and first[-1] in _MARKS:
        return unicodedata.normalize("NFC", first[:-1]) + name[1:], _MARKS[first[-1]]
    return "", ""


def _marked(written: str, mark: str) -> str:
    stem, subscript, digits = written.partition("_{")
    wide = mark == "bar" and stem.startswith(WORDS)
    return rf"\{'overline' if wide else mark}{{{stem}}}{subscript}{digits}"


def _literal(name: str) -> str:
    """Return a name letter by letter; those that are not ASCII by their numbers."""
    letters = "".join(c if c.isascii() else f"#{ord(c):x}" for c in visible(name))
    kind = "mathtt" if _PLAIN.fullmatch(name) else "texttt"  # a text has all signs, and its blanks
    return rf"\{kind}{{{literal(letters).replace(' ', chr(92) + ' ')}}}"


def literal(text: str) -> str:
    r"""Return a text as LaTeX that shows it, sign by sign.

    >>> literal("\\input{x} 5%")
    '\\textbackslash{}input\\{x\\} 5\\%'
    """
    return "".join(_ESCAPES.get(c, c) for c in text)


def _letters(name: str) -> list[str]:
    """Return the letters of a name, each with the accents that follow it."""
    letters: list[str] = []
    for c in name:
        if letters and unicodedata.combining(c):
            letters[-1] += c
        else:
            letters.append(c)
    return letters


def _letter(letter: str) -> str:
    """Return a letter with its accents as LaTeX for math mode; what is neither Latin nor Greek is text in it."""
    base, *accents = list(unicodedata.normalize("NFD", letter))
    if not (base.isascii() or base in GREEK) or any(a not in ACCENTS for a in accents):
        return rf"\text{{{letter}}}"
    written = rf"\{GREEK[base]} " if base in GREEK else base.replace("_", r"\_")
    for accent in accents:
        written = rf"\{ACCENTS[accent]}{{{written.rstrip()}}}"
    return written


def latex_number(text: str) -> str:
    """Return a number's text as LaTeX: 1e-05 as a power of ten.

    >>> latex_number("2.5e-05")
    '2.5 \\\\times 10^{-5}'
    """
    mantissa, exponent, power = text.lower().partition("e")
    return rf"{mantissa} \times 10^{{{int(power)}}}" if exponent and power.lstrip("+-").isdigit() else text
