r"""The LaTeX that our pages are written in, as MathML: what a browser sets by itself.

It reads the commands that `LatexWriter` and `latex_letters` write, and no others: groups, scripts, fractions, roots,
accents, brackets, alignments and matrices, and words in several faces.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape

from gradcli.notation.latex_names import ACCENTS as MARKS
from gradcli.notation.latex_names import GREEK
from gradcli.report.latex_letters import ACCENTS, MATHEMATICAL, TEXT

_TOKEN = re.compile(
    r"\\begin\{[a-z]+\*?\}(?:\{[clr|@{}]+\})?|\\end\{[a-z]+\*?\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL
)
_TEXT = re.compile(r"\\[A-Za-z]+|\\.|[{}$~]|[^\\{}$~]+", re.DOTALL)

# Signs.
_SYMBOLS = {command: sign for sign, command in MATHEMATICAL.items() if command[0] == "\\" and sign not in "Σµϵϕς"} | {
    r"\cdot": "·", r"\times": "×", r"\top": "⊤", r"\le": "≤", r"\ge": "≥", r"\ne": "≠", r"\wedge": "∧", r"\vee": "∨",
    r"\land": "∧", r"\lor": "∨", r"\surd": "√", r"\ll": "≪", r"\gg": "≫", r"\dots": "…", r"\cdots": "⋯", r"\vdots": "⋮",
    r"\ddots": "⋱", r"\ldots": "…", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lceil": "⌈", r"\rceil": "⌉", r"\{": "{",
    r"\}": "}", r"\_": "_", r"\%": "%", r"\$": "$", r"\&": "&", r"\#": "#", r"\lvert": "|", r"\rvert": "|",
    r"\lVert": "‖", r"\rVert": "‖", r"\vert": "|", r"\bmod": "mod", "~": "\u00a0", r"\sim": "∼",
    r"\propto": "∝", r"\equiv": "≡",
}  # fmt: skip
_GREEK = {name: letter for letter, name in GREEK.items()} | {
    "phi": "ϕ", "epsilon": "ϵ", "vartheta": "ϑ", "varpi": "ϖ", "varrho": "ϱ",
}  # fmt: skip
_SPACES = {r"\,": "0.17em", r"\:": "0.22em", r"\;": "0.28em", r"\ ": "0.25em", r"\quad": "1em", r"\qquad": "2em"}
_ACCENTS = {
    r"\bar": "‾", r"\overline": "‾", r"\hat": "^", r"\tilde": "~", r"\dot": "˙", r"\ddot": "¨", r"\vec": "→",
    r"\grave": "`", r"\acute": "´", r"\breve": "˘", r"\check": "ˇ",
}  # fmt: skip
_FACES = {r"\mathrm": "", r"\operatorname": "", r"\mathit": "it", r"\mathtt": "tt", r"\texttt": "tt", r"\mathbf": "bf"}
_TEXT_ACCENTS = {command: accent for accent, command in ACCENTS.items()} | {rf"\{n}": mark for mark, n in MARKS.items()}
_LETTERS = {command.removesuffix("{}"): letter for letter, command in TEXT.items() if command.endswith("{}")} | {
    r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^", r"\textless": "<", r"\textgreater": ">",
    r"\textbar": "|",
}  # fmt: skip
_RIGID = {"−", "=", "+", "·", "×", ",", ";"}  # signs that no browser stretches
_FENCES = {"pmatrix": ("(", ")"), "cases": ("{", ".")}


def mathml(latex: str, display: bool = False) -> str:
    r"""Return LaTeX in math mode as an element of MathML; a `display` stands on lines of its own.

    >>> print(mathml(r"\frac{1}{2} x_{0}^{2}"))
    <math><mfrac><mn>1</mn><mn>2</mn></mfrac><msubsup><mi>x</mi><mn>0</mn><mn>2</mn></msubsup></math>
    """
    block = ' display="block"' if display else ""
    return f"<math{block}>{''.join(_Reader(latex).row())}</math>"


class _Reader:
    """Reads the tokens of a formula; each method returns the MathML of what it has read."""

    def __init__(self, latex: str) -> None:
        self.tokens: list[str] = _TOKEN.findall(latex)
        self.k = 0

    @property
    def next(self) -> str:
        """The next token that is no space, or nothing at the end."""
        while self.k < len(self.tokens) and self.tokens[self.k].isspace():
            self.k += 1
        return self.tokens[self.k] if self.k < len(self.tokens) else ""

    def take(self) -> str:
        """Return the next token, and go on."""
        token = self.next
        self.k += 1
        return token

    def row(self, *ends: str) -> list[str]:
        """Return the elements up to one of the tokens, which is left, or to the end."""
        parts: list[str] = []
        while self.next and not (ends and self.next.startswith(ends)):
            parts.append(self.scripted())
        return parts

    def scripted(self) -> str:
        """Return an atom with its scripts."""
        base = "<mrow></mrow>" if self.next in ("^", "_") else self.atom()
        scripts: dict[str, str] = {}
        while self.next in ("^", "_") and self.next not in scripts:
            kind = self.take()
            scripts[kind] = self.argument()
        match scripts:
            case {"_": below, "^": above}:
                return f"<msubsup>{base}{below}{above}</msubsup>"
            case {"_": below}:
                return f"<msub>{base}{below}</msub>"
            case {"^": above}:
                return f"<msup>{base}{above}</msup>"
        return base

    def argument(self) -> str:
        """Return the argument of a command, as one element."""
        if self.next != "{":
            return self.atom()
        self.take()
        parts = self.row("}")
        self.take()
        return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"

    def raw(self) -> str:
        """Return the text of the group that follows, with its spaces."""
        self.take()
        start, depth = self.k, 1
        while self.k < len(self.tokens) and depth:
            depth += (self.tokens[self.k] == "{") - (self.tokens[self.k] == "}")
            self.k += 1
        return "".join(self.tokens[start : self.k - 1])

    def atom(self) -> str:
        """Return one atom: a letter, a number, a sign, a group, or a command with its arguments."""
        if self.next == "{":
            return self.argument()
        token = self.take()
        if token.startswith(r"\begin"):
            return self.table(token)
        match token:
            case r"\frac":
                return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
            case r"\sqrt":
                return self.root()
            case r"\left":
                return self.brackets()
            case r"\text":
                return words(self.raw())
            case r"\mathrel" | r"\mathbin" | r"\ensuremath":
                return self.argument()
        if token in _ACCENTS:
            return f'<mover accent="true">{self.argument()}<mo stretchy="false">{_ACCENTS[token]}</mo></mover>'
        return _face(_plain(self.raw()), _FACES[token]) if token in _FACES else _sign(token)

    def root(self) -> str:
        """Return a root, whose degree may stand in brackets."""
        if self.next != "[":
            return f"<msqrt>{self.argument()}</msqrt>"
        self.take()
        degree = "".join(self.row("]"))
        self.take()
        return f"<mroot>{self.argument()}<mrow>{degree}</mrow></mroot>"

    def brackets(self) -> str:
        """Return what stands between brackets that are as high as it is."""
        opening = self.take()
        parts = self.row(r"\right")
        self.take()
        return f"<mrow>{_fence(opening)}{''.join(parts)}{_fence(self.take())}</mrow>"

    def table(self, begin: str) -> str:
        """Return an alignment, a matrix or an array; a row below a rule, and a column behind one, have a class."""
        name, columns = re.findall(r"\{([a-z]+)\*?\}(?:\{(.+)\})?", begin)[0]
        barred = [m.start() - k for k, m in enumerate(re.finditer(r"\|", columns))]
        rows: list[str] = []
        cells: list[str] = []
        ruled = ""
        while self.next and not self.next.startswith(r"\end"):
            if self.next == r"\hline":
                ruled = self.take() and ' class="ruled"'
                continue
            bar = ' class="barred"' if len(cells) in barred else ""
            cell = "".join(self.row("&", r"\\", r"\hline", r"\end"))
            cells.append(f"<mtd{bar}>{cell}</mtd>")
            if self.next == "&":
                self.take()
                continue
            if len(cells) > 1 or cell:  # an empty one is a gap
                rows, ruled = [*rows, f"<mtr{ruled}>{''.join(cells)}</mtr>"], ""
            cells = []
            if self.next == r"\\":
                self.take()
                if self.tokens[self.k : self.k + 1] == ["["]:  # a height, as in [4pt]
                    self.k = self.tokens.index("]", self.k) + 1
        self.take()
        table = f'<mtable class="{name}">{"".join(rows)}</mtable>'
        opening, closing = _FENCES.get(name, (".", "."))
        return f"<mrow>{_fence(opening)}{table}{_fence(closing)}</mrow>" if name in _FENCES else table


def _sign(token: str) -> str:
    """Return a letter, a number, or a sign; nothing at the end of a formula."""
    if not token:
        return "<mrow></mrow>"
    if token in _SPACES:
        return f'<mspace width="{_SPACES[token]}"></mspace>'
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if token.isalpha():
        return f"<mi>{escape(token)}</mi>"
    if token in _SYMBOLS or not token.startswith("\\"):
        sign = "−" if token == "-" else _SYMBOLS.get(token, token)
        return f"<mo>{sign}</mo>" if sign in _RIGID else f'<mo stretchy="false">{escape(sign)}</mo>'
    letter = _GREEK.get(token[1:])
    return f"<mi>{letter}</mi>" if letter else _face(token[1:], "")


def _face(text: str, face: str) -> str:
    """Return a name in a face: upright, italic, bold, or typewriter."""
    inner = escape(text)
    match face:
        case "tt":
            return f'<mtext class="tt">{inner}</mtext>'
        case "it":
            return f"<mi>{inner}</mi>" if len(text) == 1 else f'<mi class="it">{inner}</mi>'
        case "bf":
            return f'<mi class="bf">{inner}</mi>'
    return f'<mi mathvariant="normal">{inner}</mi>'


def _fence(sign: str) -> str:
    """Return a bracket: at an end of its row, it is as high as what stands beside it."""
    return "" if sign == "." else f"<mo>{escape(_SYMBOLS.get(sign, sign))}</mo>"


def words(text: str) -> str:
    r"""Return words as elements, with the mathematics between dollars in them.

    >>> print(words(r"at $x = 1$"))
    <mtext>at&#160;</mtext><mrow><mi>x</mi><mo>=</mo><mn>1</mn></mrow>
    """
    parts = re.split(r"(?<!\\)\$", text)
    return "".join(
        f"<mrow>{''.join(_Reader(part).row())}</mrow>" if k % 2 else _words(part) for k, part in enumerate(parts)
    )


def _words(text: str) -> str:
    """Return words, of which those in typewriter type have its face."""
    result, end = "", 0
    for match in re.finditer(r"\\texttt\{((?:[^{}]|\{[^{}]*\})*)\}", text):
        result += _prose(text[end : match.start()]) + _face(_plain(match[1]), "tt")
        end = match.end()
    return result + _prose(text[end:])


def _prose(text: str) -> str:
    inner = re.sub("^ | $", "&#160;", escape(_plain(text)))
    return f"<mtext>{inner}</mtext>" if inner else ""


def _plain(text: str) -> str:
    r"""Return LaTeX's text as it is read.

    >>> _plain(r"x\_0 {\'e}\ldots{} 100 \%"), _plain(r"y\textasciicircum{}2")
    ('x_0 é… 100 %', 'y^2')
    """
    result, accent = "", ""
    for token in _TEXT.findall(re.sub(r"(\\[A-Za-z]+)\s+", r"\1{}", text)):  # TeX skips spaces behind a command
        if token in _TEXT_ACCENTS:
            accent = _TEXT_ACCENTS[token] + accent
            continue
        if token[:1] == "\\":
            word = _LETTERS.get(token) or _SYMBOLS.get(token) or _GREEK.get(token[1:])
            word = word or ("" if token in (r"\ensuremath", r"\allowbreak", r"\text") else token[1:])
        else:
            word = "" if token in ("{", "}", "$") else _SYMBOLS.get(token, token)
        if word:
            result += word[:1] + accent + word[1:]
            accent = ""
    return unicodedata.normalize("NFC", result)
