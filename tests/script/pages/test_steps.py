"""The page of an optimizer's step: each equation is its formula with numbers put in, and evaluates to its result."""

from __future__ import annotations

import ast
import math
import random
import re

import numpy as np
import pytest

from tests.conftest import some

START = "import torch\nw = torch.tensor(0.5, requires_grad=True)\nopt = torch.optim.{}\nfor i in range(3):\n"
START += "    opt.zero_grad()\n    (w**2 + w).backward()\n    opt.step()\n"


def test_what_is_kept_has_its_name_and_its_equation(run):
    out = run(START.format("SGD([w], lr=0.1, momentum=0.9)"), "--all").out
    # w: 0.5, 0.3; b: 2, 0.9*2 + 1.6 = 3.4
    lines = "w ← w - lr*b = 0.3 - 0.1*3.4 = -0.04\n  b: momentum_buffer, the velocity\n"
    assert lines + "  b ← momentum*b + w.grad = 0.9*2 + 1.6 = 3.4\n" in out
    assert "  b ← w.grad = 2\n" in out


def test_groups_with_settings_of_their_own_have_a_rule_each(run):
    text = "import torch\nw, b, c, d, e = (torch.ones(1, requires_grad=True) for _ in range(5))\n"
    text += "groups = [{'params': [w, b], 'weight_decay': 0.5}] + [{'params': [p], 'lr': p.item()} for p in (c, d)]\n"
    text += "opt = torch.optim.SGD(groups, lr=0.1)\nd.data[0] = 2\nopt.add_param_group({'params': [e], 'lr': 2.0})\n"
    out = run(text + "(w*b + c*d*e).sum().backward()\nopt.step()\n").out
    assert "opt.step(): p ← p - lr*g for p = w, b\n  for w[0]: g = p.grad + weight_decay*p = 1 + 0.5*1 = 1.5\n" in out
    assert "  p ← p - lr*p.grad for p = c, d\n  c ← [1] - 1*[2] = [-1]\n  d ← [2] - 1*[1] = [1]\n" in out
    assert "  e ← e - lr*e.grad = [1] - 2*[2] = [-3]\n" in out


@pytest.mark.parametrize(
    ("name", "optimizer", "rule"),
    [
        ("b", "SGD([b], lr=0.1, momentum=0.9)", "b ← b - lr*momentum_buffer"),
        ("lr", "SGD([lr], lr=0.1)", "lr ← lr - lr_*lr.grad"),
        ("g", "SGD([g], lr=0.1, maximize=True)", "g ← g - lr*g_"),
        ("m", "Adam([m], lr=0.1)", "m ← m - step_size*exp_avg/denom"),
        ("v", "RMSprop([v], lr=0.1)", "v ← v - lr*v.grad/denom"),
    ],
)
def test_a_parameter_has_not_the_name_of_another_symbol(run, name, optimizer, rule):
    text = f"import torch\n{name} = torch.tensor([1.], requires_grad=True)\n({name}**2).sum().backward()\n"
    assert f"step(): {rule}" in run(f"{text}torch.optim.{optimizer}.step()\n").out


def test_lbfgs_says_what_it_repeats_and_what_came_of_it(run):
    text = "import torch\nw = torch.tensor([3., 1.], requires_grad=True)\nopt = torch.optim.LBFGS([w], lr=0.1)\n"
    text += "def closure():\n    opt.zero_grad()\n    loss = (w**2).sum()\n    loss.backward()\n    return loss\n"
    out = run(text + "opt.step(closure)\nprint(opt.state[w]['n_iter'], *w.tolist())\n").out
    *_, printed = [line for line in out.splitlines() if re.match(r"\d+ [-\d.]", line)]
    count, *values = printed.split()
    after = ", ".join(f"{float(v):.6g}" for v in values)
    assert f"opt.step(closure): w ← w + t*d, {count} times so far\n  d: minus the gradient, times" in out
    assert f"  w: [3, 1] → [{after}]\n" in out


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RAdam", "Rprop", "NAdam", "ASGD", "Adadelta"])
def test_numbers_that_are_not_finite_and_arrays_without_elements_are_explained(run, optimizer):
    text = "import torch\ne = torch.zeros(0, 3, requires_grad=True)\ne.grad = torch.zeros(0, 3)\n"
    text += f"torch.optim.{optimizer}([e]).step()\nw = torch.tensor([1., 2.], requires_grad=True)\n"
    text += (
        f"opt = torch.optim.{optimizer}([e, w])\n(w*torch.tensor([float('nan'), 1.])).sum().backward()\nopt.step()\n"
    )
    out = run(text).out
    assert "no parameter changes: they have no elements" in out
    assert "line 8, opt.step(): w ← " in out
    assert "nan" in out.partition("line 8, ")[2]
    assert "changed before this step" not in out


# The law


CONFIGURATIONS = [
    ("SGD", ""), ("SGD", "maximize=True"), ("SGD", "momentum=0.9"), ("SGD", "momentum=0.9, dampening=0.3"),
    ("SGD", "momentum=0.9, nesterov=True, weight_decay=0.1"), ("SGD", "weight_decay=0.1, maximize=True"),
    ("Adam", ""), ("Adam", "weight_decay=0.1"), ("Adam", "amsgrad=True"), ("Adam", "maximize=True, betas=(0.5, 0.9)"),
    ("AdamW", ""), ("AdamW", "amsgrad=True, maximize=True"), ("RMSprop", ""), ("RMSprop", "momentum=0.9"),
    ("RMSprop", "centered=True, weight_decay=0.1"), ("RMSprop", "centered=True, momentum=0.5, maximize=True"),
    ("Adagrad", ""), ("Adagrad", "lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, maximize=True"),
    ("Adadelta", ""), ("Adadelta", "weight_decay=0.1, rho=0.7, maximize=True"), ("Adamax", ""),
    ("Adamax", "weight_decay=0.1, maximize=True"), ("NAdam", ""), ("NAdam", "weight_decay=0.1, maximize=True"),
    ("NAdam", "weight_decay=0.1, decoupled_weight_decay=True"), ("RAdam", ""), ("RAdam", "betas=(0.5, 0.9)"),
    ("RAdam", "weight_decay=0.1, decoupled_weight_decay=True"), ("Rprop", ""), ("Rprop", "etas=(0.4, 1.5)"),
    ("Rprop", "maximize=True"), ("ASGD", ""), ("ASGD", "lambd=0.1, t0=2, weight_decay=0.1"),
]  # fmt: skip
PARAMETERS = {
    "scalar": "p = torch.tensor({}, requires_grad=True)\nparameters = [p]\n",
    "vector": "w = torch.tensor([{}, 2.0, -1.0], requires_grad=True)\nparameters = [w]\n",
    "several": "w = torch.full((3, 2), {}, requires_grad=True)\nv = torch.tensor(-2.0, requires_grad=True)\n"
    "parameters = [w, v]\n",
    "float64": "w = torch.tensor([[{}]], dtype=torch.float64, requires_grad=True)\nparameters = [w]\n",
}
FUNCTIONS = {
    "sqrt": math.sqrt, "abs": abs, "maximum": max, "where": lambda c, a, b: a if c else b,
    "sign": lambda x: (x > 0) - (x < 0), "clamp": lambda x, low, high: min(max(x, low), high),
}  # fmt: skip


def steps(out):
    """Yield the lines of each step, with the parts of a broken line joined again."""
    lines = re.sub("\n    +", " ", out).splitlines()
    for i, line in enumerate(lines):
        if "opt.step(): " in line:
            end = next((j for j in range(i + 1, len(lines)) if not lines[j].startswith("  ")), len(lines))
            yield [line.partition("opt.step(): ")[2], *(text.strip() for text in lines[i + 1 : end])]


def equations(lines):
    """Yield the equations of a step: what is on the left, the formula, the numbers put in, and the result; "" for none.

    The head for several parameters has a formula alone.
    """
    for line in lines:
        text = re.sub(r"^(for \S+( \d+\])?( in step \d+)?|in step \d+): ", "", line)
        if re.match(r"\S+( \d+\])? (←|=) ", text):
            left, right = re.split(r" (?:←|=) ", text, maxsplit=1)
            *sides, result = right.partition(" for p = ")[0].split(" = ")
            if len(sides) == 1:
                sides = ["", sides[0]] if re.search(r"\d", sides[0]) and "_" not in sides[0] else [sides[0], ""]
            if sides:
                yield left, *sides, result


class _Arrays(ast.NodeTransformer):
    """Makes arrays of lists."""

    def visit_List(self, node):
        return ast.Call(ast.Name("array", ast.Load()), [node], [])


def value(text):
    """Return the value of arithmetic, evaluated by Python."""
    tree = ast.fix_missing_locations(_Arrays().visit(ast.parse(text, mode="eval")))
    return eval(compile(tree, text, "eval"), {"__builtins__": {}, "array": np.array}, FUNCTIONS)


def is_put_in(formula, arithmetic):
    """Return whether arithmetic is a formula in which each name is one number, everywhere."""
    numbers = {}

    def same(a, b):
        if isinstance(a, ast.Name | ast.Attribute) and ast.unparse(a) not in FUNCTIONS:
            return numbers.setdefault(ast.unparse(a), ast.unparse(b)) == ast.unparse(b) and not isinstance(b, ast.Name)
        if isinstance(a, ast.Constant | ast.Name):
            return ast.unparse(a) == ast.unparse(b)
        parts = list(ast.iter_child_nodes(a)), list(ast.iter_child_nodes(b))
        return type(a) is type(b) and len({*map(len, parts)}) == 1 and all(map(same, *parts))

    return same(ast.parse(formula, mode="eval").body, ast.parse(arithmetic, mode="eval").body)


@pytest.mark.parametrize("seed", some(range(len(CONFIGURATIONS) * 4)))
def test_each_equation_is_its_formula_with_numbers_and_evaluates_to_its_result(run, seed):
    (optimizer, settings), kind = CONFIGURATIONS[seed // 4], [*PARAMETERS][seed % 4]
    rng = random.Random(seed)
    lr, start, scale = 10 ** rng.uniform(-4, 0), rng.uniform(-3, 3), 10 ** rng.uniform(-3, 3)
    text = (
        f"import torch\n{PARAMETERS[kind].format(start)}opt = torch.optim.{optimizer}(parameters, {lr}, {settings})\n"
    )
    text += "for _ in range(3):\n    opt.zero_grad()\n"
    text += f"    sum(((p - 0.7)**2 * {scale} + p).sum() for p in parameters).backward()\n    opt.step()\n"
    text += "    print('after', *[p.reshape(-1)[0].item() for p in parameters])\n"
    out = run(text, "--all", columns=rng.choice((60, 80, 120))).out
    blocks, after = [*steps(out)], [line.split()[1:] for line in out.splitlines() if line.startswith("after ")]
    assert len(blocks) == len(after) == 3
    for lines, [left_by_step, *_] in zip(blocks, after, strict=True):
        results = {}
        for left, formula, arithmetic, result in equations(lines):
            result, _, rounded = result.partition(", in float32 ")
            results[left.partition("[")[0]] = value(rounded or result)
            assert not arithmetic or np.allclose(value(arithmetic), value(result), 1.1e-5, 1e-12), (left, arithmetic)
            assert not (formula and arithmetic) or is_put_in(formula, arithmetic), (left, formula, arithmetic)
        first = np.ravel(results["p" if kind == "scalar" else "w"])[0]
        assert math.isclose(first, float(left_by_step), rel_tol=1e-5), (lines, left_by_step)
