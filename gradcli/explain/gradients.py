"""The section `grad`: the gradient of each leaf, with what leads to it."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.explain import chain
from gradcli.explain.arithmetic import ELEMENTS, products
from gradcli.explain.results import BackwardPoint, BackwardResult
from gradcli.explain.sections import Equations, Grad, Line, Math, Name, Partial, Product, Section, Text, Value
from gradcli.explain.weights import flat, loss_name
from gradcli.graph.names import bar


def gradients_section(result: BackwardResult, point: BackwardPoint) -> Section:
    """Return the gradients at a point after all calls, and those of retained intermediates."""
    lines = [Line((Grad(name), *_sides(result, point, name), Value(point.grad[name])), (), True) for name in result.wrt]
    lines += [_retained(result, point, name) for name in point.retained]
    return Section("grad", (Equations(tuple(lines)), *_kept(result, point)))


def _retained(result: BackwardResult, point: BackwardPoint, name: str) -> Line:
    """Return the gradient of an intermediate: as a derivative, in formulas, and as a number."""
    sides: list[Math] = [Grad(name), Partial(loss_name(result.graph.outputs), name)]
    if name in point.adjoints and point.adjoints[name].size <= ELEMENTS:
        sides.append(Value(point.adjoints[name]))
    return Line((*sides, Value(point.retained[name])))


def _kept(result: BackwardResult, point: BackwardPoint) -> list[Text]:
    """Return why a retained gradient is not there by itself."""
    h = next((name for name in point.retained if name not in result.graph.outputs), None)
    if h is None:
        return []
    why = f"{h} is computed, and no leaf: PyTorch leaves {h}.grad None unless {h}.retain_grad() keeps it."
    return [Text((why, f" It is the adjoint of {h}; a hook on {h} sees the same."))]


def _sides(result: BackwardResult, point: BackwardPoint, name: str) -> list[Math]:
    """Return what stands between a gradient's name and its value."""
    leaf = result.leaves[name]
    if len(point.calls) > 1:
        return []
    if result.steps and not leaf.shape:
        return [Name(bar(name))]
    formulas = list(_along_a_path(result, point, name))
    weights = flat(point.calls[0].v)
    listed = len(weights) == 1 and weights[0] == 1  # with the section `jacobian`
    if (listed and leaf.shape) or (len(formulas) > 1 and not leaf.shape):
        return formulas
    return [*formulas, *products(result, point.jacobian, point.calls[0].v, name)]


def _along_a_path(result: BackwardResult, point: BackwardPoint, name: str) -> Iterator[Math]:
    """Yield the derivative of a scalar output by a leaf, multiplied out along the path between them if there is one."""
    (output, y), *others = result.graph.outputs.items()
    if others or y.shape:
        return
    leaf, v = result.leaves[name], point.calls[0].v[output]
    passes = chain.path(result.swept, leaf, y) or []
    along = chain.factors(passes, result.graph.labels)
    if not leaf.shape:
        yield Product(("v", Partial(output, name)))
    if along is not None:
        yield Product((Value(v), *along))
        if point.trace is not None and (found := chain.numbers(passes, point.trace)):
            yield Product((Value(v), *found))
