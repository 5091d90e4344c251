"""Letters and signs beyond ASCII as LaTeX, in commands that pdflatex's own fonts have."""

from __future__ import annotations

import unicodedata

from gradcli.notation.latex_names import GREEK

# Signs, as they are written in math mode.
SIGNS = {
    "∂": r"\partial", "·": r"\cdot", "×": r"\times", "ᵀ": r"^{\top}", "Σ": r"\Sigma", "→": r"\to", "←": r"\gets",
    "√": r"\surd", "÷": r"\div",
}  # fmt: skip
MATHEMATICAL = SIGNS | {
    "∇": r"\nabla", "∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∞": r"\infty", "≈": r"\approx", "≠": r"\neq",
    "≤": r"\leq", "≥": r"\geq", "±": r"\pm", "−": "-", "∈": r"\in", "∘": r"\circ", "⊙": r"\odot", "‖": r"\|",
    "⇒": r"\Rightarrow", "↑": r"\uparrow", "↓": r"\downarrow", "↔": r"\leftrightarrow", "°": r"^{\circ}",
    "«": r"\ll", "»": r"\gg", "µ": r"\mu", "•": r"\bullet", "∗": "*", "⋅": r"\cdot", "¬": r"\neg", "∀": r"\forall",
    "∃": r"\exists", "✓": r"\surd", "✗": r"\times", "ϵ": r"\epsilon", "ϕ": r"\phi", "ς": r"\varsigma",
}  # fmt: skip
TEXT = {
    "…": r"\ldots{}", "–": "--", "—": "---", "“": "``", "”": "''", "‘": "`", "’": "'", "ß": r"\ss{}", "æ": r"\ae{}",
    "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}",
    "ı": r"\i{}", "§": r"\S{}", "¶": r"\P{}", "©": r"\copyright{}", "£": r"\pounds{}", "\u00a0": "~", "─": "-",
    "│": "|", "┼": "+",
} | {chr(0x2580 + k): rf"\rule{{0.5em}}{{0.{k}em}}" for k in range(1, 9)}  # fmt: skip
ACCENTS = {
    "\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0304": r"\=", "\u0306": r"\u",
    "\u0307": r"\.", "\u0308": r"\"", "\u030a": r"\r", "\u030b": r"\H", "\u030c": r"\v", "\u0327": r"\c",
}  # fmt: skip
_SCRIPTS = {"<super>": "^", "<sub>": "_"}
# Greek letters that look like Latin ones, and have no command of their own.
_LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))


def letter(c: str) -> str:
    r"""Return a letter beyond ASCII as LaTeX; one that the fonts have not as its number.

    >>> letter("←"), letter("é"), letter("λ"), letter("▃"), letter("中")
    ('\\ensuremath{\\gets}', "\\'{e}", '\\ensuremath{\\lambda}', '\\rule{0.5em}{0.3em}', '\\texttt{U+4E2D}')
    """
    if c in TEXT:
        return TEXT[c]
    if c in ACCENTS:
        return ACCENTS[c] + "{}"
    greek = rf"\{GREEK[c]}" if c in GREEK else rf"\mathrm{{{_LATIN[c]}}}" if c in _LATIN else ""
    math = MATHEMATICAL.get(c) or greek
    first, *rest = [*unicodedata.decomposition(c).split(), ""]
    base = chr(int(rest[0], 16)) if first in _SCRIPTS else ""
    if not math and base.isascii() and base.isalnum():
        math = f"{_SCRIPTS[first]}{{{base}}}"
    if math:
        return rf"\ensuremath{{{math}}}"
    base, accent = (*map(_of_code, [first, *rest]), "")[:2]
    if base.isascii() and base.isalpha() and accent in ACCENTS:
        return f"{ACCENTS[accent]}{{{base}}}"
    return rf"\texttt{{U+{ord(c):04X}}}"


def _of_code(code: str) -> str:
    return chr(int(code, 16)) if code and not code.startswith("<") else ""
