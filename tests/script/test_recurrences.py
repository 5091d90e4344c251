"""Loops of scripts are recurrences: typed back, they give the script's numbers, which PyTorch has recorded."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from conftest import some
from recurrences import CASES

import gradcli
from gradcli.engine.evaluate import at_point
from gradcli.graph.construct import index
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep

RECORDED = json.loads(Path(__file__).with_name("recurrences.json").read_text("utf-8"))
LINE = re.compile(r"(\S+) += (.*)")
SMALL = {"rtol": 2e-5, "atol": 2e-6}


@pytest.fixture
def run(run):
    return lambda code, *options, width=120: run(code, *options, columns=width).out


def statements(page):
    """Return the statements on a page, broken lines joined, and the numbers beside names that a loop has assigned."""
    system = re.split(r"^(?:v|∂\S+|\w\u0304\S*) = ", page, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    lines = []
    for line in system:
        if LINE.match(line) and not line.startswith(" "):
            lines.append(line)
        elif line.startswith("  ") and lines:
            lines[-1] += f" {line.strip()}"
    typed, numbers, ends = [], {}, set()
    for line in lines:
        left, right = LINE.match(re.sub(r"\s{3,}at \w.*$", "", line)).groups()
        first, *others = re.split(r"\s+= ", right)
        if left in ends:
            numbers[left] = np.array(json.loads([first, *others][-1]))
        else:
            typed.append(f"{left} = {first}")
            if match := re.search(r" for (\w+) in \d+\.\.(\d+)$", first):
                last = eval(re.search(r"\[(.*)\]", left)[1], {match[1]: int(match[2])})
                ends.add(f"{left.split('[')[0]}[{last}]")
    return typed, numbers


def values_of(case):
    """Return the values of the inputs of a script by the names that a page may have for them."""
    scope = {}
    exec(case.code.replace("import torch\n", "from gradcli.pytorch import torch\n").rsplit("\n", 2)[0], scope)

    def value(x):
        return np.stack([value(part) for part in x]) if isinstance(x, list) else x.detach().numpy().astype(float)

    return {name: value(scope[name]) for name in case.inputs}


def system_of(page, at):
    """Return the system that a page has the statements of, its inputs, and the numbers beside the names of a loop."""
    typed, numbers = statements(page)
    used = {name: a for name, a in at.items() if re.search(rf"\b{name}\b", "; ".join(typed))}
    return gradcli.parse("; ".join(typed), **{name: a.shape for name, a in used.items()}), used, numbers


def agrees(page, at, loss, grad, rtol, atol):
    """Check that the statements of a page have the numbers beside them, and the loss and gradients of the script."""
    graph, at, numbers = system_of(page, at)
    end = list(graph.outputs.values())[-1]
    if end.shape:  # a list, whose last element is the loss
        end = index(end, (end.shape[0] - 1,))
    elements = {name: graph.names.get(name) for name in numbers}
    for name in [name for name, n in elements.items() if n is None]:
        stem, k = re.fullmatch(r"(\w+)\[(\d+)\]", name).groups()
        elements[name] = index(graph.names[stem], (int(k),))
    whole = Graph.of(graph.inputs, {"loss": end})
    result = at_point(graph, at, [*elements.values(), end])
    for name, number in numbers.items():
        assert np.allclose(result[elements[name]], number, rtol, atol), name
    assert np.allclose(result[end], loss, rtol, atol)
    leaves = [name for name in at if name in grad]
    gradients = sweep(whole, leaves)
    seeds = {name: np.ones(()) for name in gradients.graph.inputs.keys() - at.keys()}
    computed = at_point(gradients.graph, at | seeds, list(gradients.gradients.values()))
    for name in leaves:
        assert np.allclose(computed[gradients.gradients[name]], grad[name], rtol, atol), name
    return leaves


@pytest.mark.parametrize("name", CASES)
def test_a_page_typed_back_gives_the_numbers_of_the_script(run, name):
    case, recorded = CASES[name], RECORDED[name]
    grad = recorded["grad"]
    grad |= {"Ws": [grad[f"Ws[{k}]"] for k in range(5)]} if "Ws[0]" in grad else {}
    assert agrees(run(case.code), values_of(case), recorded["loss"], grad, **SMALL)


@pytest.mark.parametrize("name", CASES)
def test_the_index_is_the_scripts_own_and_the_rounds_are_counted(run, name):
    case = CASES[name]
    typed, _ = statements(run(case.code))
    for expected in case.shown:
        assert f"{expected} for {case.rounds}" in typed
    if case.rounds:
        assert any(line.endswith(f" for {case.rounds}") for line in typed)


@pytest.mark.parametrize("width", [60])
@pytest.mark.parametrize("name", CASES)
def test_no_line_is_wider_than_the_page(run, name, width):
    for line in run(CASES[name].code, width=width).splitlines():
        assert sum(not unicodedata.combining(c) for c in line) <= width


@pytest.mark.parametrize("name", CASES)
def test_unrolled_each_round_is_written(run, name):
    out = run(CASES[name].code, "--unroll")
    assert not re.search(r" for \w+ in \d+\.\.\d+", out)
    assert "by round" not in out
    assert "more statements" not in out


def test_what_rounds_add_sums_to_the_gradient(run):
    out = run(CASES["euler"].code, width=200)
    (rounds,) = re.findall(r"^k̄ by round: (.*)", out, re.MULTILINE)
    numbers = [float(part.split()[1]) for part in rounds.split(" · ")]
    assert np.allclose(sum(numbers), RECORDED["euler"]["grad"]["k"], rtol=5e-3)
    assert re.match(r"step=8 \S+ · step=7 ", rounds)
    assert "outside of these rounds" not in out


def test_norms_of_rounds_are_those_of_the_adjoints(run):
    """The oracle is a backward by hand, in NumPy."""
    at = values_of(CASES["rnn"])
    hs = [np.zeros(3)]
    for x in at["xs"]:
        hs.append(np.tanh(at["W"] @ hs[-1] + at["U"] @ x))
    adjoint, norms, added = np.ones(3), {}, {}
    for t in range(5, 0, -1):
        norms[t] = np.linalg.norm(adjoint)
        inner = adjoint * (1 - hs[t] ** 2)
        added[t] = np.linalg.norm(np.outer(inner, hs[t - 1]))
        adjoint = at["W"].T @ inner
    out = run(CASES["rnn"].code)
    for bar, expected in (("h̄", norms), ("W̄", added)):
        assert f"{bar} by round: {' · '.join(f't={t} {a:.3g}' for t, a in expected.items())}\n" in out


def test_json_has_the_rounds_and_the_loop(run):
    row = json.loads(run(CASES["rnn"].code, "-f", "json"))
    assert row["loop"] == {
        "index": "t",
        "from": 1,
        "to": 5,
        "initial": ["h[0] = zeros(3)"],
        "statements": ["h[t] = tanh(W @ h[t-1] + U @ xs[t-1]) for t in 1..5"],
    }
    assert row["formulas"]["h4"] == ["tanh(W @ h3 + U @ xs[3])"]


BRANCH = """import torch
w = torch.tensor(0.5, requires_grad=True)
h = torch.tensor(0.3)
for t in range({rounds}):
    if t % 3 == 0:
        h = torch.sin(w*h)
    else:
        h = w + h*0.9
h.backward()
"""


def test_rounds_that_differ_are_written_out(run):
    out = run(BRANCH.format(rounds=7))
    assert " for t in " not in out
    assert out.count("sin(") > 2


def test_layers_that_a_script_calls_are_a_loop_with_weights_by_index(run):
    code = "import torch\ntorch.manual_seed(0)\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
    code += (
        "        super().__init__()\n        self.W = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(6))\n"
    )
    code += "    def forward(self, x):\n        for layer in self.W:\n            x = x + torch.relu(layer(x))\n"
    code += "        return x\nnet = Net()\nnet(torch.ones(2, 3)).sum().backward()\n"
    out = run(code)
    assert "net.W[t-1] = linear(x[t-1], net.W[t-1].weight, bias=net.W[t-1].bias) for t in 1..6\n" in out
    assert "x[t]       = x[t-1] + relu(net.W[t-1]) for t in 1..6\n" in out
    assert "net.W[k] is net.W.k\n" in out


def test_a_gradient_through_the_rounds_is_its_number_alone(run):
    """No sum over paths from the last round to a weight of the first one: no reader follows it, and its work grows."""
    code = "import torch\ntorch.manual_seed(0)\nclass S(torch.nn.Module):\n"
    code += "    def forward(s, x): return x*torch.sigmoid(x)\n"
    code += "m = torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(4, 4), S())])\n"
    code += "m(torch.ones(2, 4, requires_grad=True)).sum().backward()\n"
    folded, unrolled = run(code), run(code, "--unroll")
    assert re.search(r"t2\[t\] = .* for t in 1\.\.4", folded)
    assert "ȳ·" not in folded
    assert "/∂m.0" not in folded
    assert "--unroll writes each" in " ".join(folded.split())
    last = next(line for line in folded.splitlines() if line.startswith("m.6.bias.grad"))
    assert last.partition("= ")[2].removesuffix("]") in unrolled


def test_a_cell_is_one_statement(run):
    code = "import torch\ncell = torch.nn.RNNCell(2, 3)\nxs, h = torch.randn(6, 1, 2), torch.zeros(1, 3)\n"
    out = " ".join(run(code + "for t in range(6):\n    h = cell(xs[t], h)\nh.sum().backward()\n").split())
    cell = [f"linear({x}, cell.weight_{w}, bias=cell.bias_{w})" for x, w in (("h[t-1]", "hh"), ("xs[t-1]", "ih"))]
    assert f"h[t] = tanh({' + '.join(cell)}) for t in 1..6" in out
    assert "h1" not in out


def test_loops_that_only_other_loops_read_are_defined(run):
    code = "import torch\nw = torch.tensor(0.7, requires_grad=True)\ntable = [[w*k for k in range(5)]]\n"
    code += "for t in range(3):\n    row = table[-1]\n"
    code += "    table.append([torch.tanh(row[2] + w*row[(k + 1) % 5]) for k in range(5)])\nsum(table[-1]).backward()\n"
    out = run(code)
    assert "table[0][k] = w*k for k in 0..4" in out
    for t in range(1, 4):
        assert f"table[{t}][k] = tanh(table[{t - 1}][2] + w*table[{t - 1}][(k+1) % 5]) for k in 0..4" in out
        assert f"By round of table[{t}][k]" in out


def test_a_derivative_through_rounds_is_no_product_with_1(run):
    code = "import torch\nw = torch.tensor(0.7, requires_grad=True)\ns = torch.tensor(0.3)\n"
    out = run(code + "for t in range(7):\n    s = torch.exp(w*s)*0.5\ns.backward()\n")
    assert re.search(r"^w\.grad = [\d.]+$", out, re.MULTILINE)


FORMS = (
    "torch.tanh({a}*w + {b})", "{a} + 0.1*{b}", "{a}*xs[t] + {b}", "torch.sin({a}) - w*{b}", "f({a}, {b})",
    "{a} + 0.5*t*{b}", "w", "{a} - us[t]*{b}", "({a} + {b})/(1 + {a}**2)", "{a}*0.9**t",
)  # fmt: skip


def random_loop(rng):
    """Return a script with a loop of one to three states, lists, branches and functions, each of them by chance."""
    states = ["p", "q", "r"][: rng.randint(1, 3)]
    known = [*states]
    body = []
    for k in range(rng.randint(1, 4)):
        target = rng.choice([*states, f"u{k}"])
        a, b = rng.choice(known), rng.choice([*known, "v"])
        body.append(f"{target} = {rng.choice(FORMS).format(a=a, b=b)}")
        known.append(target)
    if len(states) > 1 and rng.random() < 0.5:
        body.append(f"{', '.join(states)} = {', '.join(states[1:] + states[:1])}")
    body.append(f"{states[0]} = torch.sin({known[-1]} + {states[0]}*w)")
    if rng.random() < 0.4:
        body.append(f"ps.append({rng.choice(states)})")
    if rng.random() < 0.2:
        body.append(f"if t == {rng.randint(0, 5)}:\n        {states[-1]} = {states[-1]}*v")
    if rng.random() < 0.3:
        body = ["; ".join(body[:2]), *body[2:]] if "if t" not in body[1] else body
    sum_of_list = "sum(ps) + " if any("ps.append" in line for line in body) else ""
    head = "import torch\nw = torch.tensor(0.6, requires_grad=True)\nv = torch.tensor(0.3, requires_grad=True)\n"
    head += "xs = torch.tensor([0.1, -0.4, 0.7, 0.2, 0.9, -0.3, 0.5, 0.8])\n"
    head += "us = [0.3, 0.1, 0.5, -0.2, 0.4, 0.6, 0.2, 0.7]\n"
    head += "ps = []\ndef f(x, y):\n    z = x*y\n    return torch.cos(z) + x\n"
    starts = "".join(f"{s} = {rng.choice(('torch.tensor(0.5)', 'w*0.5', 'v', 'torch.tensor(1.)'))}\n" for s in states)
    loop = f"for t in range({rng.randint(4, 8)}):\n" + "".join(f"    {line}\n" for line in body)
    return head + starts + loop + f"loss = {sum_of_list}{' + '.join(states)}\nloss.backward()\n"


@pytest.mark.parametrize("seed", some(range(200)))
def test_a_random_loop_typed_back_gives_the_numbers_of_the_script(run, seed):
    code = random_loop(random.Random(seed))
    scope = {}
    exec(code.replace("import torch\n", "from gradcli.pytorch import torch\n"), scope)
    page = run(code, width=400)
    assert "not explained" not in page
    if not re.search(r" for t in \d+\.\.", page):
        return  # rounds that differ, or are too few
    leaves = {name: scope[name] for name in "wv" if scope[name].grad is not None}
    at = {name: np.array(scope[name].item()) for name in "wvpqr" if name in scope}
    at |= {"xs": scope["xs"].numpy().astype(float), "ps": np.array([p.item() for p in scope["ps"]])}
    grad = {name: x.grad.item() for name, x in leaves.items()}
    agrees(page, at, scope["loss"].item(), grad, rtol=1e-3, atol=1e-4)
