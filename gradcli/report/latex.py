"""Results as LaTeX: `align*` and `pmatrix` of amsmath, without a preamble, to be pasted into a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.explain.results import (
    Array,
    BackwardPoint,
    BackwardResult,
    ForwardStep,
    JacobianResult,
    Named,
    ReverseStep,
    Shown,
)
from gradcli.graph.names import bar
from gradcli.notation.latex import LatexNotation
from gradcli.notation.latex_names import latex_name, latex_number
from gradcli.notation.nodes import readable_names
from gradcli.notation.numbers import number_text

MAX_MATRIX = 40  # rows or columns of a matrix that is set as one


def jacobian(result: JacobianResult) -> str:
    """Return the system and its Jacobian as LaTeX."""
    blocks = []
    for point in result.points or (None,):
        lines = system_lines(result, {} if point is None else {**point.at, **point.value})
        lines += jacobian_lines(result, None if point is None else point.jacobian)
        blocks.append(_align(lines))
    return "\n".join(blocks) + "\n"


def backward(result: BackwardResult) -> str:
    """Return the system, its Jacobian and vᵀJ as LaTeX, and the steps as arrays."""
    blocks = []
    for point in result.points:
        lines = system_lines(result, {**point.at, **point.intermediates, **point.value})
        if result.symbolic is not None:
            lines += jacobian_lines(result, point.jacobian)
        lines += gradient_lines(result, point)
        blocks.append(_align(lines))
        if result.steps:
            blocks.append(_display(_array("lll", forward_rows(result, point.forward))))
            blocks.append(_display(_array("llllll", reverse_rows(result, point.reverse))))
    return "\n".join(blocks) + "\n"


def _align(lines: Sequence[tuple[str, str]]) -> str:
    return f"\\begin{{align*}}\n{equations(lines)}\n\\end{{align*}}"


def _display(text: str) -> str:
    return f"\\[\n{text}\n\\]"


def _array(columns: str, rows: Sequence[Sequence[str]]) -> str:
    head, *body = (" & ".join(row) for row in rows)
    return f"\\begin{{array}}{{{columns}}}\n{head} \\\\ \\hline\n" + " \\\\\n".join(body) + "\n\\end{array}"


# What Markdown uses as well


def equations(lines: Sequence[tuple[str, str]]) -> str:
    """Return equations below each other, aligned at their signs."""
    return " \\\\\n".join(f"{left} &= {right}" for left, right in lines)


def system_lines(result: Shown, values: Named) -> list[tuple[str, str]]:
    """Return the two sides of each leaf's value and of each statement."""
    names = readable_names(result.graph)
    notation = LatexNotation(names)
    lines = [(latex_name(name), array(values[name], result)) for name in result.graph.inputs if name in values]
    for node, name in names.items():
        if node.op != "input":
            lines.append((latex_name(name), notation.expression(node) + _equal(values.get(name), result)))
    for name, node in result.graph.names.items():
        if names[node] != name:  # another name of the same node
            lines.append((latex_name(name), latex_name(names[node]) + _equal(values.get(name), result)))
    return lines


def _equal(value: Array | None, result: Shown) -> str:
    return "" if value is None else f" = {array(value, result)}"


def jacobian_lines(result: Shown, value: Array | None) -> list[tuple[str, str]]:
    """Return J in formulas, and its value; then the intermediates that the formulas mention."""
    symbolic = result.symbolic
    assert symbolic is not None
    rows, columns = len(symbolic.rows), len(symbolic.columns)
    if max(rows, columns) > MAX_MATRIX:
        lines = [
            (rf"\frac{{\partial {latex_name(symbolic.rows[i])}}}{{\partial {latex_name(symbolic.columns[j])}}}", text)
            for (i, j), text in ((place, formula(e, result)) for place, e in symbolic.entries.items())
        ]
    else:
        cells = [[formula(symbolic.entries.get((i, j), 0), result) for j in range(columns)] for i in range(rows)]
        lines = [("J", matrix(cells) + ("" if value is None else f" = {array(value, result)}"))]
    return lines + [(latex_name(name), formula(e, result)) for name, e in symbolic.where.items()]


def gradient_lines(result: BackwardResult, point: BackwardPoint) -> list[tuple[str, str]]:
    """Return v, the product vᵀJ, and the gradient of each leaf."""
    lines = []
    if len(point.calls) == 1:
        call = point.calls[0]
        weights = np.concatenate([call.v[name].reshape(-1) for name in result.graph.outputs])
        v = matrix([[number(w) for w in weights]])
        if max(len(weights), sum(n.size for n in result.leaves.values())) <= MAX_MATRIX:
            lines.append((r"v^{\top}", v))
            if point.jacobian is not None:
                total = np.concatenate([point.grad[n].reshape(-1) for n in result.wrt])
                product = matrix([[number(w) for w in total]])
                lines.append((r"v^{\top} J", f"{v} {array(point.jacobian, result)} = {product}"))
    for name, grad in point.grad.items():
        after = [array(c.grad[name], result) for c in point.calls[-12:]]
        dots = [r"\dots"] if len(after) < len(point.calls) else []
        lines.append((grad_symbol(name), r" \to ".join(dots + after) if len(after) > 1 else array(grad, result)))
    lines += [(grad_symbol(name), array(grad, result)) for name, grad in point.retained.items()]
    return lines


def grad_symbol(name: str) -> str:
    """Return x.grad as LaTeX."""
    return rf"{latex_name(name)}\mathtt{{.grad}}"


def number(value: float) -> str:
    """Return a number as LaTeX."""
    text = number_text(value)
    special = {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{nan}"}
    return special.get(text) or latex_number(text)


def formula(expr: Any, result: Shown) -> str:
    """Return a formula as LaTeX."""
    from gradcli.notation.latex_formulas import latex

    return "0" if expr == 0 else latex(expr, result.decimals)


def array(values: Array, result: Shown) -> str:
    """Return a number, or an array as a matrix; one of more than two dimensions as a matrix of matrices."""
    if not values.shape:
        return formula(values[()], result) if values.dtype == object else number(float(values[()]))
    if values.size > MAX_MATRIX**2:
        return rf"\text{{an array of shape }} {_times(values.shape)}"
    rows = values if len(values.shape) > 1 else values[None]
    return matrix([[array(row[k : k + 1].reshape(row.shape[1:]), result) for k in range(len(row))] for row in rows])


def matrix(rows: Sequence[Sequence[str]]) -> str:
    """Return a `pmatrix`, which amsmath allows 10 columns, or an array in brackets."""
    body = r" \\ ".join(" & ".join(row) for row in rows)
    columns = max(map(len, rows))
    if columns <= 10:
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
    return rf"\left(\begin{{array}}{{{'c' * columns}}} {body} \end{{array}}\right)"


def forward_rows(result: Shown, steps: Sequence[ForwardStep]) -> list[list[str]]:
    """Return the forward table, its header first."""
    rows = [[r"\text{node}", r"\text{operation}", r"\text{value}"]]
    for s in steps:
        value = "" if s.value is None else _brief(s.value, result)
        both = " = ".join(part for part in (s.latex, value) if part)
        operation = s.operation.replace("_", r"\_")
        rows.append([latex_name(s.node), rf"\text{{{operation}}}", both])
    return rows


def reverse_rows(result: Shown, steps: Sequence[ReverseStep]) -> list[list[str]]:
    """Return the reverse table, its header first."""
    titles = ("node", "adjoint", "passes to", "local derivative", "contribution", "adjoint so far")
    rows = [[rf"\text{{{t}}}" for t in titles]]
    for s in steps:
        slope, contribution = s.slope_latex, _brief(s.contribution, result)
        if s.slope_value is not None and s.slope_value.dtype != object:
            text = _brief(s.slope_value, result)
            slope = slope if slope.endswith(f"= {text}") else f"{slope} = {text}"
            if not s.adjoint.shape:
                contribution = rf"{_factor(_brief(s.adjoint, result))} \cdot {_factor(text)} = {contribution}"
        total = rf"{latex_name(bar(s.argument))} = {_brief(s.total, result)}"
        rows.append([latex_name(s.node), _brief(s.adjoint, result), latex_name(s.argument), slope, contribution, total])
    return rows


def _factor(text: str) -> str:
    return rf"\left({text}\right)" if text.startswith("-") or " " in text else text


def _brief(values: Array, result: Shown) -> str:
    if values.size <= 12:
        return array(values, result)
    return rf"{_times(values.shape)} \text{{ numbers}}"


def _times(shape: Sequence[int]) -> str:
    return r" \times ".join(map(str, shape))
