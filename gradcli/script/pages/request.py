"""The page of what a script asks for by name, of `torch.func` say: J, H, or their product with a tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.errors import Notes
from gradcli.graph.graph import dimensions
from gradcli.graph.hessian import gradient
from gradcli.graph.names import all_elements
from gradcli.pages.backward.loss import flat
from gradcli.pages.evaluation import evaluated
from gradcli.pages.formulas import formula_count
from gradcli.pages.forward.jvp import JacobianProduct, jvp_pages
from gradcli.pages.hessian.page import hessian_pages
from gradcli.pages.hessian.question import Hessian, HessianProduct
from gradcli.pages.jacobian.page import heading, is_long, jacobian_sections, number_cells, zeros
from gradcli.pages.jacobian.question import Jacobian
from gradcli.pages.recurrence import Folded
from gradcli.pages.results import Measured, Named, Shown, Wanted
from gradcli.pages.sections import Math, Matrix, Name, Page, Partial, Section, Text
from gradcli.pages.system import system_section
from gradcli.script.measured import differ

_ENTRIES = 64  # of a matrix that is shown
_FORMULAS = 5_000  # elements that are worked out as formulas for it
_WANTED = Wanted(page=True, warn=False)


def _jacobian(shown: Shown, at: Named, u: Named, measured: Measured) -> Sequence[Section]:
    rows, columns = dimensions(shown.graph, shown.wrt)
    if rows * columns > _ENTRIES:
        return _large((*heading(shown), f": {rows:,} × {columns:,}{zeros(shown, rows, columns)}"))
    if formula_count(shown.graph) > _FORMULAS:
        matrix = measured.matrix
        cells = number_cells(NumericJacobian(shown.graph, shown.wrt)(at) if matrix is None else matrix)
        names, heads = all_elements(shown.graph.outputs), tuple(Partial("", c) for c in all_elements(shown.leaves))
        return [Section("jacobian", (Matrix("J", tuple(map(Name, names)), heads, cells),), heading(shown))]
    result = Jacobian(shown.graph, shown.wrt, _WANTED, measured=measured).result([at], Notes())
    return jacobian_sections(result, result.points[0].matrix, brief=is_long(result) or bool(result.formulas.defined))


def _hessian(shown: Shown, at: Named, u: Named, measured: Measured) -> Sequence[Section]:
    _, columns = dimensions(shown.graph, shown.wrt)
    if columns**2 > _ENTRIES:
        return _large((f"H, the second derivatives: {columns:,} × {columns:,}",))
    result = Hessian(shown.graph, shown.wrt, _WANTED, measured=measured).result([at], Notes())
    return hessian_pages(result, ("hessian", "curvature"))[0].sections


def _large(said: tuple[Math, ...]) -> list[Section]:
    return [Section("matrix", (Text(said),))]


def _product(question: Any, pages: Any, shown: Shown, at: Named, u: Named, measured: Measured) -> Sequence[Section]:
    result = question(shown.graph, shown.wrt, _WANTED, u, measured=measured).result([at], Notes())
    return pages(result)[0].sections  # type: ignore[no-any-return]


# What makes the sections behind the system, by the function that was called.
_SECTIONS: dict[str, Callable[[Shown, Named, Named, Measured], Sequence[Section]]] = {
    **dict.fromkeys(("jacobian", "jacrev", "jacfwd", "gradcheck"), _jacobian),
    "hessian": _hessian,
    "jvp": partial(_product, JacobianProduct, partial(jvp_pages, only=("u", "jacobian", "jvp"))),
    "hvp": partial(_product, HessianProduct, partial(hessian_pages, only=("hessian",))),
}


def rounded(name: str, shown: Shown, at: Named, u: Named, measured: Measured) -> str:
    """Return the name of the result where the script's numbers are not those of its formulas; "" where they are."""
    is_second, is_product = name in ("hessian", "hvp"), measured.products is not None
    slopes = gradient(shown.graph, shown.wrt) if is_second else shown.graph
    record = measured.matrix if measured.products is None else flat(measured.products)
    if record is None or np.prod(dimensions(slopes, shown.wrt)) > _ENTRIES:
        return ""
    formulas, what = NumericJacobian(slopes, shown.wrt)(at), "H" if is_second else "J"
    if is_product:
        formulas, what = formulas @ flat({name: u[name] for name in shown.wrt}), f"{what}·u"
    return what if differ(formulas, record) else ""


def request_page(name: str, shown: Shown, at: Named, u: Named, loops: Folded, measured: Measured, whole: bool) -> Page:
    """Return the page of what is asked for by name at a point, with tangents, and with the system's loops folded.

    Errors: `InputError` where a Hessian is not that of one number.
    """
    names = shown.graph.names
    (values,) = evaluated(shown.graph.inputs, [at], names.values(), known=measured.values)
    named = {name: values[n] for name, n in names.items()}
    return Page(
        (system_section(shown, at, named, (), loops, whole), *_SECTIONS[name](shown, at, u, measured)), shown.style
    )
