"""The one place that knows the renderers: a result and the name of a format in, text or lines out."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from gradcli.explain.results import BackwardResult, JacobianResult

if TYPE_CHECKING:
    from gradcli.report.pages import Data

# Each has a function `jacobian` and a function `backward`; only the one that is wanted is imported.
_RENDERERS = {
    "table": "gradcli.report.table",
    "json": "gradcli.report.json_lines",
    "csv": "gradcli.report.csv_rows",
    "latex": "gradcli.report.latex",
    "markdown": "gradcli.report.markdown",
}


_OF_DATA = {"table": "table", "json": "json_lines", "csv": "csv_lines", "latex": "latex", "markdown": "markdown"}


def render(result: JacobianResult | BackwardResult | Data, style: str) -> str | Iterable[str]:
    """Return a result in a format: `table`, `json`, `csv`, `latex` or `markdown`."""
    text: str | Iterable[str]
    if not isinstance(result, JacobianResult | BackwardResult):
        text = getattr(import_module("gradcli.report.pages"), _OF_DATA[style])(result)
        return text
    module = import_module(_RENDERERS[style])
    text = module.backward(result) if isinstance(result, BackwardResult) else module.jacobian(result)
    return text
