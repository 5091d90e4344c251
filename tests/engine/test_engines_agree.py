"""A law: all engines give the same numbers, at ties, zeros of both signs, what overflows, infinities and NaN.

Systems are random, and of many outputs: a kernel of LLVM or XLA takes seconds to compile, however few they are.
"""

from __future__ import annotations

import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gradcli import evaluate, parse
from gradcli.engine.compiled import Compiled
from gradcli.errors import Notes
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import jacobian

EDGES = [0.0, -0.0, 1.0, 1.0, -1.0, 2.0, 0.5, -3.0, np.inf, -np.inf, np.nan, 1e-300, 1e200]
LEAVES = ["x", "z", "u[0]", "u[1]", "2", "0", "1/3"]
# Of tanh and sigmoid far from 0, 1 - y has few digits left, and these differ from engine to engine.
TEMPLATES = [
    "{0} + {1}", "{0} - {1}", "{0}*{1}", "{0}/{1}", "{0}**2", "{0}**-1", "{0}**{1}", "-{0}", "sin({0})", "exp({0})",
    "log({0})", "sqrt({0})", "tanh(clamp({0}, -2, 2))", "sigmoid(clamp({0}, -2, 2))",
    "atan2({0}, {1})", "hypot({0}, {1})", "abs({0})", "relu({0})",
    "sign({0})", "floor({0})", "maximum({0}, {1})", "minimum({0}, {1})", "clamp({0}, 0, 1)", "max(u*{0})",
    "where({0} > {1}, {0}, {1}**2)", "norm([{0}, {1}])", "sum([{0}, {1}, x])", "softmax([{0}, {1}])[0]",
    "min([{0}, {1}])", "logsumexp([{0}, {1}])", "cumsum([{0}, {1}])[1]", "softplus({0})", "sum(u + {0})",
]  # fmt: skip
POINTS = 3000  # XLA computes long rows in other code
ALONE = range(0, POINTS, 300)  # points at which all is computed once more, one point at a time


def expression(random, depth):
    if not depth:
        return random.choice(LEAVES)
    return f"({random.choice(TEMPLATES).format(expression(random, depth - 1), expression(random, depth - 1))})"


def system(seed):
    """Return every other template on top of two other formulas."""
    random = np.random.default_rng(seed)
    tops = [t.format(expression(random, 1), expression(random, 1)) for t in TEMPLATES[seed % 2 :: 2]]
    return "\n".join(f"y{i} = {text}" for i, text in enumerate([*tops, "x + z + sum(u)"]))


def engines():
    """Return what computes a graph at points, by name."""
    found = {
        "NumPy": lambda graph, notes: Compiled(graph),
        "a worker of Dask's": lambda graph, notes: Compiled(pickle.loads(pickle.dumps(graph)), threads=1),
    }
    for engine in ("llvm", "jax"):
        if find_spec(engine) is not None:
            found[engine] = lambda graph, notes, engine=engine: Compiled(graph, engine=engine, notes=notes)
    return found


def agree(found, expected, way):
    for name, right in expected.items():
        own, right = np.broadcast_arrays(found[name], right)
        assert_allclose(own, right, rtol=1e-12, atol=1e-300, err_msg=f"{name}: {way}")


@pytest.mark.parametrize("seed", range(2))
def test_all_engines_give_the_same_numbers(seed):
    primal = parse(system(seed), u=(2,))
    derivative = jacobian(primal)
    graph = Graph.of(primal.inputs, {**primal.outputs, **derivative.outputs})
    random = np.random.default_rng(seed)
    points = {n: random.choice(EDGES, (*x.shape, POINTS)) for n, x in graph.inputs.items()}
    expected = evaluate(graph, points)
    for k in ALONE:
        alone = evaluate(graph, {name: a[..., [k]] for name, a in points.items()})
        agree(alone, {name: np.broadcast_to(a, (*a.shape[:-1], POINTS))[..., [k]] for name, a in expected.items()}, k)
    for name, compiled in engines().items():
        run = compiled(graph, notes := Notes())
        assert not notes.lines  # that NumPy takes another's place
        agree(run(points), expected, name)
        few = {n: a[..., :50] for n, a in points.items()}
        agree(run(few), evaluate(graph, few), f"{name}, few points")
