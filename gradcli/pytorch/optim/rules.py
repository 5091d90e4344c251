"""The rule of an optimizer as a graph: what a step assigns, in the numbers of one entry of a parameter.

A rule is written once, in nodes of single numbers.  A step computes it for all entries of a parameter at once, and a
page shows it with the numbers of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import hypot
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.engine.straight_line import StraightLine, in_place
from gradcli.graph.dtypes import DType
from gradcli.graph.graph import Graph, computed_from, scheduled
from gradcli.graph.node import Node, cast, leaf, operand
from gradcli.pytorch.recipes import QUIET, Array

if TYPE_CHECKING:
    from gradcli.record.record import Altered, Assignment, OptimizerStep, Update

_BLOCK = 2**16  # elements of a large array that are computed at once: what is computed between stays in the cache
SHOWN = 4  # elements of an array whose numbers are all kept for a page

# What a setting that is a tuple is called, entry by entry.
_PAIRS = {
    "betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max"),
}  # fmt: skip
_POSITIONS = {name: (setting, i) for setting, names in _PAIRS.items() for i, name in enumerate(names)}


class State(NamedTuple):
    """What an optimizer keeps for a parameter: PyTorch's name for it, its value in the first step, and its kind.

    The first value is a number or the name of a setting.  It is an array of the parameter's shape, or one number.
    """

    name: str
    first: float | str
    is_number: bool


class Rule:
    """The assignments of a step, which `write` makes of a parameter and its gradient.

    `switches` are settings that turn parts of it on, by name; `is_first` is whether nothing is kept yet.
    """

    def __init__(self, write: Callable[[Rule], None], switches: Mapping[str, bool], is_first: bool = False) -> None:
        self._switches, self.is_first = switches, is_first
        self.names: dict[Node, str] = {}  # of all symbols
        self.meanings: dict[str, str] = {}  # of names, in words; {g} stands for the gradient, {p} for the parameter
        self.settings: dict[str, Node] = {}
        self.states: dict[Node, State] = {}
        self.updated: dict[Node, Node] = {}  # the symbols of new values, by those of the values before
        self.assignments: list[tuple[Node, Node]] = []  # symbols and their formulas, of the symbols before them
        self.rounded: set[Node] = set()
        self.parameter, self.grad = self._symbol("p"), self._symbol("p.grad")
        write(self)

    def _symbol(self, name: str) -> Node:
        symbol = leaf()
        self.names[symbol] = name
        return symbol

    def has(self, switch: str) -> bool:
        """Return whether a setting is there and is not 0."""
        return self._switches.get(switch, False)

    def setting(self, name: str) -> Node:
        """Return the symbol of a setting, or of one of a pair: beta1."""
        if name not in self.settings:
            self.settings[name] = self._symbol(name)
        return self.settings[name]

    def state(self, name: str, short: str, meaning: str, first: float | str = 0, is_number: bool = False) -> Node:
        """Return the symbol of what is kept for a parameter under a name, called `short` on pages."""
        symbol = self._symbol(short)
        self.states[symbol] = State(name, first, is_number)
        self.meanings[short] = meaning
        return symbol

    def assign(self, before: Node, formula: Node) -> Node:
        """Assign a new value to the parameter or to what is kept for it; return its symbol."""
        self.updated[before] = self.let(self.names[before], formula)
        return self.updated[before]

    def let(self, name: str, formula: Node, meaning: str = "") -> Node:
        """Give the value of a formula a name; return its symbol."""
        symbol = self._symbol(name)
        self.assignments.append((symbol, formula))
        if meaning:
            self.meanings[name] = meaning
        return symbol

    def once(self, node: Node) -> Node:
        """Return a sum with a product behind it, noted as rounded once: PyTorch's `add_` and `lerp_` are FMAs."""
        self.rounded.add(node)
        return node

    def numbers_of(self, group: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the numbers of the settings that the rule reads."""
        read = [_POSITIONS.get(name, (name, None)) for name in self.settings]
        return tuple([float(group[name] if i is None else group[name][i]) for name, i in read])

    @cached_property
    def lines(self) -> tuple[Assignment, ...]:
        """The rule as plain data."""
        from gradcli.record.definition import Definition
        from gradcli.record.record import Assignment

        stay = {*self.updated.values()}
        reads = [[n for n in scheduled([formula]) if n.is_leaf] for _, formula in self.assignments]
        return tuple(
            Assignment(self.names[s], tuple(self.names[n] for n in read), Definition.of(read, formula), s in stay)
            for (s, formula), read in zip(self.assignments, reads, strict=True)
        )

    # What several rules share.

    def gradient(self) -> Node:
        """Return the gradient that the step goes against: negated to maximize, and with the weight decay."""
        g = -self.grad if self.has("maximize") else self.grad
        if self.has("weight_decay") and not self.has("decoupled_weight_decay"):
            return self.let("g", self.once(g + self.setting("weight_decay") * self.parameter))
        return self.let("g", g) if self.has("maximize") else g

    def decayed(self) -> Node:
        """Return the parameter with the weight decay that is no part of the gradient: Loshchilov and Hutter (2019)."""
        if not (self.has("weight_decay") and self.has("decoupled_weight_decay")):
            return self.parameter
        return (1 - self.setting("lr") * self.setting("weight_decay")) * self.parameter

    def count(self) -> Node:
        """Return the number of the step."""
        before = self.state("step", "t", "", is_number=True)
        return self.assign(before, before + 1)

    def correction(self, t: Node, beta: str) -> Node:
        """Return what a moving average that starts at 0 is divided by in step t."""
        self.meanings["1 - beta**t"] = "the bias correction, as the averages start at 0"
        return 1 - self.setting(beta) ** t

    def mean(self, g: Node, name: str = "exp_avg", beta: str = "beta1") -> Node:
        """Return the moving average of the gradient, with this gradient."""
        m = self.state(name, "m", "the exponential moving average of {g}")
        return self.assign(m, self.once(m + (1 - self.setting(beta)) * (g - m)))

    def mean_of_squares(self, g: Node, name: str, beta: str) -> Node:
        """Return the moving average of the square of the gradient, with this gradient."""
        v, share = self.state(name, "v", "the exponential moving average of the square of {g}"), self.setting(beta)
        return self.assign(v, self.once(share * v + (1 - share) * g * g))


class CompiledRule:
    """A rule compiled for parameters of a dtype.

    What depends on settings and counts alone is computed once for all parameters with equal ones, as Python's floats;
    the rest by a function of arrays, whose operations are elementwise: one serves all shapes.
    """

    def __init__(self, rule: Rule, dtype: DType) -> None:
        self.rule = rule
        numbers, arrays = ([n for n, s in rule.states.items() if s.is_number is kind] for kind in (True, False))
        self._numbers, self._arrays = ([rule.states[n].name for n in nodes] for nodes in (numbers, arrays))
        leaves = {n: leaf(dtype=dtype) for n in (rule.grad, rule.parameter, *arrays)}
        values, factors, doubles = _compiled(rule, leaves, dtype)
        self._types = [n.dtype for n in factors.values()]
        self._doubled = [[*factors.values()].index(n) for n in doubles]
        outputs = {n: values[rule.updated[n]] for n in (rule.parameter, *arrays)}
        # An assignment casts by itself.
        changed = [operand(outputs[n], "cast") or outputs[n] if n in outputs else None for n in leaves]
        self._of_arrays = in_place(_graph([*leaves.values(), *factors.values(), *doubles.values()], changed))
        scalars, formulas = [*rule.settings.values(), *numbers], [*factors, *(values[rule.updated[n]] for n in numbers)]
        self._of_scalars = StraightLine(_graph(scalars, formulas))
        self._known: tuple[Any, Sequence[Any], Sequence[float]] = (None, (), ())

    def __call__(self, p: Array, g: Array, kept: Mapping[str, Any], settings: tuple[float, ...]) -> None:
        """Change a parameter, and what is kept for it, by its gradient."""
        numbers = [kept[name]._a for name in self._numbers] if self._numbers else ()
        key = (*settings, *[a.item() for a in numbers]) if numbers else settings
        known, factors, new = self._known
        if key != known:
            values = self._of_scalars(*key)
            factors = [np.array([v], kind) for kind, v in zip(self._types, values, strict=False)]
            new = values[len(factors) :]
            factors += [factors[i].astype(float) for i in self._doubled]
            self._known = key, factors, new
        arrays = [g, p, *[kept[name]._a for name in self._arrays]] if self._arrays else [g, p]
        if p.size <= _BLOCK or not all(a.flags.c_contiguous for a in arrays[1:]):
            QUIET.run(self._of_arrays, *arrays, *factors)
        else:
            flat = [a.reshape(-1) for a in arrays]
            for i in range(0, p.size, _BLOCK):
                QUIET.run(self._of_arrays, *[a[i : i + _BLOCK] for a in flat], *factors)
        for a, value in zip(numbers, new, strict=True) if numbers else ():
            a[...] = value

    def before(self, p: Array, g: Array, kept: Mapping[str, Any], settings: tuple[float, ...]) -> dict[str, Any]:
        """Return the numbers that the rule starts from."""
        return dict(zip(self.rule.settings, settings, strict=True)) | {"p.grad": few(g)} | self.kept(p, kept)

    def kept(self, p: Array, kept: Mapping[str, Any]) -> dict[str, Any]:
        """Return the numbers of a parameter and of what is kept for it."""
        return {"p": few(p)} | {self.rule.names[n]: few(kept[s.name]._a) for n, s in self.rule.states.items()}


class Change(NamedTuple):
    """What a step did to a parameter: the rule, and the numbers of its names before; and after, until the next step."""

    parameter: Any
    rule: Rule
    before: Mapping[str, Any]
    after: Callable[[], Mapping[str, Any]]

    def update(self, name: str) -> Update:
        """Return it as plain data, with the name of the parameter."""
        from gradcli.record.numbers import Numbers
        from gradcli.record.record import Update

        before, after = ({k: Numbers.of(np.asarray(a)) for k, a in d.items()} for d in (self.before, self.after()))
        return Update(name, tuple(self.parameter.shape), before, after)


NO_RULE = Rule(lambda s: None, {})  # of L-BFGS: a step of an entry depends on all others


def events(optimizer: str, changes: Iterable[Change], name: Callable[[Any], str]) -> list[OptimizerStep]:
    """Return a step as events: one for each rule and its settings."""
    from gradcli.record.record import OptimizerStep

    parts: dict[Any, list[Change]] = {}
    for change in changes:
        settings = [change.before[name] for name in change.rule.settings]
        parts.setdefault((change.rule, *settings), []).append(change)
    return [
        OptimizerStep(
            optimizer=optimizer,
            rule=rule.lines,
            updates=tuple(c.update(name(c.parameter)) for c in part),
            kept={rule.names[n]: s.name for n, s in rule.states.items()},
            meanings=rule.meanings,
        )
        for (rule, *_), part in parts.items()
    ]


def altered(gradients: Iterable[tuple[str, tuple[Array, float], tuple[Array, float]]]) -> Altered | None:
    """Return which gradients are not as they were left, as those that were clipped; None where all are.

    Each has the name of its parameter and, before and after, numbers of it and the norm of all.  Scripts scale them in
    many ways: the factor is the ratio of the norms, and it is that of all numbers up to rounding.
    """
    from gradcli.record.numbers import Numbers
    from gradcli.record.record import Altered

    pairs = [
        (name, old, new, before, after)
        for name, (old, before), (new, after) in gradients
        if not (np.array_equal(old, new, equal_nan=True) and np.array_equal(before, after, equal_nan=True))
    ]
    if not pairs:
        return None
    factor = hypot(*[after for *_, after in pairs]) / (hypot(*[before for *_, before, _ in pairs]) or 1)
    with np.errstate(all="ignore"):
        is_scaled = all(
            np.allclose(new, factor * np.asarray(old, float), 1e-4, 0) and np.isclose(after, factor * before, 1e-4, 0)
            for _, old, new, before, after in pairs
        )
    (_, old, new, *_), *others = pairs
    arrays = () if others or old.size > SHOWN else (old, new)
    numbers = tuple(Numbers.of(a.reshape(-1).astype(float)) for a in arrays)
    return Altered(names=tuple(name for name, *_ in pairs), factor=factor if is_scaled else None, numbers=numbers)


def few(a: Array) -> Array:
    """Return a copy of an array of few elements, or of the first element of another."""
    return a[..., 0].copy() if a.size <= SHOWN else np.array(a[(0,) * a.ndim])


def _graph(inputs: Iterable[Node], outputs: Iterable[Node | None]) -> Graph:
    """Return a graph whose inputs and outputs are counted; None has no number of its own."""
    ins, outs = ({str(i): n for i, n in enumerate(nodes) if n is not None} for nodes in (inputs, outputs))
    return Graph.of(ins, outs)


def _compiled(
    rule: Rule, leaves: Mapping[Node, Node], dtype: DType
) -> tuple[Mapping[Node, Node], Mapping[Node, Node], Mapping[Node, Node]]:
    """Return the nodes of a rule with arrays of a dtype as `leaves`, and the factors: scalars that meet an array.

    Scalars stay float64, as Python's floats are, until then; a factor is a leaf of the dtype, by its formula.  Of some
    factors the last mapping has leaves of float64, with the number that is rounded to the dtype.
    """
    values, factors, doubles = dict(leaves), dict[Node, Node](), dict[Node, Node]()
    arrays = {*leaves.values()}

    def typed(node: Node) -> Node:
        if node in arrays or node.is_constant:
            return node if node in arrays else cast(node, dtype)
        if node not in factors:
            factors[node] = leaf(dtype=dtype if node.dtype == "float64" else node.dtype)
        return factors[node]

    def exact(node: Node) -> Node:
        if node in arrays:
            return cast(node, "float64")
        return doubles.setdefault(node, leaf())

    for symbol, formula in rule.assignments:
        for node in computed_from(values, [formula]):
            args = [values[a] for a in node.args]
            if arrays.isdisjoint(args):
                values[node] = node.with_args(tuple(args)) if args else node
                continue
            kind = dtype if node.dtype == "float64" else node.dtype
            new = Node(node.op, tuple(map(typed, args)), (), node.settings, kind)
            if node in rule.rounded and dtype == "float32":  # by way of float64, in which the product is exact
                a, product = new.args
                b, c = map(exact, product.args)
                new = cast(Node(new.op, (exact(a), Node(product.op, (b, c)))), dtype)
            values[node] = new
            arrays.add(new)
        values[symbol] = values[formula]
    return values, factors, doubles
