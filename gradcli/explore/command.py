"""The command line that prints the page of an explorer's state."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from gradcli.explore.state import Explorer
from gradcli.graph.array import Named
from gradcli.notation.numbers import array_text, number_text
from gradcli.process.platform import WINDOWS, quote

_LETTERS = 100_000  # of a command


def command_words(explorer: Explorer, system: Sequence[str], steps: bool) -> list[str]:
    """Return the words of the command; `system` are those of the system: formulas, files, names.

    >>> import numpy as np
    >>> from gradcli.explore.state import State
    >>> from gradcli.graph.graph import Graph
    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> state = State({"x": np.array(3.5)}, ({"y": np.array(1.0)},), implicit=True)
    >>> command_words(Explorer(Graph.of({"x": x}, {"y": x * x}), ["x"], state), ["y=x*x"], False)
    ['gradcli', 'backward', 'y=x*x', '--at', 'x=3.5']
    """
    state = explorer.state
    at = ",".join(f"{name}={array_text(x)}" for name, x in state.at.items())
    words = ["gradcli", "backward", *system, *(["--at", at] if at else [])]
    for v in () if state.implicit and len(state.calls) == 1 else state.calls:
        words += ["--v", _cotangent(v)]
    return [*words, *(["--steps"] if steps else [])]


def _cotangent(v: Named) -> str:
    """Return a cotangent as `--v` takes it."""
    arrays = [*v.values()]
    if len(arrays) == 1:
        return array_text(arrays[0])
    if all(not a.shape for a in arrays):
        return ",".join(number_text(float(a)) for a in arrays)
    return ",".join(f"{name}={array_text(a)}" for name, a in v.items())


def command_text(words: Sequence[str]) -> str:
    """Return a command as a shell reads it; nothing of one that no shell would take.

    >>> command_text(["gradcli", "backward", "y=x**2", "--at", "x=1"])
    'gradcli backward "y=x**2" --at x=1'
    """
    text = " ".join(map(_quoted, words))
    return text if len(text) <= _LETTERS else ""


def _quoted(word: str) -> str:
    if WINDOWS:
        return quote(word)
    if re.fullmatch(r"[\w./,:=@+-]+", word, re.ASCII):
        return word
    return shlex.quote(word) if re.search(r'["$`!\\]', word) else f'"{word}"'
