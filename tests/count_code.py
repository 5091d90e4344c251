"""Counts the code of the package by room: `python -m tests.count_code [FOLDER …]`; for another commit, its checkout.

Of Python, a code line is one that is no docstring, no comment and not blank, as it stands; a node is one of its syntax
tree, whatever its lines, without docstrings.  A table is a text or JSON file that the package reads; its lines are
those that are not blank and no comment, and so are those of the scripts and the helpers of generated code beside them.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "gradcli"
TABLES, SCRIPTS = (".txt", ".json"), (".c", ".js", ".css", ".html")
KINDS = ("files", "lines", "nodes", "tables", "scripts")
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_REMARKS = ("#", "//", "/*", "*")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python(text: str) -> tuple[int, int]:
    """Return the code lines and the syntax nodes of a module.

    >>> python('''"A docstring."\\n# A comment\\nx = [1,\\n     2]\\n''')
    (2, 8)
    """
    tree = ast.parse(text)
    docstrings = [n.body[0] for n in ast.walk(tree) if isinstance(n, _DOCUMENTED) and ast.get_docstring(n) is not None]
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in _LAYOUT]
    lines = {k for t in tokens for k in range(t.start[0], t.end[0] + 1)}
    lines -= {k for n in docstrings for k in range(n.lineno, (n.end_lineno or n.lineno) + 1)}
    return len(lines), sum(1 for _ in ast.walk(tree)) - 2 * len(docstrings)  # an expression and its string


def other(text: str) -> int:
    """Return the lines of a table or script that are neither blank nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(_REMARKS))


def counted(folder: Path) -> dict[str, Counter[str]]:
    """Return the counts of each room of a package, the files beside the rooms under the name `(beside)`."""
    result: dict[str, Counter[str]] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        row = Counter[str]()
        if path.suffix == ".py":
            row["files"] = 1
            row["lines"], row["nodes"] = python(path.read_text("utf-8"))
        elif path.suffix in (*TABLES, *SCRIPTS):
            row["tables" if path.suffix in TABLES else "scripts"] = other(path.read_text("utf-8"))
        if row:
            result.setdefault(inside.parts[0] if len(inside.parts) > 1 else "(beside)", Counter()).update(row)
    return result


def table(folder: Path) -> str:
    """Return the counts of a package as a table, with their sums in the last line."""
    rooms = counted(folder)
    rooms["all"] = sum(rooms.values(), Counter())
    rows = [("room", *KINDS), *((room, *(f"{row[kind]:,}" for kind in KINDS)) for room, row in rooms.items())]
    return "\n".join(f"{room:12}" + "".join(f"{cell:>10}" for cell in cells) for room, *cells in rows)


if __name__ == "__main__":
    for argument in sys.argv[1:] or [str(PACKAGE)]:
        root = Path(argument)
        print(f"{argument}\n{table(root / 'gradcli' if (root / 'gradcli').is_dir() else root)}\n")
