"""The work of a command grows as its input does: the calls of functions are counted for inputs of 1, n and 4n."""

from __future__ import annotations

import cProfile
import pstats
from itertools import pairwise

import pytest
from conftest import long

SQUARES = "def g(x):\n    for i in range({n}): x = x*x\n    return x\ndef f(x): return g(x)\n"
SUMS = "def g(x):\n    for i in range({n}): x = x + x\n    return x\ndef f(x): return g(x)\n"
SINES = "import numpy as np\ndef g(x):\n    for i in range({n}): x = np.sin(x)*x\n    return x\ndef f(x): return g(x)\n"
REDUCED = "from functools import reduce\ndef f(x): return reduce(lambda a, _: a*a, range({n}), x)\n"
CHAIN = "import numpy as np\ndef f(x):\n    for i in range({n}): x = np.sin(x)\n    return x\n"
SUM = "import numpy as np\ndef f(x):\n    s = 0\n    for i in range({n}): s = s + np.sin(x)*i\n    return s\n"
SWISHES = """
import torch
from torch import nn
class S(nn.Module):
    def forward(s, x): return x*torch.sigmoid(x)
m = nn.Sequential(*[layer for _ in range({n}) for layer in ({layer}S(),)])
m(torch.ones(2, 4, requires_grad=True)).sum().backward()
"""
REDUCE = """
import torch
from functools import reduce
x = torch.tensor([1., 2.], requires_grad=True)
reduce(lambda a, _: a.sin()*a, range({n}), x).sum().backward()
"""
LINES = "import torch\nx = torch.tensor(1., requires_grad=True)\n"


def vectors(n: int) -> str:
    return "\n".join(f"x{i + 1} = sin(x{i})" for i in range(n))


def products(n: int) -> str:
    return "y = " + "*".join(f"(x{i} + 1)" for i in range(n))


def shared(n: int) -> str:
    return "\n".join(f"x{i + 1} = sin(x{i})*x{i}" for i in range(n))


VECTOR = ("--at", "x=[1,2,3]", "--v", "ones")
OF_FUNCTIONS = {
    "squares": (SQUARES, 30, ("backward",)),
    "squares of a vector": (SQUARES, 30, ("backward", *VECTOR)),
    "steps": (SQUARES, 30, ("backward", "--steps")),
    "J": (SQUARES, 30, ("jacobian", "--at", "x=1")),
    "LaTeX": (SINES, 20, ("backward", "-f", "latex")),
    "sums": (SUMS, 30, ("backward", "-f", "markdown")),
    "sines": (SINES, 40, ("jacobian",)),
    "reduced": (REDUCED, 30, ("jvp", "--at", "x=1")),
    "chain": (CHAIN, 100, ("backward", *VECTOR)),
    "chain of numbers": (CHAIN, 100, ("backward", "--at", "x=1")),
    "sum": (SUM, 100, ("backward", *VECTOR)),
}
OF_TEXTS = {
    "vectors": (vectors, 30, ("backward", "--at", "x0=[1,2,3]", "--v", "ones")),
    "J of products": (products, 60, ("jacobian",)),
    "J of a chain": (shared, 60, ("jacobian",)),
    "statements": (vectors, 100, ("backward", "--at", "x0=1")),
    "H that no page shows": (products, 30, ("hessian",)),
    "points": (lambda n: "y = x**2 + z", 30, ("backward", "POINTS")),
}
OF_SCRIPTS = {
    "swishes": (SWISHES.replace("{layer}", ""), 4),
    "network of swishes": (SWISHES.replace("{layer}", "nn.Linear(4, 4), "), 4),
    "reduce": (REDUCE, 5),
    "lines": (LINES + "{lines}", 30),
}


def work(cli, *arguments: str) -> int:
    """Return how many functions a command calls."""
    profile = cProfile.Profile()
    profile.enable()
    outcome = cli(*arguments)
    profile.disable()
    assert outcome.status == 0, outcome.err
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def check_growth(cli, commands) -> None:
    """Check that four times the size is at most three times of linear: what the smallest command does is start-up."""
    cli.done(*commands[0])  # imports, and fills caches
    start, small, large = (work(cli, *command) for command in commands)
    assert large - start <= 3 * 4 * max(small - start, 0.05 * start)


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_functions(name, cli, tmp_path):
    text, n, (command, *options) = OF_FUNCTIONS[name]
    commands = []
    for k in (1, n, 4 * n):
        (tmp_path / f"f{k}.py").write_text(text.replace("{n}", str(k)))
        commands.append((command, "-F", f"{tmp_path}/f{k}.py:f", *options))
    check_growth(cli, commands)


@pytest.mark.parametrize("name", OF_TEXTS)
def test_systems(name, cli, tmp_path):
    system, n, (command, *options) = OF_TEXTS[name]
    commands = []
    for k in (1, n, 4 * n):
        (tmp_path / f"{k}.grad").write_text(system(k))
        points = [part for i in range(k) for part in ("--at", f"x={i},z=1")]
        commands.append((command, "-F", f"{tmp_path}/{k}.grad", *(points if options == ["POINTS"] else options)))
    check_growth(cli, commands)


@pytest.mark.parametrize("name", [n if n == "network of swishes" else pytest.param(n, marks=long) for n in OF_SCRIPTS])
def test_scripts(name, cli, tmp_path):
    text, n = OF_SCRIPTS[name]
    commands = []
    for k in (1, n, 4 * n):
        (tmp_path / f"{k}.py").write_text(text.replace("{n}", str(k)).replace("{lines}", "(x*x).backward()\n" * k))
        commands.append(("run", f"{tmp_path}/{k}.py"))
    check_growth(cli, commands)


def chain_of_sines(onnx, k):
    names = ["x", *(f"h{i}" for i in range(1, k)), "y"]
    return [onnx.helper.make_node("Sin", [a], [b]) for a, b in pairwise(names)], []


def loop_of_squares(onnx, k):
    helper, kinds = onnx.helper, onnx.TensorProto
    i, go, goes = (helper.make_tensor_value_info(n, kind, []) for n, kind in (("i", kinds.INT64), ("c", 9), ("d", 9)))
    s, t = (helper.make_tensor_value_info(name, kinds.DOUBLE, [3]) for name in "st")
    body = [helper.make_node("Mul", ["s", "s"], ["t"]), helper.make_node("Identity", ["c"], ["d"])]
    loop = helper.make_node(
        "Loop", ["n", "yes", "x"], ["y"], body=helper.make_graph(body, "round", [i, go, s], [goes, t])
    )
    rounds = helper.make_tensor("n", kinds.INT64, [], [k])
    return [loop], [rounds, helper.make_tensor("yes", kinds.BOOL, [], [True])]


@pytest.mark.parametrize("parts", [chain_of_sines, loop_of_squares])
def test_models(parts, cli, tmp_path):
    onnx = pytest.importorskip("onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, [3]) for name in "xy")
    commands = []
    for k in (1, 25, 100):
        nodes, constants = parts(onnx, k)
        graph = onnx.helper.make_graph(nodes, "model", [x], [y], constants)
        opset = onnx.helper.make_opsetid("", 18)
        onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9), tmp_path / f"{k}.onnx")
        commands.append(("backward", "-F", f"{tmp_path}/{k}.onnx", *VECTOR))
    check_growth(cli, commands)
