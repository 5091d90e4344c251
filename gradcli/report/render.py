"""The formats of pages and of data: their names are those of the files in `pages` and `data`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.report import data, pages

if TYPE_CHECKING:
    from gradcli.explain.protocol import Answer
    from gradcli.explain.sections import Page

DIGITS = 6  # significant ones on a page


def _formats(package: Any, first: tuple[str, ...]) -> tuple[str, ...]:
    """Return the formats that have a file in a package, `first` ones first."""
    names = {name.removesuffix(".py") for folder in package.__path__ for name in os.listdir(folder)}
    return (*first, *sorted(name for name in names - {*first} if name.isalpha()))


PAGES = _formats(pages, ("table", "latex", "markdown"))
DATA = _formats(data, ("json", "csv"))
FORMATS = (PAGES[0], *DATA, *PAGES[1:])


class Look(NamedTuple):
    """The format of pages, the number of significant digits (None: all), and whether they are a document."""

    style: str = PAGES[0]
    digits: int | None = DIGITS
    standalone: bool = False


def _page_format(style: str) -> Any:
    return import_module(f"gradcli.report.pages.{style}")


def has_documents(style: str) -> bool:
    """Return whether a page format can be a complete document."""
    return hasattr(_page_format(style), "document")


def is_printed(style: str) -> bool:
    """Return whether a page format is for a terminal, which shows notes beside the page: a file holds them."""
    return getattr(_page_format(style), "PRINTED", False)


def render_pages(pages: Iterable[Page], look: Look) -> str:
    """Return pages one after the other."""
    page_format = _page_format(look.style)
    text = "\n".join(page_format.render(page, look.digits) for page in pages)
    return str(page_format.document(text)) if look.standalone else text


def data_lines(result: Answer, style: str) -> Iterator[str]:
    """Return the lines of a result in a format of data."""
    lines: Iterator[str] = import_module(f"gradcli.report.data.{style}").lines(result)
    return lines
