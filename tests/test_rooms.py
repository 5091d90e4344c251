"""Imports run one way between the rooms of the source, and nothing that a user types is evaluated by Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gradcli

ROOT = Path(gradcli.__file__).parent
MAY_IMPORT = {
    "graph": set(),
    "vocabulary": {"graph"},
    "lang": {"graph", "vocabulary"},
    "onnx": {"graph", "vocabulary"},
    "pyfunc": {"graph", "vocabulary"},
    "loops": {"graph"},
    "engine": {"graph", "loops"},
    "data": {"graph", "engine"},
    "pytorch": {"graph", "vocabulary", "engine", "data"},  # whose files replace others whole
    "algebra": {"graph", "engine"},  # whose rules for arrays hold for arrays of formulas
    "notation": {"graph", "algebra"},
    "export": {"graph", "loops", "engine"},
    "explain": {"graph", "engine", "algebra", "notation", "export"},
    "guide": set(),
    "report": {"graph", "engine", "data", "algebra", "notation", "explain"},
    "script": {"graph", "vocabulary", "lang", "engine", "algebra", "notation", "explain", "guide", "report", "pytorch"},
    "explore": {"graph", "lang", "engine", "data", "notation", "explain", "guide", "report", "pytorch", "script"},
    "batch": {"graph", "engine", "data"},
}
MAY_IMPORT["cli"] = {*MAY_IMPORT} - {"vocabulary"}
HALL = {
    "activity",
    "child",
    "errors",
    "files",
    "imports",
    "plain",
    "platform",
    "tracebacks",
    "version",
    "wrapping",
}  # which every room may import


def test_every_room_is_known():
    assert {path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/**/*.py")} <= set(MAY_IMPORT)


def imported_rooms(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gradcli."):
            yield node.module.split(".")[1]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_run_one_way_and_nothing_is_evaluated(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert set(imported_rooms(tree)) - HALL - {room} <= MAY_IMPORT[room], path
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = {getattr(call.func, "id", None) or getattr(call.func, "attr", None) for call in calls}
        assert not names & {"exec", "parse_expr", "lambdify", "__import__"}, path
        # `eval` is a method of SymPy's functions, and never Python's.
        assert not any(isinstance(call.func, ast.Name) and call.func.id == "eval" for call in calls), path


def test_the_guide_lists_each_room_below_those_that_it_imports():
    guide = (ROOT / "guide" / "development.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `gradcli/(\w+)`", guide, re.MULTILINE)
    assert sorted(listed) == sorted(MAY_IMPORT)
    assert all(MAY_IMPORT[room] <= {*listed[:k]} for k, room in enumerate(listed))


# Imports inside functions of these rooms, which are for start-up time: most scripts need none of them.
LAZY = {
    "gradcli.pytorch.session": {"names", "cuts", "dtypes", "generator", "modes", "printing", "record"},
    "gradcli.script.explainer": {
        "pages.page",
        "pages.rows",
        "pages.steps",
        "errors.why",
    },  # by what happens, and the format
    "gradcli.script.pages.page": {"pages.functions", "pages.request"},  # by what is called
}


def local_imports(tree):
    """Return the modules that are imported inside functions, or for types alone."""
    hidden = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    hidden += [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    for outer in hidden:
        for node in ast.walk(outer):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradcli."):
                yield node.module


@pytest.mark.parametrize("room", ["pytorch", "script"])
def test_no_import_within_a_room_is_hidden(room):
    """A circle of modules cannot be imported; it can only be hidden, inside a function or for types alone."""
    for path in sorted((ROOT / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        hidden = {name for name in local_imports(ast.parse(path.read_text("utf-8"))) if name.split(".")[1] == room}
        assert {name.removeprefix(f"gradcli.{room}.") for name in hidden} == LAZY.get(module, set()), module


def modules():
    """Return all modules of the source, by name."""
    paths = {path.relative_to(ROOT.parent).with_suffix(""): path for path in ROOT.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in paths.items()}


def imported_modules(tree, known):
    """Yield the modules that are imported anywhere: at the top, inside functions, and for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            members = [f"{node.module}.{name.name}" for name in node.names]
            yield from (member if member in known else node.module for member in members)


def circles(edges):
    """Return the modules that import themselves in the end: what is left after taking out, again and again, the modules
    that import nothing of what is left, or are imported by nothing of it."""
    left = {name: set(targets) - {name} for name, targets in edges.items()}
    while True:
        imported = set().union(*left.values())
        kept = {name: targets & left.keys() for name, targets in left.items() if targets and name in imported}
        if kept == left:
            return left
        left = kept


def test_a_circle_of_imports_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set()}) == {"b": {"c"}, "c": {"b"}}
    tree = ast.parse("if TYPE_CHECKING:\n    from p import q\ndef f():\n    import p.r\n")
    assert set(imported_modules(tree, {"p", "p.q", "p.r"})) == {"p.q", "p.r"}


# The package itself offers what its modules define, when a name is asked for the first time: its imports are for types.
OFFERING = "gradcli"
# Deliberate imports inside a function that close a circle, with the reason.
CLOSING = {("gradcli.pyfunc.tracer", "gradcli.pyfunc.patches")}  # a traced function calls NumPy's, which are patched


def test_no_import_runs_in_a_circle():
    known = modules()
    del known[OFFERING]
    edges = {name: {*imported_modules(ast.parse(path.read_text("utf-8")), known)} for name, path in known.items()}
    for name, target in CLOSING:
        edges[name].remove(target)  # fails when it is no longer needed
    assert circles(edges) == {}
