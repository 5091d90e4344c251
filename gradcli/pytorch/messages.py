"""PyTorch's messages, by their keys in `messages.txt`, and the error of names that gradcli does not have.

What PyTorch has and gradcli's does not ends the run at once, naming itself, its line and what comes nearest.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

from gradcli.errors import did_you_mean
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.tables import lines, paragraphs

_OWN = "own texts"  # the paragraphs of errors that people hardly meet, which have PyTorch's class, and not its text
_KNOWN = 17  # characters of a message by which its text is known


@cache
def _table() -> dict[str, tuple[str, str]]:
    """Return the kind and the text of each message by its name."""
    result: dict[str, tuple[str, str]] = {}
    for paragraph in paragraphs("messages.txt"):
        head, _, text = paragraph.partition("\n")
        name, _, kind = head.partition(": ")
        text = text.replace("\n", " ").replace("\\n", "\n").replace("\\t", "\t").replace("\\s", " ")
        result |= dict.fromkeys(text.split("; "), (kind, "")) if name == _OWN else {name: (kind, text)}
    return result


def message(name: str, *values: Any) -> str:
    """Return a message with its values: PyTorch's, or gradcli's own where the table has none.

    >>> message("leaf changed in place")
    'a leaf Variable that requires grad is being used in an in-place operation.'
    >>> message("sizes of attention", 0, 2)
    'PyTorch does not allow this: sizes of attention (0, 2)'
    """
    if text := _table()[name][1]:
        return text.format(*values)
    shown = ", ".join(filter(None, map(str, values)))
    return own_text(name + f" ({shown})" * bool(shown))


def own_text(what: str) -> str:
    """Return the text of an error for which PyTorch has another one."""
    return f"PyTorch does not allow this: {what}"


def known_message(text: str) -> tuple[str, tuple[Any, ...]]:
    """Return the key of the message that a text of PyTorch's is, and its values; ("", ()) where the table has none.

    >>> known_message("index 3 is out of bounds for dimension 0 with size 2")
    ('index outside', (3, 0, 2))
    """
    found = ((key, fields, match) for pattern, key, fields in _patterns() if (match := pattern.fullmatch(text)))
    for key, fields, match in found:
        values = dict(zip(fields, map(_value, match.groups()), strict=True))
        return key, tuple(values[k] for k in sorted(values))
    return "", ()


def _value(text: str) -> Any:
    """Return a number or a shape in a message as such, and anything else as a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@cache
def _patterns() -> list[tuple[re.Pattern[str], str, Sequence[int]]]:
    """Return the messages as patterns, with the positions of the values in them, those with the longest texts first.

    Some are too short to be known by them.
    """
    from string import Formatter

    result = []
    for key in _table():
        parts = [(literal, field) for literal, field, *_ in Formatter().parse(_table()[key][1])]
        if (length := sum(len(literal) for literal, _ in parts)) >= _KNOWN:
            pattern = "".join(re.escape(literal) + "(.*?)" * (field is not None) for literal, field in parts)
            fields = [int(field[:1] or k) for k, (_, field) in enumerate(parts) if field is not None]
            result.append((length, re.compile(pattern, re.DOTALL), key, fields))
    return [(pattern, key, fields) for _, pattern, key, fields in sorted(result, key=lambda row: -row[0])]


class Facts(NamedTuple):
    """The facts of an error: its key in `messages.txt`, the values in its text, and the objects that it is about.

    The objects are steps, tensors and memory.  They are those that explain the error.
    """

    key: str
    values: tuple[Any, ...] = ()
    about: tuple[Any, ...] = ()


def torch_error(key: str, *values: Any, about: tuple[Any, ...] = (), kind: type[Exception] | None = None) -> Exception:
    """Return the error of a key, which knows its facts.  Its class is `kind`, or else the one that the table names.

    >>> facts_of(torch_error("count of gradients", 2, 1))
    Facts(key='count of gradients', values=(2, 1), about=())
    """
    error: Exception = (kind or getattr(builtins, _table()[key][0]))(message(key, *values))
    error.facts = Facts(key, values, about)  # type: ignore[attr-defined]
    return error


def raise_if(wrong: Any, key: str, *values: Any, about: tuple[Any, ...] = ()) -> None:
    """Raise the error of a key where something is wrong."""
    if wrong:
        raise torch_error(key, *values, about=about)


def facts_of(error: BaseException) -> Facts | None:
    """Return the facts of an error of the table; None for an error that something else has raised."""
    return getattr(error, "facts", None)


def typename(x: Any) -> str:
    """Return PyTorch's name of an object's type; of a class or a function, its own name."""
    named = x if hasattr(x, "__qualname__") else type(x)
    home = getattr(named, "__module__", None) or "builtins"
    if isinstance(x, FunctionType) and home.startswith("gradcli."):
        home = "torch.nn.functional" if ".nn." in home else "torch._VariableFunctionsClass"
    return named.__qualname__ if home == "builtins" else f"{home}.{named.__qualname__}"


def builtin_name(x: Any) -> str:
    """Return the name of an object's type in Python's C API: PyTorch's methods and functions are built in."""
    cls = type(x)
    if cls.__name__ in ("function", "method") and x.__module__.startswith("gradcli."):
        return "builtin_function_or_method"
    own = cls.__flags__ & 1 << 9 and cls.__module__ not in ("torch", "torch.return_types")  # made by Python
    return cls.__name__ if own else typename(cls)


def warn(name: str, *values: Any) -> None:
    """Warn, at the line of the script that is running.

    What arises in a file of PyTorch's own, where Python would say it once, is said once, whatever the line: that is
    marked in the table, or arises in a module's call.
    """
    if Mode.tracer is not None:
        return
    frame = sys._getframe(1)
    word, _, mark = _table()[name][0].partition(", ")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gradcli.pytorch"):
        if frame.f_code.co_name == "__call__":  # each kind of module warns from a line of its own
            mark = f"inside {type(frame.f_locals.get('self'))}"
        frame = frame.f_back
    text, kind = message(name, *values), getattr(builtins, word)
    if (
        not mark
        or text + mark not in Mode.warned
        or any(f[0] == "always" and issubclass(kind, f[2]) for f in warnings.filters)
    ):
        namespace = frame.f_globals
        said = {} if mark else namespace.setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, kind, frame.f_code.co_filename, frame.f_lineno, namespace.get("__name__"), said)
    Mode.warned.add(text + mark)


def warn_once(name: str, *values: Any) -> None:
    """Warn once a process, wherever it is."""
    if name not in Mode.warned:
        Mode.warned.add(name)
        warn(name, *values)


class MissingError(BaseException):
    """Something of PyTorch's that gradcli's `torch` does not have; no `except Exception` of a script's catches it."""

    def __init__(self, name: str, hint: str | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.hint = hint


def missing_if(missing: Any, name: str, hint: str | None = None) -> None:
    """Raise `MissingError` where something is missing."""
    if missing:
        raise MissingError(name, hint)


@cache
def _nearest() -> dict[str, str]:
    """Return the nearest substitutes for names that gradcli does not have, each a name or a sentence."""
    return dict(line.split(": ", 1) for line in lines("missing.txt"))  # type: ignore[misc]


def missing(name: str, known: Iterable[str] = (), prefix: str = "") -> MissingError:
    """Return the error for a name of PyTorch's, with the nearest names that gradcli has."""
    near = _nearest().get(name, "")
    if " " in near:
        return MissingError(prefix + name, near)
    if near:
        return MissingError(prefix + name, f"the nearest that there is: `{prefix}{near}`")
    return MissingError(prefix + name, did_you_mean(name, dict.fromkeys(known), prefix))
