"""Recurrent layers are one operation of the record, whose gradients are those of its definition."""

from decimal import Decimal
from itertools import product

import numpy as np
import pytest

from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import const, leaf
from gradcli.graph.operations.recurrent import recurrent
from gradcli.graph.vjp import vjp
from gradcli.pytorch.autograd import grad
from gradcli.pytorch.names import TORCH
from gradcli.pytorch.nn.recurrent import GRU, LSTM, RNN
from gradcli.pytorch.record import Listener

KINDS = {"lstm": LSTM, "gru": GRU, "rnn_tanh": RNN}
SETTINGS = [*product((1, 2), (False, True), (True, False), (False, True))]


def numbers(x):
    return x._a[..., 0]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("op", KINDS)
def test_the_gradients_of_a_layer_are_the_vjp_of_its_definition(op, settings):
    layers, both, biased, first = settings
    rng = np.random.default_rng(0)
    dropout = 0.3 if layers > 1 else 0.0
    more = {"bias": biased, "batch_first": first, "bidirectional": both, "dropout": dropout}
    net = KINDS[op](3, 2, layers, dtype=TORCH["float64"], **more)
    shape = (layers * (1 + both), 2, 2)
    states = [TORCH["tensor"](rng.normal(size=shape), requires_grad=True) for _ in range(net.states)]
    x = TORCH["tensor"](rng.normal(size=(2, 4, 3) if first else (4, 2, 3)), requires_grad=True)
    with Listener().listening():  # then a step keeps what it has read
        out, last = net(x, tuple(states) if len(states) > 1 else states[0])
    masks = out._fn.read[len(states) + 1 + len([*net.parameters()]) :]
    results = (out, *(last if isinstance(last, tuple) else (last,)))
    step = out._fn
    assert all(y._fn is step for y in results)
    assert step.recipe.op == op
    v = [TORCH["tensor"](rng.normal(size=tuple(y.shape))) for y in results]
    operands = [x, *states, *(p for p in net.parameters())]
    grads = grad(results, operands, v)

    leaves = [leaf(tuple(a.shape)) for a in operands]
    drawn = [const(tuple(m.array.reshape(-1).tolist()), m.array.shape[:-1]) for m in masks[-1:]]
    p = [const(Decimal("0.3"))] if drawn else []
    ys = recurrent(op, (layers, both, biased, first, bool(drawn)), *leaves, *drawn, *p)
    graph = vjp(Graph.of({f"x{i}": n for i, n in enumerate(leaves)}, {f"y{i}": n for i, n in enumerate(ys)}))
    at = {f"x{i}": numbers(a.detach()) for i, a in enumerate(operands)}
    at |= {f"y{i}.v": numbers(a) for i, a in enumerate(v)}
    known = at_point(graph, at, graph.outputs.values())
    for i, g in enumerate(grads):
        np.testing.assert_allclose(numbers(g), known[graph.outputs[f"x{i}.grad"]], rtol=1e-10, atol=1e-12)


def test_a_page_writes_layers_and_dropout_as_calls(cli):
    code = "import torch\ntorch.manual_seed(0)\nx = torch.ones(3, 1, 2, requires_grad=True)\n"
    code += (
        "out, h = torch.nn.GRU(2, 2)(x)\ny = torch.nn.functional.dropout(out, 0.3)\n(y.sum() + h.sum()).backward()\n"
    )
    page = " ".join(cli.done("run", "-c", code).out.split())
    assert "dropout mask mask 3×1×2" in page
    assert "y = dropout(out, mask, p=0.3)" in page
    assert "out = gru(x, zeros(1, 1, 2)," in page
    assert "h = gru(x, zeros(1, 1, 2)," in page
