"""The one module that knows the formats of pictures: a picture and the name of a format in, text out."""

from __future__ import annotations

from importlib import import_module

from gradcli.explain.picture.boxes import Picture
from gradcli.report.pictures.options import PLAIN, Options


def render_picture(picture: Picture, style: str, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture in a format, whose module has a function `render`; numbers with `digits` significant ones."""
    text: str = import_module(f"gradcli.report.pictures.{style}").render(picture, digits, options)
    return text
