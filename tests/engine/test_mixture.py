"""ADBench's Gaussian mixture model: the sample, and the benchmark's formula, against HIPS autograd and PyTorch."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gradcli.cli.inputs.system import read_situation, read_system_of
from gradcli.cli.options import SystemOptions
from gradcli.engine.evaluate import evaluate
from gradcli.errors import Notes
from gradcli.graph.vjp import vjp
from tests.bench.mixture import WRT, autograd_gradient, mixture

SAMPLE = Path(__file__).parents[2] / "samples" / "gaussian_mixture.grad"
RECORDED = json.loads(Path(__file__).with_name("mixture.json").read_text("utf-8"))


def test_the_sample_has_the_gradients_of_pytorch():
    options = SystemOptions((), (str(SAMPLE),), (), (), ",".join(WRT), None, None)
    situation = read_situation(read_system_of(options), options, Notes())
    at = {name: np.asarray(v)[..., None] for name, v in situation.points[0].items()}
    found = evaluate(vjp(situation.graph, WRT), {**at, "L.v": np.ones(1)})
    for name in WRT:
        assert_allclose(found[f"{name}.grad"][..., 0], RECORDED["grad"][name], rtol=1e-10, atol=1e-12)
    value = evaluate(situation.graph, at)["L"]
    assert_allclose(value[0] - RECORDED["constant"], RECORDED["value"], rtol=1e-10)


def test_the_benchmark_has_the_gradients_of_autograd():
    pytest.importorskip("autograd")
    problem = mixture(d=4, k=3, n=20)
    graph = problem.graph()
    given = {**problem.points, **{n: a[..., None] for n, a in problem.same.items()}}
    found = evaluate(graph, given)
    peer = autograd_gradient(problem)
    for name, right in peer.named(peer.run()).items():
        assert_allclose(found[name], right, rtol=1e-10, atol=1e-10 * np.abs(right).max())
