"""The rules of optimizers: what is computed for arrays is what the rule says of an entry, in the order of its lines."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.pytorch import optim
from gradcli.pytorch.optim.rules import _BLOCK, SHOWN, events
from gradcli.pytorch.record import Listener
from gradcli.pytorch.tensor import new

OPTIMIZERS = [
    ("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("SGD", {"maximize": True}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5}), ("Adam", {}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {}), ("RMSprop", {"centered": True, "momentum": 0.9}), ("Adagrad", {"lr_decay": 0.1}), ("Adadelta", {}),
    ("Adamax", {}), ("NAdam", {}), ("RAdam", {"betas": (0.5, 0.7)}), ("Rprop", {}), ("ASGD", {"t0": 2}),
]  # fmt: skip


def stepped(name, settings, parameters, gradients):
    """Take steps, one for each gradient; return their events."""
    steps = []
    optimizer = getattr(optim, name)(parameters, lr=0.1, **settings)

    class Steps(Listener):
        def stepped(self, optimizer, changes):
            steps.append(events(name, changes, lambda _: "w"))

    with Steps().listening():
        for rows in gradients:
            for p, g in zip(parameters, rows, strict=True):
                p._grad = new(g[..., None])
            optimizer.step()
    return optimizer, steps


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_a_rule_evaluated_line_by_line_gives_what_a_step_leaves(name, settings):
    random = np.random.default_rng(0)
    p = new(random.standard_normal((SHOWN, 1)))
    gradients = [[random.standard_normal(SHOWN)] for _ in range(12)]
    _, steps = stepped(name, settings, [p], gradients)
    for [event] in steps:
        assert (event.optimizer, [u.name for u in event.updates]) == (name, ["w"])
        assert pickle.loads(pickle.dumps(event)) == event
        [update] = event.updates
        values = {name: numbers.whole for name, numbers in update.before.items()}
        for line in event.rule:
            read = [leaf() for _ in line.reads]
            graph = Graph.of(dict(zip(line.reads, read, strict=True)), {"": line.formula.node(read)})
            values[line.name] = at_point(graph, {n: values[n] for n in line.reads}, [graph.outputs[""]])[
                graph.outputs[""]
            ]
        assert {line.name for line in event.rule if line.stays} == update.after.keys()
        for kept, numbers in update.after.items():
            np.testing.assert_allclose(numbers.whole, values[kept].astype(numbers.dtype), 1e-12, 1e-14)


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_are_independent_whatever_the_size_and_the_layout(name, settings, dtype):
    random = np.random.default_rng(1)
    count = _BLOCK + 100  # more than one block
    start = random.standard_normal(count).astype(dtype)
    gradients = [random.standard_normal(count).astype(dtype) for _ in range(6)]
    few = [0, 1, _BLOCK - 1, _BLOCK, count - 1]
    large, small = new(start[..., None].copy()), new(start[few][..., None])
    turned = new(np.asfortranarray(start[:6].reshape(2, 3, 1)))
    whole, _ = stepped(name, settings, [large], [[g] for g in gradients])
    stepped(name, settings, [small], [[g[few]] for g in gradients])
    stepped(name, settings, [turned], [[g[:6].reshape(2, 3)] for g in gradients])
    np.testing.assert_array_equal(large._a[few], small._a)
    np.testing.assert_array_equal(large._a[:6].ravel(), turned._a.ravel())
    assert all(large._a.shape == s._a.shape for s in whole.state[large].values() if s._a.size > 1)


def test_a_sum_with_a_product_is_rounded_once():
    p = new(np.array([1.0], np.float32))
    stepped("SGD", {}, [p], [[np.array(10.0, np.float32).reshape(())]])
    assert (
        p._a.item() == np.float32(1 - float(np.float32(0.1)) * 10) != np.float32(1) - np.float32(0.1) * np.float32(10)
    )
