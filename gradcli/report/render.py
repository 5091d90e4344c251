"""The one place that knows the renderers: a result and the name of a format in, text or lines out."""

from __future__ import annotations

from collections.abc import Iterable

from gradcli.report.results import BackwardResult, JacobianResult


def jacobian(result: JacobianResult, style: str) -> str | Iterable[str]:
    """Return the result of `gradcli jacobian` in a format: `table`, `json`, `csv`, `latex` or `markdown`."""
    if style == "json":
        from gradcli.report.machine import jacobian_json

        return jacobian_json(result)
    if style == "csv":
        from gradcli.report.machine import jacobian_csv

        return jacobian_csv(result)
    if style == "latex":
        from gradcli.report.latex import jacobian_latex

        return jacobian_latex(result)
    if style == "markdown":
        from gradcli.report.markdown import jacobian_markdown

        return jacobian_markdown(result)
    from gradcli.report.table import jacobian_table

    return jacobian_table(result)


def backward(result: BackwardResult, style: str) -> str | Iterable[str]:
    """Return the result of `gradcli backward` in a format: `table`, `json`, `csv`, `latex` or `markdown`."""
    if style == "json":
        from gradcli.report.machine import backward_json

        return backward_json(result)
    if style == "csv":
        from gradcli.report.machine import backward_csv

        return backward_csv(result)
    if style == "latex":
        from gradcli.report.latex import backward_latex

        return backward_latex(result)
    if style == "markdown":
        from gradcli.report.markdown import backward_markdown

        return backward_markdown(result)
    from gradcli.report.table import backward_table

    return backward_table(result)
