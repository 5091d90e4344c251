"""The base of text and LaTeX: a rule writes each operation, with brackets around arguments that bind less tightly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from gradcli.graph.construct import reshape
from gradcli.graph.names import AdjointName
from gradcli.graph.node import Node, const, is_const, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, bare, broadcast_shapes


class Binds(IntEnum):
    """The precedence of an expression."""

    CONDITION = 0
    SUM = 1
    LOOSE = 2  # a product whose sign has spaces around it
    PRODUCT = 3
    POWER = 4
    ATOM = 5


class Written(NamedTuple):
    """An expression as it is written, and how tightly it binds; one that is `open` would take in what follows."""

    text: str
    binds: Binds = Binds.ATOM
    open: bool = False


Rule = Callable[[Any, Node], Written]


class Writer:
    """Writes nodes by the rules of a target, in terms of the nodes in `names`."""

    rules: ClassVar[Mapping[str, Rule]]
    brackets: ClassVar[str] = "({})"
    typed: ClassVar[bool] = False  # whether it is to give the same numbers when it is typed
    shown: ClassVar[int] = 6  # elements of a list

    def __init__(self, names: Mapping[Node, str], implicit: bool = False) -> None:
        """`implicit` leaves out what broadcasting does by itself."""
        self.names = names
        self.implicit = implicit
        self.explicit: set[Node] = set()  # what broadcasts, and is written all the same

    def name_or_none(self, node: Node) -> str | None:
        """Return a node's name as it is written, if it has one."""
        return self.names.get(node)

    def name(self, node: Node) -> str:
        """Return a node's name, or its expression."""
        return self.name_or_none(node) or self.expression(node)

    def expression(self, node: Node, whole: bool = False) -> str:
        """Return the expression of a node in terms of named nodes; with `whole`, also the shape of a constant."""
        return self.written(self._spread(node) if whole else node).text

    def written(self, node: Node) -> Written:
        """Return the expression of a node, and its precedence."""
        if (inner := self._left_out(node)) is not None:
            name = self.name_or_none(inner)
            return self.written(inner) if name is None else Written(name)
        return self.rules[node.op](self, self.with_explicit_broadcasts(node))

    def with_explicit_broadcasts(self, node: Node) -> Node:
        """Return a node whose arguments are written with the `broadcast` that its value needs: sum(broadcast(c, 3))."""
        if self.implicit and node.args and node.op != "broadcast" and not OPERATIONS[node.op].broadcasts:
            if (
                OPERATIONS[node.op].kind == "contraction"
            ):  # a stack of one matrix is none: their product is a stack, too
                inner = ((a, spread_argument(a)) for a in node.args if len(a.shape) == 2)
                self.explicit |= {a for a, x in inner if x is not None and len(x.shape) > 2}
            return replace(node, args=tuple(map(self._spread, node.args)))
        return node

    def _left_out(self, node: Node) -> Node | None:
        """Return the argument of a node that broadcasting makes implicit; None for any other node."""
        if not self.implicit or node in self.names or node in self.explicit:
            return None
        inner = spread_argument(node)
        lines_up = inner is not None and (node.op == "broadcast" or bare(node.shape) == bare(inner.shape))
        return inner if lines_up or not self.typed else None

    def _spread(self, node: Node) -> Node:
        """Return an argument with `broadcast` written around it, unless its text has the full shape anyway."""
        shape = self._shape(node)
        if bare(shape) == bare(node.shape) and (shape or not node.shape):
            return node
        spread = Node("broadcast", (node,), node.shape, (node.shape,))
        self.explicit.add(spread)
        return spread

    def _shape(self, node: Node) -> Shape:
        """Return the shape of a node's text."""
        if (inner := self._left_out(node)) is not None:
            shape = self._shape(inner)
            return node.shape if node.op == "reshape" and shape == inner.shape else shape
        if node in self.names or not node.args or not OPERATIONS[node.op].broadcasts:
            return node.shape
        return broadcast_shapes(list(map(self._shape, self.plain(node))))

    def operand(self, node: Node, binds: Binds, first: bool = True, last: bool = True) -> Written:
        """Return an operand, in brackets if its precedence is lower, it begins with a sign, or it is open-ended."""
        name = self.name_or_none(node)
        if name is not None:
            label = self.names[node]
            is_partial = isinstance(label, AdjointName) and not label.barred and binds > Binds.SUM
            return Written(self.brackets.format(name) if is_partial else name)
        written = self.written(node)
        if written.binds < binds or (not first and written.text.startswith("-")) or (written.open and not last):
            return Written(self.brackets.format(written.text))
        return written

    def argument(self, node: Node, binds: Binds, first: bool = True) -> str:
        """Return the text of an operand."""
        return self.operand(node, binds, first).text

    def arguments(self, node: Node) -> list[str]:
        """Return the names of a node's arguments; where axes count, what changes their number is written."""
        if self.implicit and not OPERATIONS[node.op].broadcasts:
            return [self.name_or_none(a) or self._of_its_rank(a) for a in node.args]
        return [self.name(a) for a in self.plain(node)]

    def _of_its_rank(self, node: Node) -> str:
        inner = spread_argument(node)
        changed = inner is not None and len(inner.shape) != len(node.shape)
        return self.rules[node.op](self, node).text if changed else self.expression(node)

    def plain(self, node: Node) -> list[Node]:
        """Return a node's arguments, an array filled with one number as that number where the others have the shape."""
        args = list(node.args)
        if not args or not OPERATIONS[node.op].broadcasts:
            return args
        for i, a in enumerate(args):
            others = [b.shape for b in args[:i] + args[i + 1 :]]
            number = a.value if a.shape and a not in self.names else None
            if number is not None and others and broadcast_shapes(others) == node.shape:
                args[i] = const(number)
        return args


def spread_argument(node: Node) -> Node | None:
    """Return the argument of a broadcast, or of a reshape that adds or drops axes of 1; None for any other node."""
    reshaped = operand(node, "reshape")
    if reshaped is not None and [n for n in node.shape if n > 1] == [n for n in reshaped.shape if n > 1]:
        return reshaped
    return operand(node, "broadcast")


# Settings that are typed behind the arguments, with what they are where nothing is typed.
_TYPED: dict[str, Any] = {
    "correction": 1, "descending": False, "diagonal": 0, "full_matrices": False, "ids": None, "n": None,
    "reduction": "mean", "ignore_index": -100, "training": False, "padding": 0, "dilation": 1, "groups": 1,
    "ceil_mode": False, "count_include_pad": True, "divisor_override": None, "output_padding": 0, "padding_idx": None,
    "is_causal": False, "use_input_stats": True, "num_layers": 1, "bidirectional": False, "has_biases": True,
    "batch_first": False, "dropout": False, "result": 0, "size": None, "scale_factor": None, "mode": "nearest",
    "align_corners": None, "enable_gqa": False,
}  # fmt: skip
# A number where they are equal along all axes.
_SIZES = (
    "kernel_size", "stride", "padding", "output_padding", "dilation", "size", "scale_factor", "output_size",
)  # fmt: skip
# That are typed without their names.
_FIRST = ("kernel_size", "normalized_shape", "num_groups", "output_size", "shifts", "pad")
SETTINGS = {"axes", "axis", "given", "stride", *_FIRST, *_TYPED}


def settings_of(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield the settings of a call as keyword arguments, without defaults; those that need no name without one."""
    rank = len(node.args[0].shape)
    settings = dict(zip(OPERATIONS[node.op].settings, node.settings, strict=True))
    ties = settings.get("ties")
    for word, value in settings.items():
        if word in _SIZES:
            value = value[0] if isinstance(value, tuple) and len({*value}) == 1 else value
        if word == "stride":
            kernel = settings.get("kernel_size", (1,))
            if settings[word] not in (kernel, kernel * len(settings[word])):
                yield word, value
        elif word in _FIRST:
            yield "", value[0] if isinstance(value, tuple) and len(value) == 1 else value
        elif word == "axes" and (len(value) < rank or ties == "first"):
            yield "axis", value[0] if len(value) == 1 and ties != "even" else value
        elif (word == "axis" and rank > 1) or (value != _TYPED.get(word, value) and value is not None):
            yield word, value


def options_of(node: Node) -> dict[int, str]:
    """Return the names of the arguments of a call that are typed with them, by position; "" where it is the default."""
    row = OPERATIONS[node.op]
    given = dict(zip(row.settings, node.settings, strict=True)).get("given", tuple(row.options))
    named = enumerate(given, len(node.args) - len(given))
    return {i: "" if node.args[i].value == row.options[word] is not None else word for i, word in named}


EXTREMA = ("max", "min", "median")


def called(node: Node) -> str:
    """Return the name of a function: of an extremum by its treatment of ties, max or amax."""
    ties = dict(zip(OPERATIONS[node.op].settings, node.settings, strict=True)).get("ties")
    return f"a{node.op}" if ties == "factors" else node.op


def through(w: Writer, node: Node) -> Written:
    """Return the last argument, of an operation that formulas do not show."""
    name = w.name_or_none(node.args[-1])
    return w.written(node.args[-1]) if name is None else Written(name)


def one_hot_of(node: Node, names: Mapping[Node, str]) -> tuple[Node, int] | None:
    """Return the classes and their number where a node is a one-hot encoding; None elsewhere.

    A node with a name is taken for one that is equal to it.

    >>> from gradcli.graph.construct import equal, where
    >>> from gradcli.graph.node import const, leaf
    >>> t = leaf((4,))
    >>> classes = one_hot_of(where(equal(reshape(t, (4, 1)), const((0, 1, 2), (3,))), 1, 0), {})
    >>> classes == (t, 3)
    True
    """
    match operands(node, "where"):
        case condition, one, zero if condition not in names and is_const(one, 1) and is_const(zero, 0):
            compared = operands(condition, "eq")
        case _:
            return None
    if not compared:
        return None
    wanted, classes = compared
    *samples, count = node.shape or (0,)
    is_one = wanted.is_constant and wanted.shape == () == tuple(samples)
    if not is_one and wanted.shape != (*samples, 1):
        return None
    if not classes.is_constant or classes.values != tuple(range(count)):
        return None
    target = operand(wanted, "reshape") or reshape(wanted, tuple(samples))
    if target.shape != tuple(samples):
        return None
    if not target.is_constant:
        return target, count
    equal = (n for n in names if n.is_constant and n.shape == target.shape and n.values == target.values)
    return next(equal, target), count
