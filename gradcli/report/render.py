"""The one place that knows the formats of pages: pages and the name of a format in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradcli.explain.sections import Page

DIGITS = 6  # significant ones on a page

_PAGES = {"table": "gradcli.report.table", "latex": "gradcli.report.latex", "markdown": "gradcli.report.markdown"}


class Look(NamedTuple):
    """How pages look: in which format, to how many significant digits (None: all), and as a document of their own."""

    style: str = "table"
    digits: int | None = DIGITS
    standalone: bool = False


def render_pages(pages: Iterable[Page], look: Look) -> str:
    """Return pages one after the other; each page format has a function `render`."""
    module = import_module(_PAGES[look.style])
    text = "\n".join(module.render(page, look.digits) for page in pages)
    return str(module.document(text)) if look.standalone else text
