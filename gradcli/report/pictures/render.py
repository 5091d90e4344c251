"""The formats of pictures: a picture and the name of a format in, text out, or the file that CairoSVG makes of SVG."""

from __future__ import annotations

import re
from html import escape, unescape
from importlib import import_module
from typing import Any, NamedTuple

from gradcli.errors import InputError
from gradcli.pages.picture.boxes import Picture
from gradcli.text.wrapping import cells

CONVERTED = ("pdf", "png")  # by way of SVG
_SCALE = 2  # pixels of a PNG to a pixel of the SVG
_HINT = 'pip install "gradcli[picture]"; or use --output y.svg, which needs no package; browsers print it as PDF'

# What CairoSVG does not know: a size that follows the window, a list of fonts, a name of a filter, blanks that begin a
# line, and bars over letters, which are drawn beside the text.
_ROOT_STYLE = re.compile(r'(<svg [^>]*?) style="[^"]*"')
_FONTS = re.compile(r"ui-monospace,[^;}]*")
_OVERLINED = re.compile(r'<tspan text-decoration="overline">(.)</tspan>')
_TEXT = re.compile(r'<text class="gg-(\w+)" x="([\d.-]+)" y="([\d.-]+)"( text-anchor="\w+")?>(.*?)</text>')
_BAR = "\u0304"
_LETTER = {"text": 7.83, "adjoint": 7.83, "local": 6.62}  # the width of a letter of each look
_LOW = frozenset("acegmnopqrsuvwxyz")


class Options(NamedTuple):
    """The options of a picture: drawn from left to right if `horizontal`; as text, in colour if `styled`.

    A text has this `width`; 0 is that of the terminal.
    """

    horizontal: bool = False
    styled: bool = False
    width: int = 0


PLAIN = Options()


def render_picture(picture: Picture, style: str, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture in a format, whose module has a function `render`; numbers with `digits` significant ones."""
    text: str = import_module(f"gradcli.report.pictures.{style}").render(picture, digits, options)
    return text


def drawn_as(style: str) -> str:
    """Return the format of text that a format of pictures is made of."""
    return "svg" if style in CONVERTED else style


def picture_file(text: str, style: str) -> bytes:
    """Return the bytes of a picture's file; `text` is the picture as `drawn_as(style)`: for PDF and PNG, its SVG.

    Errors: `InputError` where CairoSVG is not installed.
    """
    if style not in CONVERTED:
        return text.encode()
    cairosvg = converter()
    convert = cairosvg.svg2pdf if style == "pdf" else cairosvg.svg2png
    result: bytes = convert(bytestring=_for_cairosvg(text).encode(), scale=_SCALE if style == "png" else 1)
    return result


def converter() -> Any:
    """Return CairoSVG.

    Errors: `InputError` where it is not installed, or the library that it calls is not there.
    """
    try:
        import cairosvg
    except ImportError:
        message = "PDF and PNG are written by the package `cairosvg`, which is not installed"
        raise InputError(message, hint=_HINT) from None
    except OSError as error:  # the library cairo
        why = str(error).splitlines()[0]
        raise InputError(f"the package `cairosvg` cannot find its library: {why}", hint=_HINT) from None
    return cairosvg


def _for_cairosvg(svg: str) -> str:
    r"""Return an SVG file in the part of SVG that CairoSVG knows.

    >>> _for_cairosvg('<svg width="9" style="height:auto"><text class="gg-text" x="1.0" y="9.0">  2</text></svg>')
    '<svg width="9"><text class="gg-text" x="1.0" y="9.0">\xa0\xa02</text></svg>'
    """
    svg = _FONTS.sub("monospace", _ROOT_STYLE.sub(r"\1", svg, count=1))
    svg = _OVERLINED.sub(rf"\1{_BAR}", svg.replace("rendering:pixelated", "rendering:optimizeSpeed"))
    return _TEXT.sub(_plain_text, svg)


def _plain_text(match: re.Match[str]) -> str:
    """Return a text with its blanks, and bars where letters have them."""
    look, left, base, anchor, body = match.groups()
    text, size = unescape(body), _LETTER[match[1]]
    plain = text.replace(_BAR, "")
    shown = escape(plain.replace(" ", "\u00a0"), quote=False)
    share = 0.5 if anchor and "middle" in anchor else 1.0 if anchor else 0.0
    start = float(left) - share * cells(plain) * size
    bars = []
    for k, letter in enumerate(text):
        if letter == _BAR and k:
            x = start + (cells(text[:k]) - 1) * size
            y = float(base) - size * (1.05 if text[k - 1] in _LOW else 1.35)
            bars.append(f'<rect class="gg-{look}" x="{x + 0.7:.1f}" y="{y:.1f}" width="{size - 1.4:.1f}" height="1"/>')
    return f'<text class="gg-{look}" x="{start:.1f}" y="{base}">{shown}</text>{"".join(bars)}'
