"""A node is one operation; arithmetic between nodes builds simplified nodes, exact where the arguments are numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from gradcli.graph.array import Weights
from gradcli.graph.dtypes import FLOATING, KEEPING_INTEGERS, SELECTING, DType, floated, promoted
from gradcli.graph.shapes import Shape, broadcast_shapes

Exact = int | Fraction | Decimal
# "pi" and "e" stay symbols, so that formulas show them; a float is only inf or nan.
Constant = Exact | float | str

Operator = Callable[["Node", "Node | Exact"], "Node"]
Rule = Callable[["Node"], "Node | None"]  # of the rewriter; None: the node stays as it is

MAX_BITS = 1100  # of an exact constant: float64 ends at 2**1024


def _operator(op: str) -> tuple[Operator, Operator]:
    """Return the methods for an operator between nodes and numbers: with the node on its left, and on its right."""
    return (
        lambda self, other: simplified(op, self, lift(other)),
        lambda self, other: simplified(op, lift(other), self),
    )


def _comparison(op: str) -> Operator:
    return lambda self, other: compare(op, self, lift(other))


@dataclass(slots=True, eq=False, repr=False, init=False)
class Node:
    """One operation: its op, its argument nodes, its static shape and dtype, and its settings.

    `settings` are what the op takes beside its arguments (axes, a target shape), hashable; of a constant its value, or
    the flat tuple of those of its elements.  Without a dtype, a node has that of its arguments, which are cast to the
    one that PyTorch promotes them to.  Nodes have no names and are compared by identity.  `+ - * / **` between nodes
    build simplified nodes (`x * 1` is `x`): rules are written with them, what the user typed is not.

    >>> x = leaf((2,))
    >>> 3 * x**2
    mul(const, pow), shape (2,)
    """

    # mypy checks that nobody assigns to them: a frozen dataclass would take twice as long to make a node.
    op: Final[str]
    args: Final[tuple[Node, ...]]
    shape: Final[Shape]
    settings: Final[tuple[Any, ...]]
    dtype: Final[DType]
    # Fields, not properties, which are slower: every pass over a graph reads them of each node.
    is_leaf: bool = field(init=False)  # an input of a graph
    is_constant: bool = field(init=False)  # a number, or an array of numbers
    size: int = field(init=False)  # the number of elements

    def __init__(
        self,
        op: str,
        args: tuple[Node, ...] = (),
        shape: Shape = (),
        settings: tuple[Any, ...] = (),
        dtype: DType | None = None,
    ) -> None:
        if dtype is None:
            dtype = args[0].dtype if args else "float64"
            for a in args:
                if a.dtype != dtype:
                    args, dtype = _joined(op, args)
                    break
        self.op = op
        self.args = args
        self.shape = shape
        self.settings = settings
        self.dtype = dtype
        self.is_leaf = op == "input"
        self.is_constant = op == "const"
        self.size = math.prod(shape) if shape else 1

    def __repr__(self) -> str:
        args = ", ".join(a.op for a in self.args[:4]) + (", …" if len(self.args) > 4 else "")
        return f"{self.op}({args}), shape {self.shape}"

    def with_args(self, args: tuple[Node, ...]) -> Node:
        """Return the same operation of other arguments.

        >>> x, y = leaf(), leaf()
        >>> (x + y).with_args((y, x)).args == (y, x)
        True
        """
        return Node(self.op, args, self.shape, self.settings, self.dtype)

    @property
    def value(self) -> Constant | None:
        """The value of a constant that has one for all elements; `None` for any other node."""
        return self.settings[0] if self.is_constant and not isinstance(self.settings[0], tuple | Weights) else None

    @property
    def values(self) -> tuple[Constant, ...]:
        """The values of a constant: one for all elements, or one for each in row-major order; none for another node.

        Those of `Weights` are a sequence that makes its elements when they are read.
        """
        if not self.is_constant:
            return ()
        several = isinstance(self.settings[0], tuple | Weights)
        return self.settings[0] if several else self.settings

    # `==` stays identity, so that nodes can be the keys of a dictionary.
    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")
    __pow__ = _operator("pow")[0]
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("lt", "le", "gt", "ge"))
    __and__, __or__ = map(_comparison, ("and", "or"))

    def __neg__(self) -> Node:
        return simplified("neg", self)


def leaf(shape: Shape = (), dtype: DType = "float64") -> Node:
    """Return an input of a graph."""
    return Node("input", (), shape, (), dtype)


def const(value: Constant | tuple[Constant, ...] | Weights, shape: Shape = (), dtype: DType = "float64") -> Node:
    """Return a constant; with a shape, an array filled with it, or one of these values, in row-major order.

    >>> const(2, (3,)).values, const((1, 2, 3), (3,)).values
    ((2,), (1, 2, 3))
    """
    return Node("const", (), shape, (value,), dtype)


def cast(x: Node, dtype: DType) -> Node:
    """Return the numbers in another type, as `x.to(dtype)` does; a constant is one of that type.

    >>> cast(leaf(dtype="int64"), "float32").dtype
    'float32'
    """
    if x.dtype == dtype:
        return x
    if x.is_constant:
        return Node("const", (), x.shape, x.settings, dtype)
    return Node("cast", (x,), x.shape, (dtype,), dtype)


def _joined(op: str, args: tuple[Node, ...]) -> tuple[tuple[Node, ...], DType]:
    """Return arguments of several types in the type that they have together, and that type."""
    first = args[:1] if op in SELECTING else ()  # the condition is not a number
    numbers = args[len(first) :]
    dtypes = [a.dtype for a in numbers if not a.is_constant] or [a.dtype for a in numbers]
    dtype = promoted(dtypes)
    if dtype not in FLOATING and not all(isinstance(v, int) for a in numbers for v in a.values):
        dtype = floated(dtype)
    return first + tuple(cast(a, dtype) for a in numbers), dtype


def lift(value: Node | Exact) -> Node:
    """Return a node for a number, and a node as it is."""
    return value if isinstance(value, Node) else const(value)


def is_const(node: Node, value: int) -> bool:
    """Return whether the node is that constant, of any shape."""
    return node.is_constant and node.settings[0] == value


def operand(node: Node, op: str) -> Node | None:
    """Return the argument of an operation of one argument; None where the node is another operation.

    >>> x = leaf()
    >>> operand(-x, "neg") is x, operand(x, "neg")
    (True, None)
    """
    return node.args[0] if node.op == op else None


def operands(node: Node, op: str) -> tuple[Node, ...]:
    """Return the arguments of an operation; none where the node is another operation.

    >>> x, z = leaf(), leaf()
    >>> operands(x - z, "sub") == (x, z), operands(x - z, "add")
    (True, ())
    """
    return node.args if node.op == op else ()


def elementwise(op: str, *args: Node) -> Node:
    """Return the node of an elementwise operation; the arguments broadcast as in NumPy."""
    shape = args[0].shape if len(args) == 1 else broadcast_shapes([a.shape for a in args])
    if op not in KEEPING_INTEGERS:
        for a in args:
            if a.dtype not in FLOATING:
                args, dtype = _joined(op, args)
                args = tuple(cast(a, floated(dtype)) for a in args)
                break
    return Node(op, args, shape)


def compare(op: str, *args: Node) -> Node:
    """Return the node of a condition: a comparison of numbers, or what joins conditions."""
    if any(a.dtype != args[0].dtype for a in args):
        args, _ = _joined(op, args)
    return Node(op, args, broadcast_shapes([a.shape for a in args]), (), "bool")


def simplified(op: str, *args: Node) -> Node:
    """Return `op` of the arguments, exact and without the arithmetic that changes nothing: by the rule in `ARITHMETIC`.

    A product with 0 stays one: 0·inf is nan, in a gradient too.

    >>> x = leaf()
    >>> simplified("mul", const(1), x) is x
    True
    >>> simplified("add", const(1), const(Fraction(1, 3))).value
    Fraction(4, 3)
    """
    node = Node(op, args, broadcast_shapes([a.shape for a in args]))
    return ARITHMETIC[op](node) or node


def _sum(node: Node) -> Node | None:
    """Return x for x + 0 and 0 + x."""
    a, b = node.args
    if not (a.is_constant or b.is_constant):
        return None
    return _folded(node) or (_as_large(a, node) if is_const(b, 0) else _as_large(b, node) if is_const(a, 0) else None)


def _difference(node: Node) -> Node | None:
    """Return x for x - 0."""
    a, b = node.args
    if not b.is_constant:
        return None
    return _folded(node) or (_as_large(a, node) if is_const(b, 0) else None)


def _negative(node: Node) -> Node | None:
    """Return x for -(-x)."""
    return _folded(node) or operand(node.args[0], "neg")


def _product(node: Node) -> Node | None:
    """Return a·(−b) as −(a·b), a·(1/b) as a/b, x for 1·x, and a product whose number is in front."""
    a, b = node.args
    if (positive := operand(b, "neg")) is not None:
        return -(a * positive)
    if b.op == "div" and is_const(b.args[0], 1) and b.shape == b.args[1].shape:
        return a / b.args[1]
    if not (a.is_constant or b.is_constant):
        return None
    one = _as_large(a, node) if is_const(b, 1) else _as_large(b, node) if is_const(a, 1) else None
    return _folded(node) or one or _sign(node, a, b) or _sign(node, b, a) or _number_first(node)


def _quotient(node: Node) -> Node | None:
    """Return x for x/1, and −x for x/(−1)."""
    a, b = node.args
    if not b.is_constant:
        return None
    return _folded(node) or (_as_large(a, node) if is_const(b, 1) else _sign(node, b, a))


def _power(node: Node) -> Node | None:
    """Return x for x**1, and 1 for x**0."""
    a, b = node.args
    if not b.is_constant:
        return None
    one = const(1, node.shape) if is_const(b, 0) else None
    return _folded(node) or (_as_large(a, node) if is_const(b, 1) else one)


def _folded(node: Node) -> Node | None:
    """Return the exact result of an operation on numbers."""
    exact = fold(node.op, [a.value for a in node.args]) if all(a.is_constant for a in node.args) else None
    return None if exact is None else const(exact, node.shape)


def _as_large(argument: Node, node: Node) -> Node | None:
    """Return an argument that has the shape of the result."""
    return argument if argument.shape == node.shape else None


def _sign(node: Node, factor: Node, x: Node) -> Node | None:
    """Return −x for the factor −1."""
    return -x if is_const(factor, -1) and x.shape == node.shape else None


def _number_first(node: Node) -> Node | None:
    """Return x·2 as 2·x, and 2·(3·x) as 6·x."""
    a, b = node.args
    swapped = b.is_constant and not a.is_constant
    if swapped:
        a, b = b, a
    product = a
    while (factors := operands(b, "mul")) and factors[0].is_constant:
        factor = fold("mul", [product.value, factors[0].value])
        if factor is None:
            break
        product, b = const(factor, broadcast_shapes([product.shape, factors[0].shape])), factors[1]
    if product is not a:
        return product * b
    return node.with_args((a, b)) if swapped else None


# The rules that operators between nodes apply at once, for the rewriter too.
ARITHMETIC: Final[dict[str, Rule]] = {
    "add": _sum, "sub": _difference, "mul": _product, "div": _quotient, "neg": _negative, "pow": _power,
}  # fmt: skip


def fold(op: str, values: Sequence[Constant | None]) -> Constant | None:
    """Return the exact result of `+ - * / **` or negation of numbers, or None where there is none.

    A result with a decimal operand stays a decimal where it has finitely many digits, and a zero keeps its sign.

    >>> fold("mul", [Decimal("0.1"), 3])
    Decimal('0.3')
    >>> fold("div", [1, 3]), fold("pow", [3, -1])
    (Fraction(1, 3), Fraction(1, 3))
    >>> fold("neg", [Decimal("0.0")]), fold("neg", [0])
    (Decimal('-0.0'), 0)
    """
    numbers = [Fraction(v) if isinstance(v, Decimal) else v for v in values if isinstance(v, (int, Fraction, Decimal))]
    if len(numbers) < len(values) or not numbers:
        return None
    result = _arithmetic(op, numbers)
    if result is None or bits(result) > MAX_BITS:
        return None
    decimal = any(isinstance(v, Decimal) for v in values)
    if decimal and not result:
        return _zero(op, _sign_of(values[0]), _sign_of(values[-1]), odd=numbers[-1] % 2 == 1)
    if result.denominator == 1:
        return result.numerator
    return _decimal(result) if decimal else result


def _sign_of(number: Constant | None) -> float:
    """Return 1, -1, 0.0 or -0.0."""
    if number:
        return 1.0 if Fraction(number) > 0 else -1.0
    return -0.0 if isinstance(number, Decimal) and number.is_signed() else 0.0


def _zero(op: str, a: float, b: float, odd: bool) -> Decimal:
    """Return the zero that an operation on numbers of these signs gives in float arithmetic, with its sign."""
    powers = a if odd else 0.0
    zero = {"add": a + b, "sub": a - b, "mul": a * b, "div": a * b, "neg": -a, "pow": powers}[op]
    return Decimal(repr(zero))


def _arithmetic(op: str, numbers: Sequence[int | Fraction]) -> int | Fraction | None:
    a, b = numbers[0], numbers[-1]
    match op:
        case "add" | "sub" | "mul" | "neg":
            exact: int | Fraction = getattr(operator, op)(*numbers)
            return exact
        case "div" if b:
            return Fraction(a) / b
        case "pow" if b.denominator == 1 and (a or b >= 0) and bits(a) * abs(b.numerator) <= MAX_BITS:
            return Fraction(a) ** b.numerator
    return None


def bits(number: Exact) -> int:
    """Return the size of an exact number, in bits: the larger of numerator and denominator."""
    fraction = Fraction(number) if isinstance(number, Decimal) else number
    return max(fraction.numerator.bit_length(), fraction.denominator.bit_length())


def _decimal(number: int | Fraction) -> Exact:
    """Return a fraction as a decimal if it has at most 17 digits, as itself if not."""
    try:
        near = Decimal(repr(float(number)))
    except OverflowError:  # beyond float64
        return number
    return near if Fraction(near) == number else number
