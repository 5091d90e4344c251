"""`pad`: values and gradients as PyTorch 2.13 gave them for torch.nn.functional.pad, with v = 1, 2, 3, …"""

from __future__ import annotations

import numpy as np
import pytest

from gradcli import evaluate, parse
from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError
from gradcli.graph.vjp import sweep

X, M = [1, 2, 3], [[1, 2], [3, 4]]
CASES = [
    ("pad(x, (1, 2))", X, [0, 1, 2, 3, 0, 0], [2, 3, 4]),
    ("pad(x, (-1, 1))", X, [2, 3, 0], [0, 1, 2]),
    ("pad(x, (1, 0), value=7)", X, [7, 1, 2, 3], [2, 3, 4]),
    ("pad(x, (1, 0, 0, 2))", M, [[0, 1, 2], [0, 3, 4], [0, 0, 0], [0, 0, 0]], [[2, 3], [5, 6]]),
    ("pad(x, (0, -1, 1, 1), value=-2)", M, [[-2], [1], [3], [-2]], [[2, 0], [3, 0]]),
    ("pad(x, (0, 0))", X, [1, 2, 3], [1, 2, 3]),
]


@pytest.mark.parametrize(("call", "x", "value", "gradient"), CASES)
def test_as_in_pytorch(call, x, value, gradient):
    point = np.array(x, dtype=float)
    graph = parse(f"y = {call}*1", x=point.shape)
    found = evaluate(graph, {"x": point[..., None]})["y"][..., 0]
    np.testing.assert_array_equal(found, value)
    swept = sweep(graph, ["x"])
    v = np.arange(1.0, found.size + 1).reshape(*found.shape, 1)
    values = values_of(swept.graph, {"x": point[..., None], "y.v": v}, [swept.gradients["x"]])
    np.testing.assert_array_equal(values[swept.gradients["x"]][..., 0], gradient)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pad(x, (1,))", "two numbers an axis"),
        ("pad(x, (1, 1, 1, 1))", "not 4 for 1"),
        ("pad(x, (-2, -1))", "no element of the array"),
        ("pad(x, (-3, 1))", "no element of the array"),
        ("pad(x, (1, 1), mode='reflect')", "no mode `reflect`"),
        ("pad(x, (1, 1), value=x)", "`value` is a number"),
        ("pad(x, (10**9, 10**9))", "number"),
    ],
)
def test_refused(call, message):
    with pytest.raises(InputError, match=message):
        parse(f"y = {call}", x=(3,))


def test_a_value_has_a_gradient():
    graph = parse("y = sum(pad(x, (1, 2), value=a)*[1, 2, 3, 4, 5, 6])", x=(3,), a=())
    swept = sweep(graph, ["a"])
    inputs = {"x": np.ones((3, 1)), "a": np.ones(1), "y.v": np.ones(1)}
    assert values_of(swept.graph, inputs, [swept.gradients["a"]])[swept.gradients["a"]][0] == 1 + 5 + 6
