"""A call of a script's own function, run once more with both its forward and its backward recorded."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.graph.node import Node, const
from gradcli.pytorch.autograd import function as functions
from gradcli.pytorch.autograd.function import Context
from gradcli.pytorch.backward import Call
from gradcli.pytorch.dtypes import default_dtype, float64, set_default_dtype
from gradcli.pytorch.modes import enable_grad, no_grad
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.tensor import Tensor, new
from gradcli.script.naming import Names
from gradcli.script.recorded import Recorded, recorded
from gradcli.script.written import decimal

Array = np.ndarray[Any, Any]


@dataclass
class Applied:
    """A call of an own function: what it was given; the numbers are copies."""

    cls: type
    arguments: tuple[Any, ...]
    needed: tuple[bool, ...]

    @classmethod
    def of(cls, function: type, arguments: tuple[Any, ...], needed: tuple[bool, ...]) -> Applied:
        """Return a call with its numbers copied."""
        kept = tuple(new(a._a.copy()) if isinstance(a, Tensor) else a for a in arguments)
        return cls(function, kept, needed)

    @property
    def names(self) -> list[str]:
        """What forward calls its arguments."""
        forward: Any = self.cls.forward  # type: ignore[attr-defined]
        parameters = list(inspect.signature(forward).parameters.values())
        parameters = parameters if hasattr(self.cls, "setup_context") else parameters[1:]
        found = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return [found[i] if i < len(found) else f"x{i}" for i in range(len(self.arguments))]


@dataclass
class Replay:
    """What a call computes, and what its backward returns, as nodes of one graph."""

    recorded: Recorded
    outputs: list[Node]
    weights: list[str]  # the names of v, one for each output
    gradients: dict[str, Node]  # what backward returns, by the argument's name


@contextmanager
def as_double() -> Iterator[None]:
    """Have real numbers be float64 that say nothing of their dtype, and numbers of operations parts of the graph."""
    before = default_dtype(), Recorder.explains
    set_default_dtype(float64)
    Recorder.explains = True
    try:
        yield
    finally:
        set_default_dtype(before[0])
        Recorder.explains = before[1]


def replayed(applied: Applied, seed: int) -> Replay | None:
    """Run a call again, in float64; None where its forward leaves no history, as NumPy's functions do."""
    names = applied.names
    leaves = {i: _leaf(a) for i, (a, n) in enumerate(zip(applied.arguments, applied.needed, strict=True)) if n}
    given = [a.double() if _is_real(a) else a for a in applied.arguments]
    with enable_grad():
        given = [leaves[i].clone() if i in leaves else a for i, a in enumerate(given)]
        context, outputs = forward(applied.cls, given, applied.needed)
        whole = [y for y in outputs if _is_real(y) and id(y) not in context._whole]
        if not whole or not all(y.requires_grad for y in whole):
            return None
        v = {id(y): _leaf(new(drawn(y._a.shape, seed + k))) for k, y in enumerate(whole)}
        found = backward(applied.cls, context, [v.get(id(y), y) for y in outputs if isinstance(y, Tensor)])
    weights = ["v"] if len(whole) == 1 else [f"v{k}" for k in range(len(whole))]
    called = {id(x): names[i] for i, x in leaves.items()}
    called |= {id(x): w for x, w in zip(v.values(), weights, strict=True)}
    return _as_graph(whole, weights, called, {names[i]: found[i] if i < len(found) else None for i in leaves})


def _as_graph(kept: list[Tensor], weights: list[str], called: dict[int, str], found: dict[str, Any]) -> Replay | None:
    """Return outputs and gradients as nodes of one graph; `called` are the names of the leaves."""
    traced = [(name, g) for name, g in found.items() if isinstance(g, Tensor) and g.requires_grad]
    whole = [y.clone() for y in kept] + [g.clone() for _, g in traced]
    names = Names(called | {id(y): f"\0{k}" for k, y in enumerate(whole)})
    system = recorded(Call([(y, new(np.zeros_like(y._a))) for y in whole]), names)
    if system.functions:
        return None
    nodes = [system.graph.outputs[f"\0{k}"] for k in range(len(whole))]
    gradients = dict(zip([name for name, _ in traced], nodes[len(kept) :], strict=True))
    for name, g in found.items():
        if name not in gradients and isinstance(g, Tensor):
            gradients[name] = const(tuple(float(e) for e in g._a.reshape(-1)), g._a.shape[:-1])
    return Replay(system, nodes[: len(kept)], weights, gradients)


def forward(cls: Any, given: list[Any], needed: tuple[bool, ...]) -> tuple[Context, list[Any]]:
    """Run a forward, in the mode that holds."""
    context, found = functions.forward(cls, given, {}, needed)
    return context, list(found) if isinstance(found, tuple) else [found]


def backward(cls: Any, context: Context, v: list[Any]) -> list[Any]:
    """Run a backward, in the mode that holds; what was marked with once_differentiable is looked into."""
    found = getattr(cls.backward, "__wrapped__", cls.backward)(context, *v)
    return list(found) if isinstance(found, tuple | list) else [found]


def _is_real(a: Any) -> bool:
    return isinstance(a, Tensor) and a._a.dtype.kind == "f"


def _leaf(a: Tensor) -> Tensor:
    """Return a leaf in float64; decimals are what they were typed as."""
    found = new(decimal(a._a))
    found._requires = True
    return found


def drawn(shape: tuple[int, ...], seed: int) -> Array:
    """Return random numbers of two digits."""
    return np.round(np.random.default_rng(seed).normal(size=shape) * 2, 1) + 0.05


def numbers(applied: Applied, moved: dict[int, Array]) -> list[Array]:
    """Return the real outputs of a forward in float64, with other numbers for some of its arguments."""
    given = [a.double() if _is_real(a) else a for a in applied.arguments]
    given = [new(moved[i].copy()) if i in moved else a for i, a in enumerate(given)]
    with no_grad():
        context, outputs = forward(applied.cls, given, applied.needed)
    return [y._a.astype(float) for y in outputs if _is_real(y) and id(y) not in context._whole]
