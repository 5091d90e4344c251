"""The formats of pages and of data: their names are those of the files in `documents` and `data`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.report import data, documents

if TYPE_CHECKING:
    from gradcli.pages.picture.head import Head
    from gradcli.pages.results import Answer
    from gradcli.pages.sections import Page

DIGITS = 6  # significant ones on a page


def _formats(package: Any, first: tuple[str, ...]) -> tuple[str, ...]:
    """Return the formats that have a file in a package, `first` ones first."""
    names = {name.removesuffix(".py") for folder in package.__path__ for name in os.listdir(folder)}
    return (*first, *sorted(name for name in names - {*first} if name.isalpha()))


PAGES = _formats(documents, ("table", "latex", "markdown"))
DATA = _formats(data, ("json", "csv"))
FORMATS = (PAGES[0], *DATA, *PAGES[1:])
PAGE_ENDINGS = {".html": "html", ".md": "markdown", ".tex": "latex", ".txt": PAGES[0]}  # of files of pages


class Look(NamedTuple):
    """The format of pages, the number of significant digits (None: all), and whether they are a document."""

    style: str = PAGES[0]
    digits: int | None = DIGITS
    standalone: bool = False


def _page_format(style: str) -> Any:
    return import_module(f"gradcli.report.documents.{style}")


def has_documents(style: str) -> bool:
    """Return whether a page format can be a complete document."""
    return hasattr(_page_format(style), "document")


def is_printed(style: str) -> bool:
    """Return whether a page format is for a terminal, which shows notes beside the page: a file holds them."""
    return getattr(_page_format(style), "PRINTED", False)


def render_pages(pages: Iterable[Page], look: Look, head: Head | None = None) -> str:
    """Return pages one after the other, as a document with a `head` where its format has one."""
    page_format = _page_format(look.style)
    text = "\n".join(page_format.render(page, look.digits) for page in pages)
    if not look.standalone:
        return text
    if head is None or not hasattr(page_format, "PICTURE"):
        return str(page_format.document(text))
    return str(page_format.document(page_format.headed(head.title, _drawn(head, page_format.PICTURE, look)) + text))


def _drawn(head: Head, language: str, look: Look) -> str:
    """Return the picture of a head; nothing where it is larger than its language can say."""
    from gradcli.errors import InputError
    from gradcli.report.pictures.render import render_picture

    if head.picture is None:
        return ""
    try:
        return render_picture(head.picture, language, look.digits)
    except InputError:
        return ""


def data_lines(result: Answer, style: str) -> Iterator[str]:
    """Return the lines of a result in a format of data."""
    lines: Iterator[str] = import_module(f"gradcli.report.data.{style}").lines(result)
    return lines
