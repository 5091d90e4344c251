"""A picture of a system as data: boxes with formulas and values, and arrows with local derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from gradcli.graph.names import AdjointName, adjoint_name
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape
from gradcli.notation.numbers import shape_text
from gradcli.pages.images import gradient_panel, value_panel
from gradcli.pages.recurrence import Folded
from gradcli.pages.results import UNMEASURED, Array, Measured, Named, Style
from gradcli.pages.rounds import Reads
from gradcli.pages.sections import Equal, Math, Name, Panel, Product, Value, Words

Kind = Literal["leaf", "intermediate", "output"]

NO_GRADIENT: Final = "no gradient"  # behind it, why: a condition
REQUIRES_NONE: Final = "requires no gradient"


@dataclass(frozen=True)
class Arrow:
    """An arrow into the box that holds it, from the box of that index, with its local derivative or VJP rule."""

    source: int
    local: Math | None


@dataclass(frozen=True)
class Path:
    """A contribution to a box's adjoint from a box that reads it: that box's adjoint times the local derivative, or v.

    There is no `product` where these are arrays, of which only the norm of what arrives is shown.
    """

    source: str
    product: tuple[float, float] | None
    contribution: float

    def math(self) -> Math:
        """Return the line of a path: `t1: 1·6 = 6`."""
        number = Value.of(self.contribution)
        if self.product is None:
            return Words((Name(self.source), ": ", number))
        return Words((Name(self.source), ": ", Equal((Product(tuple(map(Value.of, self.product))), number))))


def one_notation(name: str, loss: str, barred: bool) -> AdjointName:
    """Return the name of an adjoint in a picture whose adjoints are all `barred`, or none: but for that of the loss.

    >>> one_notation("loss", "loss", True), one_notation("x", "loss", False)
    ('∂loss/∂loss', '∂loss/∂x')
    """
    return adjoint_name(name, loss, None if name == loss else barred)


@dataclass(frozen=True)
class Rounds:
    """The size of an adjoint, or of what is added to one, in each round of a loop: of arrays the norm.

    `name` is that of the adjoint, and `what` the words before it; `reads` are what has the numbers, by the index;
    without a point, no `sizes` are known.
    """

    what: str
    name: str
    index: str
    reads: Mapping[int, Reads]
    sizes: Mapping[int, float]

    def math(self) -> list[Math]:
        """Return the line of a loop: `h̄[t] for t in 1..5: 0.13 … 2.9`."""
        first, last = min(self.reads), max(self.reads)
        said: list[Math] = [self.what, Name(self.name), f" for {self.index} in {first}..{last}: "]
        if self.sizes:
            said += [Value.of(self.sizes[first]), " … ", Value.of(self.sizes[last])]
        return [Words(tuple(filter(None, said)))]


@dataclass(frozen=True)
class Box:
    """A value: its name, what computes it (nothing for a leaf), its primal at a point, and its adjoint.

    The adjoint is None where none is shown, and words where there is none; `bars` are the names of those of the first
    and the last value.  `others` are further names of the same value.  `times` is how many values the box has:
    repetitions, of which it shows the last value, or isomorphic values side by side, of which it shows all that are
    single numbers, and in `ends` the names of the first and the last.  A loop has its `statements`, each as the sides
    of an equation, and the size of its adjoints in each of its `rounds`.  An `image` is shown as one.  `paths` are the
    contributions to the adjoint, the largest first, where there are several.  `nodes` are those that are in the box.
    """

    name: str
    kind: Kind
    formula: Math | None
    shape: Shape
    value: Array | None
    adjoint: Array | str | None
    arrows: tuple[Arrow, ...]
    others: tuple[str, ...] = ()
    times: int = 1
    ends: tuple[str, ...] = ()
    bars: tuple[str, ...] = ()
    image: bool = False
    paths: tuple[Path, ...] = ()
    nodes: tuple[Node, ...] = ()
    statements: tuple[tuple[Math, ...], ...] = ()
    rounds: tuple[Rounds, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether the box stands for operations that follow each other, round by round."""
        return self.times > 1 and not self.ends

    @property
    def shown_rounds(self) -> list[Rounds]:
        """What is said of the rounds where the numbers are known."""
        return [rounds for rounds in self.rounds if rounds.sizes]

    def panels(self) -> list[Panel]:
        """Return the images of a box: its value and its adjoint."""
        if not self.image or self.value is None:
            return []
        value = value_panel(Name(self.name), self.value)
        if not isinstance(self.adjoint, np.ndarray):
            return [value]
        return [value, gradient_panel((Name(self.bars[0]),), self.adjoint)]

    def equation(self) -> list[Math]:
        """Return the sides of the equation for the value of the box."""
        sides: list[Math] = [*map(Name, self.others), self._named(self.ends or (self.name,))]
        if self.formula is not None:
            sides.append(self.formula)
        if self.value is not None:
            sides.append(Value(self.value))
        elif self.shape:
            sides[-1] = Words((sides[-1], f"  ({'each ' * bool(self.ends)}{shape_text(self.shape)})"))
        return sides

    def reverse(self) -> list[Math]:
        """Return the sides of the equation for the adjoint of the box; none where it has no adjoint."""
        if self.adjoint is None:
            return []
        if isinstance(self.adjoint, str):
            return [self.adjoint]
        return [self._named(self.bars), Value(self.adjoint)]

    def _named(self, names: Sequence[str]) -> Math:
        if not self.ends:
            return Name(names[0])
        return Words((Name(names[0]), ", …, " if self.times > 2 else ", ", Name(names[-1])))


@dataclass(frozen=True)
class Picture:
    """Boxes in topological order.

    `scalar` is the name of what adjoints are derivatives of, if there are any, and `loss` what that is, unless it is an
    output.  Adjoints are `barred`, x̄, or all of them ∂L/∂x: one notation in one picture.  `names` are those of the
    nodes.  `middle` says what one box has in place of many, in words; nothing where each operation is drawn.
    """

    boxes: tuple[Box, ...]
    style: Style
    scalar: str = ""
    loss: Math | None = None
    middle: str = ""
    barred: bool = True
    names: Mapping[Node, str] = field(default_factory=dict)

    def adjoint(self, name: str) -> AdjointName:
        """Return the name of the adjoint of a box."""
        return one_notation(name, self.scalar, self.barred)


@dataclass(frozen=True)
class View:
    """The settings of a picture: the point, the cotangent, the leaves, and whether repeated parts share a box.

    Without a point there are no values, without a cotangent no adjoints.  What was `measured` is not computed.  A loop
    of the system's, or one of the `loops` of a script, is one box; unrolled, each operation of each round has one.
    """

    wrt: Sequence[str]
    at: Named | None = None
    v: Named | None = None
    fold: bool = True
    measured: Measured = UNMEASURED
    unroll: bool = False
    loops: Folded | None = None
