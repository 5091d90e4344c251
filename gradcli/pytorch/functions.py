"""PyTorch's functions as `functions.txt` lists them: their schemas, and facts of them, of operations and of steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from gradcli.pytorch.schema import Schema
from gradcli.pytorch.tables import lines


class Table(NamedTuple):
    """The lines of `functions.txt`: by module, the text of each function's schema; by fact, its values.

    Facts of a step have the step's name as their key, without `Backward0`; those of an operation have the operation's.
    """

    functions: Mapping[str, Mapping[str, str]]
    facts: Mapping[str, Mapping[str, str]]


_OF_STEPS = ("hooks", "in_place", "no_derivative", "vmap")


@cache
def table() -> Table:
    """Return the table of functions, operations and steps.

    >>> table().functions["torch"]["i1"]
    'i1(Tensor self, *, Tensor? out=None) :: grad_fn=SpecialI1 saves=0y'
    """
    functions: dict[str, dict[str, str]] = {}
    facts: dict[str, dict[str, str]] = defaultdict(dict)
    module: dict[str, str] = {}
    for line in lines("functions.txt"):
        head, bracket, _ = line.partition("(")
        if bracket and "=" not in head:
            names, text = head.partition(".")[0].split(), line.partition(" :: ")[2].partition("\n  .")[0]
            module.update(dict.fromkeys(names, line))
        else:
            bracket = ""
            *names, text = line.split(" ", 1) if " " in line else ("", line)
            if not names[0]:
                module = functions[line] = {}
                continue
        values = dict(fact.partition("=")[::2] for fact in text.split())
        for fact, value in values.items():
            for name in names:
                step = name if not bracket and "Backward" in name else capitals(name)
                key = values.get("grad_fn", step).removesuffix("Backward0") if fact in _OF_STEPS else name
                facts[fact].setdefault(key, value)
    return Table(functions, facts)


@cache
def find(name: str, module: str = "torch") -> Schema | None:
    """Return the schema of a function, in a module where it has another one there; None where it is not listed.

    >>> list(find("elu").arguments)
    ['input', 'alpha', 'inplace']
    """
    modules = table().functions
    text = next((m[name] for m in (modules[module], *modules.values()) if name in m), None)
    return None if text is None else Schema.parse(text)


def is_listed(name: str) -> bool:
    """Return whether a function has a schema, which is not parsed for this: at the start hundreds are registered."""
    return any(name in functions for functions in table().functions.values())


def schema_of(name: str, module: str = "torch") -> Schema:
    """Return the schema of a function that is in the table."""
    schema = find(name, module)
    assert schema is not None, name
    return schema


def fact(word: str, name: str) -> str | None:
    """Return a fact of an operation, or of a step without `Backward0`; None where the table does not have it.

    >>> fact("saves", "exp"), fact("no_derivative", "AcoshBackward1"), fact("saves", "sin")
    ('y', 'acosh_', None)
    """
    return table().facts[word].get(name)


@cache
def grad_name(op: str) -> str:
    """Return PyTorch's name of the `grad_fn` of an operation.

    >>> grad_name("sin"), grad_name("log_softmax"), grad_name("max"), grad_name("slices")
    ('SinBackward0', 'LogSoftmaxBackward0', 'MaxBackward1', 'torch::autograd::CopySlices')
    """
    name = fact("grad_fn", op) or capitals(op)
    return name if "Backward" in name or "::" in name else f"{name}Backward0"


@cache
def reduction_name(op: str, is_along: bool) -> str:
    """Return PyTorch's name of the `grad_fn` of a reduction; some have another name along an axis.

    >>> reduction_name("sum", False), reduction_name("sum", True), reduction_name("amax", True)
    ('SumBackward0', 'SumBackward1', 'AmaxBackward0')
    """
    along = f"{op}_dim"
    return grad_name(along if is_along and fact("grad_fn", along) else op)


def root_name(step: str) -> str:
    """Return the name of a step in PyTorch's errors.

    >>> [root_name(n) for n in ("ReluBackward0", "ClampBackward1", "SquareBackward", "torch::autograd::CopyBackwards")]
    ['Relu', 'Clamp1', 'Square', 'torch::autograd::CopyBackwards']
    """
    root, word, number = step.rpartition("Backward")
    return root + number.strip("0") if word and (not number or number.isdigit()) else step


def capitals(op: str) -> str:
    """Return a name as PyTorch's C++ writes it.

    >>> capitals("index_put")
    'IndexPut'
    """
    return "".join(part[:1].upper() + part[1:] for part in op.split("_"))


def edges_shown(op: str, name: str, count: int) -> Sequence[int]:
    """Return the indices of the operands whose edges PyTorch shows, in its order; all of `count` without a fact."""
    order = fact("edges", op) or fact("edges", name)
    return range(count) if order is None else [int(i) for i in order]
