"""A file of functions in Python, whichever library has its arrays: docstrings, bodies, and a test of itself."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.codegen.arrays import ArrayLanguage, ArrayWriter, number_literal
from gradcli.codegen.lines import WIDTH, bracketed, broken, listed, wrapped
from gradcli.codegen.program import Function, Program, shape_words

# What a function's names must not be: words of Python's, and what the files use.
_WORDS = """
np range len slice float int list math torch jnp jax isinstance tuple zip print found expected right names sys ctx
points _check _spread _is_at _linear _erf _erfc _gamma _lgamma _digamma _polygamma _zeta _cot_slope
"""
RESERVED = frozenset([*keyword.kwlist, *_WORDS.split()])


def function_lines(function: Function, language: ArrayLanguage, called: set[str] | None = None) -> list[str]:
    """Return the lines of a function; what it calls is added to `called`."""
    writer = ArrayWriter(language, function, called=set() if called is None else called)
    written = writer.write()
    texts = [language.result(writer, n, writer.done[n]) for n in function.results.values()]
    if len(texts) > 1:
        taken = set(function.names.values())
        for k, (name, text) in enumerate(zip(function.results, texts, strict=True)):
            if not text.isidentifier() and name not in taken:
                writer.named(text, name)
                texts[k] = name
    if writer.uses_points:
        shapes = [f"np.shape({name}){f'[{len(n.shape)}:]' * bool(n.shape)}" for name, n in function.arguments.items()]
        several = f"np.broadcast_shapes({', '.join(shapes)})"
        written.insert(0, f"points = {shapes[0] if len(shapes) == 1 else several}")
    body = [line for text in written for line in broken(f"    {text}")]
    returned = broken(f"    return {texts[0]}") if len(texts) == 1 else bracketed("    return ", texts)
    head = listed(f"def {function.name}(", list(function.arguments), "):")
    before = _before(function, writer.tables)
    return [*before, *[""] * (2 * bool(before)), *head, *_docstring(function), *body, *returned]


def _docstring(function: Function) -> list[str]:
    about = f"Return {function.about}."
    lines = wrapped('    """', about.split(), WIDTH - 3)
    lines[1:] = [f"    {line}" for line in lines[1:]]
    words = shape_words(function)
    if not words:
        return [*lines[:-1], f'{lines[-1]}"""'] if len(lines) == 1 else [*lines, '    """']
    shapes = wrapped("Shapes: ", words, WIDTH - 4)
    return [*lines, "", *(f"    {line}" for line in shapes), '    """']


def _before(function: Function, tables: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the lines before a function: the rows and columns of a sparse matrix, and its tables."""
    pattern, name = function.pattern, function.name
    if pattern is None:
        return lists(tables)
    lines = [f"# The rows and columns of the entries that {name} returns.", f"{name}_shape = {pattern.shape}"]
    return [
        *lines,
        *lists({f"{name}_rows": pattern.rows.tolist(), f"{name}_columns": pattern.columns.tolist(), **tables}),
    ]


def lists(tables: Mapping[str, Sequence[int]]) -> list[str]:
    """Return lists of integers under their names, wrapped over as many lines as needed.

    >>> lists({"rows": [0, 1]})
    ['rows = [0, 1]']
    """
    lines: list[str] = []
    for name, numbers in tables.items():
        one = f"{name} = {list(numbers)}"
        if len(one) <= WIDTH:
            lines.append(one)
            continue
        if lines[-1:] == ["# fmt: on"]:
            lines.pop()
        else:
            lines.append("# fmt: off")
        some = wrapped("", [f"{k}," for k in numbers], WIDTH - 4)
        lines += [f"{name} = [", *(f"    {line}" for line in some), "]", "# fmt: on"]
    return lines


def assembled(
    program: Program,
    library: str,
    head: Sequence[str],
    functions: Sequence[Sequence[str]],
    tail: Sequence[str],
    about: Sequence[str] = (),
) -> str:
    """Return the file: its docstring, imports, functions, and the lines after them."""
    first = [f'"""The system below and its derivatives in {library}, written by gradcli.', ""]
    lines = [*first, *(f"    {line}" for line in program.system)]
    lines += [*([""] if about else []), *about, '"""', "", *head]
    for function in functions:
        lines += ["", "", *function]
    return "\n".join([*lines, *tail]) + "\n"


def self_test(program: Program, array: Sequence[str], library: str, prepare: Sequence[str] = ()) -> list[str]:
    """Return the lines of a test that runs where the file is run.

    `array` is the function that creates an array, then its further arguments; the `library` has `allclose`.  The
    statements in `prepare` run before the test.
    """
    if not program.tests:
        return []
    lines = [
        "", "",
        "def _check(function, names, found, expected):",
        '    """Print where results differ from those of gradcli."""',
        "    right = True",
        "    found = found if isinstance(found, tuple) else (found,)",
        "    for name, a, b in zip(names, found, expected):",
        f"        if a.shape != b.shape or not {library}.allclose(a, b, 1e-9, 1e-12, True):",
        "            right = False",
        '            print(f"{function}: {name} is", a.tolist(), "where gradcli has", b.tolist())',
        "    return right",
        "", "",
        'if __name__ == "__main__":',
        "    import sys",
        "",
        *(f"    {statement}" for statement in prepare),
        "    right = True",
    ]  # fmt: skip
    for f, arguments, expected in program.tests:
        values = [_array(array, arguments[name]) for name in f.arguments]
        results = [_array(array, expected[name]) for name in f.results]
        lines += listed(f"    found = {f.name}(", values, ")")
        lines += listed("    expected = [", results, "]")
        names = [f'"{name}"' for name in f.results]
        lines += listed("    names = [", names, "]")
        lines.append(f'    right &= _check("{f.name}", names, found, expected)')
    return [*lines, '    print("as gradcli has it" if right else "wrong")', "    sys.exit(not right)"]


def _array(array: Sequence[str], value: Any) -> str:
    name, *more = array
    return f"{name}({', '.join([_text(np.asarray(value, dtype=float).tolist()), *more])})"


def _text(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, list) else number_literal(value)


def literal(value: Any) -> str:
    """Return numbers as Python reads them.

    >>> literal(np.array([1.0, np.inf]))
    "[1.0, float('inf')]"
    """
    text = repr(np.asarray(value, dtype=float).tolist())
    return text.replace("inf", "float('inf')").replace("nan", "float('nan')")
