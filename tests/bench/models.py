"""Exported gradients in ONNX Runtime, beside a forward and a backward pass of the same formulas in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from gradcli import parse
from tests.bench import race
from tests.bench.session import Session
from tests.bench.tables import seconds, title

Array = np.ndarray[Any, Any]
_NEEDED = ("onnx", "onnxruntime", "torch")
_TURNS = 15  # of which the fastest counts: one of each, by turns
_APART = 1e-3  # of the largest number of a gradient: float32


@dataclass(frozen=True)
class Model:
    """Formulas that are gradcli's and PyTorch's, with an output `y`, and the shapes of their inputs."""

    name: str
    text: str
    shapes: Mapping[str, tuple[int, ...]]


MODELS = (
    Model(
        "CNN, 16 images of 28×28",
        """\
h = relu(conv2d(x, w1, b1, padding=1))
p = max_pool2d(h, 2)
g = relu(conv2d(p, w2, b2, padding=1))
y = max_pool2d(g, 2).reshape(16, 784) @ w3 + b3
""",
        {"x": (16, 1, 28, 28), "w1": (8, 1, 3, 3), "b1": (8,), "w2": (16, 8, 3, 3), "b2": (16,)}
        | {"w3": (784, 10), "b3": (10,)},
    ),
    Model(
        "transformer block, 8 × 64 tokens of 64",
        """\
q = x @ wq
k = x @ wk
v = x @ wv
s = softmax(q @ k.transpose(1, 2) / 8, -1)
r = x + (s @ v) @ wo
y = r + relu(r @ w1 + b1) @ w2
""",
        {"x": (8, 64, 64), "wq": (64, 64), "wk": (64, 64), "wv": (64, 64), "wo": (64, 64)}
        | {"w1": (64, 256), "b1": (256,), "w2": (256, 64)},
    ),
)


def gradients(session: Session) -> None:
    """Time y and the gradients of all inputs, each by one thread."""
    title("exported ONNX models: y and the gradients of all inputs in float32, one thread each")
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        print(f"  {' and '.join(missing)} not installed here: nothing to compare")
        return
    print(f"  {'':40} {'ONNX Runtime':>14} {'PyTorch':>14} {'ratio':>8}")
    for model in MODELS:
        random = np.random.default_rng(0)
        point = {name: (random.normal(size=shape) / 10).astype(np.float32) for name, shape in model.shapes.items()}
        ours, theirs = exported(model, point), recorded(model, point)
        for one, other in zip(ours(), theirs(), strict=True):
            session.failed |= not np.abs(one - other).max() <= _APART * np.abs(other).max()
        times = [(_timed(ours), _timed(theirs)) for _ in range(_TURNS)]
        mine, peer = map(min, zip(*times, strict=True))
        print(f"  {model.name:40} {seconds(mine):>14} {seconds(peer):>14} {mine / peer:>8.2f}", flush=True)


def exported(model: Model, point: Mapping[str, Array]) -> Callable[[], list[Array]]:
    """Return a run of the exported model in ONNX Runtime, with a cotangent of ones: y and the gradients."""
    import onnxruntime

    from gradcli.codegen import onnx

    graph = parse(model.text, **model.shapes)
    proto = onnx.model(graph, ("value", "vjp"), [*model.shapes], "model", "float32")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    running = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    (y,) = graph.outputs.values()
    values = {**point, "y.v": np.ones(y.shape, np.float32)}
    names = ["y", *(f"{name}.grad" for name in model.shapes)]
    return lambda: list(running.run(names, values))


def recorded(model: Model, point: Mapping[str, Array]) -> Callable[[], list[Array]]:
    """Return a forward and a backward pass of the same formulas in PyTorch, as its users write them."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    code = compile(model.text, model.name, "exec")
    leaves = {name: torch.from_numpy(a).requires_grad_() for name, a in point.items()}
    functions = {name: getattr(functional, name) for name in ("relu", "conv2d", "max_pool2d", "softmax")}

    def run() -> list[Array]:
        values = {**functions, **leaves}
        exec(code, values)
        y = values["y"]
        grads = torch.autograd.grad(y, list(leaves.values()), torch.ones_like(y))
        return [y.detach().numpy(), *(g.numpy() for g in grads)]

    return run


def _timed(run: Callable[[], object]) -> float:
    run()
    start = race.clock()
    run()
    return race.clock() - start
