"""The row of an operation: its kind, its settings, its derivative, its definition in simpler operations, its facts.

What follows from the kind (which elements depend on which, what it costs, whether it takes memory) is derived from it
and listed nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from gradcli.errors import InputError
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
    "call",  # of a function that users call as a whole, and that its definition says in simpler operations
]


class Precedence(IntEnum):
    """The precedence of an operator in Python; a call, a name and a number are atoms."""

    COMPARISON = 1
    OR = 2
    AND = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    POWER = 7
    ATOM = 8


class Corner(NamedTuple):
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


@dataclass(frozen=True, eq=False, repr=False)
class Operation:
    """One row of the table: all facts of an operation.

    An operation without slopes and without a pullback has no derivative, such as `detach` and the conditions; a call
    has that of its definition.  One without a `definition` and without `lowered`, or whose function returns None, is
    primitive: each engine has a rule for it.  So the cofactors of a large matrix are primitive, and those of a small
    one are written out.

    Derivative
        slopes: `slopes[i](y, *arguments)` is ∂y/∂(i-th argument) of an elementwise operation, a node or a number.
        textbook: slopes by position as they are usually written, where the computed one keeps more digits or is faster.
        pullback: `pullback(g, y, *settings, *arguments)` returns, for another operation, the adjoint of each argument
            from the adjoint `g` of `y`; that of a call may return None, and has the definition's then.  Slopes and
            pullbacks are made of operations of the table, so that they have derivatives too.
        residuals: `residuals(*settings, *arguments)` returns the inner nodes of a call that its own pullback reads, as
            it makes them: what a forward pass keeps, so that no backward computes them again.
        multiplies: the positions at which a slope that is a selection is a factor; elsewhere it selects the adjoint.
        corner: the condition of points without a derivative, and the value that the rule takes there.
    Meaning
        definition: `definition(*settings, *arguments)` writes the operation in simpler ones.
        lowered: the definition for engines, where the textbook's is numerically poor.
        formula: the definition for formulas alone.
        move: `move(*settings, *arrays)` moves the elements of NumPy arrays of any dtype with an added last axis; that
            of a scatter also takes `join`, the ufunc that combines elements at one index.
    Notation
        infix: the sign between two arguments, or before one.
        options: the names of the last arguments, which are typed with them, and their defaults (None for an array that
            may be left out: the setting `given` names those that are there).
        precedence: how tightly the sign binds.
    Facts
        arity: the number of arguments of an elementwise operation.
        exact: each element of the result is one of an argument's, its negative, or a constant.
        linear: the positions of the arguments in each of which the result is linear, the others held.
        commutes: the result has the same bits if the two arguments are exchanged.
        results: the number of results of a call; where there are several, the last setting is that of one.
        indices: the positions of the arguments of a call that are integers: classes, and rows of a table.
        conditions: the positions of the arguments of a call that may be booleans, true where positive.
        keeps_integers: integers give integers; other operations give floating-point numbers.
        joins: the elementwise operation that a reduction or a scan applies from one element to the next.
        selects: the result is the second or the third argument, by the first.
        poles: it is infinite at some finite arguments.
        odd: f(−x) = −f(x), and where x is positive, so is f(x); it is 0 at 0 alone.
        degree: the power of a positive number by which the result grows where the first argument grows by the number.
        merged: returns the sum of several nodes of this operation as one node.
    Targets
        spelling: how a target calls it, by the target's name: the name of a function of its library, or a text with
            fields for the arguments and, by their names, for the settings.  JAX has NumPy's names where none is given.
            Of what a target calls in another way, its own file has the rule; what has neither is an error there.
    """

    kind: Kind
    settings: tuple[str, ...] = ()
    pullback: Callable[..., Sequence[Node] | None] | None = None
    arity: int = 1
    slopes: tuple[Slope, ...] = ()
    textbook: Mapping[int, Slope] = field(default_factory=dict)
    definition: Callable[..., Node | None] | None = None
    lowered: Callable[..., Node | None] | None = None
    formula: Callable[..., Node | None] | None = None
    move: Callable[..., Array] | None = None
    infix: str = ""
    options: Mapping[str, Exact | None] = field(default_factory=dict)
    precedence: Precedence = Precedence.ATOM
    exact: bool = False
    linear: tuple[int, ...] = ()
    commutes: bool = False
    results: int = 1
    indices: tuple[int, ...] = ()
    conditions: tuple[int, ...] = ()
    keeps_integers: bool = False
    joins: str = ""
    selects: bool = False
    residuals: Callable[..., Sequence[Node]] | None = None
    multiplies: tuple[int, ...] = ()
    poles: bool = False
    odd: bool = False
    degree: Exact | None = None
    merged: Callable[[Sequence[Node]], Node] | None = None
    corner: Corner | None = None
    spelling: Mapping[str, str] = field(default_factory=dict)

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

    @cached_property
    def broadcasts(self) -> bool:
        """Whether it works element by element."""
        return self.kind in ("elementwise", "step", "condition")

    @property
    def compares(self) -> bool:
        """Whether it is a comparison of numbers."""
        return self.precedence is Precedence.COMPARISON

    @cached_property
    def passes_on(self) -> bool:
        """Whether it has a derivative: conditions, masks and indices have none."""
        return bool(self.slopes) or self.pullback is not None or self.kind == "call"

    def spelling_in(self, target: str) -> str:
        """Return how a target calls it; "" where the row does not say."""
        return self.spelling.get(target, "") or (self.spelling.get("numpy", "") if target == "jax" else "")

    def is_linear_in(self, position: int) -> bool:
        """Return whether the result is linear in an argument while the other arguments are constant."""
        moves_all = self.move is not None and not self.linear  # without indices among its arguments
        return position in self.linear or self.kind == "contraction" or moves_all

    def moved(self, settings: Sequence[object], *arrays: Array, join: np.ufunc = np.add) -> Array:
        """Return arrays of anything, without an axis of points, after an operation that moves their elements."""
        assert self.move is not None
        more = {"join": join} if self.kind == "scatter" else {}
        return self.move(*settings, *(a[..., None] for a in arrays), **more)[..., 0]


def spelled(everywhere: str = "", **names: str) -> dict[str, str]:
    """Return a row's `spelling`: one name everywhere, but for `names` of single targets, "" for none.

    >>> spelled("round", c="rint", llvm="")["onnx"], spelled(numpy="rint")
    ('Round', {'numpy': 'rint'})
    """
    targets = ("numpy", "torch", "c", "javascript", "llvm", "sympy") if everywhere else ()
    return dict.fromkeys(targets, everywhere) | ({"onnx": everywhere.capitalize()} if everywhere else {}) | names


def no_slope(y: Node, *arguments: Node) -> Node:
    """Raise the error of a derivative that has no formula, as a slope."""
    raise InputError(
        f"gradcli has no derivative of `{y.op}` by this argument, as PyTorch has none",
        hint="hold it constant: choose the others with --wrt",
        key="no slope",
    )


def function(*slopes: Slope, **rest: Any) -> Operation:
    """Return the row of an elementwise operation with a slope for each argument; `rest` are further fields."""
    return Operation("elementwise", arity=len(slopes), slopes=slopes, **rest)


def step(arity: int = 1, **rest: Any) -> Operation:
    """Return the row of an elementwise operation that is piecewise constant."""
    return Operation("step", arity=arity, slopes=(lambda *_: 0,) * arity, keeps_integers=True, **rest)


def defined(definition: Callable[..., Node], *settings: str, **rest: Any) -> Operation:
    """Return the row of a call: `definition(*settings, *arguments)` writes it in simpler operations.

    Where some options may be left out, the functions of the row get them by their names, instead of `given`.
    """
    if settings[:1] == ("given",):
        definition = _by_name(definition, 0)
        rest |= {name: _by_name(rest[name], k) for name, k in (("pullback", 2), ("residuals", 0)) if name in rest}
    return Operation("call", settings, definition=definition, **rest)


def _by_name(function: Callable[..., Any], first: int) -> Callable[..., Any]:
    """Return a function that passes on its last arguments by their names, which it has behind the `first` ones."""

    def called(*values: Any) -> Any:
        names = values[first]
        end = len(values) - len(names)
        options = dict(zip(names, values[end:], strict=True))
        return function(*values[:first], *values[first + 1 : end], **options)

    return called


def condition(infix: str, numpy: str, onnx: str = "", arity: int = 2, commutes: bool = False) -> Operation:
    """Return the row of an elementwise operation whose result is true or false; libraries have names of their own."""
    level = {"|": Precedence.OR, "&": Precedence.AND, "~": Precedence.SIGN}.get(infix, Precedence.COMPARISON)
    names = spelled(numpy=numpy, onnx=onnx)
    return Operation("condition", (), None, arity, infix=infix, precedence=level, commutes=commutes, spelling=names)
