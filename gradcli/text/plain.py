"""ASCII replacements for characters that a console cannot encode: `d` for ∂, `lambda` for λ, `x_bar` for x̄."""

from __future__ import annotations

import codecs
import io
import sys
import unicodedata
from functools import lru_cache

_ERRORS = "gradcli.plain"  # the error handler of a stream
_ASCII = "gradcli_ascii"  # ASCII under a name that is not taken for a mistake: click prints UTF-8 where it reads ascii

_SIGNS = {
    **dict.fromkeys("·⋅∙∗⊙•●", "*"), **dict.fromkeys("−–—‒―", "-"), **dict.fromkeys("∕⁄÷", "/"),
    **dict.fromkeys("“”„«»", '"'), **dict.fromkeys("‘’‚", "'"), **dict.fromkeys("∑Σ", "sum"),
    **dict.fromkeys("→↦⇒", "->"), **dict.fromkeys("←⇐", "<-"), **dict.fromkeys("⌉⌋", ")"), **dict.fromkeys("█■◆", "#"),
    "∂": "d", "×": "x", "…": "...", "√": "sqrt", "∛": "cbrt", "∏": "prod", "∞": "inf", "∇": "grad", "≤": "<=",
    "≥": ">=", "≠": "!=", "≈": "~=", "‖": "||", "⌈": "ceil(", "⌊": "floor(", "∧": "and", "∨": "or", "¬": "not ",
    "±": "+-", "∘": "o", "○": "o", "↻": "@", "°": "deg",
    "░": ".", "▒": ":", "▓": "%", "ß": "ss", "\N{REPLACEMENT CHARACTER}": "_",
}  # fmt: skip
_ACCENTS = {"\u0304": "_bar", "\u0305": "_bar", "\u0307": "_dot", "\u0302": "_hat", "\u0303": "_tilde"}


@lru_cache(4096)
def spelled(letter: str) -> str:
    """Return an ASCII replacement of a character, or its name; accents are left out.

    >>> [spelled(letter) for letter in ("∂", "λ", "ȳ", "é", "ᵀ", "²", "│", "√", "Φ", "雪")]
    ['d', 'lambda', 'y_bar', 'e', '^T', '^2', '|', 'sqrt', 'Phi', 'U+96EA']
    """
    if letter.isascii():
        return letter
    known = _SIGNS.get(letter) or _ACCENTS.get(letter)
    if known:
        return known
    kind, *parts = unicodedata.decomposition(letter).split() or [""]
    if kind:
        codes = parts if kind.startswith("<") else [kind, *parts]
        return {"<super>": "^", "<sub>": "_"}.get(kind, "") + "".join(spelled(chr(int(code, 16))) for code in codes)
    category = unicodedata.category(letter)
    if category in ("Mn", "Me", "Mc", "Cf"):
        return ""
    return " " if category == "Zs" else _named(letter)


def _named(letter: str) -> str:
    """Return a character by its name in Unicode."""
    name = unicodedata.name(letter, "")
    if name.startswith("BOX DRAWINGS"):
        return {"HORIZONTAL": "-", "VERTICAL": "|"}.get(name.split(" ", 3)[-1], "+")
    _, is_letter, rest = name.partition(" LETTER ")
    if is_letter:
        words = rest.removeprefix("FINAL ").replace("LAMDA", "LAMBDA").replace(" ", "_").lower()
        return words.capitalize() if "CAPITAL" in name else words
    if not name or any(character.isdigit() for character in name):
        return f"U+{ord(letter):04X}"
    return name.lower()


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of unencodable characters, and the index at which encoding continues."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(spelled, error.object[error.start : error.end])), error.end


def _ascii(name: str) -> codecs.CodecInfo | None:
    if name != _ASCII:
        return None
    codec = codecs.lookup("ascii")
    return codecs.CodecInfo(
        codec.encode, codec.decode, codec.streamreader, codec.streamwriter,
        codec.incrementalencoder, codec.incrementaldecoder, _ASCII,
    )  # fmt: skip


def print_plainly(stream: object) -> None:
    """Make a stream that is not UTF-8 replace the characters that it cannot encode."""
    if not isinstance(stream, io.TextIOWrapper):
        return
    name = codecs.lookup(stream.encoding).name
    if name.startswith("utf"):
        return
    codecs.register_error(_ERRORS, _replaced)
    if name == "ascii":
        codecs.register(_ascii)
    stream.reconfigure(encoding=_ASCII if name == "ascii" else None, errors=_ERRORS)


def print_utf8() -> None:
    """Make standard output UTF-8, for data and programs that other programs read: they are the same as in a file."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # what was read is written as it was


def printed(letter: str) -> str:
    """Return the characters that standard output shows for a character."""
    if getattr(sys.stdout, "errors", None) != _ERRORS:
        return letter
    return letter.encode(sys.stdout.encoding, _ERRORS).decode(sys.stdout.encoding)
