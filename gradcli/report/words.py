"""Phrases that several renderers share: a point, v, the arithmetic of vᵀJ, the loss, and the line of PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.explain.results import (
    Array,
    BackwardPoint,
    BackwardResult,
    Call,
    Named,
    Shown,
)
from gradcli.explain.steps import ForwardStep, ReverseStep
from gradcli.graph.names import bar, element_names
from gradcli.graph.node import Node
from gradcli.notation.numbers import array_text, number_text

Outputs = Mapping[str, Node]

_TERMS = 8  # a longer sum leaves out its zeros
_LINES = 60
_WEIGHTS = 12
_ELEMENTS = 6  # of an array whose loss is written out
_ENTRIES = 12  # of an array that is shown in a table of steps
_RUNNING = 4  # elements of a sum that is shown as a sum


def element_text(array: Array, result: Shown) -> str:
    """Return an array of numbers or formulas as a nested list."""
    return array_text(array, result.formula if array.dtype == object else number_text)


def point_text(at: Named) -> str:
    """Return a point as `--at` takes it, with spaces."""
    return ", ".join(f"{n} = {array_text(v) if v.size <= 16 else shape_text(v.shape)}" for n, v in at.items())


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape in words."""
    return "a scalar" if not shape else "an array of shape " + "×".join(map(str, shape))


def outputs_line(outputs: Outputs, v: Named) -> str:
    """Return a cotangent: one array as it is, several as a list of them."""
    texts = [array_text(v[name]) for name in outputs]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def arithmetic(result: BackwardResult, point: BackwardPoint) -> Iterator[str]:
    """Yield for each element of each leaf the sum that makes its gradient: x0.grad = 1·6 + 10·2 + 100·0 = 26."""
    symbolic = result.symbolic
    assert symbolic is not None
    v = point.calls[0].v
    weights = np.concatenate([v[name].reshape(-1) for name in result.graph.outputs])
    grads = np.concatenate([point.grad[name].reshape(-1) for name in result.wrt])
    for j, name in enumerate(symbolic.columns[:_LINES]):
        if point.jacobian is not None:
            column = [number_text(e) for e in point.jacobian[:, j]]
        else:
            entries = (symbolic.entries.get((i, j)) for i in range(len(symbolic.rows)))
            column = ["0" if e is None else _grouped(e, result) for e in entries]
        total = element_text(grads[j : j + 1].reshape(()), result)
        yield f"{grad_name(name)} = {_sum([number_text(w) for w in weights], column)} = {total}"
    if len(symbolic.columns) > _LINES:
        yield f"… and {len(symbolic.columns) - _LINES} more"


def _grouped(expr: Any, result: Shown) -> str:
    """Return a formula as a factor: a sum in brackets."""
    text = result.formula(expr)
    return f"({text})" if expr.is_Add else text


def grad_name(element: str) -> str:
    """Return the gradient's name for an element: x0.grad, x.grad[0].

    >>> grad_name("x0"), grad_name("M[0,1]")
    ('x0.grad', 'M.grad[0,1]')
    """
    name, bracket, key = element.partition("[")
    return f"{name}.grad{bracket}{key}"


def _sum(weights: Sequence[str], column: Sequence[str]) -> str:
    """Return Σ v_i·J_ij, term by term; a long one without the terms that are 0."""
    pairs = list(zip(weights, column, strict=True))
    if len(pairs) > _TERMS:
        pairs = [(w, c) for w, c in pairs if w != "0" and c != "0"] or pairs[:1]
    return " + ".join(_term(w, factor(c), first=k == 0) for k, (w, c) in enumerate(pairs))


def factor(text: str) -> str:
    """Return a number as a factor: a negative one in brackets."""
    return f"({text})" if text.startswith("-") else text


def loss(outputs: Outputs, calls: Sequence[Call]) -> list[str]:
    """Return the scalar whose gradient this is: L = Σ v_i·y_i, for the sum of all calls."""
    terms: list[str] = []
    for name, y in outputs.items():
        total = np.sum([c.v[name] for c in calls], axis=0)
        if y.size > _ELEMENTS:
            terms.append(f"sum(v·{name})")
            continue
        for weight, element in zip(total.reshape(-1), element_names(name, y.shape), strict=True):
            terms.append(_term(number_text(weight), element, first=not terms))
    name = "loss" if "L" in outputs else "L"
    return [f"{name} = " + " + ".join(_elided(terms))]


def _term(weight: str, value: str, first: bool) -> str:
    """Return a product in a sum: a negative weight behind a + stands in brackets."""
    return f"{weight if first else factor(weight)}·{value}"


def _elided(terms: list[str]) -> list[str]:
    """Return the terms of a sum, without the middle of a long one."""
    return terms if len(terms) <= _WEIGHTS else [*terms[: _WEIGHTS - 1], "…", terms[-1]]


def pytorch(outputs: Outputs, calls: Sequence[Call]) -> list[str]:
    """Return the lines of PyTorch that do the same."""
    lines = [_pytorch_call(outputs, call.v, k < len(calls) - 1) for k, call in enumerate(calls)]
    return lines if len(lines) <= 6 else [*lines[:5], f"# … and {len(lines) - 5} calls more"]


def _pytorch_call(outputs: Outputs, v: Named, again: bool) -> str:
    keep = "retain_graph=True" if again else ""
    if len(outputs) > 1:
        terms = [_torch_term(v[name], name) for name in outputs]
        return f"({' + '.join(_elided(terms))}).backward({keep})"
    (name,) = outputs
    weight = v[name]
    if not weight.shape and weight == 1:
        return f"{name}.backward({keep})"
    argument = f"torch.tensor({_torch_number(weight)})" if weight.size <= _WEIGHTS else "v"
    return f"{name}.backward({', '.join(filter(None, (argument, keep)))})"


def _torch_term(v: Array, name: str) -> str:
    if v.shape:
        return f"({name} * torch.tensor({_torch_number(v)})).sum()" if v.size <= _WEIGHTS else f"({name} * v).sum()"
    return f"{factor(number_text(float(v)))}*{name}"


def _torch_number(v: Array) -> str:
    """Return numbers with a point, so that torch.tensor makes them floating."""
    return array_text(v, lambda e: f"{t}." if (t := number_text(e)).lstrip("-").isdigit() else _torch_special(t))


def _torch_special(text: str) -> str:
    return f"float('{text}')" if text.lstrip("-") in ("inf", "nan") else text


# The tables that both text and Markdown show: a header, and rows of cells.

Grid = tuple[list[str], list[list[str]]]


def accumulation(result: BackwardResult, point: BackwardPoint) -> Grid:
    """Return one row for each `backward` call: its v, and what .grad holds after it."""
    rows = []
    before: Named = {}
    for k, call in enumerate(point.calls, 1):
        cells = [_running(before.get(name), call.own[name], after, result) for name, after in call.grad.items()]
        rows.append([str(k), outputs_line(result.graph.outputs, call.v), *cells])
        before = call.grad
    return ["call", "v", *(f"{grad_name(name)} after it" for name in point.grad)], rows


def _running(before: Array | None, own: Array, after: Array, result: Shown) -> str:
    text = element_text(after, result)
    if before is None or after.dtype == object or after.size > _RUNNING:
        return text
    return f"{element_text(before, result)} + {element_text(own, result)} = {text}"


def forward_table(result: BackwardResult, steps: Iterable[ForwardStep]) -> Grid:
    """Return one row for each node: what it computes, and its value."""
    steps = list(steps)
    shaped = any(s.node.shape for s in steps)
    rows = []
    for s in steps:
        arguments = ", ".join(s.arguments[:_TERMS]) + (", …" if len(s.arguments) > _TERMS else "")
        value = "" if s.value is None else brief(s.value, result)
        both = " = ".join(part for part in (s.expression, value) if part)
        rows.append([s.name, s.operation, arguments, *([_size(s.node.shape)] if shaped else []), both])
    return ["node", "operation", "arguments", *(["shape"] if shaped else []), "value"], rows


def reverse_table(result: BackwardResult, steps: Iterable[ReverseStep]) -> Grid:
    """Return one row for each adjoint passed on: adjoint times local derivative, and where it adds up."""
    rows = []
    for s in steps:
        adjoint, contribution, slope = brief(s.adjoint, result), brief(s.contribution, result), s.rule.text
        if s.slope is not None:
            number = brief(s.slope, result)
            if s.slope.dtype != object and not slope.endswith(f"= {number}"):
                slope = f"{slope} = {number}"
            if not s.adjoint.shape:
                contribution = f"{_bracketed(adjoint)}·{_bracketed(number)} = {contribution}"
        total = f"{bar(s.argument)} = {brief(s.total, result)}"
        rows.append([s.node, adjoint, s.argument, slope, contribution, total])
    return ["node", "adjoint", "passes to", "local derivative", "contribution", "adjoint so far"], rows


def _bracketed(text: str) -> str:
    return f"({text})" if text.startswith("-") or " " in text or "/" in text else text


def brief(value: Array, result: Shown) -> str:
    """Return an array with its entries up to a readable size, and with its shape beyond."""
    if value.size > _ENTRIES:
        return f"{_size(value.shape)} numbers"
    text = element_text(value, result)
    return re.sub(r"(?<!\*)\*(?!\*)", "·", text) if value.dtype == object else text


def _size(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"
