"""The row of an operation: its kind, its settings, its derivative, its definition in simpler operations, its facts.

What follows from the kind (which elements depend on which, what it costs, whether it takes memory) is derived from it
and listed nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

import numpy as np

from gradcli.graph.array import Array
from gradcli.graph.node import Exact, Node

Slope = Callable[..., Node | Exact]

Kind = Literal[
    "elementwise",  # broadcasts, and has a slope for each argument, or none at all
    "step",  # elementwise and piecewise constant: its gradient is 0
    "condition",  # elementwise, with booleans as its result: no gradient
    "view",  # moves elements without taking memory
    "move",  # moves elements into an array of its own
    "scatter",  # adds elements into zeros
    "reduction",  # over the axes that are its first setting
    "scan",  # along the axis that is its first setting, each element made of those before it
    "along",  # along the axis that is its first setting, each element made of all
    "mask",  # booleans along an axis: no gradient
    "index",  # integer indices along an axis, as argmax returns: no gradient
    "contraction",  # sums products of two arrays
    "matrix",  # of each matrix of a stack as a whole
    "whole",  # every element depends on all of the arguments
]


class Precedence(IntEnum):
    """How tightly an operator binds in Python; a call, a name and a number are atoms."""

    COMPARISON = 1
    OR = 2
    AND = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    POWER = 7
    ATOM = 8


@dataclass(frozen=True)
class Corner:
    """Points at which an operation has no derivative, and what its rule gives there.

    `at(y, *settings, *arguments)` is the condition as a node; it broadcasts to the shape of the first argument.
    `result` says what the rule gives there, and may depend on the settings.  The corner belongs to the arguments at
    `positions`: the operation is differentiable in the others.
    """

    at: Callable[..., Node]
    result: str | Callable[..., str]
    positions: tuple[int, ...] = (0,)

    def text(self, settings: Sequence[object]) -> str:
        """Return the text of `result`."""
        return self.result if isinstance(self.result, str) else self.result(*settings)


@dataclass(frozen=True)
class Operation:
    """One row of the table.

    An elementwise one takes `arity` arguments; `infix` is the sign between them, or before a single one,
    and `precedence` says how tightly it binds.  One with neither slopes nor pullback passes nothing on, as `detach` and
    the conditions do.
    `slopes[i](y, *arguments)` is ∂y/∂(i-th argument) of an elementwise operation, as a node or a number; `textbook` has
    slopes as they are known, by the argument, where what is computed in their place keeps more digits or takes less.
    `pullback(g, y, *settings, *arguments)` gives for each argument of another one the node that the adjoint `g` of `y`
    passes to it; both are written in operations of the table, so that a derivative can be derived again.
    `definition(*settings, *arguments)` spells the operation in simpler ones, for formulas and for engines; `lowered`
    does for engines alone, where the textbook's definition is numerically poor, and `formula` for formulas alone.  An
    operation with neither of the first two is primitive: each engine has a rule for it.  So it is where they return
    None: the inverse of a large matrix, for one, is not written out.  `move(*settings, *arrays)` is where elements go,
    for NumPy arrays of anything with an added last axis; a scatter's takes `join` too, which puts together what falls
    on one place.  `exact` is whether each element of the result is one of an argument's, its negative, or a constant.

    Facts: the result is linear in each argument at `linear`, the others held.  An operation that `commutes` gives the
    same bits if its two arguments are exchanged.  One that `keeps_integers` gives integers of integers, where others
    give floating-point numbers.  One that `selects` takes its second or third argument, by its first.  A slope that is
    a selection selects the adjoint, except at the positions in `multiplies`, where it is a factor.  `merged` returns
    the sum of several nodes of this operation as one node.
    """

    kind: Kind
    settings: tuple[str, ...] = ()
    pullback: Callable[..., Sequence[Node]] | None = None
    arity: int = 1
    slopes: tuple[Slope, ...] = ()
    textbook: Mapping[int, Slope] = field(default_factory=dict)
    definition: Callable[..., Node | None] | None = None
    lowered: Callable[..., Node | None] | None = None
    formula: Callable[..., Node | None] | None = None
    move: Callable[..., Array] | None = None
    infix: str = ""
    precedence: Precedence = Precedence.ATOM
    exact: bool = False
    linear: tuple[int, ...] = ()
    commutes: bool = False
    keeps_integers: bool = False
    selects: bool = False
    multiplies: tuple[int, ...] = ()
    merged: Callable[[Sequence[Node]], Node] | None = None
    corner: Corner | None = None

    @property
    def rounds(self) -> bool:
        """Whether its result is rounded to the nearest floating-point number."""
        return not self.exact and self.kind not in ("step", "condition", "view", "move", "mask", "index")

    @property
    def for_engines(self) -> Callable[..., Node | None] | None:
        """The definition in simpler operations for engines, or None for a primitive operation."""
        return self.lowered or self.definition

    @property
    def for_formulas(self) -> Callable[..., Node | None] | None:
        """The definition in simpler operations for formulas, from which sparsity is derived too; None if primitive."""
        return self.definition or self.formula

    @property
    def broadcasts(self) -> bool:
        """Whether it works element by element."""
        return self.kind in ("elementwise", "step", "condition")

    @property
    def compares(self) -> bool:
        """Whether it is a comparison of numbers."""
        return self.precedence is Precedence.COMPARISON

    @property
    def passes_on(self) -> bool:
        """Whether it has a derivative: conditions, masks and indices have none."""
        return bool(self.slopes) or self.pullback is not None

    def is_linear_in(self, position: int) -> bool:
        """Return whether the result is linear in an argument while the other arguments are constant."""
        return position in self.linear or self.kind == "contraction" or self.move is not None

    def moved(self, settings: Sequence[object], *arrays: Array, join: np.ufunc = np.add) -> Array:
        """Return arrays of anything, without an axis of points, after an operation that moves their elements."""
        assert self.move is not None
        more = {"join": join} if self.kind == "scatter" else {}
        return self.move(*settings, *(a[..., None] for a in arrays), **more)[..., 0]


def function(*slopes: Slope, **rest: Any) -> Operation:
    """Return the row of an elementwise operation with a slope for each argument; `rest` are further fields."""
    return Operation("elementwise", arity=len(slopes), slopes=slopes, **rest)


def step(arity: int = 1, **rest: Any) -> Operation:
    """Return the row of an elementwise operation that is piecewise constant."""
    return Operation("step", arity=arity, slopes=(lambda *_: 0,) * arity, keeps_integers=True, **rest)


def condition(infix: str, arity: int = 2, **rest: Any) -> Operation:
    """Return the row of an elementwise operation whose result is true or false."""
    levels = {"|": Precedence.OR, "&": Precedence.AND, "~": Precedence.SIGN}
    return Operation("condition", arity=arity, infix=infix, precedence=levels.get(infix, Precedence.COMPARISON), **rest)
