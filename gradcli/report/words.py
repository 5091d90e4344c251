"""Phrases that several renderers share: a point, v, the arithmetic of vᵀJ, the loss, and the line of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gradcli.graph.node import Node, element_names
from gradcli.report.numbers import array_text, number_text
from gradcli.report.results import Array, BackwardResult, Call, Named, Shown

_TERMS = 8  # a longer sum leaves out its zeros
_LINES = 60
_WEIGHTS = 12


def element_text(array: Array, result: Shown) -> str:
    """Return an array of numbers or formulas as a nested list."""
    return array_text(array, result.formula if array.dtype == object else number_text)


def point_text(at: Named) -> str:
    """Return a point as `--at` takes it, with spaces."""
    return ", ".join(f"{n} = {array_text(v) if v.size <= 16 else shape_text(v.shape)}" for n, v in at.items())


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape in words."""
    return "a scalar" if not shape else "an array of shape " + "×".join(map(str, shape))


def outputs_line(outputs: Sequence[Node], v: Named) -> str:
    """Return a cotangent: one array as it is, several as a list of them."""
    texts = [array_text(v[y.name or ""]) for y in outputs]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def arithmetic(result: BackwardResult, jacobian: Array, v: Named, grad: Named) -> Iterator[str]:
    """Yield for each element of each leaf the sum that makes its gradient: x0.grad = 1·6 + 10·2 + 100·0 = 26."""
    weights = np.concatenate([v[y.name or ""].reshape(-1) for y in result.graph.outputs])
    elements = [
        (name, grad[leaf.name or ""].reshape(-1)[k])
        for leaf in result.leaves
        for k, name in enumerate(element_names(leaf.name or "", leaf.shape))
    ]
    for j, (name, total) in enumerate(elements[:_LINES]):
        yield f"{grad_name(name)} = {_sum(weights, jacobian[:, j])} = {number_text(total)}"
    if len(elements) > _LINES:
        yield f"… and {len(elements) - _LINES} more"


def grad_name(element: str) -> str:
    """Return the gradient's name for an element: x0.grad, x.grad[0].

    >>> grad_name("x0"), grad_name("M[0,1]")
    ('x0.grad', 'M.grad[0,1]')
    """
    name, bracket, key = element.partition("[")
    return f"{name}.grad{bracket}{key}"


def _sum(weights: Array, column: Array) -> str:
    """Return Σ v_i·J_ij, term by term; a long one without the terms that are 0."""
    pairs = list(zip(weights, column, strict=True))
    if len(pairs) > _TERMS:
        pairs = [(w, c) for w, c in pairs if w != 0 and c != 0] or pairs[:1]
    return " + ".join(f"{_factor(w, k == 0)}·{_factor(c)}" for k, (w, c) in enumerate(pairs))


def _factor(value: float, first: bool = False) -> str:
    text = number_text(value)
    return f"({text})" if text.startswith("-") and not first else text


def loss(outputs: Sequence[Node], calls: Sequence[Call]) -> list[str]:
    """Return the scalar whose gradient this is: L = Σ v_i·y_i, for the sum of all calls."""
    terms = []
    for y in outputs:
        name = y.name or ""
        total = np.sum([c.v[name] for c in calls], axis=0)
        if y.size > _WEIGHTS:
            terms.append(f"sum(v·{name})")
        else:
            names = element_names(name, y.shape)
            terms += [f"{_factor(w, not terms)}·{e}" for w, e in zip(total.reshape(-1), names, strict=True)]
    shown = terms if len(terms) <= _WEIGHTS else [*terms[: _WEIGHTS - 1], "…", terms[-1]]
    return ["L = " + " + ".join(shown)]


def pytorch(outputs: Sequence[Node], calls: Sequence[Call]) -> list[str]:
    """Return the lines of PyTorch that do the same."""
    lines = [_pytorch_call(outputs, call.v, k < len(calls) - 1) for k, call in enumerate(calls)]
    return lines if len(lines) <= 6 else [*lines[:5], f"# … and {len(lines) - 5} calls more"]


def _pytorch_call(outputs: Sequence[Node], v: Named, again: bool) -> str:
    keep = "retain_graph=True" if again else ""
    if len(outputs) > 1:
        terms = [f"{_torch_term(v[y.name or ''], y.name or '')}" for y in outputs]
        if len(terms) > _WEIGHTS:
            terms = [*terms[: _WEIGHTS - 1], "…", terms[-1]]
        return f"({' + '.join(terms)}).backward({keep})"
    (y,) = outputs
    weight = v[y.name or ""]
    if not y.shape and weight == 1:
        return f"{y.name}.backward({keep})"
    argument = f"torch.tensor({_torch_number(weight)})" if weight.size <= _WEIGHTS else "v"
    return f"{y.name}.backward({', '.join(filter(None, (argument, keep)))})"


def _torch_term(v: Array, name: str) -> str:
    if v.shape:
        return f"({name} * torch.tensor({_torch_number(v)})).sum()" if v.size <= _WEIGHTS else f"({name} * v).sum()"
    return f"{_factor(float(v))}*{name}"


def _torch_number(v: Array) -> str:
    """Return numbers with a point, so that torch.tensor makes them floating."""
    return array_text(v, lambda e: f"{t}." if (t := number_text(e)).lstrip("-").isdigit() else _torch_special(t))


def _torch_special(text: str) -> str:
    return f"float('{text}')" if text.lstrip("-") in ("inf", "nan") else text
