"""A call of a custom function, run once more in float64, with both its forward and its backward recorded.

It is run again by design: the record of the script has neither the graph of a `backward` nor float64.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gradcli.pytorch.autograd import function as functions
from gradcli.pytorch.backward import Call
from gradcli.pytorch.dtypes import default_dtype, float64, set_default_dtype
from gradcli.pytorch.modes import enable_grad, no_grad
from gradcli.pytorch.record import Listener, Recorder
from gradcli.pytorch.recording import Names, Tape
from gradcli.pytorch.tensor import Tensor, new
from gradcli.record.numbers import Array, decimal
from gradcli.record.record import Record

_MOST = 20  # calls of a function that are kept
OUTPUT = "\0{}"  # the name of an output, or of a gradient behind them, in the record of a replay


@dataclass
class Applications(Listener):
    """The calls of each custom function of a script: the first ones."""

    explains = False
    kept: dict[type, list[Applied]] = field(default_factory=dict)

    def applies(self, function: type, args: tuple[Any, ...], needed: tuple[bool, ...]) -> None:
        """Keep a call."""
        calls = self.kept.setdefault(function, [])
        if len(calls) < _MOST and not function.__module__.startswith(("gradcli.", "torch.")):
            copies = tuple(new(a._a.copy()) if isinstance(a, Tensor) else a for a in args)
            calls.append(Applied(function, copies, needed))


@dataclass
class Applied:
    """A call of a custom function: its arguments, whose numbers are copies."""

    cls: type
    arguments: tuple[Any, ...]
    needed: tuple[bool, ...]

    @property
    def names(self) -> list[str]:
        """The names of the arguments of forward."""
        forward: Any = self.cls.forward  # type: ignore[attr-defined]
        parameters = list(inspect.signature(forward).parameters.values())
        parameters = parameters if hasattr(self.cls, "setup_context") else parameters[1:]
        result = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return [result[i] if i < len(result) else f"x{i}" for i in range(len(self.arguments))]

    @property
    def numbers(self) -> dict[int, Array]:
        """The numbers of the arguments that need a gradient, by position: decimals are what they were typed as."""
        return {i: decimal(a._a) for i, a in enumerate(self.arguments) if self.needed[i]}

    def run(self, replaced: Mapping[int, Tensor]) -> _Ran:
        """Run the forward in float64, in the mode that holds, with other tensors for some of its arguments."""
        arguments = [replaced.get(i, a.double() if _is_real(a) else a) for i, a in enumerate(self.arguments)]
        context, result = functions.run_forward(self.cls, arguments, {}, self.needed)
        outputs = list(result) if isinstance(result, tuple) else [result]
        real = [y for y in outputs if _is_real(y) and id(y) not in context._whole]
        return _Ran(self, context, outputs, real)

    def forward(self, moved: Mapping[int, Array]) -> list[Array]:
        """Return the real outputs of the forward in numbers, with other numbers for some of its arguments."""
        with no_grad():
            return [y._a.astype(float) for y in self.run({i: new(a.copy()) for i, a in moved.items()}).real]

    def backward(self) -> tuple[list[Array], dict[int, Array]]:
        """Return random v, one for each output, and what the backward returns for them, in numbers, by position."""
        ran = self.run({i: new(a.copy()) for i, a in self.numbers.items()})
        v = [drawn(y._a.shape, k) for k, y in enumerate(ran.real)]
        gradients = ran.backward([new(w) for w in v])
        zeros = {i: np.zeros_like(a) for i, a in self.numbers.items()}
        return v, {i: getattr(gradients[i], "_a", zero) for i, zero in zeros.items()}


class _Ran(NamedTuple):
    """A forward that has run: its context, its outputs, and those of them that have gradients."""

    call: Applied
    context: functions.Context
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


class Replay(NamedTuple):
    """The record of a call and its backward, whose roots are the outputs and then the gradients that are traced."""

    record: Record
    weights: Sequence[str]  # the names of v, one for each output
    traced: Sequence[str]  # the names of the arguments whose gradients are roots
    constant: Mapping[str, Array]  # the gradients of other arguments


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
    leaves = {i: _leaf(a) for i, a in applied.numbers.items()}
    with enable_grad():
        ran = applied.run({i: x.clone() for i, x in leaves.items()})
        if not ran.real or not all(y.requires_grad for y in ran.real):
            return None
        v = [_leaf(drawn(y._a.shape, seed + k)) for k, y in enumerate(ran.real)]
        gradients = ran.backward(v)
    weights = ["v"] if len(v) == 1 else [f"v{k}" for k in range(len(v))]
    returned = {applied.names[i]: g for i in leaves if isinstance(g := gradients[i], Tensor)}
    traced = [name for name, g in returned.items() if g.requires_grad]
    roots = [y.clone() for y in (*ran.real, *(returned[name] for name in traced))]
    named = {applied.names[i]: x for i, x in leaves.items()} | dict(zip(weights, v, strict=True))
    names = Names(named | {OUTPUT.format(k): y for k, y in enumerate(roots)})
    record = Tape(Call([(y, new(np.zeros_like(y._a))) for y in roots]), names).record()
    constant = {name: g._a[..., 0] for name, g in returned.items() if name not in traced}
    return Replay(record, weights, traced, constant)


def _is_real(a: Any) -> bool:
    return isinstance(a, Tensor) and a._a.dtype.kind == "f"


def _leaf(a: Array) -> Tensor:
    """Return a leaf."""
    result = new(a)
    result._requires = True
    return result


def drawn(shape: tuple[int, ...], seed: int) -> Array:
    """Return random numbers of two digits."""
    return np.round(np.random.default_rng(seed).normal(size=shape) * 2, 1) + 0.05
