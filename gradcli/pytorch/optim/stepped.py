"""What a step of an optimizer has changed, and what it has left as it was, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from gradcli.pytorch.optim import LIVE
from gradcli.pytorch.optim.rules import Change, altered, events
from gradcli.pytorch.recipes import Array
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.recording import Named, Sites
from gradcli.record.naming import is_readable
from gradcli.record.record import NOWHERE, CallSite, Stepped


def stepped(optimizer: Any, changes: Sequence[Change], names: Any, left: Mapping[int, Array]) -> Stepped:
    """Return what a step has done; `left` has what `backward` left in `.grad`, by the identity of the parameter."""

    def name(p: Any) -> str:
        return names.of(p) or "p"

    def at(line: Any) -> CallSite:
        return NOWHERE if line is None else sites.of(line)

    parameters, sites = optimizer._parameters(), Sites()
    cleared = [p for p in parameters if p._reached is not None and p._cleared is not None][:1]
    has_some = any(p._grad is not None for p in parameters)
    missing = [p for p in parameters if has_some and p._grad is None and names.of(p)]
    known = [p for p, *_ in changes if id(p) in left]
    return Stepped(
        len(changes),
        tuple(events(type(optimizer).__name__, [c for c in changes if c.parameter.numel()], name)),
        altered((name(p), _normed(left[id(p)]), _normed(p._grad._a)) for p in known),
        next(((at(p._cleared), at(p._reached)) for p in cleared), None),
        Recorder.swept is not None,
        tuple((name(p), NOWHERE if p.requires_grad else at(p._frozen)) for p in missing),
        *unlisted(names, LIVE, attrgetter("_made")),
    )


def _normed(a: Array) -> tuple[Array, float]:
    return a, float(np.linalg.norm(a.reshape(-1).astype(float)))


def unlisted(names: Named, optimizers: Iterable[Any], made: Callable[[Any], int]) -> tuple[tuple[str, ...], str, str]:
    """Return the leaves with a gradient that no optimizer has, each by its first name, why, and what holds the first.

    `made` is when an optimizer or a parameter was created.
    """
    known = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
    readable = {n: x for n, x in names.tensors.items() if x.requires_grad and is_readable(x)}
    leaves = {n: x for n, x in readable.items() if x.is_leaf and x.grad is not None}
    ids = {id(x): n for n, x in reversed(leaves.items()) if id(x) not in known}
    result = {n: x for n, x in leaves.items() if ids.get(id(x)) == n}
    newest = max(map(made, optimizers), default=0)
    reasons = (_held(n, x, names) or _later(x, names, newest, made) for n, x in result.items())
    return tuple(result), *next(filter(None, reasons), ("", ""))


def _held(name: str, p: Any, names: Any) -> tuple[str, str] | None:
    """Return which Python list of a module has a parameter, itself or in a module; None where none has."""
    for held in (x for m in names.modules.values() for x in _lists(m)):
        if any(e is p for x in held if isinstance(x, list) for e in _parameters_of(x)):
            return "lists", name.partition("[")[0]
        if any(e is p for e in held):
            return "parameters", name.rpartition("[")[0]
        if any(e is p for e in _parameters_of(held)):
            return "modules", name.rpartition("[")[0]
    return None


def _lists(module: Any) -> Iterator[list[Any]]:
    yield from (x for inner in module.modules() for x in vars(inner).values() if isinstance(x, list))


def _parameters_of(modules: list[Any]) -> Iterator[Any]:
    yield from (p for m in modules if hasattr(m, "parameters") for p in m.parameters())


def _later(p: Any, names: Any, newest: int, made: Callable[[Any], int]) -> tuple[str, str] | None:
    """Return "later" for a parameter of a module that was created after the newest optimizer."""
    is_of_module = any(p is e for m in names.modules.values() for e in m.parameters())
    return ("later", "") if is_of_module and newest < made(p) else None
