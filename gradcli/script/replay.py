"""A call of a custom function, run once more in float64, with both its forward and its backward recorded.

It is run again by design: the record has neither the graph of a `backward` nor float64.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradcli.graph.node import Node, const
from gradcli.pytorch.autograd import function as functions
from gradcli.pytorch.autograd.function import Context
from gradcli.pytorch.backward import Call
from gradcli.pytorch.dtypes import default_dtype, float64, set_default_dtype
from gradcli.pytorch.modes import enable_grad, no_grad
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.recording import Tape
from gradcli.pytorch.tensor import Tensor, new
from gradcli.script.naming import Names, add_tensor
from gradcli.script.recorded import recorded
from gradcli.script.system import Recorded
from gradcli.script.written import decimal

Array = np.ndarray[Any, Any]


@dataclass
class Applied:
    """A call of a custom function: its arguments, whose numbers are copies."""

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
        """The names of the arguments of forward."""
        forward: Any = self.cls.forward  # type: ignore[attr-defined]
        parameters = list(inspect.signature(forward).parameters.values())
        parameters = parameters if hasattr(self.cls, "setup_context") else parameters[1:]
        result = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return [result[i] if i < len(result) else f"x{i}" for i in range(len(self.arguments))]

    def forward(self, replaced: Mapping[int, Tensor]) -> Ran:
        """Run the forward in float64, in the mode that holds, with other tensors for some of its arguments."""
        arguments = [replaced.get(i, a.double() if _is_real(a) else a) for i, a in enumerate(self.arguments)]
        context, result = functions.run_forward(self.cls, arguments, {}, self.needed)
        outputs = list(result) if isinstance(result, tuple) else [result]
        return Ran(self, context, outputs, [y for y in outputs if _is_real(y) and id(y) not in context._whole])

    def numbers(self, moved: Mapping[int, Array]) -> list[Array]:
        """Return the real outputs of the forward in numbers, with other numbers for some of its arguments."""
        with no_grad():
            return [y._a.astype(float) for y in self.forward({i: new(a.copy()) for i, a in moved.items()}).real]


class Ran(NamedTuple):
    """A forward that has run: its context, its outputs, and those of them that have gradients."""

    call: Applied
    context: Context
    outputs: list[Any]
    real: list[Tensor]

    def backward(self, v: Sequence[Tensor]) -> list[Any]:
        """Return the gradients of the backward for each argument, also of one under once_differentiable."""
        weights = {id(y): w for y, w in zip(self.real, v, strict=True)}
        grads = [weights.get(id(y), y) for y in self.outputs if isinstance(y, Tensor)]
        cls: Any = self.call.cls
        result = getattr(cls.backward, "__wrapped__", cls.backward)(self.context, *grads)
        result = list(result) if isinstance(result, tuple | list) else [result]
        return result + [None] * (len(self.call.arguments) - len(result))


@dataclass
class Replay:
    """A call of a Function and its backward as nodes of one graph."""

    recorded: Recorded
    outputs: list[Node]
    weights: list[str]  # the names of v, one for each output
    gradients: dict[str, Node]  # what backward returns, by the argument's name


@contextmanager
def as_double() -> Iterator[None]:
    """Make float64 the default dtype, and record numbers as parts of the graph, in a block."""
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
    leaves = {i: _leaf(a) for i, a in enumerate(applied.arguments) if applied.needed[i]}
    with enable_grad():
        ran = applied.forward({i: x.clone() for i, x in leaves.items()})
        if not ran.real or not all(y.requires_grad for y in ran.real):
            return None
        v = [_leaf(new(drawn(y._a.shape, seed + k))) for k, y in enumerate(ran.real)]
        result = ran.backward(v)
    weights = ["v"] if len(v) == 1 else [f"v{k}" for k in range(len(v))]
    names = Names()
    for i, x in leaves.items():
        add_tensor(x, applied.names[i], names)
    for x, name in zip(v, weights, strict=True):
        add_tensor(x, name, names)
    return _as_graph(ran.real, weights, names, {applied.names[i]: result[i] for i in leaves})


def _as_graph(kept: list[Tensor], weights: list[str], names: Names, tensors: dict[str, Any]) -> Replay | None:
    """Return outputs and gradients as nodes of one graph; `names` has those of the leaves."""
    traced = [(name, g) for name, g in tensors.items() if isinstance(g, Tensor) and g.requires_grad]
    whole = [y.clone() for y in kept] + [g.clone() for _, g in traced]
    for k, y in enumerate(whole):
        add_tensor(y, f"\0{k}", names)
    record = Tape(Call([(y, new(np.zeros_like(y._a))) for y in whole]), names).record()
    system = recorded(record, record.backwards[0])
    if system.functions:
        return None
    nodes = [system.graph.outputs[f"\0{k}"] for k in range(len(whole))]
    gradients = dict(zip([name for name, _ in traced], nodes[len(kept) :], strict=True))
    for name, g in tensors.items():
        if name not in gradients and isinstance(g, Tensor):
            gradients[name] = const(tuple(float(e) for e in g._a.reshape(-1)), g._a.shape[:-1])
    return Replay(system, nodes[: len(kept)], weights, gradients)


def _is_real(a: Any) -> bool:
    return isinstance(a, Tensor) and a._a.dtype.kind == "f"


def _leaf(a: Tensor) -> Tensor:
    """Return a leaf in float64; decimals are what they were typed as."""
    result = new(decimal(a._a))
    result._requires = True
    return result


def drawn(shape: tuple[int, ...], seed: int) -> Array:
    """Return random numbers of two digits."""
    return np.round(np.random.default_rng(seed).normal(size=shape) * 2, 1) + 0.05
