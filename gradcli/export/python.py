"""A file of functions in Python, whichever library has its arrays: docstrings, bodies, and a test of itself."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.export.arrays import ArrayLanguage, ArrayWriter
from gradcli.export.program import Function, Program, size_text

# What a function's names must not be: words of Python's, and what the files use.
_WORDS = (
    "np k range len slice float math torch jnp jax isinstance tuple zip print found expected wrong sys ctx _special"
)
RESERVED = frozenset([*keyword.kwlist, *_WORDS.split()])


def function_lines(function: Function, language: ArrayLanguage) -> list[str]:
    """Return the lines of a function."""
    writer = ArrayWriter(language, function)
    written = writer.write()
    texts = [writer.done[n].text for n in function.results.values()]
    numbers = [n.op == "const" and not n.shape for n in function.results.values()]
    results = ", ".join(language.result(t) if number else t for t, number in zip(texts, numbers, strict=True))
    shapes = [f"{name}: {size_text(n.shape)}" for name, n in function.arguments.items() if n.shape]
    docs = [f'    """Return {function.about}: {", ".join(function.results)}.']
    docs += ["", f"    Shapes: {', '.join(shapes)}.", '    """'] if shapes else []
    if not shapes:
        docs[0] += '"""'
    head = f"def {function.name}({', '.join(function.arguments)}):"
    return [head, *docs, *(f"    {line}" for line in written), f"    return {results}"]


def assembled(
    program: Program, library: str, head: Sequence[str], functions: Sequence[Sequence[str]], tail: Sequence[str]
) -> str:
    """Return the file: what it is of, what it imports, its functions, and what comes behind them."""
    about = [f'"""The system below and its derivatives in {library}, written by gradcli.', ""]
    lines = [*about, *(f"    {line}" for line in program.system), '"""', "", *head]
    for own in functions:
        lines += ["", "", *own]
    return "\n".join([*lines, *tail]) + "\n"


def self_test(program: Program, array: str, close: str) -> list[str]:
    """Return the lines of a test that runs where the file is run: `array` makes an array, `close` compares a and b."""
    lines = ["", "", 'if __name__ == "__main__":', "    import sys", "", "    wrong = 0"]
    for f in program.functions:
        if f.test is None:
            return []
        arguments, expected = f.test
        given = ", ".join(array.format(literal(arguments[name])) for name in f.arguments)
        lines.append(f"    found = {f.name}({given})")
        lines.append("    found = found if isinstance(found, tuple) else (found,)")
        lines.append(f"    expected = [{', '.join(array.format(literal(expected[name])) for name in f.results)}]")
        lines.append(f"    for name, a, b in zip({list(f.results)}, found, expected, strict=True):")
        lines.append(f"        if a.shape != b.shape or not {close}:")
        lines.append("            wrong = 1")
        lines.append(f'            print("{f.name}:", name, "is", a.tolist(), "where gradcli has", b.tolist())')
    return [*lines, '    print("wrong" if wrong else "as gradcli has it")', "    sys.exit(wrong)"]


def literal(value: Any) -> str:
    """Return numbers as Python reads them.

    >>> literal(np.array([1.0, np.inf]))
    "[1.0, float('inf')]"
    """
    text = repr(np.asarray(value, dtype=float).tolist())
    return text.replace("inf", "float('inf')").replace("nan", "float('nan')")
