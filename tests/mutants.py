"""Whether the tests notice a mistake: small mistakes, drawn at random, are made in the package one at a time.

    python -m tests.mutants --count 200 --seed 1 --write before.jsonl
    python -m tests.mutants --again before.jsonl --write after.jsonl

A mutant is one comparison turned, one arithmetic operator, number or Boolean changed, `and` for `or`, an `if` that is
never or always so, or a `return` of nothing.  As many are drawn of each room as of any other.  Each is made in a copy
of the tree, where the tests of its room run until one fails: first the files that name its module, then the others.
A mutant dies by a failed test; one is `slow` whose tests went on beyond the time limit.  The file has one line of JSON
a mutant; a run that was stopped goes on where it ended.  `--again` tries the same mutants with the tests of today,
each with the test that killed it first; a mutant whose line is gone is left out, and counted.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The tests of a room: its own, then those of what stands on it.
TESTS = {
    "graph": [
        "tests/graph",
        "tests/record",
        "tests/engine",
        "tests/algebra",
        "tests/test_cases.py",
        "tests/test_law.py",
    ],
    "engine": ["tests/engine", "tests/batch/test_points_not_finite.py", "tests/cli/test_many_by_hand.py"],
    "record": ["tests/record", "tests/graph", "tests/lang", "tests/pyfunc", "tests/engine/test_evaluate.py"],
    "pages": [
        "tests/pages",
        "tests/algebra",
        "tests/report",
        "tests/docs/test_documents.py",
        "tests/script",
        "tests/cli",
    ],
    "pytorch": ["tests/pytorch", "tests/script", "tests/vocabulary"],
}
_OTHER = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed piece of a file; `function` and `text`, its line, find it when the file has other lines above it."""

    path: str
    line: int
    function: str
    text: str
    kind: str
    place: int  # among the mutants of this kind in lines with this text of this function
    start: int  # in the file's text
    end: int
    changed: str

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.path, self.function, self.text, self.kind, self.place


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Yield the kinds of mistakes that a node can have, the expression each changes, and what that becomes."""
    changed = copy.copy(node)
    match changed:
        case ast.Compare(ops=[op]) | ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in _OTHER:
            other = _OTHER[type(op)]()
            if isinstance(changed, ast.Compare):
                changed.ops = [other]
            else:
                changed.op = other
            yield type(op).__name__, node, changed
        case ast.Constant(value=bool() as value):
            yield "Boolean", node, ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield "number", node, ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, changed.operand
        case ast.If() | ast.IfExp():
            yield "never", node.test, ast.Constant(False)
            yield "always", node.test, ast.Constant(True)
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield "return", node.value, ast.Constant(None)


def _expressions(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes of a module, each with its function, without annotations and the parts of f-strings."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_params") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
                within = f"{function}.{child.name}".lstrip(".") if named else function
                yield child, within
                yield from _expressions(child, within)


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module."""
    text = path.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found: list[Mutant] = []
    seen = Counter[tuple[str, ...]]()
    for node, function in _expressions(ast.parse(text)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        for kind, old, new in _changes(node):
            start, end = offset(old.lineno, old.col_offset), offset(old.end_lineno, old.end_col_offset)
            line = lines[old.lineno - 1].strip()
            seen[function, line, kind] += 1
            place = seen[function, line, kind]
            name = path.relative_to(ROOT).as_posix()
            changed = f"({ast.unparse(ast.fix_missing_locations(new))})"
            found.append(Mutant(name, old.lineno, function, line, kind, place, start, end, changed))
    return found


def drawn(count: int, seed: int) -> list[Mutant]:
    """Return mutants by a seed, as many of each room, in an order that takes the rooms in turn."""
    chance = random.Random(seed)
    rooms = []
    for room in TESTS:
        every = [m for path in sorted((ROOT / "gradcli" / room).rglob("*.py")) for m in mutants(path)]
        rooms.append(chance.sample(every, -(-count // len(TESTS))))
    return [m for turn in zip(*rooms, strict=True) for m in turn][:count]


def tests_of(mutant: Mutant) -> list[list[str]]:
    """Return the tests that may kill a mutant: those that name its module, and the others."""
    module = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, last = module.rpartition(".")
    named = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(package)} import .*\b{last}\b")
    files = [
        path
        for folder in TESTS[mutant.path.split("/")[1]]
        for path in ([ROOT / folder] if folder.endswith(".py") else sorted((ROOT / folder).rglob("test_*.py")))
    ]
    first = [path for path in files if named.search(path.read_text("utf-8"))]
    return [[p.relative_to(ROOT).as_posix() for p in part] for part in (first, [p for p in files if p not in first])]


def run(tree: Path, tests: list[str], seconds: float, failing: list[str]) -> tuple[str, str]:
    """Run tests in a tree until one fails; return whether they `passed`, `died` or were `slow`, and which failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--no-header", "-rfE", "--tb=no", *tests]
    command += [f"--deselect={name}" for name in failing]
    environment = {**os.environ, "PYTHONPATH": str(tree), "CI": "1"}  # CI: the same examples of each law every time
    with tempfile.TemporaryFile("w+") as out:  # a pipe would be open as long as what tests have started
        group = {"start_new_session": True}
        with subprocess.Popen(command, cwd=tree, env=environment, stdout=out, stderr=out, **group) as process:
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        out.seek(0)
        printed = out.read()
    if status is None:
        return "slow", ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", printed, re.MULTILINE)
    return ("passed" if status in (0, 5) else "died"), failed[1] if failed else ""


def fate(tree: Path, mutant: Mutant, killer: str, seconds: float, failing: list[str]) -> tuple[str, str]:
    """Make a mutant in the tree, and return how it ended and by which test."""
    path = tree / mutant.path
    before = path.read_text("utf-8")
    compiled = Path(importlib.util.cache_from_source(str(path)))
    path.write_text(before[: mutant.start] + mutant.changed + before[mutant.end :], "utf-8")
    compiled.unlink(missing_ok=True)  # a mutant may be as long as what it replaces, and as old
    try:
        if killer and (tree / killer.partition("::")[0]).is_file():
            ended = run(tree, [killer], seconds, failing)
            if ended[0] == "died" and "::" in ended[1]:  # a test that is gone ends pytest, too, but no test failed
                return ended
        ended, end = ("passed", ""), time.monotonic() + seconds
        for tests in filter(None, tests_of(mutant)):
            if ended[0] == "passed":
                ended = run(tree, tests, end - time.monotonic(), failing)
        return ended
    finally:
        path.write_text(before, "utf-8")
        compiled.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="the time limit of a mutant")
    parser.add_argument("--again", type=Path, help="a file of an earlier run, whose mutants are tried again")
    parser.add_argument("--write", type=Path, required=True, help="the file that gets a line a mutant")
    parser.add_argument("--failing", nargs="*", default=[], help="tests that fail without any mutant, and are left out")
    options = parser.parse_args()
    earlier = {}
    if options.again:
        rows = [json.loads(line) for line in options.again.read_text("utf-8").splitlines()]
        earlier = {tuple(row["key"]): row for row in rows}
        here = {
            m.key: m for name in {row["path"] for row in rows} if (ROOT / name).is_file() for m in mutants(ROOT / name)
        }
        chosen = [here[key] for key in earlier if key in here]
        print(f"{len(earlier) - len(chosen)} of {len(earlier)} mutants are gone with their lines")
    else:
        chosen = drawn(options.count, options.seed)
    options.write.touch()
    done = {tuple(row["key"]): row for row in map(json.loads, options.write.read_text("utf-8").splitlines())}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
        for mutant in chosen:
            if mutant.key not in done:
                start = time.monotonic()
                killer = earlier.get(mutant.key, {}).get("by", "")
                ended, by = fate(tree, mutant, killer, options.seconds, options.failing)
                row = {
                    **asdict(mutant),
                    "key": mutant.key,
                    "fate": ended,
                    "by": by,
                    "seconds": time.monotonic() - start,
                }
                done[mutant.key] = row
                with options.write.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            row = done[mutant.key]
            change = f"{row['path']}:{row['line']} {row['kind']}: {row['text']}"
            print(f"{row['fate']:8}{change}" + (f"  [{row['by']}]" if row["fate"] == "died" else ""), flush=True)
    for room in TESTS:
        fates = Counter(done[m.key]["fate"] for m in chosen if m.path.split("/")[1] == room)
        print(f"{room:10}" + ", ".join(f"{n} {name}" for name, n in sorted(fates.items())))


if __name__ == "__main__":
    main()
