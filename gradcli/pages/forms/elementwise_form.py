"""Gradients of arrays with the algebra done that is element by element: sum(t)*p - t for p*(-t/p - (-sum(t/p*p))).

What stands between sums, products of matrices and choices is a formula of numbers, which SymPy cancels; what those
compute is a letter in it.  For display alone: what is cancelled may be 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce

import numpy as np
import sympy

from gradcli.algebra.display import READABLE, length, tidy
from gradcli.engine.evaluate import values_of
from gradcli.graph.construct import reshape, spread
from gradcli.graph.graph import Graph, computed_from, scheduled
from gradcli.graph.node import Constant, Exact, Node, const, elementwise, operand
from gradcli.graph.rewrite import Rewriter, interpret, structure
from gradcli.graph.shapes import Shape, bare
from gradcli.notation.writer import spread_argument
from gradcli.pages.forms.elementwise_rules import RULES, USUAL, Formula, at_indices

_LARGEST = 10_000  # elements of a constant that is worked out: more take longer than what they shorten is worth
_TRIED = 20  # definitions that are looked for in formulas: each is a division by SymPy


@dataclass
class ElementwiseForm:
    """Writes gradients in few words.  Nodes in `named` are letters; those in `known` have one number for all elements.

    In a product those in `before`, adjoints, stand before the others.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> x, p = leaf((3,)), leaf((3,))
    >>> names = {x: "x", p: "p"}
    >>> Notation(names).expression(ElementwiseForm(names)(p * (x / p - 2)))
    'x - 2*p'
    """

    named: Mapping[Node, str]
    known: Mapping[Node, Exact] = field(default_factory=dict)
    before: Collection[Node] = ()
    formulas: dict[Node, Formula] = field(default_factory=dict)
    plain: dict[Node, Node] = field(default_factory=dict)  # each node as it was, but for its arguments
    letters: dict[Node, Formula] = field(default_factory=dict)
    meanings: dict[Formula, Node] = field(default_factory=dict)  # of the letters
    definitions: dict[Node, tuple[Formula, Node]] = field(default_factory=dict)  # what a node with a name is, as both
    shortest_forms: dict[Node, Node] = field(default_factory=dict)  # the shortest forms
    shared: Rewriter = field(default_factory=Rewriter)  # of equal nodes
    sizes: dict[Node, int] = field(default_factory=dict)
    constants: set[Node] = field(default_factory=set)
    decimals: bool = False

    def __post_init__(self) -> None:
        self.sizes |= dict.fromkeys(self.named, 1)
        for node in self.before:
            self._letter(node)
        interpret(scheduled(self.named), self._read, self.formulas)

    def __call__(self, node: Node) -> Node:
        """Return a node that is worth the same, up to broadcasting, and shorter to read if there is one."""
        interpret(computed_from(self.formulas, [node]), self._read, self.formulas)
        return self.shortest(node)

    def definition(self, node: Node) -> Node:
        """Return the shortest form of a node that has a name."""
        return self._shortest(*self.definitions[node], node)

    # Reading

    def _read(self, node: Node, formulas: Sequence[Formula]) -> Formula:
        """Return the formula of a node, from those of its arguments: of one with a name its letter."""
        number = self.known.get(node, node.value)
        if isinstance(number, Exact):
            self.decimals |= isinstance(number, Decimal)
            formula, plain = _rational(number), const(number, node.shape)
        else:
            formula, plain = self._computed(node, formulas)
        if node in self.named and node.args:
            self.definitions[node] = formula, plain
            if formula in self.meanings and bare(plain.shape) == bare(node.shape):
                self.shared.first[structure(plain)] = node
            formula, plain = self._letter(node), node
        self.plain[node] = plain
        return formula

    def _computed(self, node: Node, formulas: Sequence[Formula]) -> tuple[Formula, Node]:
        """Return the formula of a node other than a number, and the node with shorter arguments."""
        rule = RULES.get(node.op)
        result = rule(self, node, *formulas) if rule is not None else None
        if result is None or length(result) > 2 * READABLE:
            built = self.shared.unique(node.with_args(tuple(map(self.shortest, node.args))) if node.args else node)
            return self.letter(built), built
        if result in self.meanings or node.op in USUAL:
            return result, spread(self.node(result), node.shape)
        return result, replace(node, args=tuple(self.plain[a] for a in node.args))

    def letter(self, node: Node) -> Formula:
        """Return the letter that a node, or one that is equal to it, is in formulas, or its number if it has one."""
        return self._letter(node if node in self.letters else self.shared.unique(node))

    def _letter(self, node: Node) -> Formula:
        if node not in self.letters:
            number = self._number(node)
            if isinstance(number, Exact):
                return _rational(number)
            self.letters[node] = letter = sympy.Symbol(f"a{len(self.letters):06}")
            self.meanings[letter] = node
        return self.letters[node]

    def _number(self, node: Node) -> Constant | None:
        """Return the number of a constant, and the whole one that all elements have of what constants alone make."""
        if not node.args:
            return node.value
        if not all(a.is_constant or a in self.constants for a in node.args) or node.size > _LARGEST:
            return None
        self.constants.add(node)
        values = values_of(Graph.of({}, {}), {}, [node])[node]
        number = values.flat[0] if values.size and values.dtype != bool else 0.5  # a condition is no number
        return int(number) if (values == number).all() and np.isfinite(number) and number == round(number) else None

    def reshaped(self, letter: Formula, shape: Shape) -> Formula:
        """Return the letter of what a letter means in another shape."""
        meaning = self.meanings[letter]
        while (inner := operand(meaning, "reshape")) is not None and bare(meaning.shape) != bare(shape):
            if meaning in self.named:
                break
            meaning = inner
        return self.letter(meaning if bare(meaning.shape) == bare(shape) else reshape(meaning, shape))

    def shapes(self, formula: Formula) -> set[Shape]:
        """Return the shapes of what letters mean, without the axes in front that broadcasting adds."""
        return {bare(self.meanings[s].shape) for s in formula.free_symbols}

    # Writing

    def shortest(self, node: Node) -> Node:
        """Return the shortest form of a node that has been read, in its own shape."""
        if node not in self.shortest_forms:
            self.shortest_forms[node] = self._shortest(self.formulas[node], self.plain[node], node)
        return self.shortest_forms[node]

    def _shortest(self, formula: Formula, plain: Node, like: Node) -> Node:
        if formula.is_Number:
            return const(self.exact(formula), like.shape)
        if formula in self.meanings:
            whole = self.meanings[formula]  # of which the node may be an element
            return spread(whole, like.shape) if whole.size <= like.size else plain
        if length(formula) > 2 * READABLE:
            return plain
        result = self.written(formula, like)
        return result if self._size(result) <= self._size(plain) else plain

    def written(self, formula: Formula, like: Node) -> Node:
        """Return the shortest form of a formula, in the shape of a node."""
        return spread(min(map(self.node, self._forms(formula)), key=self._size), like.shape)

    def _size(self, node: Node) -> int:
        """Return how many operations are read in the text of a node; what broadcasts is not written."""
        interpret(
            computed_from(self.sizes, [node]), lambda n, sizes: int(spread_argument(n) is None) + sum(sizes), self.sizes
        )
        return self.sizes[node]

    def _forms(self, formula: Formula) -> Iterator[Formula]:
        """Yield a formula, and what it is in terms of the letters with names: p for exp(z)/sum(exp(z))."""
        formula = at_indices(self, formula)
        yield tidy(formula)
        for node, (meaning, _) in list(self.definitions.items())[:_TRIED] if length(formula) <= READABLE else ():
            name = self.letter(node)
            if node in self.before or meaning == formula or meaning.is_Atom:
                continue
            expanded = sympy.expand(meaning)
            for letter in meaning.free_symbols & formula.free_symbols:
                factor = expanded.coeff(letter)
                rest = sympy.expand(expanded - factor * letter)
                fits = bare(node.shape) in ((), *self.shapes(letter))  # of what was spread the name has a larger shape
                if fits and factor and letter not in factor.free_symbols | rest.free_symbols:
                    result = tidy(formula.subs(letter, sympy.expand((name - rest) / factor)))
                    if _below(result) <= _below(formula):
                        yield result

    def node(self, formula: Formula) -> Node:
        """Return a formula as a node."""
        if formula.is_Rational:
            return const(self.exact(formula))
        if formula in self.meanings:
            return self.meanings[formula]
        if formula.is_Add:
            return self._sum(formula)
        if formula.is_Mul:
            return self._product(formula)
        base, exponent = formula.as_base_exp()
        root = self.meanings.get(base)
        if exponent == 2 and root is not None and root not in self.named and (square := operand(root, "sqrt")):
            return square
        if exponent.could_extract_minus_sign():
            return elementwise("div", const(1), self.node(base**-exponent))
        if exponent == sympy.S.Half:
            return elementwise("sqrt", self.node(base))
        return elementwise("pow", self.node(base), const(self.exact(exponent)))

    def exact(self, number: Formula) -> Exact:
        """Return a number of a formula, as a decimal where the system has some."""
        result = Fraction(int(number.p), int(number.q))
        if result.denominator == 1:
            return result.numerator
        near = Decimal(repr(float(result)))
        return near if self.decimals and Fraction(near) == result else result

    def _sum(self, formula: Formula) -> Node:
        terms = sorted(formula.args, key=lambda t: (_is_negative(t), t.is_Number, _first_letter(t)))
        total = self.node(terms[0])
        for term in terms[1:]:
            negative = _is_negative(term)
            total = elementwise("sub" if negative else "add", total, self.node(-term if negative else term))
        return total

    def _product(self, formula: Formula) -> Node:
        number, rest = formula.as_coeff_Mul()
        numerator, denominator = sympy.fraction(rest)
        if number < 0:
            return elementwise("neg", self.node(-number * rest))
        parts = [self.exact(number)] if number != 1 else []
        above = [const(n) for n in parts] + self._factors(numerator)
        product = reduce(lambda a, b: elementwise("mul", a, b), above or [const(1)])
        return product if denominator == 1 else elementwise("div", product, self.node(denominator))

    def _factors(self, formula: Formula) -> list[Node]:
        """Return the factors of a product: those of one number first, sums last."""
        factors = [f for f in sympy.Mul.make_args(formula) if f != 1]
        nodes = {f: self.node(f) for f in factors}
        return [nodes[f] for f in sorted(factors, key=lambda f: (bool(nodes[f].shape), f.is_Add, _first_letter(f)))]


def _rational(number: Exact) -> Formula:
    fraction = Fraction(number)
    return sympy.Rational(fraction.numerator, fraction.denominator)


def _below(formula: Formula) -> set[Formula]:
    """Return the letters below fractions."""
    powers = [p for p in formula.atoms(sympy.Pow) if p.exp.could_extract_minus_sign()]
    return {letter for power in powers for letter in power.base.free_symbols}


def _is_negative(term: Formula) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)


def _first_letter(term: Formula) -> str:
    return min((s.name for s in term.free_symbols), default="")
