"""The state of an explorer, and the changes that its keys make; undo returns to the state before."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError
from gradcli.explore.fields import COTANGENT, INPUT, RATE, Field, Index, fields_of, stepped, typed_values, unit_of
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import Sweep, sweep
from gradcli.pages.backward.loss import loss_name
from gradcli.pages.evaluation import sweep_inputs

CALLS = 20  # of `backward` that add up
_RATE = 0.1


@dataclass(frozen=True)
class State:
    """A state: the point, the cotangent of each `backward` call (the fields show the last one), and what is shown.

    `implicit` says that nobody gave a cotangent.  `losses` are those before each step of gradient descent.
    """

    at: Named
    calls: tuple[Named, ...]
    implicit: bool = False
    rate: float = _RATE
    losses: tuple[float, ...] = ()

    @property
    def v(self) -> Named:
        """The cotangent of the last call."""
        return self.calls[-1]


@dataclass
class Explorer:
    """A system that is explored: its graph, the leaves that have gradients, the state, and the states before it.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> graph = Graph.of({"x": x}, {"y": x * x})
    >>> explorer = Explorer(graph, ["x"], State({"x": np.array(3.0)}, ({"y": np.array(1.0)},)))
    >>> explorer.step(explorer.fields[0], 10)
    >>> float(explorer.state.at["x"]), {name: float(g) for name, g in explorer.gradient().items()}
    (4.0, {'x': 8.0})
    """

    graph: Graph
    wrt: Sequence[str]
    state: State
    past: list[State] = field(default_factory=list)
    check: Callable[[Named], None] = lambda at: None  # raises an `InputError` for a point that cannot be shown

    def __post_init__(self) -> None:
        self.first = self.state
        self.units: dict[Field, float] = {}

    @cached_property
    def fields(self) -> list[Field]:
        """The fields, in the order in which they are shown."""
        used = {name: self.graph.inputs[name] for name in self.state.at if name in self.graph.inputs}
        return fields_of(used, self.graph.outputs)

    @cached_property
    def swept(self) -> Sweep:
        """The reverse sweep."""
        return sweep(self.graph, self.wrt)

    @property
    def loss(self) -> str:
        """The name of the scalar whose gradient is shown: the output's, or a new one for Σ v_i·y_i."""
        return loss_name(self.graph, self.state.v)

    def array(self, at: Field) -> Array:
        """Return the array that a field is in."""
        if at.kind == RATE:
            return np.array(self.state.rate)
        return (self.state.at if at.kind == INPUT else self.state.v)[at.name]

    def value(self, at: Field) -> float:
        """Return the number in a field; nan for a whole array."""
        return math.nan if at.at is None else float(self.array(at)[at.at])

    def step(self, at: Field, count: int) -> None:
        """Change the number in a field by some steps, whose size is that of the field's first value.

        Errors: `InputError` for a whole array.
        """
        if at.at is None:
            raise InputError(f"`{at.name}` has {self.array(at).size:,} elements: Enter takes one, or all of them")
        unit = self.units.setdefault(at, unit_of(self.value(at)))
        self.change(self._with(self.state, at.kind, at.name, at.at, stepped(self.value(at), unit, count)))

    def enter(self, at: Field, text: str) -> None:
        """Take what is typed into a field.

        Errors: `InputError` for anything but numbers, which changes nothing.
        """
        state = self.state
        known = state.at if at.kind == INPUT else state.v
        if at.at is None and "=" not in text and not text.strip().startswith(("[", "@")):
            raise InputError(
                f"`{at.name}` has {self.array(at).size:,} elements", hint="type an element and its value: [3]=0.5"
            )
        for name, index, value in typed_values(at, text, known):
            state = self._with(state, at.kind, name, index, value)
        self.units.pop(at, None)
        self.change(state)

    def _with(self, state: State, kind: str, name: str, index: Index | None, value: float | Array) -> State:
        """Return the state with a number, or a whole array, changed."""
        if kind == RATE:
            return replace(state, rate=float(value))
        arrays = state.at if kind == INPUT else state.v
        array = np.array(value if index is None else arrays[name], dtype=float)
        if index is not None:
            array[index] = value
        if kind == COTANGENT:
            return replace(state, calls=(*state.calls[:-1], arrays | {name: array}), implicit=False)
        return replace(state, at=arrays | {name: array})

    def change(self, state: State) -> None:
        """Go on to another state.

        Errors: `InputError` for a point that cannot be shown.
        """
        self.check(state.at)
        self.past.append(self.state)
        self.state = state

    def undo(self) -> bool:
        """Go back to the state before; return whether there is one."""
        if not self.past:
            return False
        self.state = self.past.pop()
        return True

    def reset(self) -> None:
        """Go back to the first state; this can be undone."""
        self.units.clear()
        self.change(self.first)

    def call(self) -> None:
        """Call `backward` once more, with the same cotangent: gradients accumulate.

        Errors: `InputError` for more calls than are shown.
        """
        if len(self.state.calls) >= CALLS:
            raise InputError(f"{CALLS} calls of backward are shown at most", hint="z zeroes .grad")
        self.change(replace(self.state, calls=(*self.state.calls, self.state.v)))

    def zero(self) -> None:
        """Forget all calls but the last one, as if `.grad` had been zeroed before it."""
        self.change(replace(self.state, calls=(self.state.v,)))

    @np.errstate(all="ignore")
    def descend(self) -> None:
        """Take a step of gradient descent, x - rate·x.grad, for each leaf.

        Errors: `InputError` where a gradient is not finite.
        """
        gradient = self.gradient()
        if wrong := next((name for name, g in gradient.items() if not np.isfinite(g).all()), None):
            raise InputError(f"{wrong}.grad is not finite: gradient descent stops here")
        moved = {name: self.state.at[name] - self.state.rate * g for name, g in gradient.items()}
        self.change(replace(self.state, at=self.state.at | moved, losses=(*self.state.losses, self.loss_at())))

    @np.errstate(all="ignore")
    def gradient(self, last: bool = False) -> Named:
        """Return the gradient of each leaf, all calls added up, or of the last one alone."""
        calls = self.state.calls[-1:] if last else self.state.calls
        wanted = {name: self.swept.gradients[name] for name in self.wrt}
        values = values_of(self.swept.graph, sweep_inputs(self.state.at, calls), wanted.values())
        shapes = {name: (*n.shape, len(calls)) for name, n in wanted.items()}
        return {n: np.broadcast_to(values[g], shapes[n]).sum(axis=-1, dtype=float) for n, g in wanted.items()}

    def loss_at(self) -> float:
        """Return L = Σ v_i·y_i at the state's point."""
        return float(self.losses_at({n: x[..., None] for n, x in self.state.at.items()})[0])

    @np.errstate(all="ignore")
    def losses_at(self, points: Mapping[str, Array]) -> Array:
        """Return L = Σ v_i·y_i at several points, which are the last axis of the inputs."""
        outputs = self.graph.outputs
        values = values_of(self.graph, points, outputs.values())
        count = max((x.shape[-1] for x in points.values()), default=1)
        total = np.zeros(count)
        for name, y in outputs.items():
            v = self.state.v[name]
            weighted = np.where(v[..., None] == 0, 0.0, v[..., None] * values[y])
            total += np.broadcast_to(weighted, (*y.shape, count)).reshape(-1, count).sum(axis=0)
        return total
