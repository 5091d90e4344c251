"""Functions and losses: their derivatives against differences, and every engine and formula against the interpreter."""

import re
from contextlib import suppress

import numpy as np
import pytest
from conftest import some
from llvm_source import in_tiles
from numpy.testing import assert_allclose
from smooth_cases import ARRAYS, ELEMENTWISE

from gradcli import evaluate, numeric_jacobian, parse, symbolic_jacobian, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.llvm.code import NotCompiledError
from gradcli.graph.graph import Graph
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.formulas import code

NAMES = ("x", "z", "w")
POINTS = 5


def point_of(text, seed=0):
    """Return random values of what an expression reads, with the points along the last axis."""
    rng = np.random.default_rng([seed, len(text)])
    if text in ELEMENTWISE:
        domains, shapes = ELEMENTWISE[text], [()] * 3
    else:
        shapes = ARRAYS[text]
        domains = [(0.2, 0.8)] * len(shapes)
    return {n: rng.uniform(*d, (*s, POINTS)) for n, d, s in zip(NAMES, domains, shapes, strict=False)}


def graph_of(text):
    return parse(f"y = {text}", **{n: v.shape[:-1] for n, v in point_of(text).items()})


ALL = [*ELEMENTWISE, *ARRAYS]


@pytest.mark.parametrize("text", some(ALL))
def test_engines_agree_with_the_interpreter(text):
    graph = vjp(graph_of(text))
    graph = Graph.of(graph.inputs, graph.names | graph.outputs)
    point = point_of(text) | {"y.v": np.ones((*graph.inputs["y.v"].shape, POINTS))}
    by_engine = {"numpy": Compiled(graph)(point)}
    with suppress(NotCompiledError):  # of what LLVM leaves to NumPy
        by_engine["llvm"] = in_tiles(graph, {}, point, POINTS, 2)
    for name, wanted in evaluate(graph, point).items():
        for engine, found in by_engine.items():
            assert_allclose(
                *np.broadcast_arrays(found[name], wanted), rtol=1e-13, atol=1e-15, err_msg=f"{name} {engine}"
            )


@pytest.mark.parametrize("text", some(ALL))
def test_formulas_are_read_back_as_the_same_numbers(text):
    graph = graph_of(text)
    at = {name: value[..., 0] for name, value in point_of(text).items()}
    symbolic = symbolic_jacobian(graph)
    shown = {f"e{i}_{j}": code(e) for (i, j), e in symbolic.entries.items()}
    # An element of an intermediate is assigned under a name of its own: the others may be missing.
    plain = {name: re.sub(r"\W+", "_", name) for name in symbolic.where}
    lines = [f"{plain[name]} = {code(e)}" for name, e in symbolic.where.items()]
    lines += [f"{name} = {e}" for name, e in shown.items()] + [
        f"read = {' + '.join(f'sum({n})' for n in graph.inputs)}"
    ]
    system = "\n".join(lines)
    for name in plain:
        system = system.replace(name, plain[name])
    parsed = parse(system, **{n: v.shape for n, v in at.items()})
    values = evaluate(Graph.of(parsed.inputs, parsed.names), {n: v[..., None] for n, v in at.items()})
    found = np.zeros((len(symbolic.rows), len(symbolic.columns)))
    for (i, j), name in zip(symbolic.entries, shown, strict=True):
        found[i, j] = values[name][0]
    assert_allclose(found, numeric_jacobian(graph, list(graph.inputs), at), rtol=1e-11, atol=1e-14)
    assert all(len(e) < 250 for e in shown.values())


def test_every_elementwise_operation_of_these_families_is_met():
    used = {n.op for text in ELEMENTWISE for n in graph_of(text).nodes}
    wanted = {"elu", "selu", "celu", "mish", "hardtanh", "logsigmoid", "softsign", "tanhshrink", "logaddexp", "ndtr"}
    wanted |= {"lerp", "fmod", "trunc", "round", "frac", "huber", "log_loss", "logistic_loss"}
    assert wanted <= used
    # An elementwise operation that engines lack is a row of the table and nothing more.
    assert {op for op in wanted if OPERATIONS[op].lowered is None} == {"round"}
