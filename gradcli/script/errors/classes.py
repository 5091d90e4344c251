"""Errors of classes whose constructor has another name than `__init__`: Python does not call it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.source import Edit, Text
from gradcli.script.errors.syntax import calls, methods, parts

_MISSPELT = re.compile(r"_+(init|int|inti|ini|intit|initi)_*|init_+|_*initialize__")


def misspelt_init(cls: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the method of a class that is meant as its constructor, and is called otherwise: `_init_`, `__int__`.

    It calls the constructor of the base class, or assigns attributes of the object.
    """
    if methods(cls, "__init__"):
        return None
    for function in [f for f in methods(cls) if _MISSPELT.fullmatch(f.name) and f.args.args]:
        name = function.args.args[0].arg
        stored = [n for n in parts(function, ast.Attribute) if isinstance(n.ctx, ast.Store)]
        if calls(function, "__init__", function.name) or any(getattr(n.value, "id", "") == name for n in stored):
            return function
    return None


def not_constructed(at: Failure, *_: Any) -> Answer | None:
    """Return the answer to an error of an object whose class has a constructor of another name."""
    for text, cls in classes_of(at):
        if (function := misspelt_init(cls)) is not None:
            new = _renamed(text, function, "__init__")
            for call in calls(function, function.name):  # super()._init_()
                new += edits.renamed(call, "__init__")
            changes = text.edited(new)
            reason = f"Python calls `__init__` where {cls.name} is created, and line {function.lineno} defines "
            return Answer(f"{reason}`{function.name}`, which nothing calls.", "give it that name", changes, "layers")
    return None


def classes_of(at: Failure, modules: Iterable[Any] = ()) -> Iterator[tuple[Text, ast.ClassDef]]:
    """Yield the classes of the objects in the statement that failed, of what it creates, and of some modules."""
    values = [part for m in modules for part in m.modules()]
    values += [at.value(n) for n in parts(at.text.statement, ast.Name, ast.Attribute)]
    kinds = {v if isinstance(v, type) else type(v) for v in values} | {type(at.frame.f_locals.get("self"))}
    names = {k.__name__ for kind in kinds for k in kind.__mro__}
    for cls in parts(at.main.tree, ast.ClassDef):
        if cls.name in names:
            yield at.main, cls


def without_forward(at: Failure, name: str) -> Answer | None:
    """Return the answer about a module without a forward: a method of a name like that, or a function in another."""
    for cls in [c for c in parts(at.main.tree, ast.ClassDef) if c.name == name]:
        named = {f.name.strip("_").lower(): f for f in methods(cls)}
        inner = [f for f in parts(cls, ast.FunctionDef) if f.name == "forward" and f not in cls.body]
        if inner:
            where = next(f.name for f in methods(cls) if any(n is inner[0] for n in ast.walk(f)))
            reason = f"forward stands in `{where}` of {name}, by its indentation, so that the class has none."
            return Answer(reason, f"indent forward as `{where}`", topic="layers")
        for like in get_close_matches("forward", named, cutoff=0.7):
            function = named[like]
            reason = f"calling a module calls its forward, and {name} defines `{function.name}`."
            return Answer(reason, "give it that name", at.main.edited(_renamed(at.main, function, "forward")), "layers")
    return None


def _renamed(text: Text, function: ast.FunctionDef, name: str) -> list[Edit]:
    """Return the edits that give a function another name, where it is defined."""
    line = text.lines[function.lineno - 1].encode()
    column = line.index(function.name.encode(), function.col_offset + len("def "))
    return [((function.lineno, column), (function.lineno, column + len(function.name.encode())), name)]
