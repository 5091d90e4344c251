"""The representation of a system: a node is one operation, a graph is a list of them.

A graph is a Wengert list (R. E. Wengert, "A simple automatic derivative evaluation program",
CACM 7(8), 1964): the nodes stand in the order in which they are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gradcli.errors import InputError, Span

Shape = tuple[int, ...]
Exact = int | Fraction | Decimal
# "pi" and "e" stay symbols, so that formulas show them; a float is only inf or nan.
Constant = Exact | float | str

MAX_ELEMENTS = 2**24  # of one array: 128 MiB of float64
MAX_RANK = 32
MAX_BITS = 1100  # of an exact constant: float64 ends at 2**1024


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One operation: its op, its argument nodes, its static shape, and the user's name for it.

    `params` are the settings that the op takes beside its arguments (axes, a target shape), hashable.
    Nodes are compared by identity.  `+ - * / **` between nodes build simplified nodes
    (`x * 1` is `x`): rules are written with them, what the user typed is not.

    >>> x = leaf("x", (2,))
    >>> 3 * x**2
    mul(const, pow), shape (2,)
    """

    op: str
    args: tuple[Node, ...] = ()
    shape: Shape = ()
    params: tuple[Any, ...] = ()
    name: str | None = None
    span: Span | None = None

    def __repr__(self) -> str:
        label = f"{self.name} = " if self.name else ""
        args = ", ".join(a.name or a.op for a in self.args[:4]) + (", …" if len(self.args) > 4 else "")
        return f"{label}{self.op}({args}), shape {self.shape}"

    @property
    def value(self) -> Constant | None:
        """The value of a constant; `None` for any other node."""
        return self.params[0] if self.op == "const" else None

    @property
    def size(self) -> int:
        """The number of elements."""
        return size_of(self.shape)

    def called(self, name: str, span: Span | None = None) -> Node:
        """Return the node under another name."""
        return Node(self.op, self.args, self.shape, self.params, name, span or self.span)

    def __add__(self, other: Node | Exact) -> Node:
        return simplified("add", self, lift(other))

    def __radd__(self, other: Exact) -> Node:
        return simplified("add", lift(other), self)

    def __sub__(self, other: Node | Exact) -> Node:
        return simplified("sub", self, lift(other))

    def __rsub__(self, other: Exact) -> Node:
        return simplified("sub", lift(other), self)

    def __mul__(self, other: Node | Exact) -> Node:
        return simplified("mul", self, lift(other))

    def __rmul__(self, other: Exact) -> Node:
        return simplified("mul", lift(other), self)

    def __truediv__(self, other: Node | Exact) -> Node:
        return simplified("div", self, lift(other))

    def __rtruediv__(self, other: Exact) -> Node:
        return simplified("div", lift(other), self)

    def __pow__(self, other: Node | Exact) -> Node:
        return simplified("pow", self, lift(other))

    def __neg__(self) -> Node:
        return simplified("neg", self)

    # `==` stays identity, so that nodes can be the keys of a dictionary.
    def __lt__(self, other: Node | Exact) -> Node:
        return elementwise("lt", self, lift(other))

    def __le__(self, other: Node | Exact) -> Node:
        return elementwise("le", self, lift(other))

    def __gt__(self, other: Node | Exact) -> Node:
        return elementwise("gt", self, lift(other))

    def __ge__(self, other: Node | Exact) -> Node:
        return elementwise("ge", self, lift(other))

    def __and__(self, other: Node) -> Node:
        return elementwise("and", self, other)

    def __or__(self, other: Node) -> Node:
        return elementwise("or", self, other)


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which they are computed, with the inputs (leaves) and the outputs.

    Inputs and outputs have names; every input and output is one of the nodes.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    @classmethod
    def of(cls, inputs: Iterable[Node], outputs: Iterable[Node], first: Iterable[Node] = ()) -> Graph:
        """Return the graph that computes `outputs`, and before them the nodes `first`, in their order.

        >>> x = leaf("x")
        >>> [n.op for n in Graph.of([x], [(2 * x).called("y")]).nodes]
        ['input', 'const', 'mul']
        """
        inputs, outputs = tuple(inputs), tuple(outputs)
        done = dict.fromkeys(inputs)
        _schedule([*first, *outputs], done)
        return cls(tuple(done), inputs, outputs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes the graph anew in another process: a flat list, so that pickling does not recurse."""
        place = {n: i for i, n in enumerate(self.nodes)}
        rows = [(n.op, [place[a] for a in n.args], n.shape, n.params, n.name) for n in self.nodes]
        return _unpickled, (rows, [place[n] for n in self.inputs], [place[n] for n in self.outputs])

    def output(self, name: str) -> Node:
        """Return the output of that name."""
        return next(n for n in self.outputs if n.name == name)


def _unpickled(rows: Iterable[Any], inputs: Iterable[int], outputs: Iterable[int]) -> Graph:
    nodes: list[Node] = []
    for op, args, shape, params, name in rows:
        nodes.append(Node(op, tuple(nodes[i] for i in args), shape, params, name))
    return Graph(tuple(nodes), tuple(nodes[i] for i in inputs), tuple(nodes[i] for i in outputs))


def _schedule(outputs: Iterable[Node], done: dict[Node, None]) -> None:
    """Add to `done` what `outputs` need, arguments before the nodes that use them.

    Depth first with a stack of its own: a chain of 100,000 nodes is an ordinary graph.
    """
    for output in outputs:
        if output in done:
            continue
        stack: list[tuple[Node, Iterator[Node]]] = [(output, iter(output.args))]
        while stack:
            node, waiting = stack[-1]
            arg = next((a for a in waiting if a not in done), None)
            if arg is None:
                done[node] = None
                stack.pop()
            else:
                stack.append((arg, iter(arg.args)))


def leaf(name: str, shape: Shape = (), span: Span | None = None) -> Node:
    """Return an input of a graph."""
    return Node("input", (), shape, (), name, span)


def const(value: Constant, shape: Shape = (), span: Span | None = None) -> Node:
    """Return a constant; with a shape, an array filled with it."""
    return Node("const", (), shape, (value,), None, span)


def lift(value: Node | Exact) -> Node:
    """Return a node for a number, and a node as it is."""
    return value if isinstance(value, Node) else const(value)


def is_const(node: Node, value: int) -> bool:
    """Tell whether the node is that constant, of any shape."""
    return node.op == "const" and node.params[0] == value


def size_of(shape: Shape) -> int:
    """Return the number of elements of a shape.

    >>> size_of((2, 3)), size_of(())
    (6, 1)
    """
    product = 1
    for n in shape:
        product *= n
    return product


def check_size(shape: Shape) -> Shape:
    """Return the shape, unless an array of it would be absurdly large.

    Errors: `InputError` above `MAX_ELEMENTS` elements.
    """
    if len(shape) > MAX_RANK:
        raise InputError(f"an array of {len(shape)} dimensions has too many", hint=f"at most {MAX_RANK} fit")
    if size_of(shape) > MAX_ELEMENTS:
        size = "×".join(str(n) if n < 10**12 else f"{n:.3g}" for n in map(_plain, shape))
        raise InputError(f"an array of shape {size} is too large", hint=f"at most {MAX_ELEMENTS:,} elements fit")
    return shape


def _plain(n: int) -> int:
    return min(n, 10**18)


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    """Return the shape to which arrays of these shapes broadcast, by NumPy's rule.

    Errors: `InputError` when they do not fit.

    >>> broadcast_shapes([(3, 1), (4,), ()])
    (3, 4)
    """
    first = shapes[0]
    if all(s == first or not s for s in shapes[1:]):
        return first
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        distinct = set(sizes) - {1}
        if len(distinct) > 1:
            listed = " and ".join(str(s) for s in dict.fromkeys(shapes))
            raise InputError(
                f"shapes {listed} do not fit together",
                hint="shapes are aligned from the right; sizes must be equal, or one of them 1",
            )
        result.append(distinct.pop() if distinct else 1)
    return check_size(tuple(result))


def elementwise(op: str, *args: Node) -> Node:
    """Return the node of an elementwise operation; the arguments broadcast as in NumPy."""
    return Node(op, args, broadcast_shapes([a.shape for a in args]))


def simplified(op: str, *args: Node) -> Node:
    """Return `op` of the arguments, exact and without the arithmetic that changes nothing.

    A product with 0 stays one: 0·inf is nan, in a gradient too.

    >>> x = leaf("x")
    >>> simplified("mul", const(1), x) is x
    True
    >>> simplified("add", const(1), const(Fraction(1, 3))).value
    Fraction(4, 3)
    """
    shape = broadcast_shapes([a.shape for a in args])
    exact = fold(op, [a.value for a in args]) if all(a.op == "const" for a in args) else None
    if exact is not None:
        return const(exact, shape)
    same = _unchanged(op, args)
    if same is not None and same.shape == shape:
        return same
    if op in ("mul", "div"):
        return _signed(op, *args)
    if op == "pow" and is_const(args[1], 0):
        return const(1, shape)
    return Node(op, args, shape)


def _unchanged(op: str, args: tuple[Node, ...]) -> Node | None:
    """Return the argument that the operation leaves as it is: x + 0, 1·x, x/1, x**1, −(−x)."""
    a, b = args[0], args[-1]
    if op in ("add", "sub") and is_const(b, 0):
        return a
    if op == "add" and is_const(a, 0):
        return b
    if op in ("mul", "div", "pow") and is_const(b, 1):
        return a
    if op == "mul" and is_const(a, 1):
        return b
    if op == "neg" and a.op == "neg":
        return a.args[0]
    return None


def _signed(op: str, a: Node, b: Node) -> Node:
    """Return a·b or a/b with a factor −1 written as a sign, and numbers gathered in front."""
    shape = broadcast_shapes([a.shape, b.shape])
    if is_const(a, -1) and op == "mul" and b.shape == shape:
        return simplified("neg", b)
    if is_const(b, -1) and a.shape == shape:
        return simplified("neg", a)
    if op == "mul" and b.op == "const" and a.op != "const":
        a, b = b, a
    if op == "mul" and a.op == "const" and b.op == "mul" and b.args[0].op == "const":
        product = a
        while b.op == "mul" and (factor := fold("mul", [product.value, b.args[0].value])) is not None:
            product, b = const(factor, broadcast_shapes([product.shape, b.args[0].shape])), b.args[1]
        if product is not a:
            return simplified("mul", product, b)
    return Node(op, (a, b), shape)


def fold(op: str, values: Sequence[Constant | None]) -> Constant | None:
    """Return the exact result of `+ - * / **` or negation of numbers, or None where there is none.

    A result with a decimal operand stays a decimal where it has finitely many digits.

    >>> fold("mul", [Decimal("0.1"), 3])
    Decimal('0.3')
    >>> fold("div", [1, 3])
    Fraction(1, 3)
    """
    numbers = [Fraction(v) for v in values if isinstance(v, (int, Fraction, Decimal))]
    if len(numbers) < len(values) or not numbers:
        return None
    result = _arithmetic(op, numbers)
    if result is None or bits(result) > MAX_BITS:
        return None
    if result.denominator == 1:
        return result.numerator
    return _decimal(result) if any(isinstance(v, Decimal) for v in values) else result


def _arithmetic(op: str, numbers: list[Fraction]) -> Fraction | None:
    a, b = numbers[0], numbers[-1]
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "neg":
            return -a
        case "div" if b:
            return a / b
        case "pow" if b.denominator == 1 and (a or b >= 0) and bits(a) * abs(b) <= MAX_BITS:
            return Fraction(a**b.numerator)
    return None


def bits(number: Exact) -> int:
    """Return the size of an exact number, in bits: the larger of numerator and denominator."""
    fraction = Fraction(number)
    return max(fraction.numerator.bit_length(), fraction.denominator.bit_length())


def _decimal(number: Fraction) -> Exact:
    """Return a fraction as a decimal if it has at most 17 digits, as itself if not."""
    near = Decimal(repr(float(number)))
    return near if Fraction(near) == number else number
