"""Results as GitHub's Markdown: tables for the system and the steps, `$$` mathematics for J and vᵀJ."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.explain.results import Array, BackwardResult, JacobianResult, Named, Shown
from gradcli.explain.steps import forward_steps, reverse_steps
from gradcli.report import latex
from gradcli.report.words import (
    accumulation,
    arithmetic,
    element_text,
    forward_table,
    grad_name,
    loss,
    point_text,
    pytorch,
    reverse_table,
)


def jacobian(result: JacobianResult) -> str:
    """Return the system and its Jacobian as Markdown."""
    parts: list[str] = []
    for point in result.points or (None,):
        parts += _system(result, point.at if point else None, point.value if point else {})
        parts += _jacobian(result, point.jacobian if point else None)
    return "\n\n".join(parts) + "\n"


def backward(result: BackwardResult) -> str:
    """Return the system, its Jacobian, vᵀJ and the gradients as Markdown."""
    parts: list[str] = []
    for point in result.points:
        parts += _system(result, point.at if result.numeric else None, {**point.intermediates, **point.value})
        if result.symbolic is not None:
            parts += _jacobian(result, point.jacobian)
        parts += ["### Gradients", _math(latex.gradient_lines(result, point))]
        if result.symbolic is not None and len(point.calls) == 1:
            parts.append("\n".join(f"- {_code(text)}" for text in arithmetic(result, point)))
        if len(point.calls) > 1:
            parts.append(_table(*accumulation(result, point)))
        parts.append(f"This is the gradient of {_code(' '.join(loss(result.graph.outputs, point.calls)))}; in PyTorch:")
        parts.append("```python\n" + "\n".join(pytorch(result.graph.outputs, point.calls)) + "\n```")
        if point.trace is not None:
            parts += ["### Forward", _table(*forward_table(result, forward_steps(point.trace)))]
            parts += [
                "### Reverse",
                _table(
                    *reverse_table(
                        result, (s for k in range(len(point.trace.calls)) for s in reverse_steps(point.trace, k))
                    )
                ),
            ]
        parts.append(
            _table(
                ("variable", "gradient"),
                [
                    [grad_name(name), element_text(grad, result)]
                    for name, grad in {**point.grad, **point.retained}.items()
                ],
            )
        )
    return "\n\n".join(parts) + "\n"


def _system(result: Shown, at: Named | None, values: Named) -> list[str]:
    title = "### System" if at is None else f"### System at {_code(point_text(at))}"
    header = ["name", "expression", "value"] if values else ["name", "expression"]
    rows = [
        [name, text, *([element_text(values[name], result) if name in values else ""] if values else [])]
        for name, text in result.statements
    ]
    return [title, _table(header, rows)]


def _jacobian(result: Shown, value: Array | None) -> list[str]:
    return ["### Jacobian", _math(latex.jacobian_lines(result, value))]


def _math(lines: Sequence[tuple[str, str]]) -> str:
    """Return equations as one display; GitHub reads a `$$` that stands on a line of its own."""
    return f"$$\n\\begin{{aligned}}\n{latex.equations(lines)}\n\\end{{aligned}}\n$$"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of GitHub's; a bar in a cell would end it."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(_code(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""
