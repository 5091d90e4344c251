"""The rule of an optimizer as text: its formulas, and the same with the numbers of one entry put in."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import Constant, Node, const, leaf
from gradcli.notation.nodes import Notation
from gradcli.notation.numbers import array_text, number_text
from gradcli.notation.text import exact_text
from gradcli.record.numbers import Numbers, decimal
from gradcli.record.record import Assignment, OptimizerStep, Update

Values = Mapping[str, Any]  # arrays by the names of a rule

_DIGITS = (".6g", ".9g", "")  # of the numbers that are put in: as few as give the result
_CLOSE = 1e-5  # of a result with six digits
_TINY = 1e-13  # of the numbers put in: what is left where they cancel, in float64


class Equation(NamedTuple):
    """A line of a rule with numbers: those of the names that it reads, and its result, in the order of the rule."""

    line: Assignment
    values: Values
    result: Any

    @property
    def arithmetic(self) -> str:
        """The formula with the numbers put in, and its result.

        The result is what the step has left, which float32 may have rounded to another number where terms cancel.
        """
        result, text, exact = _decimal(self.result), "", np.zeros(())
        shown = _constant(result, _DIGITS[0])
        for digits in _DIGITS:
            node = self.line.formula.node([_constant(_decimal(a), digits) for a in self.values.values()])
            if node.is_constant:
                return values_text(result)
            text, exact = Notation({}).expression(node), _value(node)
            if _is_close(exact, _value(shown), self.values):
                return f"{text} = {values_text(result)}"
        return f"{text} = {values_text(exact)}, in {self.result.dtype} {values_text(result)}"


def equations(step: OptimizerStep, update: Update, of_entry: bool = True) -> Iterator[Equation]:
    """Yield the lines of a rule with the numbers of a parameter, or of its first entry.

    Each name has the value that it has then; where it does not stay, that of the formula.
    """

    def number(numbers: Numbers) -> Any:
        whole = np.asarray(numbers.whole)
        return whole.reshape(-1)[0] if of_entry else whole

    values = {name: number(numbers) for name, numbers in update.before.items()}
    for line in step.rule:
        read = {name: values[name] for name in line.reads}
        if line.stays:
            values[line.name] = number(update.after[line.name])
        else:
            values[line.name] = _value(line.formula.node([_constant(_decimal(a), "") for a in read.values()]))
        yield Equation(line, read, values[line.name])


class Formulas:
    """The formulas of a rule for a parameter that is called `parameter`; names that are `taken` are written otherwise.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.record.definition import Definition
    >>> p, g = leaf(), leaf()
    >>> line = Assignment("p", ("p", "p.grad"), Definition.of([p, g], p - 2 * g), True)
    >>> Formulas(OptimizerStep(optimizer="", rule=(line,), updates=()), "w", ["w"]).formula(line)
    'w ← w - 2*w.grad'
    """

    def __init__(self, step: OptimizerStep, parameter: str, taken: Collection[str]) -> None:
        self._step = step
        self._names = {"p": parameter, "p.grad": f"{parameter}.grad"}
        for name in (n for line in step.rule for n in (line.name, *line.reads)):
            free = (n for n in (name, step.kept.get(name, name)) if n not in taken)
            self._names.setdefault(name, next(free, f"{name}_"))

    def formula(self, line: Assignment) -> str:
        """Return a line as text: what stays is assigned, the value of another formula has a name."""
        leaves = {leaf(): self._names[name] for name in line.reads}
        right = Notation(leaves).name(line.formula.node([*leaves]))
        return f"{self._names[line.name]} {'←' if line.stays else '='} {right}"

    def meanings(self) -> Iterator[str]:
        """Yield what the names of the rule mean."""
        words = {"p": self._names["p"], "g": self._names.get("g", self._names["p.grad"])}
        for name, meaning in self._step.meanings.items():
            shown, kept = self._names.get(name, name), self._step.kept.get(name, name)
            if meaning:
                yield f"{shown}: {f'{kept}, ' * (kept not in (name, shown))}{meaning.format(**words)}"


def _value(node: Node) -> Any:
    """Return the value of a node of constants, in float64."""
    return at_point(Graph.of({}, {"": node}), {}, [node])[node]


def _is_close(a: Any, b: Any, used: Values) -> bool:
    finite = [abs(x) for a in used.values() for x in np.ravel(a).tolist() if math.isfinite(x)]
    return bool(np.allclose(a, b, _CLOSE, _TINY * max(finite, default=0.0), equal_nan=True))


def _decimal(a: Any) -> Any:
    """Return numbers as the decimals that they are written as."""
    return decimal(np.asarray(a))


def _exact(number: float, digits: str = _DIGITS[0]) -> Constant:
    if not math.isfinite(number):
        return float(number)
    return Decimal(f"{number:{digits}}" if digits else number_text(number))


def _constant(a: Any, digits: str) -> Node:
    values = tuple(_exact(v, digits) for v in a.reshape(-1).tolist())
    return const(values if a.shape else values[0], a.shape)


def values_text(a: Any) -> str:
    """Return numbers with six digits.

    >>> values_text(np.array([0.1234567, -1e-8]))
    '[0.123457, -1e-8]'
    """
    return array_text(np.asarray(a), lambda v: exact_text(_exact(v)))
