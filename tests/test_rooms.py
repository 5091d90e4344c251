"""Imports run one way between the rooms of the source, and nothing that a user types is evaluated by Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gradcli

ROOT = Path(gradcli.__file__).parent
MAY_IMPORT = {
    "graph": set(),
    "lang": {"graph"},
    "engine": {"graph"},
    "data": {"graph"},
    "algebra": {"graph"},
    "report": {"graph", "engine", "algebra"},
    "batch": {"graph", "engine", "data"},
    "cli": {"graph", "lang", "engine", "data", "batch", "algebra", "report"},
}
FILES = [path for room in MAY_IMPORT for path in sorted((ROOT / room).glob("*.py"))]


def imported_rooms(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gradcli."):
            yield node.module.split(".")[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_imports_run_one_way(path):
    room = path.parent.name
    others = set(imported_rooms(ast.parse(path.read_text(encoding="utf-8")))) & set(MAY_IMPORT)
    assert others - {room} <= MAY_IMPORT[room]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nothing_is_evaluated(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = {getattr(call.func, "id", None) or getattr(call.func, "attr", None) for call in calls}
    assert not names & {"exec", "parse_expr", "lambdify", "__import__"}
    # `eval` is a method of SymPy's functions, and never Python's.
    assert not any(isinstance(call.func, ast.Name) and call.func.id == "eval" for call in calls)
