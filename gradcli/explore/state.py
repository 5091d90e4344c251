"""The state of an explorer, its fields, each a number that can be changed, and the changes that its keys make."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gradcli.data.arrays import assigned_array
from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError, nearest
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape, inside
from gradcli.graph.vjp import Sweep, sweep
from gradcli.lang.values import read_point
from gradcli.pages.backward.loss import loss_name
from gradcli.pages.evaluation import sweep_inputs

ELEMENTS = 64  # of an array that has a field for each
INPUT, COTANGENT, RATE = "input", "cotangent", "rate"
CALLS = 20  # of `backward` that add up
_RATE = 0.1

Index = tuple[int, ...]


class Field(NamedTuple):
    """A number that can be changed: an element of an input or of a cotangent, or the learning rate.

    `at` is its index; it is None for a whole array, which is too large to have a field for each element.
    """

    kind: str
    name: str
    label: str
    at: Index | None = ()


def fields_of(inputs: Mapping[str, Node], outputs: Mapping[str, Node]) -> list[Field]:
    """Return the fields of a system: those of its inputs, those of its cotangents, and the learning rate.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> [f.label for f in fields_of({"x": x}, {"y": x * x})]
    ['x[0]', 'x[1]', 'y[0]', 'y[1]', 'learning rate']
    """
    result = [field for name, node in inputs.items() for field in _of(INPUT, name, node.shape)]
    result += [field for name, node in outputs.items() for field in _of(COTANGENT, name, node.shape)]
    return [*result, Field(RATE, "", "learning rate")]


def _of(kind: str, name: str, shape: Shape) -> Iterator[Field]:
    if math.prod(shape) > ELEMENTS:
        yield Field(kind, name, name, None)
        return
    for label, index in zip(element_names(name, shape), np.ndindex(*shape), strict=True):
        yield Field(kind, name, label, index)


def stepped(value: float, unit: float, count: int) -> float:
    """Return a value after a number of steps; decimals are exact, so that steps back lead to where one began.

    >>> stepped(1.1, unit_of(1.1), 1), stepped(100.0, unit_of(100.0), -2), stepped(0.3, unit_of(0.3), 10)
    (1.2, 80.0, 0.4)
    """
    return float(Decimal(repr(value)) + count * Decimal(repr(unit))) if math.isfinite(value) else value


def unit_of(value: float) -> float:
    """Return the step that suits a value: a tenth of its power of ten, and 0.1 for 0.

    >>> unit_of(3.0), unit_of(-25.0), unit_of(0.02), unit_of(0.0)
    (0.1, 1.0, 0.001, 0.1)
    """
    if value == 0 or not math.isfinite(value):
        return 0.1
    return float(Decimal(10) ** (Decimal(repr(abs(value))).adjusted() - 1))


def typed_values(field: Field, text: str, known: Named) -> list[tuple[str, Index | None, float | np.ndarray]]:
    """Return the values typed into a field: its own, and those of others after commas, as in `2,x1=3`.

    Each is the name of an array, the index of an element (None: all of them), and the value.  `known` are the arrays.

    Errors: `InputError` for anything but numbers of the right shapes, with its position.
    """
    result = []
    for a in read_point(_assignment(field, text), ""):
        if a.name not in (known if field.kind != RATE else ("rate",)):
            raise InputError(f"`{a.name}` has no field here", a.span, nearest(a.name, known, "names"))
        value, shape = assigned_array(a), np.shape(known.get(a.name, 0.0))
        index = a.key if a.key is not None or shape else ()
        wanted = shape if index is None else ()
        if index is not None and index and not inside(index, shape):
            raise InputError(f"`{a.span.text.strip()}` is not an element of `{a.name}`, of shape {shape}", a.span)
        if value.shape != wanted:
            needed = f"an array of shape {wanted}" if wanted else "a number"
            raise InputError(f"`{a.name}` must be {needed}, and this has shape {value.shape}", a.span)
        result.append((a.name, index, value if index is None else float(value)))
    return result


def _assignment(field: Field, text: str) -> str:
    """Return the typed text with the name that it is for: `x=3`, and `X[3]=0.5` for an element of a whole array."""
    if field.at is None and re.match(r"\s*\[[\d\s,]*\]\s*=", text, re.ASCII):
        return f"{field.name}{text.strip()}"
    return f"{'rate' if field.kind == RATE else field.label}={text}"


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
            hint = "type an element and its value: [3]=0.5"
            raise InputError(f"`{at.name}` has {self.array(at).size:,} elements", hint=hint)
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
