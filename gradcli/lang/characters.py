"""Characters: the allowed ones, the names that they form, and replacements for the others."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator

from gradcli.errors import Fix, InputError, Source, Span
from gradcli.graph.names import MAX_NAME, normal
from gradcli.text.plain import spelled

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
_FUNCTIONS = {c: spelled(c) for c in "√∛∑∏"} | {"‖": "norm", "⌊": "floor", "⌈": "ceil"}
_PAIRED = "‖⌊⌈"  # which close with another sign
_SUPERSCRIPT = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ]+")
_BEFORE = re.compile(r"(?:[^\W\d]\w*(?:\[[\w, ]*\])?|[\d.]+)$")
_SHOWN = 40  # characters of an operand that is shown in advice
_AFTER = re.compile(r"\s*(\w+|\([^()]{,40}\))")


def check_characters(source: Source, text: str, offset: int) -> None:
    """Check that all characters are letters, digits, marks or signs of the language, and no look-alikes.

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
        index = next((i for i in range(start, end) if not _is_of_names(text[i])), None)
        if index is not None:
            raise _character_error(source, text, index, offset)
        _check_name(source, text[start:end], offset + start)


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each control character, and of each word that is not ASCII, with the digits before it."""
    end = 0
    while result := _FOREIGN.search(text, end):
        start = result.start()
        if ord(text[start]) < _FIRST:
            end = start + 1
        else:
            while start > end and (text[start - 1].isalnum() or text[start - 1] == "_"):
                start -= 1
            word = _WORD.match(text, start)
            assert word is not None
            end = word.end()
        yield start, end


def _is_of_names(character: str) -> bool:
    """Return whether a character is one of names."""
    if character in _SIGNS or unicodedata.decomposition(character).startswith("<super>"):
        return False  # Python takes xⁿ for xn
    if not character.isprintable():
        return False  # from Unicode 15.1 (Python 3.13), a zero-width joiner may be part of a name
    return f"a{character}".isidentifier()


def _check_name(source: Source, word: str, start: int) -> None:
    """Check that a word is a valid name that does not look like another one."""
    name = word.lstrip("0123456789")
    start += len(word) - len(name)
    if not name.isidentifier():
        raise _character_error(source, name, 0, start)
    span = Span(source, start, start + len(name))
    if len(name) > MAX_NAME:
        raise InputError(
            f"a name of {len(name):,} characters is too long", span, f"at most {MAX_NAME:,} may not be ASCII"
        )
    plain = normal(name)
    if keyword.iskeyword(plain):
        raise InputError(f"`{plain}` is a word of Python's", span, f"call it `{plain}_`", fix=Fix(span, f"{plain}_"))
    if any(bar in plain for bar in _BARS):
        hint = f"call it `{re.sub(f'[{_BARS}]', '', plain)}_bar`"
        raise InputError("a bar marks an adjoint in gradcli's tables", span, hint)
    if looks(plain).isascii() and not plain.isascii():
        index = next(i for i, c in enumerate(name) if not normal(c).isascii() and looks(normal(c)).isascii())
        like = looks(normal(name[index]))
        hint = f"type the ASCII letter `{like}`" if like else "remove it"
        detail = f", which looks like `{like}`" if like else ", which is not seen"
        wrong = Span(source, start + index, start + index + 1)
        raise _unexpected_character_error(name[index], wrong, hint, Fix(wrong, like), detail)


def looks(name: str) -> str:
    """Return a name with look-alikes replaced by ASCII letters: names that look the same have the same result.

    >>> looks("λ1"), looks("вес")
    ('λ1', 'вec')
    """
    return name if name.isascii() else unicodedata.normalize("NFD", name).translate(_LOOKS)


def _unexpected_character_error(
    character: str, span: Span, hint: str, fix: Fix | None = None, detail: str = ""
) -> InputError:
    name = unicodedata.name(character, "a control character")
    return InputError(f"unexpected character U+{ord(character):04X} ({name}){detail}", span, hint, fix=fix)


def _character_error(source: Source, text: str, index: int, offset: int) -> InputError:
    """Return the error of a character, with what to type instead; the text begins at `offset` of the source."""
    character = text[index]

    def error(hint: str, start: int, end: int, instead: str | None) -> InputError:
        fix = None if instead is None else Fix(Span(source, offset + start, offset + end), instead)
        return _unexpected_character_error(character, Span(source, offset + index, offset + index + width), hint, fix)

    power = _SUPERSCRIPT.match(text, index)
    width = len(power.group()) if power else 1
    end = index + width
    if power:
        written = "**" + unicodedata.normalize("NFKC", power.group()).replace("−", "-")
        hint, start, end, instead = _typed(text, index, end, written)
        return error(hint, start, end, instead)
    if character in _FUNCTIONS:
        inside = _AFTER.match(text, end)
        call = f"{_FUNCTIONS[character]}({inside.group(1).strip('()') if inside else 'x'})"
        closed = inside is not None and character not in _PAIRED
        return error(f"write `{call}`", index, inside.end() if inside else end, call if closed else None)
    if sign := _SIGNS.get(character):
        hint = _typed(text, index, end, sign)[0] if sign == ".T" else f"type `{sign}`"
        return error(hint, index, end, sign)
    plain = unicodedata.normalize("NFKC", character).replace("⁄", "/")
    if plain != character and plain.isascii() and plain.isprintable():
        if "/" in plain:
            return error(f"type `({plain})`", index, end, f"({plain})")
        return error(_typed(text if plain.isalnum() else "", index, end, plain)[0], index, end, plain)
    if (digit := unicodedata.decimal(character, None)) is not None:
        return error(f"type `{digit}`", index, end, str(digit))
    if not character.isprintable():
        return error("remove it", index, end, "")
    return error("names are letters, digits and `_`; signs are plain ASCII", index, end, None)


def _typed(text: str, start: int, end: int, written: str) -> tuple[str, int, int, str]:
    """Return the advice to type something behind an operand, in place of the characters `start` to `end`.

    The operand is shown with it: sin²(x) is sin(x)**2. The advice comes with the characters that it replaces, and with
    what replaces them.
    """
    operand = _BEFORE.search(text[max(0, start - _SHOWN) : start])
    called = _AFTER.match(text, end) if text.startswith("(", end) else None
    if operand is None:
        return f"type `{written}`", start, end, written
    whole = f"{operand.group()}{called.group() if called else ''}{written}"
    return f"type `{written}`: `{whole}`", start - len(operand.group()), called.end() if called else end, whole
