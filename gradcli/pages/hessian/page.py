"""The pages of `gradcli hessian`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from gradcli.graph.names import all_elements
from gradcli.pages.forms.hessian import hessian_form
from gradcli.pages.hessian.question import SHOWN
from gradcli.pages.mentions import page_of
from gradcli.pages.question import Point, Result
from gradcli.pages.results import Array
from gradcli.pages.sections import (
    HVP,
    Computed,
    Equal,
    Equations,
    Line,
    Math,
    Matrix,
    Name,
    Page,
    Partial,
    Section,
    Text,
    Typed,
    Value,
    Words,
    chosen,
    sentence,
)
from gradcli.pages.system import rates, system_section

_EIGENVALUES = 500  # rows of a Hessian whose eigenvalues are computed: more would keep the reader waiting
_SADDLE = "curve up and down (a saddle, where the gradient is 0)"
_DIRECTION = 12  # components of a direction that is shown: more are longer than two lines
_SAME = 1e-9  # relative difference of two curvatures that rounding explains
_NEAR_ZERO = 1e-12  # of the largest eigenvalue: what rounding leaves of 0


def hessian_pages(result: Result, only: tuple[str, ...]) -> list[Page]:
    """Return a page for each point, of H or of H·u, with the sections `only`, or with all."""
    return [page_of(result, chosen(_sections(result, p), only)) for p in result.points]


def _sections(result: Result, p: Point) -> dict[str, Callable[[], Sequence[Section]]]:
    if "hvp" in p.values:
        return {"system": lambda: [system_section(result, p.at, p.outputs)], "hessian": lambda: _product(p)}
    return {
        "system": lambda: [system_section(result, p.at or None, p.outputs)],
        "hessian": lambda: _matrix(result, p),
        "curvature": lambda: [_curvature(result, p)] if p.at else [],
    }


def _matrix(result: Result, p: Point) -> list[Section]:
    columns, (output,) = all_elements(result.leaves), result.graph.outputs
    if len(columns) > SHOWN:
        said = f"{{}} has {len(columns):,} rows and columns: {{}} or {{}} writes it, {{}} gives {{}} without it"
        typed = [Typed("-f json"), Typed("-f csv"), Typed("--u")]
        return [Section("hessian", (Text(sentence(said, Name("H"), *typed, HVP)),))]
    cells = {(i, j): _cell(result, p, i, j) if j <= i else "" for i, j in product(range(len(columns)), repeat=2)}
    heads = tuple(Partial("", c) for c in columns)
    said = "{}: the second derivatives of {}; symmetric: only the lower triangle is shown"
    title = sentence(said if len(columns) > 1 else "{}: the second derivative of {}", Name("H"), Name(output))
    form = hessian_form(result.graph, result.wrt)
    formula = () if form is None else (Equations((Line((Name("H"), Computed(*form, implicit=True)), strong=True),)),)
    return [Section("hessian", (*formula, Matrix("H", heads, heads, cells)), title)]


def _cell(result: Result, p: Point, i: int, j: int) -> Math:
    number: tuple[Math, ...] = (Value.of(p.values["hessian"][i, j]),) if p.at else ()
    entry = None if result.symbolic is None else result.symbolic.entries.get((i, j))
    if entry is None:
        return number[0] if number else Value.of(0.0)
    return Equal((Value.of(entry), *number))


def _curvature(result: Result, p: Point) -> Section:
    gradient, matrix = p.values["gradient"], p.values["hessian"]
    said = definiteness(gradient, matrix)
    texts = [Text(("gradient: ", Value(gradient + 0.0))), *([Text(said)] if said else [])]
    if (largest := steepest(matrix)) is not None:
        second, along = largest
        first, *others = all_elements(result.leaves)
        names = Words(("(", Name(first), *(part for name in others for part in (", ", Name(name))), ")"))
        direction = Equal((names, Value(along)))
        texts.append(Text(("steepest curvature: ", Value.of(second), ", along ", direction)))
    return Section("curvature", tuple(texts))


def steepest(matrix: Array) -> tuple[float, Array] | None:
    """Return the largest second derivative in any direction, and that unit direction; None where there are several.

    Its largest component is positive: a direction and its opposite are curved the same.

    >>> steepest(np.diag([1.0, -2.0]))
    (-2.0, array([0., 1.]))
    >>> steepest(np.eye(2)) is None
    True
    """
    if not 1 < len(matrix) <= _DIRECTION or not np.isfinite(matrix).all():
        return None
    values, vectors = np.linalg.eigh(matrix)
    second, first = np.argsort(np.abs(values))[-2:]
    if abs(values[first]) - abs(values[second]) <= _SAME * abs(values[first]):
        return None
    along = vectors[:, first]
    along = along * np.sign(along[np.abs(along).argmax()]) + 0.0
    return float(values[first]), np.where(np.abs(along) <= _NEAR_ZERO, 0, along)


def definiteness(gradient: Array, matrix: Array) -> tuple[Math, ...]:
    """Return whether the point is a minimum, maximum or saddle, by the eigenvalues of H; nothing for a large H.

    >>> before, _, after = definiteness(np.zeros(2), np.diag([1.0, 2.0]))
    >>> before, after
    ('local minimum: the gradient is 0, and the eigenvalues ', ' are positive')
    >>> definiteness(np.ones(2), np.diag([1.0, -2.0]))[0]
    'eigenvalues '
    """
    if len(matrix) > _EIGENVALUES or not np.isfinite(matrix).all():
        return ()
    values = np.linalg.eigvalsh(matrix)
    limit = _NEAR_ZERO * float(np.abs(values).max(initial=0))
    values = np.where(np.abs(values) <= limit, 0, values)
    up, down, flat = (bool(some.any()) for some in (values > 0, values < 0, values == 0))
    at_rest = float(np.abs(gradient).max(initial=0)) <= limit
    is_one = len(matrix) == 1
    if not (up or down):
        what = "the second derivative is 0" if is_one else "all eigenvalues are 0"
        return (f"{what}: the second-derivative test is inconclusive",)
    still, what = "the gradient is 0, and ", "the second derivative" if is_one else "the eigenvalues"
    if up and down:
        before, after = (f"saddle point: {still}{what}", "have both signs") if at_rest else ("eigenvalues", _SADDLE)
        return f"{before} ", Value(values), f" {after}"
    sign, kind, way = ("positive", "local minimum", "up") if up else ("negative", "local maximum", "down")
    where = "" if is_one else " or flat" if flat else " in every direction"
    before = f"{'maybe a ' * flat}{kind}: {still}{what}" if at_rest else f"curved {way}{where}: {what}"
    after = f"{'is' if is_one else 'are'} {sign}{' or 0' * flat}"
    return (f"{before} {after}",) if is_one else (f"{before} ", Value(values), f" {after}")


def _product(p: Point) -> list[Section]:
    """Return what u is, and H·u."""
    said = Text((HVP, ": the rate at which each entry of the gradient changes"))
    products = p.values["hvp"].items()
    lines = tuple(Line((Words((HVP, " for ", Name(name))), Value(value)), strong=True) for name, value in products)
    return [Section("hessian", (rates(p.values["u"]), said)), Section("hessian", (Equations(lines),))]
