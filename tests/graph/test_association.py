"""An entry of J has one value, that of `backward`, in whichever mode and with whichever outputs it is computed."""

import numpy as np
import pytest

from gradcli import parse
from gradcli.engine.evaluate import evaluate
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import entries as jacobian_entries
from gradcli.graph.jacobian import jacobian, plan, sparse
from gradcli.graph.vjp import vjp

# At x = 0 and w = 2: an entry by x.  Source: torch.autograd.grad (PyTorch 2.13).
ENTRIES = [
    ("where(x > 0, sqrt(x), 0)", np.nan),
    ("where(x > 0, w/x, 0)", np.nan),
    ("sqrt(where(x > 0, x, 0))", 0),
    ("relu(log(x))", np.nan),
    ("maximum(log(x), 0)", np.nan),
    ("log(relu(x - 1))", 0),
    ("floor(sqrt(x))", np.nan),
    ("w*relu(x + 1)", 2),
    ("abs(sqrt(x))", np.nan),
    ("clamp(w*sqrt(x), 1, 2)", np.nan),
    ("max(stack([log(x), w]))", np.nan),
    ("where(x > 0, sqrt(x), 0)*where(x > 1, 1/x, 0)", np.nan),
]
OTHERS = ["", "z = x", "z = x*w; u = x; t = 2*x", "z[i] = x*i for i in 0..4"]


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize(("text", "entry"), ENTRIES)
def test_an_entry_has_one_value(text, entry, others):
    graph = parse(f"y = {text}; {others}")
    at = {
        name: value
        for name, value in {"x": np.array([0.0, 3]), "w": np.array([2.0, 2])}.items()
        if name in graph.inputs
    }
    v = {f"{name}.v": np.zeros((*y.shape, 1)) for name, y in graph.outputs.items()} | {"y.v": np.ones(1)}
    entries = sparse(graph, ["x"])
    (k,) = np.flatnonzero((entries.rows == 0) & (entries.columns == 0))
    results = [
        evaluate(vjp(graph, ["x"]), at | v)["x.grad"],
        evaluate(jacobian(graph, ["x"]), at)["dy/dx"],
        evaluate(Graph.of(graph.inputs, {"entries": entries.values}), at)["entries"][k],
        evaluate(Graph.of(graph.inputs, {"entry": jacobian_entries(graph, ["x"])[0, 0]}), at)["entry"],
    ]
    assert [float(np.broadcast_to(value, (2,))[0]) for value in results] == pytest.approx([entry] * 4, nan_ok=True)


def test_products_alone_go_forward():
    """Where nothing is selected, or nothing can be infinite, the mode with fewer sweeps is taken."""
    assert plan(parse("y = log(x); z = sqrt(x)*x; u = x/w"), ["x"]).forward
    assert plan(parse("y = relu(x); z = abs(x)*x**2; u = exp(x)*sigmoid(x)"), ["x"]).forward
    assert not plan(parse("y = relu(log(x)); z = x"), ["x"]).forward
