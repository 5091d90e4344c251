"""The one place that knows the renderers: a result and the name of a format in, text or lines out."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from gradcli.explain.results import BackwardResult, JacobianResult

# Each has a function `jacobian` and a function `backward`; only the one that is wanted is imported.
_RENDERERS = {
    "table": "gradcli.report.table",
    "json": "gradcli.report.json_lines",
    "csv": "gradcli.report.csv_rows",
    "latex": "gradcli.report.latex",
    "markdown": "gradcli.report.markdown",
}


def render(result: JacobianResult | BackwardResult, style: str) -> str | Iterable[str]:
    """Return a result in a format: `table`, `json`, `csv`, `latex` or `markdown`."""
    module = import_module(_RENDERERS[style])
    text: str | Iterable[str] = (
        module.backward(result) if isinstance(result, BackwardResult) else module.jacobian(result)
    )
    return text
