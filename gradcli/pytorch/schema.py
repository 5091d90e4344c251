"""Schemas of functions, in ATen's syntax: the overloads of each, with types, names and defaults of their arguments."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

REQUIRED = inspect.Parameter.empty  # in the place of a default
DEPRECATED = "deprecated"  # the name of overloads that PyTorch takes with a warning, and lists in no error

# What each type is called in errors; lists of integers are `tuple of ints` there.
_WORDS = {"Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout", "Device": "torch.device"}
_WORDS |= {"Generator": "torch.Generator", "MemoryFormat": "torch.memory_format", "Tensor[]": "tuple of Tensors"}
_WORDS |= {"Any": "object", "Storage": "torch.Storage"}
# What groups of arguments stand for: those by which new tensors are made, and how a loss of many samples becomes one.
_GROUPS = {
    "TensorOptions": "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, "
    "bool? requires_grad=False",
    "Reduction": "bool? size_average=None, bool? reduce=None, str reduction='mean'",
}
_OF_NUMPY = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}


class Argument(NamedTuple):
    """An argument: its name in Python, its type without `?`, and how it may be passed.

    `default` is the text of its default, empty where it has none; `is_rest` is whether it takes all further arguments.
    """

    name: str
    type: str
    default: str
    may_be_none: bool
    by_name: bool
    is_rest: bool

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return not self.default

    @property
    def value(self) -> Any:
        """The default."""
        if self.default == "contiguous_format":
            return self.default
        return literal_eval(self.default) if self.default else REQUIRED

    @property
    def names(self) -> Sequence[str]:
        """The keywords that PyTorch takes for it: its name, and those of NumPy."""
        return self.name, *_OF_NUMPY.get(self.name, ())

    @property
    def word(self) -> str:
        """What PyTorch's errors call its type."""
        return "tuple of ints" if self.type.startswith("int[") else _WORDS.get(self.type, self.type)

    def __str__(self) -> str:
        default = self.default.replace("'", '"')
        return f"{self.word} {self.name}" + f" = {default}" * bool(default)


class Overload:
    """One way to call a function: its name in ATen, its arguments, and the types that it returns."""

    def __init__(self, name: str, arguments: Sequence[Argument], returns: str, has_self: bool = False) -> None:
        self.name, self.arguments, self.returns, self.has_self = name, arguments, returns, has_self
        self.positional = [a for a in arguments if not a.by_name]
        self.least = sum(a.is_required for a in arguments)
        # The only argument by position may be integers that are passed one by one.
        self.is_spread = len(self.positional) == 1 and self.positional[0].type.startswith("int[")

    @property
    def fields(self) -> Sequence[str]:
        """The names of several results; none where they have none.

        >>> Overload.parse("sort(Tensor self) -> (Tensor values, Tensor indices)").fields
        ['values', 'indices']
        """
        names = [part.partition(" ")[2] for part in self.returns.strip("()").split(", ")]
        return names if all(names) else []

    @cached_property
    def by_names(self) -> dict[str, Argument]:
        """The arguments by their names."""
        return {a.name: a for a in self.arguments}

    @classmethod
    def parse(cls, text: str) -> Overload:
        """Return the overload that a text says.

        >>> [str(a) for a in Overload.parse("norm.dim(Tensor self, Scalar? p, int[1] dim=0) -> Tensor").arguments]
        ['Tensor input', 'Number p', 'tuple of ints dim = 0']
        """
        head, _, returns = text.partition(" -> ")
        name, _, parts = head.rstrip(")").partition("(")
        arguments, by_name = [], False
        for group, meant in _GROUPS.items():
            parts = parts.replace(group, meant)
        for part in parts.split(", ") if parts else ():
            if part == "*":
                by_name = True
            else:
                arguments.append(_argument(part, by_name))
        return cls(name.partition(".")[2], arguments, returns, "Tensor self" in head)

    @property
    def text(self) -> str:
        """The arguments as PyTorch's errors list them.

        >>> Overload.parse("round.decimals(Tensor self, *, int decimals, Tensor? out=None) -> Tensor").text
        'Tensor input, *, int decimals, Tensor out = None'
        """
        parts = [str(a) for a in self.arguments]
        if len(self.positional) < len(parts):
            parts.insert(len(self.positional), "*")
        return ", ".join(parts)

    def of_method(self) -> Overload | None:
        """Return the method's overload, for the tensor before the dot; None where it has none."""
        if not self.has_self:
            return None
        return Overload(self.name, [a for a in self.arguments if a.name not in ("input", "out")], self.returns)


def _argument(text: str, by_name: bool) -> Argument:
    """Return the argument that a text says; ATen's tensor `self` is `input` in Python.

    >>> _argument("int[2]? stride=None", False)
    Argument(name='stride', type='int[2]', default='None', may_be_none=True, by_name=False, is_rest=False)
    """
    left, _, default = text.partition("=")
    default = default.replace("[]", "None")  # as in Python
    type_, _, name = left.rpartition(" ")
    kind, may_be_none = type_.removesuffix("?"), type_.endswith("?") or default == "None"
    name, is_rest = name.lstrip("*"), name.startswith("*")
    return Argument("input" if left == "Tensor self" else name, kind, default, may_be_none, by_name, is_rest)


class Schema(NamedTuple):
    """A function: its overloads, in the order in which PyTorch tries them, and facts of it."""

    overloads: Sequence[Overload]
    facts: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> Schema:
        """Return the schema of overloads that stand on a line each, with facts behind `::`.

        >>> schema = Schema.parse("max(Tensor self) -> Tensor :: saves=0y\\n .other(Tensor self, Tensor other)")
        >>> [o.name for o in schema.overloads], schema.facts
        (['', 'other'], {'saves': '0y'})
        """
        overloads, facts = [], ""
        for line in re.split(r"\n *(?=\.)", text):
            signature, _, more = re.sub(r"\n +", " ", line).partition(" ::")
            overloads.append(Overload.parse(signature))
            facts += f" {more}"
        return cls(overloads, dict(fact.partition("=")[::2] for fact in facts.split()))

    @property
    def arguments(self) -> dict[str, Argument]:
        """The arguments of all overloads by their names, but for a number before a tensor, which stands for `input`."""
        arguments = {a.name: a for overload in self.overloads[::-1] for a in overload.arguments if a.name != "self"}
        names = dict.fromkeys(a.name for overload in self.overloads for a in overload.arguments if a.name != "self")
        return {name: arguments[name] for name in names}
