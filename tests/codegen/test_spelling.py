"""What a row spells is called by its name in every target; what neither it nor a target's file spells is an error."""

import re
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from targets import LANGUAGES

from gradcli.codegen.onnx import model
from gradcli.codegen.program import Request, program
from gradcli.engine.compiled import Compiled
from gradcli.errors import InputError, Notes
from gradcli.graph.construct import call
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.operation import function
from gradcli.graph.operations import OPERATIONS

LIBRARIES = {"numpy": "numpy", "torch": "torch", "jax": "jax.numpy"}


@pytest.fixture
def graph(monkeypatch):
    """Return y = nameless(x), of an operation that has no name in any target."""
    monkeypatch.setitem(OPERATIONS, "nameless", function(lambda y, x: 1))
    x = leaf()
    return Graph.of({"x": x}, {"y": call("nameless", x)})


def source(to, graph):
    language = LANGUAGES[to]
    request = Request("f", ("value",), ["x"], numbers=language.NUMBERS, reserved=language.RESERVED, target=to)
    return language.source(program(graph, [], request))


@pytest.mark.parametrize("to", LANGUAGES)
def test_a_file_without_a_spelling_is_an_error(graph, to):
    with pytest.raises(InputError, match=f"`nameless` cannot be exported to {to}"):
        source(to, graph)


def test_a_model_without_a_spelling_is_an_error(graph):
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match="ONNX has no operator for `nameless`"):
        model(graph, ("value",), ["x"], "f")


@pytest.mark.parametrize("engine", ["numpy", "llvm", "jax"])
def test_numbers_without_a_spelling_are_an_error(graph, engine):
    """The LLVM engine says that it leaves them to NumPy's."""
    pytest.importorskip({"llvm": "llvmlite"}.get(engine, engine))
    notes = Notes()
    name = {"jax": "JAX"}.get(engine, "NumPy")
    with pytest.raises(InputError, match=f"the {name} engine has no function for `nameless`"):
        Compiled(graph, engine=engine, notes=notes)({"x": np.ones(3)})
    assert engine != "llvm" or "does not compile `nameless`" in str(notes.lines)


@pytest.mark.parametrize("target", LIBRARIES)
def test_a_library_has_what_rows_spell(target):
    """Each function that a text calls is there, under its name."""
    library = pytest.importorskip(target)
    prefix = {"numpy": "np", "torch": "torch", "jax": "jnp"}[target]
    roots = {prefix: import_module(LIBRARIES[target]), "jax": library}
    called = partial(re.findall, r"[\w.]+(?=\()")
    names = {op: row.spelling_in(target) for op, row in OPERATIONS.items() if row.spelling_in(target)}
    assert len(names) > 30
    for op, name in names.items():
        for whole in called(name) if "{" in name else [name if name.startswith("jax.") else f"{prefix}.{name}"]:
            root, *path = whole.split(".")
            found = roots[root]
            for part in path:
                found = getattr(found, part, None)
            assert callable(found), (op, whole)
