"""The change of a line that corrects a wrong `backward` of a custom function by one more factor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.pages.check.claim import Case, numbers
from gradcli.script.errors import edits
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import parts

Array = np.ndarray[Any, Any]

_POINTS = 20
_DIGITS = 1e-6  # the relative error of a factor


def corrected(text: Text, cls: type, position: int, case: Case) -> list[Change]:
    """Return the change to what a class's backward returns for an argument; none where no single factor corrects it.

    The factor is a constant, the incoming gradient, or an input that backward has a name for, at random points.
    """
    function = _backward(text, cls)
    returns = parts(function, ast.Return) if function is not None else []
    if function is None or len(returns) != 1 or returns[0].value is None:
        return []
    value = returns[0].value
    returned = value.elts[position] if isinstance(value, ast.Tuple) and position < len(value.elts) else value
    points = {name: _drawn(node, k) for k, (name, node) in enumerate(case.graph.inputs.items())}
    yours, truth = numbers(case.graph, points, [case.yours, case.truth])
    known = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    names = {name: points[name].reshape(-1, _POINTS) for name in points if name in known}
    weights = dict(zip(case.cotangents, _parameters(function), strict=False))
    names |= {weights[name]: points[name].reshape(-1, _POINTS) for name in case.cotangents if name in weights}
    said = next(_with_a_factor(yours, truth, names, text.of(returned), edits.is_simple(returned)), "")
    return text.edited(edits.instead(returned, said)) if said else []


def _backward(text: Text, cls: type) -> ast.FunctionDef | None:
    """Return the definition of the backward of a class of the script."""
    classes = [c for c in parts(text.tree, ast.ClassDef) if c.name == cls.__name__]
    functions = [f for c in classes for f in c.body if isinstance(f, ast.FunctionDef) and f.name == "backward"]
    return functions[0] if len(functions) == 1 else None


def _parameters(function: ast.FunctionDef) -> list[str]:
    """Return the parameters of a backward that hold incoming gradients."""
    return [a.arg for a in function.args.args[1:]]


def _drawn(node: Node, seed: int) -> Array:
    return np.random.default_rng(seed).uniform(0.3, 1.4, (*node.shape, _POINTS))


def _with_a_factor(yours: Array, truth: Array, names: Mapping[str, Array], code: str, is_simple: bool) -> Iterator[str]:
    """Yield the expression with a factor that makes it the derivative.

    >>> x = np.array([[1.0, 2.0, 3.0]])
    >>> [*_with_a_factor(2 * x, 6 * x, {"x": x}, "2*x", False)]
    ['3 * (2*x)']
    """
    bare = code if is_simple else f"({code})"
    with np.errstate(all="ignore"):
        ratio = truth / yours
    ratios = ratio[np.isfinite(ratio)]
    if not ratios.size:
        return
    factor = float(np.round(ratios[0], 9))
    if _same(truth, factor * yours):
        yield f"-{bare}" if factor == -1 else f"{factor:.6g} * {bare}"
    for name, array in names.items():
        for sign in (1, -1):
            if array.shape in (yours.shape, (1, _POINTS)) and _same(truth, sign * array * yours):
                yield f"{'-' * (sign < 0)}{name} * {bare}"


def _same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=_DIGITS, atol=_DIGITS * np.abs(a).max(initial=0)))
