"""Imports run one way between the rooms of the source, and nothing that a user types is evaluated by Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gradcli

ROOT = Path(gradcli.__file__).parent
MAY_IMPORT = {
    "text": set(),
    "process": set(),
    "graph": set(),
    "record": {"graph"},
    "vocabulary": {"graph"},
    "lang": {"graph", "vocabulary"},
    "onnx": {"graph", "vocabulary", "engine"},  # what depends on no input is computed
    "pyfunc": {"graph", "vocabulary"},
    "loops": {"graph"},
    "engine": {"graph", "loops"},
    "data": {"graph", "engine", "lang"},
    "pytorch": {"graph", "record", "vocabulary", "engine", "data"},  # whose files replace others whole
    "realtorch": {"graph", "record", "pytorch"},  # whose functions bind calls of PyTorch, too
    "algebra": {"graph", "engine"},  # whose rules for arrays hold for arrays of formulas
    "notation": {"graph", "algebra"},
    "codegen": {"graph", "loops", "engine"},
    "pages": {"graph", "record", "engine", "algebra", "notation", "codegen"},
    "guide": set(),
    "report": {"graph", "engine", "data", "algebra", "notation", "pages"},
    "script": {
        "graph",
        "record",
        "vocabulary",
        "lang",
        "engine",
        "algebra",
        "notation",
        "pages",
        "guide",
        "report",
        "pytorch",
        "realtorch",
    },
    "explore": {"graph", "lang", "engine", "data", "notation", "pages", "guide", "report", "pytorch", "script"},
    "batch": {"graph", "engine", "data"},
}
MAY_IMPORT["api"] = {"graph", "lang", "pyfunc", "engine", "data", "algebra", "codegen", "pages", "report"}
MAY_IMPORT["api"] |= {"record", "realtorch", "script"}  # for the pages of a program that runs under PyTorch
MAY_IMPORT["cli"] = {*MAY_IMPORT} - {"vocabulary"}
HALL = {"errors", "files", "process", "text", "version"}  # which every room may import
FRONT = "gradcli"  # the package itself, which offers what the rooms define, and which none of them imports


def test_every_room_is_known():
    assert {path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/**/*.py")} <= set(MAY_IMPORT)


def imported_names(tree):
    """Yield the dotted names that are imported anywhere: at the top, inside functions, for types alone, and by
    `import_module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))
            yield from (text.rstrip(".") for text in texts)


def imported_rooms(tree):
    """Yield the rooms, and the modules beside them, that are imported; `FRONT` for the package itself."""
    beside = {path.stem for path in ROOT.iterdir()}
    for name in imported_names(tree):
        first, *rest = name.split(".")
        if first == FRONT:
            yield rest[0] if rest and rest[0] in beside else FRONT


def test_imports_of_all_kinds_are_found():
    tree = ast.parse(
        "from gradcli import graph\nimport gradcli.lang.system\nif TYPE_CHECKING:\n    from gradcli.data import csv\n"
        "def f(to):\n    from gradcli import parse\n    import_module(f'gradcli.codegen.{to}')\n"
    )
    assert set(imported_rooms(tree)) == {"graph", "lang", "data", "codegen", FRONT}


RUNS = ROOT / "pytorch" / "session.py"  # the script of `gradcli run`, and nothing else


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_run_one_way_and_nothing_is_evaluated(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert set(imported_rooms(tree)) - HALL - {room} <= MAY_IMPORT[room], path
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = {getattr(call.func, "id", None) or getattr(call.func, "attr", None) for call in calls}
        runs = {"exec"} if path == RUNS else set()
        assert not names & {"exec", "parse_expr", "lambdify", "__import__"} - runs, path
        # `eval` is a method of SymPy's functions, and never Python's.
        assert not any(isinstance(call.func, ast.Name) and call.func.id == "eval" for call in calls), path


def test_no_room_has_the_name_of_what_the_package_offers():
    """`gradcli.explain` is a function: a room of its name would take its place once it is imported."""
    rooms = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert not rooms & {*gradcli.__all__}


@pytest.mark.parametrize(("name", "may"), [("version", set()), ("errors", {"text"}), ("files", {"errors", "process"})])
def test_what_every_room_imports_needs_no_room(name, may):
    assert set(imported_rooms(ast.parse((ROOT / f"{name}.py").read_text("utf-8")))) <= may


def test_the_guide_lists_each_room_below_those_that_it_imports():
    guide = (ROOT / "guide" / "development.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `gradcli/(\w+)`", guide, re.MULTILINE)
    assert sorted(listed) == sorted(MAY_IMPORT)
    assert all(MAY_IMPORT[room] <= {*listed[:k]} for k, room in enumerate(listed))


# Where a script is listened to on each PyTorch, and where one of its own Functions is run again.
LISTEN = {
    "script/explainer.py": {"driver.Heard", "driver.Session", "optim.stepped.stepped", "failing.ended"},
    "script/check.py": {f"replay.{n}" for n in ("OUTPUT", "Applications", "Applied", "as_double", "replayed")},
}
FACTS = {"messages.known_message", "messages.facts_of", "tables.pytorch_names"}  # of PyTorch's texts and names


@pytest.mark.parametrize("room", ["script", "pages", "report", "record"])
def test_pages_and_reasons_of_errors_import_no_tensor_and_no_step(room):
    """They read the record, and hold for a script on PyTorch's own tensors, too."""
    for path in sorted((ROOT / room).rglob("*.py")):
        names = {n for n in imported_names(ast.parse(path.read_text(encoding="utf-8"))) if n.startswith("gradcli.")}
        emulated = {n.removeprefix("gradcli.pytorch.") for n in names if n.startswith("gradcli.pytorch.")}
        assert emulated <= FACTS | LISTEN.get(path.relative_to(ROOT).as_posix(), set()), path
        if path.name != "explainer.py":
            assert not any(n.startswith("gradcli.realtorch") for n in names), path


# Imports inside functions, which are for start-up time: most runs need none of them.
LAZY = {
    "gradcli.api.systems": {"notebook", "recordings"},
    "gradcli.data.arrays": {"csv.reader", "npz", "text_files"},
    "gradcli.engine.compiled": {"jax_kernel", "llvm.code", "llvm.kernel"},  # by the engine
    "gradcli.pytorch.session": {"names", "cuts", "dtypes", "generator", "modes", "printing", "record"},
    "gradcli.report.data.json": {"text_math"},
    "gradcli.report.prose": {"layout"},
    "gradcli.report.render": {"pictures.render"},  # of documents
    # by what happens, and by the format
    "gradcli.script.explainer": {"pages.page", "pages.steps"},
    "gradcli.script.line_explainer": {"errors.why", "pages.rows"},
    "gradcli.script.shown": {"scene"},
    "gradcli.script.under_pytorch.explainer": {"under_pytorch.page", "pages.steps", "errors.under_pytorch"},
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


# A command imports what it needs when it runs, and a page what its formats need.
@pytest.mark.parametrize("room", sorted({*MAY_IMPORT} - {"cli", "pages"}))
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


def test_no_import_runs_in_a_circle():
    known = modules()
    del known[FRONT]
    edges = {name: {*imported_modules(ast.parse(path.read_text("utf-8")), known)} for name, path in known.items()}
    assert circles(edges) == {}
