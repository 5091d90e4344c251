"""The algebra of formulas of arrays: sums of products of nodes with exact numbers before them.  For display alone.

What is no sum, product or power is a letter: a node in the products.  A sum that is a factor is one, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from itertools import islice
from math import gcd, lcm

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.graph.construct import index, spread, swap
from gradcli.graph.graph import Graph, computed_from, scheduled
from gradcli.graph.matrices import inv
from gradcli.graph.node import MAX_BITS, Constant, Exact, Node, bits, const, elementwise, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter, interpret, structure
from gradcli.graph.shapes import Shape, bare, broadcast_shapes
from gradcli.notation.writer import spread_argument

Product = frozenset[tuple[Node, int]]  # nodes with their exponents
Sum = dict[Product, Fraction]
ONE: Product = frozenset()

_LARGEST = 10_000  # elements of a constant that is worked out: more take longer than what they shorten is worth
_DEFINITIONS = 20  # that are looked for in formulas
_WIDEST = 60  # factors in a sum that is multiplied out
_SYSTEM = 600  # nodes of a system whose names are looked into: the work is their square
_MOST = 120  # factors in a sum that algebra looks into
_SHORTER = 2  # by which another form has to be shorter than that which was built
_READ = 20  # factors in a sum that definitions are looked for in


def constant(number: Exact) -> Sum:
    """Return a number as a sum."""
    return {ONE: Fraction(number)} if number else {}


def total(*sums: Sum) -> Sum:
    """Return the sum of sums, with like terms as one.

    >>> total({ONE: Fraction(2)}, {ONE: Fraction(-2)})
    {}
    """
    result: Sum = {}
    for s in sums:
        for product, number in s.items():
            result[product] = result.get(product, Fraction(0)) + number
    return {product: number for product, number in result.items() if number}


def scaled(s: Sum, number: Fraction | int, by: Product = ONE) -> Sum:
    """Return a sum times a number and a product."""
    return {joined(product, by): n * number for product, n in s.items()} if number else {}


def joined(a: Product, b: Product) -> Product:
    """Return the product of two products."""
    if not (a and b):
        return a or b
    powers = dict(a)
    for node, exponent in b:
        powers[node] = powers.get(node, 0) + exponent
    return frozenset((node, exponent) for node, exponent in powers.items() if exponent)


def inverse(product: Product) -> Product:
    """Return one over a product."""
    return frozenset((node, -exponent) for node, exponent in product)


class Algebra(ABC):
    """Reads nodes as sums, by the rules of their operations, and writes them in few words.

    Nodes in `named` are letters, those in `known` have one number for all elements, and in a product those in `before`
    stand before the others.  With `as_built`, nothing is multiplied out, and no name takes the place of what it is.
    """

    def __init__(
        self,
        named: Mapping[Node, str],
        known: Mapping[Node, Exact] | None = None,
        before: Collection[Node] = (),
        as_built: bool = False,
    ) -> None:
        self.named, self.known, self.before, self.as_built = named, known or {}, before, as_built
        self.values: dict[Node, Sum] = {}
        self.sums: dict[Node, Sum] = {}  # of the nodes that are sums within products
        self.weights: dict[Node, int] = {}  # of these
        self.factors: dict[frozenset[tuple[Product, Fraction]], Node] = {}  # these nodes by their terms
        self.definitions: dict[Node, Sum] = {}  # what a node with a name is
        self.ranks = {node: k for k, node in enumerate(before)}  # of letters, in the order in which they were met
        self.positions = {node: k for k, node in enumerate(scheduled(n for n in named if n.args))}  # in the system
        self.constants: set[Node] = set()  # letters that are computed from constants
        self.shared = Rewriter()
        self.written: dict[Hashable, Node] = {}  # the shortest forms
        self.sizes = dict.fromkeys(named, 2)
        self.decimals = False
        if len(parts := scheduled(named)) <= _SYSTEM:
            interpret(parts, self._read, self.values)

    def __call__(self, node: Node) -> Node:
        """Return a node with the same value, up to broadcasting, that is short to read."""
        return self.write(self.value(node), node.shape)

    def definition(self, node: Node) -> Node:
        """Return the shortest form of a node that has a name."""
        if node not in self.definitions:
            self.definitions[node] = self._computed(node, list(map(self.value, node.args)))
        return self.write(self.definitions[node], node.shape)

    # Reading

    def value(self, node: Node) -> Sum:
        """Return a node as a sum; in a large system, names are letters that are not looked into."""
        parts = computed_from(ChainMap[Node, object](self.values, self.named), [node])  # type: ignore[arg-type]
        for n in (node, *(a for part in parts for a in part.args)):
            if n in self.named and n not in self.values:
                self.values[n] = constant(self.known[n]) if n in self.known else self.letter(n)
        return interpret(parts, self._read, self.values)[node]

    def _read(self, node: Node, args: list[Sum]) -> Sum:
        number = self.known.get(node, node.value)
        if isinstance(number, Exact):
            self.decimals |= isinstance(number, Decimal)
            return constant(number)
        result = self._computed(node, args)
        if node not in self.named or not node.args:
            return result
        self.definitions[node] = result
        letter = self.only_letter(result)
        if letter is not None and letter not in self.named and bare(letter.shape) == bare(node.shape):
            self.shared.first[structure(letter)] = node
        return self.letter(node)

    @abstractmethod
    def rule(self, node: Node, args: list[Sum]) -> Sum | None:
        """Return what algebra makes of a node, from the sums of its arguments; None where it is a letter."""

    def _computed(self, node: Node, args: list[Sum]) -> Sum:
        result = self.rule(node, args) if node.args else self.letter(node)
        if result is not None and self.weight(result) <= _MOST:
            return result
        if not OPERATIONS[node.op].broadcasts:
            shapes = (a.shape for a in node.args)
            return self.letter(node.with_args(tuple(map(self.write, args, shapes))))
        new = tuple(map(self.write, args))
        return self.letter(replace(node, args=new, shape=broadcast_shapes([a.shape for a in new])))

    def letter(self, node: Node) -> Sum:
        """Return the letter that a node, or an equal one, is in formulas, or its number if it has one."""
        if node not in self.ranks:
            node = self.shared.unique(node) if node not in self.named else node
        if node not in self.ranks:
            number = self._number(node)
            if isinstance(number, Exact):
                return constant(number)
            self.ranks[node] = len(self.ranks)
        result = {frozenset({(node, 1)}): Fraction(1)}
        self.values.setdefault(node, result)
        return result

    def _number(self, node: Node) -> Constant | None:
        """Return the number of a constant, and the integer that all elements have of what constants alone make."""
        if not node.args:
            return node.value
        if not all(a.is_constant or a in self.constants for a in node.args) or node.size > _LARGEST:
            return None
        self.constants.add(node)
        values = values_of(Graph.of({}, {}), {}, [node])[node]
        number = values.flat[0] if values.size and values.dtype != bool else 0.5  # a condition is no number
        return int(number) if (values == number).all() and np.isfinite(number) and number == round(number) else None

    def only_letter(self, s: Sum) -> Node | None:
        """Return the letter that a sum is, if it is one."""
        match [*s.items()]:
            case [(product, 1)] if len(product) == 1:
                ((node, exponent),) = product
                return node if exponent == 1 and node not in self.sums else None
        return None

    # Algebra

    def factor(self, s: Sum) -> tuple[Product, Fraction]:
        """Return a sum as one product with its number."""
        if len(s) == 1:
            return next(iter(s.items()))
        number = _content(s)
        s = scaled(s, 1 / number)
        for sign in (1, -1):
            if (known := self.factors.get(frozenset(scaled(s, sign).items()))) is not None:
                return frozenset({(known, 1)}), sign * number
        node = self._sum(s)
        self.factors[frozenset(s.items())] = node
        self.sums[node], self.weights[node] = s, self.weight(s)
        self.ranks[node] = min(self.ranks[n] for product in s or [ONE] for n, _ in product)
        return frozenset({(node, 1)}), number

    def times(self, a: Sum, b: Sum) -> Sum:
        """Return a product."""
        for s, other in ((a, b), (b, a)):
            if not s or s.keys() == {ONE}:
                return scaled(other, s.get(ONE, 0))
        (first, m), (second, n) = self.factor(a), self.factor(b)
        return self._plain(joined(first, second), m * n)

    def power(self, s: Sum, exponent: int) -> Sum | None:
        """Return a power; None where it is too large, or of 0."""
        if not s:
            return None if exponent <= 0 else {}
        product, number = self.factor(s)
        if bits(number) * abs(exponent) > MAX_BITS:
            return None
        return self._plain(frozenset((node, k * exponent) for node, k in product if exponent), number**exponent)

    def _plain(self, product: Product, number: Fraction) -> Sum:
        """Return a product without squares of roots, and with an inverse for cofactors over a determinant."""
        for node, exponent in product:
            if node in self.named:
                continue
            if node.op == "sqrt" and abs(exponent) > 1:
                half = int(exponent / 2)
                inside = self.power(self.value(node.args[0]), half)
                rest = joined(product, frozenset({(node, -2 * half)}))
                return self.times({rest: number}, inside) if inside else {product: number}
            matrix = operand(node, "cofactors")
            if matrix is not None and exponent == 1 and len(matrix.shape) == 2:
                dets = [n for n, k in product if k < 0 and n not in self.named and operand(n, "det") is matrix]
                if dets:
                    rest = joined(product - {(node, 1)}, frozenset({(dets[0], 1)}))
                    return self.times({rest: number}, self.value(swap(inv(matrix))))
        return {product: number}

    def weight(self, s: Sum) -> int:
        """Return how many numbers and letters a sum has, with the sums inside it."""
        return sum(1 + sum(self.weights.get(node, 1) for node, _ in product) for product in s)

    def mapped(self, s: Sum, change: Callable[[Node], Sum | None]) -> Sum | None:
        """Return a sum with other sums for its letters; None where one has none."""
        result: Sum = {}
        for product, number in s.items():
            part = constant(number)
            for node, exponent in self.ordered(product):
                new = self.mapped(self.sums[node], change) if node in self.sums else change(node)
                new = None if new is None else self.power(new, exponent)
                if new is None:
                    return None
                part = self.times(part, new)
            result = total(result, part)
        return result

    def letters(self, s: Sum) -> dict[Node, None]:
        """Return the letters of a sum and of the sums inside it, in their order."""
        result: dict[Node, None] = {}
        for product in s:
            for node, _ in self.ordered(product):
                result |= self.letters(self.sums[node]) if node in self.sums else {node: None}
        return result

    def expanded(self, s: Sum) -> Sum:
        """Return a sum multiplied out; as it is, if that would be long."""
        whole = s
        if self.weight(s) > _WIDEST:
            return whole
        while inside := [(p, n) for p in s for n, k in self.ordered(p) if k > 0 and n in self.sums]:
            # Sums of quotients come first: what they are multiplied by may cancel.
            product, node = min(inside, key=lambda pair: all(k > 0 for p in self.sums[pair[1]] for _, k in p))
            rest = joined(product, frozenset({(node, -1)}))
            others = {p: n for p, n in s.items() if p != product}
            terms = (self._plain(joined(rest, p), s[product] * n) for p, n in self.sums[node].items())
            s = total(others, *terms)
            if self.weight(s) > _WIDEST:
                return whole
        return s

    def content(self, s: Sum) -> tuple[Sum, Sum]:
        """Return the number and the scalars that all terms of a sum share, and the rest."""
        scalars = frozenset(f for f in frozenset.intersection(*s) if not f[0].shape)
        sizes = {abs(number) for number in s.values()}
        size = sizes.pop() if len(sizes) == 1 else Fraction(1)
        number = -size if all(n < 0 for n in s.values()) else size
        return {scalars: number}, scaled(s, 1 / number, inverse(scalars))

    def at_indices(self, s: Sum) -> Sum:
        """Return a sum in which the factors of a one-hot array are elements: x[0]*[1, 0] for x*[1, 0]."""
        keys = {node: key for node in self.letters(s) if (key := _only_one(node)) is not None}
        if not keys:
            return s
        result: Sum = {}
        for product, number in self.expanded(s).items():
            for one in [node for node, exponent in self.ordered(product) if exponent > 0 and node in keys]:
                rest: Product = frozenset(f for f in product if f[0] is not one)
                of_ones = {product - rest: number}
                taken = self.mapped({rest: Fraction(1)}, partial(self._element, one, keys[one]))
                product, number = self.factor(self.times(of_ones, taken or {}))
            result = total(result, {product: number})
        return result

    def _element(self, one: Node, key: tuple[int, ...], node: Node) -> Sum:
        return self.value(index(node, key)) if node.shape == one.shape else self.letter(node)

    # Writing

    def write(self, s: Sum, shape: Shape | None = None) -> Node:
        """Return the shortest form of a sum, in a shape that it broadcasts to."""
        if shape is None:
            return self._shortest(s)
        key = frozenset(s.items()), shape
        if key not in self.written:
            self.written[key] = spread(self._shortest(s), shape)
        return self.written[key]

    def _shortest(self, s: Sum, by_names: bool = True) -> Node:
        key = frozenset(s.items()), by_names
        if key not in self.written:
            first, *others = map(self._written, self._forms(s, by_names))
            other = min(others, key=self.size, default=first)
            self.written[key] = other if self.size(other) < self.size(first) - _SHORTER else first
        return self.written[key]

    def size(self, node: Node) -> int:
        """Return how long a node is to read: its operations and numbers, letters twice; broadcasting is not written."""
        unread = computed_from(self.sizes, [node])
        return interpret(unread, lambda n, sizes: int(spread_argument(n) is None) + sum(sizes), self.sizes)[node]

    def _forms(self, s: Sum, by_names: bool) -> Iterator[Sum]:
        """Yield a sum, multiplied out, in factors, and in terms of letters with names: p for exp(z)/sum(exp(z))."""
        s = self.at_indices(s)
        yield s
        if self.as_built:
            return
        if len(s) == 1 and all(node not in self.sums for node, _ in next(iter(s))):
            wide = s
        else:
            wide = self.expanded(s)
            yield from (wide, *self._in_factors(wide))
        if self.weight(wide) > _READ or not by_names:
            return
        below = self._below(wide)
        for node, meaning in islice(self.definitions.items(), _DEFINITIONS):
            if node not in self.before and meaning != s:
                for result in self._in_terms_of(node, self.expanded(meaning), wide):
                    if self._below(result) <= below:
                        yield from (result, *self._in_factors(result))

    def _in_factors(self, s: Sum) -> Iterator[Sum]:
        """Yield a sum with its common factors in front, and as one fraction."""
        if len(s) < 2:
            return
        powers = [dict(product) for product in s]
        least = {node: min(p.get(node, 0) for p in powers) for p in powers for node in p}
        shared = frozenset(f for f in least.items() if f[1] > 0 or (f[1] < 0 and all(f[0] in p for p in powers)))
        for common in dict.fromkeys((shared, frozenset(f for f in least.items() if f[1]))):
            rest = total(*(self._plain(*term) for term in scaled(s, 1, inverse(common)).items()))
            yield self.times({common: Fraction(1)}, self.expanded(rest))

    def _in_terms_of(self, name: Node, meaning: Sum, s: Sum) -> Iterator[Sum]:
        """Yield a sum with each of its letters as what the definition of a name makes of it."""
        for letter in self.letters(s):
            parts = {p: n for p, n in meaning.items() if any(node is letter for node, _ in p)}
            if len(parts) != 1 or (parts == meaning and self.only_letter(meaning) is not None):
                continue
            ((product, number),) = parts.items()
            if (letter, 1) not in product or bare(name.shape) not in ((), bare(letter.shape)):
                continue
            rest = {p: n for p, n in meaning.items() if p != product}
            left = total(self.letter(name), scaled(rest, -1))
            new = self.times(left, {inverse(product - {(letter, 1)}): 1 / number})
            result = self.mapped(s, partial(self._replaced, letter, new))
            if result is not None:
                yield self.expanded(result)

    def _replaced(self, old: Node, new: Sum, letter: Node) -> Sum:
        return new if letter is old else self.letter(letter)

    def _below(self, s: Sum) -> set[Node]:
        """Return the letters below fractions."""
        below = (self.letters({frozenset({f}): Fraction(1)}) for product in s for f in product if f[1] < 0)
        above = (self._below(self.sums[node]) for product in s for node, k in product if k > 0 and node in self.sums)
        return set().union(*below, *above)

    def _written(self, s: Sum) -> Node:
        if len(s) < 2:
            return self._product(*next(iter(s.items()))) if s else const(0)
        number = _content(s) * (-1 if all(n < 0 for n in s.values()) else 1)
        forms = [self._sum(s)]
        if abs(number) != 1:
            forms.append(elementwise("mul", self._exact(number), self._sum(scaled(s, 1 / number))))
        groups: dict[Fraction, Sum] = {}  # of terms with one number
        for product, n in s.items():
            groups.setdefault(abs(n), {})[product] = n
        if 1 < len(groups) < len(s):
            several = (dict([self.factor(g)]) if n != 1 and len(g) > 1 else g for n, g in groups.items())
            forms.append(self._sum(total(*several)))
        return min(forms, key=self.size)

    def _sum(self, s: Sum) -> Node:
        order = sorted(s, key=lambda product: (s[product] < 0, not product, self._rank(product)))
        whole = self._product(order[0], s[order[0]])
        for product in order[1:]:
            op = "add" if s[product] > 0 else "sub"
            whole = elementwise(op, whole, self._product(product, abs(s[product])))
        return whole

    def _product(self, product: Product, number: Fraction) -> Node:
        """Return a product: its number first, scalars before arrays, sums last."""
        if not product:
            return self._exact(number)
        above: list[Node] = []
        below: list[Node] = []
        negative = number < 0
        for node, exponent in self.ordered(product):
            base = node
            if node in self.sums:
                opposite = negative and exponent % 2 == 1 and min(s := self.sums[node].values()) < 0 < max(s)
                negative ^= opposite
                # A factor is not written by names of its own: these would take turns in it without an end.
                base = self._shortest(scaled(self.sums[node], -1 if opposite else 1), by_names=False)
            part = base if abs(exponent) == 1 else elementwise("pow", base, const(abs(exponent)))
            (above if exponent > 0 else below).append(part)
        size = abs(number)
        signed = negative and size != 1 and bool(above) and above[-1].op == "matmul"
        if size != 1 or not above:
            above.insert(0, self._exact(-size if signed else size))
        whole = reduce(_times, above)
        whole = elementwise("div", whole, reduce(_times, below)) if below else whole
        return elementwise("neg", whole) if negative and not signed else whole

    def ordered(self, product: Product) -> list[tuple[Node, int]]:
        """Return the factors of a product in the order in which they are written."""
        return sorted(product, key=lambda f: (bool(f[0].shape), f[0] in self.sums, self.ranks[f[0]]))

    def _rank(self, product: Product) -> tuple[int, int]:
        """Return the place of a product in a sum: terms stand in the order in which the system reads them."""
        return min(((self._begin(node), self.ranks[node]) for node, _ in product), default=(-1, -1))

    def _begin(self, node: Node) -> int:
        inside = (node, *(a for n in computed_from(self.named, [node]) for a in n.args))
        return min((self.positions[n] for n in inside if n in self.positions), default=len(self.positions))

    def _exact(self, number: Fraction) -> Node:
        """Return a number, as a decimal where the system has some."""
        if number.denominator == 1:
            return const(number.numerator)
        near = Decimal(repr(float(number)))
        return const(near if self.decimals and Fraction(near) == number else number)


def _only_one(node: Node) -> tuple[int, ...] | None:
    """Return where the only 1 is in an array of zeros."""
    if not node.is_constant or not node.shape or sorted(map(repr, node.values)) != [*"0" * (node.size - 1), "1"]:
        return None
    return tuple(map(int, np.unravel_index(node.values.index(1), node.shape)))


def _content(s: Sum) -> Fraction:
    """Return the largest number that leaves integers of the numbers of a sum."""
    return Fraction(gcd(*(n.numerator for n in s.values())), lcm(*(n.denominator for n in s.values())))


def _times(a: Node, b: Node) -> Node:
    return elementwise("mul", a, b)
