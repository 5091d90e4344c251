"""The page of `gradcli backward`: which sections, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gradcli.explain.backward.accumulation import SHOWN_ENTRIES
from gradcli.explain.backward.calls import calls_section
from gradcli.explain.backward.gradients import gradients_section
from gradcli.explain.backward.loss import loss_name
from gradcli.explain.backward.pytorch import pytorch_section
from gradcli.explain.backward.reasons import reasons
from gradcli.explain.backward.record import BackwardPoint, BackwardResult
from gradcli.explain.backward.tables import steps_sections
from gradcli.explain.backward.weights import flat, weights_section
from gradcli.explain.forms.gradients import Forms, forms
from gradcli.explain.images import images_section
from gradcli.explain.jacobian.product import OPERATIONS, has_new_names, heading, is_long, jacobian_sections, zeros
from gradcli.explain.mentions import page_of
from gradcli.explain.sections import VJP, Code, Page, Section, Text, Typed, chosen, sentence
from gradcli.explain.shared import formulas_of
from gradcli.explain.system import system_section
from gradcli.graph.graph import dimensions

_ENTRY = 160  # characters of an entry of J that is long and is read all the same: two lines
_ROW = 800  # characters of all entries in the row of J that is a gradient: half a screen


@dataclass(frozen=True)
class Choice:
    """Which sections a page has: those in `only`, if there are any; `jacobian` says whether J is among them."""

    only: tuple[str, ...] = ()
    jacobian: bool | None = None


@np.errstate(all="ignore")  # a product may overflow
def backward_pages(result: BackwardResult, choice: Choice) -> list[Page]:
    """Return a page for each point."""
    return [page_of(result, _backward(result, point, choice)) for point in result.points]


def _backward(result: BackwardResult, point: BackwardPoint, choice: Choice) -> Iterator[Section]:
    single = len(point.calls) == 1
    at, values = point.at if result.numeric else None, {**point.intermediates, **point.value}
    written = forms(result, point.calls[0].v, at=at) if single else Forms({}, {})
    jacobian = cache(lambda: _product(result, point, choice, written))
    entries = result.symbolic is not None and (not choice.only or "jacobian" in choice.only)
    build: dict[str, Callable[[], Sequence[Section]]] = {
        "system": lambda: [system_section(result, at, values)],
        "v": lambda: [weights_section(result, point.calls)] if single else [],
        "jacobian": jacobian,
        "steps": lambda: _steps(result, point),
        "calls": lambda: [] if single else [calls_section(result, point)],
        "grad": lambda: [gradients_section(result, point, written, entries and bool(jacobian()))],
        "why": lambda: _reasons(result, point),
        "images": lambda: images_section(result, point),
        "pytorch": lambda: [_pytorch(result, point, choice)],
    }
    unwanted = {"system"} if result.wanted.steps else set()
    if result.wanted.script:
        unwanted.add("pytorch")
    if not single and len(result.wrt) == 1 and not point.retained:
        unwanted.add("grad")
    return chosen(build, choice.only, unwanted)


def _reasons(result: BackwardResult, point: BackwardPoint) -> list[Section]:
    """Return why the gradients are what they are, where a rule surprises."""
    loss = loss_name(result.graph, point.calls[0].v)
    sentences = reasons(result.graph, result.swept, result.wrt, loss, point.trace if result.numeric else None)
    texts = tuple(Text((s,)) if isinstance(s, str) else s for s in sentences)
    return [Section("why", texts)] if texts else []


def _product(result: BackwardResult, point: BackwardPoint, choice: Choice, written: Forms) -> list[Section]:
    """Return the section `jacobian`: J beside v, unless J is too large or the gradients' lines show it."""
    wanted = choice.jacobian or "jacobian" in choice.only
    if choice.jacobian is False or (not wanted and _gradients_say_it(result, point, written)):
        return []
    if result.symbolic is None:
        return [] if result.wanted.script else [_too_large(result)]
    if len(point.calls) > 1:
        return jacobian_sections(result, point.jacobian)
    total = {name: point.grad[name] for name in result.wrt}
    brief = not wanted and len(result.symbolic.rows) > 1
    return jacobian_sections(result, point.jacobian, point.calls[0], total, brief)


def _gradients_say_it(result: BackwardResult, point: BackwardPoint, written: Forms) -> bool:
    """Return whether J is too large for a page, or its only row is what the lines of the gradients show."""
    if result.symbolic is None:
        return not result.numeric
    rows, columns = len(result.symbolic.rows), len(result.symbolic.columns)
    formulas = written.gradients.keys() == set(result.wrt)
    if rows > 1 or len(point.calls) > 1:
        return not result.numeric and (rows * columns > SHOWN_ENTRIES or (formulas and is_long(result)))
    if all(not n.shape for n in result.leaves.values()):
        return True
    if not result.numeric and columns > SHOWN_ENTRIES and written.covers(result.wrt):
        return True
    plain = not any(entry.free_symbols for entry in result.symbolic.entries.values())
    same = bool((flat(point.calls[0].v) == 1).all()) and (formulas or plain)
    long = result.numeric and (is_long(result) or bool(result.symbolic.defined))
    return same or (long and not _is_readable(result, written))


def _is_readable(result: BackwardResult, written: Forms) -> bool:
    """Return whether the only row of J is short, and no line of a gradient has a formula."""
    if written.gradients or (result.symbolic and has_new_names(result)) or formulas_of(result.graph) > OPERATIONS:
        return False
    lengths = [len(result.formula(entry)) for entry in result.formulas.entries.values()]
    return max(lengths, default=0) <= _ENTRY and sum(lengths) <= _ROW


def _too_large(result: BackwardResult) -> Section:
    rows, columns = dimensions(result.graph, result.wrt)
    size = f": {rows:,} × {columns:,}{zeros(result, rows, columns)}; "
    shown = sentence("{} shows it, and {} does not need it", Typed("--jacobian"), VJP)
    return Section("jacobian", (Text((*heading(result), size, *shown)),))


def _pytorch(result: BackwardResult, point: BackwardPoint, choice: Choice) -> Section:
    """Return the line of PyTorch; where nothing else is wanted, a script that runs."""
    if choice.only != ("pytorch",):
        return pytorch_section(result.graph, point.calls, [h for h in point.retained if h not in result.unreached])
    from gradcli.explain.backward.torch_script import torch_script

    return Section("pytorch", (Code(tuple(torch_script(result, point)), whole=True),))


def _steps(result: BackwardResult, point: BackwardPoint) -> list[Section]:
    if not result.wanted.steps or point.trace is None:
        return []
    return steps_sections(point.trace, [call.v for call in point.calls])
