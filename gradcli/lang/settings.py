"""The arguments of a call: expressions, plain settings, and the messages for those that do not fit."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from gradcli.errors import InputError
from gradcli.graph.node import Node
from gradcli.vocabulary import KEYWORDS, Builder


@cache
def signature_of(function: Builder) -> inspect.Signature:
    """Return the signature of a function of the language; its annotations are text."""
    return inspect.signature(function)


def arguments(function: Builder, values: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> dict[str, Any]:
    """Return the arguments of a call by the names of the function's parameters.

    Errors: `TypeError` where they do not fit.
    """
    named = {KEYWORDS.get(k.arg or "**", k.arg or "**"): k.value for k in keywords}
    return signature_of(function).bind(*values, **named).arguments


@cache
def takes_nodes(function: Builder) -> int | None:
    """Return how many arguments a function takes, if all are numbers that it must have; None for any other function."""
    parameters = signature_of(function).parameters.values()
    plain = all(
        p.annotation == "Node" and p.name != "condition" and p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        for p in parameters
    )
    return len(parameters) if plain else None


def plan(annotation: str, tree: Any, parts: list[ast.expr]) -> Any:
    """Return the plan of a parameter's value: an expression, added to `parts`, a list of them, or a setting."""
    if isinstance(tree, tuple):
        return tuple(plan(annotation, g, parts) for g in tree)
    if annotation == "Sequence[Node]":
        if not isinstance(tree, ast.List | ast.Tuple):
            raise InputError("a list of expressions is needed here", hint="for example `stack([a, b])`")
        return [plan("Node", g, parts) for g in tree.elts]
    if "None" in annotation and isinstance(tree, ast.Constant) and tree.value is None:
        return _Setting(None)
    if "Node" in annotation:
        parts.append(tree)
        return _EXPRESSION
    if annotation == "str" and isinstance(tree, ast.Name):
        raise InputError("a word in quotes is needed here", hint=f"write '{tree.id}'")
    value = read_setting(tree)
    if isinstance(value, bool) and annotation.startswith("int"):
        raise InputError(f"{value} is not an integer", hint=f"write {int(value)}")
    return _Setting(value)


_EXPRESSION = object()


class _Setting:
    """A plain value, as opposed to an expression that will be a node."""

    def __init__(self, value: Any) -> None:
        self.value = value


def take(slot: Any, rest: Iterator[Node]) -> Any:
    """Return the value for an entry of the plan; expressions have become nodes, which come in order."""
    if isinstance(slot, _Setting):
        return slot.value
    if isinstance(slot, tuple | list):
        return type(slot)(take(s, rest) for s in slot)
    return next(rest)


def read_setting(tree: ast.expr) -> Any:
    """Return a plain value: a number, a tuple of them, a word in quotes, True, False or None."""
    if isinstance(tree, ast.Name) and tree.id == "inf":
        return math.inf
    try:
        return ast.literal_eval(tree)
    except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
        raise InputError("a plain number is needed here", hint="write it out: `3`, or `axis=0`") from None


def complaint(name: str, error: str) -> str:
    """Return the message for a call whose arguments do not fit, from that of Python's `TypeError`."""
    words = {
        "missing a required argument": f"`{name}` is missing an argument",
        "missing a required keyword": f"`{name}` is missing an argument",
        "too many positional": f"`{name}` has too many arguments",
        "got an unexpected keyword": f"`{name}` has no such setting",
        "multiple values": f"`{name}` is given an argument twice",
    }
    return next((w for e, w in words.items() if e in error), f"`{name}` does not take these arguments")


def usage(name: str, signature: inspect.Signature) -> str:
    """Return how a function is called."""
    shown = []
    for p in signature.parameters.values():
        star = "*" if p.kind is inspect.Parameter.VAR_POSITIONAL else ""
        plain = p.default is inspect.Parameter.empty or isinstance(p.default, Node)
        shown.append(f"{star}{p.name}" if plain else f"{p.name}={p.default!r}")
    return f"it is `{name}({', '.join(shown)})`"
