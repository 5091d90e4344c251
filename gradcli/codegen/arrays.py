"""Functions in a language of whole arrays: an expression for each step, and names for values with several uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradcli.codegen.helpers import calls
from gradcli.codegen.program import Function
from gradcli.engine.evaluate import number
from gradcli.errors import InputError
from gradcli.graph.graph import depending
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node, operand
from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS

_LISTED = ("scatter", "stack", "concatenate")  # whose arguments may have lines of their own
_LONG = 68  # characters of an expression, at most, where it can be broken
_SHORT = 40
ATOM = 9
_BINDS = {Precedence.SUM: 1, Precedence.PRODUCT: 2, Precedence.POWER: 4}
_INFIX = {op: row.infix for op, row in OPERATIONS.items() if row.slopes and row.infix and row.arity == 2}
_LEVELS = {op: _BINDS[OPERATIONS[op].precedence] for op in _INFIX}
_INFIX["floor_divide"], _LEVELS["floor_divide"] = "//", _BINDS[Precedence.PRODUCT]  # which gradcli calls by its name
CONDITIONS = {op: row.infix for op, row in OPERATIONS.items() if row.kind == "condition"}
_ELEMENT = re.compile(r"\w+\[\d+(, \d+)*\]")  # of an array that has a name
_SIMPLE = re.compile(r"-?[\w.]+")  # a name or a number


class Text(str):
    """An expression, and how tightly it binds."""

    level: int

    def __new__(cls, text: str, level: int = ATOM) -> Text:
        """Return the text with its level."""
        result = super().__new__(cls, text)
        result.level = level
        return result

    @property
    def atom(self) -> str:
        """The expression, in brackets unless an index or a method can follow it directly."""
        return self if self.level == ATOM else f"({self})"


Rule = Callable[["ArrayWriter", Node, Sequence[Text]], str]


@dataclass(frozen=True)
class ArrayLanguage:
    """A target: its name, the rule of each operation, how arrays of numbers are written, or of one value.

    `result` is how a result is written, and `scalar` a number that is an argument of a function.
    """

    name: str
    rules: Mapping[str, Rule | str]
    array: Callable[[ArrayWriter, Node, str | None], str]
    result: Callable[[ArrayWriter, Node, str], str]
    scalar: Callable[[str], str] = str


@dataclass
class ArrayWriter:
    """Writes the steps of one function."""

    language: ArrayLanguage
    function: Function
    lines: list[str] = field(default_factory=list)
    done: dict[Node, Text] = field(default_factory=dict)
    tables: dict[str, list[int]] = field(default_factory=dict)  # before the function
    called: set[str] = field(default_factory=set)  # functions that the lines call

    def __post_init__(self) -> None:
        self.fresh = fresh_names({*self.function.names.values(), *self.function.results})
        self.varying = depending(self.function.nodes, self.function.arguments.values())  # from point to point
        self.numbers: set[Node] = set()  # which are Python's, and no arrays
        for node in self.function.nodes:
            plain = node.is_constant or operand(node, "neg") is not None or self.is_infix(node)
            if plain and not node.shape and self.numbers.issuperset(node.args):
                self.numbers.add(node)
        self.uses_points = False
        self.result_names = {n: name for name, n in self.function.results.items()}

    def is_infix(self, node: Node) -> bool:
        """Return whether the operation is an operator of the language."""
        return node.op in _INFIX and self.language.rules.get(node.op) == "infix"

    def helper(self, name: str) -> str:
        """Return the name of a function that the file is to bring along."""
        self.called.add(name)
        return name

    def points(self) -> str:
        """Return the name of the points' shape, which the function is to begin with."""
        self.uses_points = True
        return "points"

    def own_name(self, node: Node) -> str | None:
        """Return the name of a node: the user's, or that of the result that it is."""
        name = self.function.names.get(node)
        if name is None and (result := self.result_names.get(node)) not in self.function.names.values():
            return result
        return name

    def write(self) -> list[str]:
        """Return the lines that compute the results, which `done` has at the end."""
        for node in self.function.nodes:
            self.done[node] = self.kept(node, self.expression(node))
        return self.lines

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(text)

    def kept(self, node: Node, text: Text) -> Text:
        """Return an expression, or the name that it gets: the user's, or a new one where it is read again or long."""
        if not node.args:
            return text
        name = self.function.names.get(node)
        short = self.function.readers[node] < 2 and len(text) < _LONG
        if name is None and (short or text.isidentifier() or _ELEMENT.fullmatch(text)):
            return text
        return self.named(text, self.own_name(node))

    def named(self, text: str, name: str | None = None) -> Text:
        """Write an assignment and return its name; a text that is a name is assigned only to another `name`."""
        name = name or (text if text.isidentifier() else next(self.fresh))
        if text != name:
            self.line(f"{name} = {text}")
        return Text(name)

    def expression(self, node: Node) -> Text:
        """Return the expression of a node in those of its arguments."""
        if node.is_leaf:
            return Text(self.function.names[node])
        if node.is_constant:
            return self.constant(node)
        args = [self.done[a] for a in node.args]
        args = args if node.op in _LISTED else self.broken(args)
        rule = self.language.rules.get(node.op, "unsupported")
        if self.is_infix(node):
            return _infix(node.op, *args)
        if operand(node, "neg") is not None:
            return Text(f"-{_bracketed(args[0], 3)}", 2)
        if node.op in CONDITIONS:
            return _comparison(node.op, *args)
        if rule == "unsupported":
            raise unsupported(node.op, self.language.name)
        return self.by_rule(rule, node, args)

    def by_rule(self, rule: Rule | str, node: Node, args: Sequence[Text]) -> Text:
        """Return the expression that a rule makes of the arguments; one that a pattern reads twice has a name."""
        if isinstance(rule, str) and rule.count("{0}") > 1 and not _SIMPLE.fullmatch(args[0]):
            args = [self.named(args[0]), *args[1:]]
        texts = [self.argument(a, result) for a, result in zip(node.args, args, strict=True)]
        if isinstance(rule, str):
            self.called |= calls(rule)
            settings = dict(zip(OPERATIONS[node.op].settings, node.settings, strict=True))
            return Text(rule.format(*texts, **settings), args[0].level if rule == "{}" else ATOM)
        text = rule(self, node, texts)
        return Text(text, ATOM if is_atom(text) else 0)

    def indices(self, numbers: Any) -> str:
        """Return an integer array as a list literal, or as the name of a table before the function if it is long."""
        text = str(numbers.tolist())
        if numbers.ndim > 1 or len(text) < _LONG:
            return text
        name = f"{self.function.name}_places{len(self.tables) + 1}"
        self.tables[name] = numbers.tolist()
        return name

    def short(self, text: str) -> str:
        """Return a text, or the name that it gets if it is long."""
        return text if len(text) < _SHORT else self.named(text)

    def broken(self, args: list[Text]) -> list[Text]:
        """Return arguments, the longest of which get names until they are not too long together."""
        args = list(args)
        while sum(len(a) + 3 for a in args) > _LONG:
            compound = [i for i, a in enumerate(args) if not _SIMPLE.fullmatch(a)]
            if not compound:
                break
            longest = max(compound, key=lambda i: len(args[i]))
            args[longest] = self.named(args[longest])
        return args

    def argument(self, node: Node, text: Text) -> Text:
        """Return an argument of a function."""
        return Text(self.language.scalar(text)) if node in self.numbers else text

    def constant(self, node: Node) -> Text:
        """Return a number, or an array of numbers."""
        if node.shape:
            value = None if node.value is None else number_literal(number(node.value))
            return Text(self.language.array(self, node, value))
        text = number_literal(number(node.values[0]))
        return Text(text, 2 if text.startswith("-") else ATOM)


def is_atom(text: str) -> bool:
    """Return whether a text is a name, a number or a call, an index or a chain of them.

    >>> is_atom("f(a + b).g[1]"), is_atom("a + f(b)"), is_atom("(a == b)")
    (True, False, True)
    """
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if not depth and c in " -+*/":
            return False
    return True


def number_literal(value: float) -> str:
    """Return a number with all its digits.

    >>> number_literal(2), number_literal(float("inf"))
    ('2.0', 'float("inf")')
    """
    text = repr(float(value))
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text


def _infix(op: str, a: Text, b: Text) -> Text:
    level = _LEVELS[op]
    left = _bracketed(a, level + (op == "pow"))
    right = _bracketed(b, level + (op != "pow"), later=True)
    right = right.removesuffix(".0") if op == "pow" else right
    plain = op == "pow" and _SIMPLE.fullmatch(left) and _SIMPLE.fullmatch(right)
    return Text(f"{left}**{right}" if plain else f"{left} {_INFIX[op]} {right}", level)


def _comparison(op: str, *args: Text) -> Text:
    if op == "not":
        return Text(f"~{_bracketed(args[0], ATOM)}", 0)
    # `&` and `|` bind more tightly than a comparison.
    a, b = (_bracketed(x, 3 if op in ("and", "or") else 1) for x in args)
    return Text(f"{a} {CONDITIONS[op]} {b}", 0)


def _bracketed(text: Text, level: int, later: bool = False) -> str:
    return f"({text})" if text.level < level or (later and text.startswith("-")) else text


def unsupported(op: str, language: str) -> InputError:
    """Return the error of an operation that a language does not have."""
    return InputError(
        f"`{op}` cannot be exported to {language}",
        hint="other targets are numpy, torch, jax, c and javascript; or leave it out with --outputs or --what",
    )
