"""Characters: which may stand in a text, which names they make, and what to type in place of those that may not."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator

from gradcli.errors import InputError, Source, Span
from gradcli.graph.names import MAX_NAME, normal

_FOREIGN = re.compile(r"[^\x20-\x7e\n]")
_WORD = re.compile(r"[^\x00-/:-@\[-^`{-\x7f]+")
_BARS = "\u0304\u0305"
_FIRST = 0x80  # character that is not ASCII

# Letters of other scripts that nobody can tell from the ASCII letters below them.
_TWINS = str.maketrans(
    # Cyrillic, Greek, Armenian, and two of Latin's own
    "асеһіјӏорԛѕѵԝхуԁАВСЕНІЈКМОРЅТѴԜХУҮԚӀԌ" + "οϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧͿ" + "օոսհցզՕՍ" + "ɑɡ",
    "acehijlopqsvwxydABCEHIJKMOPSTVWXYYQIG" + "ojABEZHIKMNOPTYXJ" + "onuhgqOU" + "ag",
)
_UNSEEN = [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)]
_LOOKS: dict[int, int | str] = {**_TWINS, **dict.fromkeys((*_UNSEEN, 0x3164, *range(0xE0100, 0xE01F0)), "")}

_SIGNS = {
    **dict.fromkeys("×⋅∗·\u0387∙•⊙∘", "*"),
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("‘’‚", "'"),
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "∧": "&",
    "∨": "|",
    "¬": "~",
    "∞": "inf",
    "ᵀ": ".T",
}
_FUNCTIONS = {"√": "sqrt", "∛": "cbrt", "‖": "norm", "∑": "sum", "∏": "prod", "⌊": "floor", "⌈": "ceil"}
_SUPERSCRIPT = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ]+")
_BEFORE = re.compile(r"(?:[^\W\d]\w*(?:\[[\w, ]*\])?|[\d.]+)$")
_SHOWN = 40  # characters of an operand that is shown in advice
_AFTER = re.compile(r"\s*(\w+|\([^()]{,40}\))")


def check_characters(source: Source, text: str, offset: int) -> None:
    """Refuse what is no letter, digit, mark or sign of the language, and letters that look like others.

    A Cyrillic х would be another variable than x, and look the same.

    >>> check_characters(Source("λ*x"), "λ*x", 0)
    >>> check_characters(Source("2·х"), "2*х", 0)
    Traceback (most recent call last):
    gradcli.errors.InputError: unexpected character U+0445 (CYRILLIC SMALL LETTER HA), which looks like `x`
      2·х
        ^
      type the ASCII letter `x`
    """
    for start, end in _words(text):
        place = next((i for i in range(start, end) if not _may_stand(text[i])), None)
        if place is not None:
            width, hint = _instead(text, place)
            raise _unexpected(text[place], Span(source, offset + place, offset + place + width), hint)
        _check_name(source, text[start:end], offset + start)


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each control character, and of each word that is not ASCII, with the digits before it."""
    place = 0
    while found := _FOREIGN.search(text, place):
        start = found.start()
        if ord(text[start]) < _FIRST:
            place = start + 1
        else:
            while start > place and (text[start - 1].isalnum() or text[start - 1] == "_"):
                start -= 1
            word = _WORD.match(text, start)
            assert word is not None
            place = word.end()
        yield start, place


def _may_stand(character: str) -> bool:
    """Tell whether a character is one of names."""
    if character in _SIGNS or unicodedata.decomposition(character).startswith("<super>"):
        return False  # Python takes xⁿ for xn
    return f"a{character}".isidentifier()


def _check_name(source: Source, word: str, start: int) -> None:
    """Refuse a word of such characters that is no name, or looks like another one."""
    name = word.lstrip("0123456789")
    start += len(word) - len(name)
    if not name.isidentifier():
        raise _unexpected(name[0], Span(source, start, start + 1), _instead(name, 0)[1])
    span = Span(source, start, start + len(name))
    if len(name) > MAX_NAME:
        raise InputError(
            f"a name of {len(name):,} characters is too long", span, f"at most {MAX_NAME:,} may not be ASCII"
        )
    plain = normal(name)
    if keyword.iskeyword(plain):
        raise InputError(f"`{plain}` is a word of Python's", span, f"call it `{plain}_`")
    if any(bar in plain for bar in _BARS):
        hint = f"call it `{re.sub(f'[{_BARS}]', '', plain)}_bar`"
        raise InputError("a bar stands for an adjoint in gradcli's tables", span, hint)
    if looks(plain).isascii() and not plain.isascii():
        place = next(i for i, c in enumerate(name) if not normal(c).isascii() and looks(normal(c)).isascii())
        like = looks(normal(name[place]))
        hint = f"type the ASCII letter `{like}`" if like else "remove it"
        told = f", which looks like `{like}`" if like else ", which is not seen"
        raise _unexpected(name[place], Span(source, start + place, start + place + 1), hint, told)


def looks(name: str) -> str:
    """Return a name with ASCII letters in place of those that look like them: names that look the same give the same.

    >>> looks("λ1"), looks("вес")
    ('λ1', 'вec')
    """
    return name if name.isascii() else unicodedata.normalize("NFD", name).translate(_LOOKS)


def _unexpected(character: str, span: Span, hint: str, told: str = "") -> InputError:
    name = unicodedata.name(character, "a control character")
    return InputError(f"unexpected character U+{ord(character):04X} ({name}){told}", span, hint)


def _instead(text: str, place: int) -> tuple[int, str]:
    """Return how many characters are meant, and what to type in their place."""
    character = text[place]
    if power := _SUPERSCRIPT.match(text, place):
        written = "**" + unicodedata.normalize("NFKC", power.group()).replace("−", "-")
        return len(power.group()), _typed(text[:place], written, text[power.end() :])
    if character in _FUNCTIONS:
        inside = _AFTER.match(text, place + 1)
        what = inside.group(1).strip("()") if inside else "x"
        return 1, f"write `{_FUNCTIONS[character]}({what})`"
    if sign := _SIGNS.get(character):
        return 1, _typed(text[:place], sign) if sign == ".T" else f"type `{sign}`"
    plain = unicodedata.normalize("NFKC", character).replace("⁄", "/")
    if plain != character and plain.isascii() and plain.isprintable():
        return 1, f"type `({plain})`" if "/" in plain else _typed(text[:place] * plain.isalnum(), plain)
    if (digit := unicodedata.decimal(character, None)) is not None:
        return 1, f"type `{digit}`"
    if not character.isprintable():
        return 1, "remove it"
    return 1, "names are letters, digits and `_`; signs are plain ASCII"


def _typed(before: str, written: str, after: str = "") -> str:
    """Return the advice to type something behind an operand, which is shown with it: sin²(x) is sin(x)**2."""
    operand = _BEFORE.search(before[-_SHOWN:])
    called = _AFTER.match(after) if after.startswith("(") else None
    shown = f": `{operand.group()}{called.group() if called else ''}{written}`" if operand else ""
    return f"type `{written}`{shown}"
