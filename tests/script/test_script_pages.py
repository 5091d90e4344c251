"""The pages of `gradcli run`: loops, hooks, own functions, gradients of intermediates, and numbers lost."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from gradcli.graph.vjp import sweep
from gradcli.pages.trace import numeric_trace
from gradcli.script.measured import measured

X = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n"


# Headings


def test_of_several_statements_on_a_line_a_heading_has_that_of_its_call(run):
    own = ["y.backward(retain_graph=True)", "(x**2).sum().backward()", "y.backward()"]
    text = f"{X}opt = torch.optim.SGD([x], lr=0.1)\nif True:\n    y = x.prod(); {'; '.join(own)}; opt.step()  # all\n"
    out = run(text).out
    assert re.findall("^── line 5: (.*?) ─", out, re.MULTILINE) == own
    assert "line 5, opt.step(): x ← " in out
    assert "── line 3: y = x.sum(); y.backward( ─" in run(f"{X}y = x.sum(); y.backward(\n)\n").out  # parts of two lines


# Loops


def test_what_is_too_long_to_be_shown_is_told_with_its_gradient(run):
    text = "import torch\nx = torch.tensor(1., requires_grad=True)\nimport random\nrandom.seed(1)\n"
    text += "def f(y, n):\n    y = random.choice([torch.sin, torch.cos, torch.exp, torch.tanh])(y)\n"
    out = run(text + "    return f(y, n - 1) if n else y\ny = f(x, 400)\ny.backward()\n").out
    assert "operations, folded by the line that runs them" in out
    assert "x.grad: None → " in out


DIFFERENT = """import torch
x = torch.tensor([0.5, 0.25], requires_grad=True)
h = x * 2
for k in range({}):
    if k * k % 7 in (1, 4):
        a = x - h
        h = torch.tanh(a)
    else:
        h = torch.sin(h)
h.sum().backward()
"""


@pytest.mark.parametrize("count", [40, 400])
def test_of_rounds_that_differ_the_first_and_the_last_three_are_written(run, count):
    code = DIFFERENT.format(count)
    out = run(code).out
    omitted = re.search(r"^… more rounds \(--unroll shows them\): (.*)$", out, re.MULTILINE)
    h = [np.array([1, 0.5])]
    for k in range(count):
        h.append(np.tanh([0.5, 0.25] - h[-1]) if k * k % 7 in (1, 4) else np.sin(h[-1]))
    system = out[: out.index("A formula through")]
    left = re.findall(r"^(\w+)(?:\[\w+\])? += ", system, re.MULTILINE)
    read = {name for name in re.findall(r"\b[ah]\d+\b", system) if name not in left}
    numbers = dict(re.findall(r"(\w+) = (\[.*?\])", omitted[1]))
    assert read == {*numbers}
    for number in numbers.values():
        assert any(np.allclose(json.loads(number), value, rtol=1e-5) for value in h)
    assert "more rounds" not in (whole := run(code, "--unroll").out)
    assert whole.count("tanh(a") == len([k for k in range(count) if k * k % 7 in (1, 4)])


def test_few_rounds_that_differ_are_all_written(run):
    assert "more rounds" not in run(DIFFERENT.format(14)).out


STACKED = """import torch
x = torch.tensor({}, requires_grad=True)
out = []
for i in range(1, 13):
    if i % 2:
        v = torch.sin(x * i)
    else:
        v = x * i
    out.append(v)
s = torch.stack(out).sum()
s.backward()
"""


@pytest.mark.parametrize("x", ["2.0", "[0.3, 1.2]"])
def test_a_formula_that_is_written_out_is_not_said_to_be_left_out(run, x):
    out = run(STACKED.format(x)).out
    assert " for i in " in out
    assert "11*cos(11*x" in out
    assert "A formula through" not in out


BY_THREES = """import torch
w = torch.tensor([0.5, -0.3], requires_grad=True)
h = torch.zeros(2)
losses = []
for t in range({}):
    h = torch.tanh(w * h + t / 10)
    if t % 3 == 0:
        losses.append((h ** 2).sum())
sum(losses).backward()
"""


@pytest.mark.parametrize(("count", "is_cut"), [(20, False), (23, True), (26, True)])
def test_a_recurrence_is_not_cut_from_its_start(run, count, is_cut):
    system, _, _ = run(BY_THREES.format(count)).out.partition("v = 1")
    omitted = "".join(re.findall(r"^… .*?\n\n", system, re.MULTILINE | re.DOTALL))
    assert bool(omitted) == is_cut
    lefts = set(re.findall(r"^(\S+) +=", system.replace(omitted, ""), re.MULTILINE))
    assert lefts.isdisjoint(re.findall(r"(\S+) = ", omitted))
    stems = {left.removesuffix("[t]") for left in lefts if left.endswith("[t]")}
    assert stems == {left.removesuffix("[0]") for left in lefts if re.match(r"h\d*\[0\]", left)}


def test_rounds_that_add_a_part_of_a_gradient_are_said_to_be_a_part(run):
    code = """import torch
x = torch.tensor([1., 2.], requires_grad=True)
total = 0
for i in range(10):
    s = (x * i).sum()
    if i in (2, 5):
        s = s.detach()
    total = total + s
total.backward()
"""
    out = " ".join(run(code).out.split())
    assert "x̄ by round: i=4" in out
    assert "(operations outside of these rounds may add to x̄, too)" in out


# Hooks


def test_what_a_hook_changed_is_told(run):
    text = (
        X + "y = x * 3\ny.register_hook(lambda g: g * 10)\ndef double(g):\n    return 2 * g\nx.register_hook(double)\n"
    )
    out = run(text + "y.register_hook(print)\ny.sum().backward()\n").out
    told = [line for line in out.splitlines() if "'s hook" in line]
    assert told == ["y's hook (line 4): [1, 1] → [10, 10]", "x's hook double (line 5): [30, 30] → [60, 60]"]
    assert "x.grad: None → [60, 60]" in out


# Gradients of intermediates


def test_grad_by_an_intermediate_treats_it_as_the_variable(run):
    text = X + "h = x ** 2\ny = (3 * h).sum()\ng, = torch.autograd.grad(y, h)\n"
    out = run(text).out
    assert "y = sum(3*h) = 15   at h = [1, 4]" in out
    assert "∂y/∂h = [3, 3]" in out
    assert "h.grad = " not in out
    assert "x.grad" not in out
    (row,) = (json.loads(line) for line in run(text, "-f", "json").out.splitlines())
    assert row["leaves"] == {"h": {"before": None, "own": [3.0, 3.0], "after": None}}


# Own functions


OWN = """\
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g
"""
PAIR = """\
class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, k):
        ctx.save_for_backward(x, y)
        return x * y * k, x + y
    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y * 2 + h, g * x * 2 + h, None
"""


def test_own_functions_stand_in_the_chain_with_others(run):
    text = OWN + PAIR + "w = torch.tensor([1., 2.], requires_grad=True)\nh = 3 * w\ny = Square.apply(h)\n"
    text += "p, q = Pair.apply(y, h, 2)\nloss = (p * q).sum() + w.sum()\nloss.backward()\n"
    out = " ".join(run(text).out.split())
    assert "p, q = Pair(y, h, 2)" in out
    assert "y\u0304 = Pair.backward(p\u0304, q\u0304)[0] = " in out
    # p = 54·w³, q = 9·w² + 3·w and loss = p·q + w: its derivative is 2430·w⁴ + 648·w³ + 1
    assert "w.grad = 3*(Square.backward(y\u0304) + Pair.backward(p\u0304, q\u0304)[1]) + 1 = [3079, 44065]" in out
    assert "w.grad: None → [3079, 44065]" in out


# Numbers that are lost


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y = x.sqrt() * 0\ny.sum().backward()\n", "nan: it arises in sqrt (line 3, `y = x.sqrt() * 0`), whose local"),
        ("y = x.sqrt()*x.sign()\ny.sum().backward()\n", "whose local derivative is not finite there: 0·inf is nan"),
        (
            "h = torch.exp(x + 100)\ny = h / h\ny.sum().backward()\n",
            "in exp (line 3, `h = torch.exp(x + 100)`), whose val",
        ),
        ("y = torch.log(x)\ny.sum().backward()\n", "inf: it arises in log (line 3, `y = torch.log(x)`), whose local"),
        ("(x * 2).backward(torch.tensor([float('nan'), 1.]))\n", "v itself is not finite"),
    ],
)
def test_a_number_that_is_not_finite_is_told_with_its_line(text, said, run):
    head = "import torch\nx = torch.tensor([0., 1.], requires_grad=True)\n"
    assert said in " ".join(run(head + text).out.split())


@pytest.mark.parametrize(("a", "b", "what"), [(0, 0, "nan"), (0, 1, "not finite")])
def test_all_gradients_that_are_not_finite_are_named(a, b, what, run):
    text = f"import torch\nx = torch.zeros(1, requires_grad=True)\nz = torch.tensor([{float(b)}], requires_grad=True)\n"
    text += "w = torch.zeros(1, requires_grad=True)\nloss = (z*x.sqrt()*0).sum() + w.sqrt().sum()*z.sum()\n"
    out = " ".join(run(f"{text}loss.backward()\n").out.split())
    assert f"warning: the gradients of w and x are {what}: it arises in sqrt (line 5" in out


def test_a_loop_that_loses_its_numbers_late_is_told_once(run):
    text = "import torch\nw = torch.tensor(3., requires_grad=True)\nfor i in range(9):\n    w.grad = None\n"
    text += "    loss = w.sqrt()\n    loss.backward()\n    with torch.no_grad():\n        w -= 1\n"
    outcome = run(text)
    (warning,) = [line for line in outcome.err.splitlines() if "warning" in line]
    assert "line 6, reached 4 times: the gradient of w is inf: it arises in sqrt (line 5" in warning


def test_a_step_is_shown_with_an_entry_that_it_changes(run):
    text = "import torch\na = torch.ones(2, requires_grad=True)\nb = torch.tensor([2., 3.], requires_grad=True)\n"
    text += "loss = 0*a[0] + a[1] + (b**2).sum()\nloss.backward()\n"
    text += "torch.optim.SGD([a, b], lr=0.5, momentum=0.9).step()\n"
    assert "b[0] ← 2 - 0.5*4 = 0" in run(text).out  # the gradient of a[0] is 0


def test_gradients_that_are_clipped_are_told_before_the_step_that_takes_them(run):
    text = "for k in range(2):\n    x.grad = None\n    (30*x[0] + 40*x[1]).backward()\n"
    text += "    torch.nn.utils.clip_grad_norm_([x], 1.)\n    opt.step()\n"
    out = run(X + "opt = torch.optim.SGD([x], lr=0.1)\n" + text).out
    assert out.count("\n  x.grad was scaled by 0.02 before this step: [30, 40] → [0.6, 0.8]\n") == 1
    kept = text.replace("torch.nn", "0 and torch.nn")
    assert "was scaled" not in run(X + "opt = torch.optim.SGD([x], lr=0.1)\n" + kept).out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("y = x.clone()\ny[1] = 10.\ny[0] *= 3\n", "y = [x[0]*3, 10] = [3, 10]"),
        ("y = x*x\ny[:1] = y[1]\n", "y = [(x*x)[1], (x*x)[1]] = [4, 4]"),
    ],
)
def test_a_vector_whose_elements_are_changed_is_a_list(run, text, told):
    assert told in " ".join(run(f"{X}{text}y.sum().backward()\n").out.split())


# What is float32 in the script, and float64 on its page


def test_what_only_float64_holds_is_told(run):
    text = "import torch\nw = torch.tensor([0., 1.], requires_grad=True)\np = torch.softmax(w*200, 0)\n"
    out = run(text + "(-(p*torch.log(p)).sum()).backward()\n").out
    assert "note: the script's float32 rounds each operation, so w.grad differs from its formula" in out
    assert "w.grad: None → [nan, nan]" in out


def test_where_rounding_changes_a_gradient_the_page_has_the_scripts_number_and_says_so(run):
    text = "a, b = (torch.tensor([1/3, 1e9], requires_grad=True) for _ in range(2))\n"
    text += "(a*(b*0.1 + x - b/10)).sum().backward()\n"
    out = run(X + text).out
    assert "a.grad = x   = [1, 0]\n" in out
    assert "note: the script's float32 rounds each operation, so a.grad differs from its formula\n" in out


def test_the_reverse_table_has_the_adjoints_and_contributions_of_the_script(run):
    text = "import torch\nw = torch.tensor([0.7], requires_grad=True)\nz = w*0.1 + w*0.2 - w*0.3\nz.backward()\n"
    out = run(text, "--steps").out
    assert "∂t1/∂w = 0.1             w̄ = [-7.45058e-09]   product\n" in out
    assert "w.grad = [-7.45058e-09]\n" in out
    assert "w.grad: None → [-7.45058e-09]\n" in out


def test_what_a_hook_on_saved_tensors_changes_is_not_taken_for_rounding(run):
    text = "with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):\n    y = x**3\n"
    out = run(X + text + "y.sum().backward()\n").out
    assert "x.grad = 3*x**2 = [12, 48]\n" in out
    assert "note: hooks on saved tensors change what the backward reads, so x.grad differs from its formula\n" in out


def test_what_a_hook_changes_is_in_the_formulas_and_the_steps(run):
    text = "g = x*2\ng.register_hook(lambda v: v*10)\ny = (g**2).sum() + x.sum()\ny.backward()\n"
    out = run(X + text, "--steps").out
    assert "∂g/∂x = 2                x̄ = [81, 161]    product\n" in out
    assert "ḡ = 2*g\n" in out
    assert "x.grad = 2*hook(ḡ) + 1 = [81, 161]\n" in out
    assert "g's hook (line 4): [4, 8] → [40, 80]\n" in out
    assert "x.grad: None → [81, 161]\n" in out


def test_gradients_that_are_kept_add_up(run):
    out = run(X + "y = 2*x\ny.retain_grad()\nz = (y**2).sum()\nz.backward(retain_graph=True)\nz.backward()\n").out
    assert "y.grad: None → [4, 8], kept by y.retain_grad()\n" in out
    assert "y.grad: [4, 8] + [4, 8] → [8, 16]" in out
    assert "comes before backward" not in out


def test_a_call_that_failed_adds_nothing(run):
    out = run(X + "y = x.exp().sum()\nfor k in range(2):\n    y.backward()\n", status=1)
    assert "line 5, 1 more time; --all shows it\n" in out.err


def test_the_sign_of_a_zero_that_the_script_writes_decides_on_the_page_too(run):
    # what PyTorch 2.13 gives: copysign is [-0., -2.], its gradient [0., -1.]
    outcome = run("import torch\nx = torch.tensor([0., 2.], requires_grad=True)\n"
                  "z = torch.copysign(x, torch.tensor(-0.))\nz.sum().backward()\nprint(z, x.grad)\n")  # fmt: skip
    assert "z = -abs(x)   = [0, -2]" in outcome.out
    assert "x.grad = 1·(-1)·sign(x) = -sign(x) = [0, -1]" in outcome.out
    assert "rounds" not in outcome.out
    assert outcome.out.endswith("tensor([-0., -2.], grad_fn=<CopysignBackward0>) tensor([ 0., -1.])\n")


def test_a_script_s_own_v_is_not_the_cotangent(run):
    out = run("""\
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x*x
    @staticmethod
    def backward(ctx, g):
        return 2*ctx.saved_tensors[0]*g
v = torch.tensor([1., 2.], requires_grad=True)
E = 3*v**2
E.backward(torch.tensor([1., 10.]))
z = Square.apply(v)
z.backward(torch.tensor([1., 10.]))
""").out
    assert "v.grad = 6*E\u0304*v = [1·6, 10·12] = [6, 120]\n" in out
    assert "z\u0304 = ∂L/∂z = [1, 10]: all that `backward` needs of L\n" in out
    assert "v.grad = Square.backward(z\u0304) = [2, 40]\n" in out


# Layers


def test_what_would_take_many_operations_is_written_as_its_call(run):
    text = "import torch\nfrom torch import nn\nx = torch.ones(2, 1, 2, 2)\nc = nn.Conv2d(1, 2, 3, padding=1)\n"
    text += "n = nn.BatchNorm2d(2)\ny = nn.functional.max_pool2d(n(c(x)).relu(), (2, 1))\n"
    out = run(text + "h = nn.functional.layer_norm(y, [1, 2]).exp()\nh.sum().backward()\n").out
    for statement in (
        "c = conv2d(x, c.weight, bias=c.bias, padding=1)",
        "n = batch_norm(c, weight=n.weight, bias=n.bias, training=True)",
        "y = max_pool2d(relu(n), (2, 1))",
        "h = exp(layer_norm(y, (1, 2)))",
    ):
        assert f"\n{statement}" in out


def test_what_moves_or_repeats_elements_is_written_as_its_call(run):
    text = "import torch\nw = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)\ny = w.roll((1, 1), (0, 1))\n"
    text += "p = torch.nn.functional.pad(y, (1, 0), value=2.)\nz = torch.nn.functional.pad(p, (0, 1, 1, 0))\n"
    out = run(text + "k = torch.kron(z, w)\n(k**2).sum().backward()\n").out
    statements = " ".join(out.split())
    for statement in (
        "y = roll(roll(w, 1, axis=0), 1, axis=1) = [[4, 3], [2, 1]]",
        "p = pad(y, (1, 0), value=2) = [[2, 4, 3], [2, 2, 1]]",
        "z = pad(p, (0, 1, 1, 0)) = [[0, 0, 0, 0], [2, 4, 3, 0], [2, 2, 1, 0]]",
        "k = kron(z, w) = [[0, 0, 0, …], …] (6×8)",
    ):
        assert statement in statements


# What nothing is recorded of


def test_a_mask_of_conditions_is_written_as_one(run):
    """As numbers it would be added to the scores: the formula would be another function's."""
    page = run(
        "import torch\nimport torch.nn.functional as F\n"
        "q = torch.tensor([[0.5, 1.0], [2.0, -1.0]], requires_grad=True)\nm = torch.eye(2) > 0\n"
        "y = F.scaled_dot_product_attention(q, q, q, attn_mask=m).sum()\ny.backward()\n"
    ).out
    assert "scaled_dot_product_attention(q, q, q, attn_mask=m > 0)" in page
    assert "rounds each operation" not in page


def test_an_axis_that_a_key_adds_alone_is_an_index(run):
    out = run("import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n(x[None]**2).sum().backward()\n").out
    assert "y = sum(x[None]**2) = 5   at x = [1, 2]" in out


def test_an_operand_without_a_name_is_shown_as_the_script_writes_it(run):
    text = "import torch\nx = torch.linspace(0, 1, 30)\nb = torch.tensor(2., requires_grad=True)\n"
    text += "a = torch.tensor(1., requires_grad=True)\ny = (a * torch.sin(x) + b * (x + 1) ** 2).sum()\ny.backward()\n"
    out = run(text).out
    assert "y = sum(a*sin(x) + b*(x + 1)**2)" in out
    assert out.index("b.grad = sum((x + 1)**2)") < out.index("a.grad = sum(sin(x))")  # as the script defines them


def test_a_name_that_has_changed_since_does_not_stand_for_what_it_was(run):
    text = "import torch\nw = torch.tensor(2., requires_grad=True)\nx = torch.arange(20.)\ny = (w * x ** 2).sum()\n"
    out = run(text + "x = x + 1\ny.backward()\n").out
    assert "y = sum(w*data)" in out


FUNCTIONAL = "import torch.nn.functional as F\n"
LAYER = "torch.manual_seed(0)\nlin = torch.nn.Linear(2, 2)\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "z = x*0 + (x**2).detach() * x\n(z + x.detach()).sum()",
            ["z = x*0 + [1, 4]*x", "[1, 4] is a constant: detached in line 3"],
        ),
        ("z = (x.detach() * x).sum()\nz", ["z = sum(x.detach()*x)", "x.grad = x.detach()"]),
        ("y = x**2\nz = (y.detach() * y).sum()\nz", ["z = sum(y.detach()*y)", "y.detach() = [1, 4]"]),
        ("t = (x * 2).max(0)[0].detach()\nz = (x * t).sum()\nz", ["t is a constant: detached in line 3"]),
        (
            "t = (x * 2).max(0)[1]\nz = (x * (t + 1.5)).sum()\nz",
            ["the indices of max have no gradient; computed in line 3"],
        ),
        (
            FUNCTIONAL + "z = F.embedding(torch.tensor(1), x[:, None], padding_idx=0).sum()\nz",
            ["z = sum(x[:, None][1])", "x.grad = [0, 1]"],
        ),
        (FUNCTIONAL + "z = F.embedding(torch.tensor(0), x[:, None], padding_idx=0).sum()\nz", ["x.grad = [0, 0]"]),
        (
            FUNCTIONAL + "z = F.cross_entropy(x[None], torch.tensor([1]))\nz",
            ["x.grad = sum(softmax(x[None], axis=1) - one_hot(1, 2), axis=0)"],
        ),
        (
            FUNCTIONAL + "t = torch.tensor([0, 0])\nz = F.cross_entropy(x.expand(2, 2), t)\nz",
            ["one_hot(t, 2)", "t = [0, 0]"],
        ),
        ("d = torch.arange(8.) / 7\nz = (d[2:4] * x).sum()\nz", ["at d[2:4] = [0.285714, 0.", "x.grad = d[2:4]"]),
        (
            "d = torch.arange(2.) / 3\nz = (x[:, None] - d.expand(2, 2)).sum()\nz",
            ["expand(d, (2, 2))", "d = [0, 0.3333"],
        ),
        ("w = torch.ones(2, requires_grad=True) * 3\nz = (w * x).sum()\nz", ["w = leaf*3", "leaf.grad = 1·x·3 = 3*x"]),
        ("xs = [x, x.detach() * 2]\nz = (xs[0] * xs[1]).sum()\nz", ["z = sum(x*xs[1])", "x.grad = xs[1]"]),
        ("z = torch.where(x > 1.5, x * x, 0.).sum()\nz", ["z = sum(where(x > 1.5, x*x, 0))"]),
        ("z = torch.autograd.grad((x**3).sum(), x, create_graph=True)[0]\nz.sum()", ["z = 3*x**2"]),
        ("A = torch.zeros(2, 2)\nA[0] = x * 3\nA[1] = x\nA.sum()", ["A = [x*3, x]"]),
        ("A = torch.zeros(2, 2)\nA[0, 1] = x[0] * 3\nA[1, 0] = -x[1]\nA.sum()", ["A = [[0, x[0]*3], [-x[1], 0]]"]),
        ("z = torch.autograd.grad(sum([x[1]**3, x[0]]), x, create_graph=True)[0]\nz.sum()", ["[0, 3*x[1]**2]"]),
        (
            LAYER + "z = lin(lin(x)).sum()\nz",
            ["lin(lin(x)) = linear(lin(x), lin.weight, bias=lin.bias)", "z = sum(lin(lin(x)))"],
        ),
        (LAYER + "z = lin(torch.tensor([1., 2.]))[0]\nz", ["lin = linear([1, 2], lin.weight, bias=lin.bias)"]),
        ("h = x\nfor d in (x.detach() / 3, x.detach() / 7):\n    h = torch.tanh(h * d)\nh.sum()", ["h = tanh(h1*d)"]),
    ],
)
def test_names_are_those_of_the_script(text, told, run):
    out = " ".join(run(X + text + ".backward()\n").out.split())
    assert [part for part in told if " ".join(part.split()) not in out] == [], out


def test_an_input_that_no_path_leads_back_to_is_named(run):
    text = X + "y = torch.ones(2, requires_grad=True)\nz = (x * 2).sum()\n"
    out = run(text + "torch.autograd.grad(z, (x, y), allow_unused=True)\n").out
    assert "∂z/∂x = [2, 2]" in out
    assert "The result does not depend on y: its gradient is None" in out
    out = run(f"{X}w = x.detach()\ntorch.autograd.functional.hessian(lambda t: x.sum(), w)\n").out
    assert "The result does not depend on t: " in out


def test_a_leaf_that_is_replaced_whole_has_a_gradient_of_zeros(run):
    text = X + "y = torch.ones(2, requires_grad=True)\nx.index_copy(0, torch.tensor([0, 1]), y).sum().backward()\n"
    out = run(text).out
    assert "not explained" not in out
    assert "x.grad: None → [0, 0]\ny.grad: None → [1, 1]\n" in out
    long = "import torch\nx, y = torch.zeros(5, 5, requires_grad=True), torch.ones(5, 5, requires_grad=True)\n"
    out = run(long + "x.index_copy(0, torch.arange(5), y).sum().backward()\n").out
    assert "Each .grad" not in out
    assert "x.grad: None → [[0," in out


def test_a_module_that_is_looked_on_is_shown_as_without_the_hook(run):
    text = "import torch; torch.manual_seed(0)\nnet = torch.nn.Linear(2, 1, bias=False)\n"
    text += "x = torch.ones(1, 2, requires_grad=True)\n"
    hook = "net.register_full_backward_hook(lambda module, into, out: None)\n"
    pages = [run(f"{text}{own}out = net(x)\nout.backward()\n").out.partition("\n")[2] for own in (hook, "")]
    assert pages[0] == pages[1].replace("line 5", "line 6")
    assert "out = linear(x, net.weight" in pages[0]
    assert "net = " not in pages[0]


def test_the_ones_of_a_sum_are_ones_however_many(run):
    text = "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(3, 20)\n"
    text += "x = torch.randn(20, 3, requires_grad=True)\nloss = model(x).sum()\n"
    text += "g, = torch.autograd.grad(loss, x, create_graph=True)\ng.pow(2).sum().backward()\n"
    out = run(text).out
    assert "= ones(20, 20) @ model.weight = " in out
    assert "data" not in out


def test_what_answers_to_every_name_is_no_optimizer(run):
    text = "import torch\nclass Any:\n    def __getattr__(self, name):\n        return Any()\n"
    text += "    def __getitem__(self, key):\n        return Any()\n"
    text += "plt = Any()\nw = torch.ones(2, requires_grad=True)\nsgd = torch.optim.SGD([w], 0.5)\n"
    text += "w.sum().backward()\nsgd.step()\n"
    assert "line 11, sgd.step(): w ← w - lr*w.grad = [1, 1] - 0.5*[1, 1] = [0.5, 0.5]" in run(text).out


def test_values_on_a_page_are_those_that_the_script_has_computed(run):
    text = "x = torch.tensor(1.5, requires_grad=True)\nbig = x + 1e8\ny = (big - 1e8)*3\n"
    out = run(f"import torch\n{text}y.backward()\nprint(y.item())\n").out
    assert "y   = (big - 100000000)*3   = 0\n" in out
    assert out.endswith("\n0.0\n")


NORMALIZED = """import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
loss = torch.nn.functional.cross_entropy(net(torch.ones(2, 3)), torch.tensor([0, 2]))
"""


def test_the_record_of_a_backward_has_what_each_operation_sends_and_what_each_result_received(run, monkeypatch):
    records = []

    def kept(recorded):
        records.append((recorded, measured(recorded)))
        return records[-1][1]

    monkeypatch.setattr("gradcli.script.pages.page.measured", kept)
    run(f"{NORMALIZED}loss.backward()\n")
    ((recorded, record),) = records
    graph = recorded.graph
    swept = sweep(graph, recorded.wrt)
    edges = {(p.node, p.position) for p in swept.passes if p.argument in recorded.results or p.argument.is_leaf}
    assert record.contributions.keys() <= {(p.node, p.position) for p in swept.passes}
    assert len(edges & record.contributions.keys()) > 0.8 * len(edges)  # others are within operations
    assert recorded.results.keys() & swept.adjoints.keys() <= record.adjoints.keys()
    assert {n for n in recorded.results if n in graph.nodes and n.dtype != "bool"} == record.values.keys()
    trace = numeric_trace(graph, swept, recorded.at, [recorded.v])  # computed anew, in float64
    for p, contribution in trace.calls[0].contributions.items():
        if (p.node, p.position) in record.contributions:
            np.testing.assert_allclose(record.contributions[p.node, p.position], contribution, atol=1e-6)
    for node, value in record.values.items():
        np.testing.assert_allclose(value, trace.values[node], atol=1e-6)
    for node, adjoint in record.adjoints.items():
        np.testing.assert_allclose(adjoint, trace.calls[0].adjoints[node], atol=1e-6)


def test_the_gradient_is_called_p_minus_t_only_where_nothing_else_reads_p(run):
    text = X + "p = torch.softmax(x, 0)\nt = torch.tensor([0.25, 0.75])\nloss = -(t * p.log()).sum()\n"
    assert "t sums to 1, so the gradient of x is `p - t`." in run(f"{text}loss.backward()\n").out
    assert "t sums to 1" not in run(f"{text}(loss + p[0] ** 2).backward()\n").out


def test_a_reward_of_a_sample_is_no_part_that_the_gradient_leaves_out(run):
    text = "import torch; torch.manual_seed(0)\nmu = torch.tensor(0.1, requires_grad=True)\n"
    text += "d = torch.distributions.Normal(mu, 1.)\na = d.sample()\nr = -(a.item() - 2) ** 2\n"
    out = run(text + "(-d.log_prob(a) * r).backward()\n").out
    assert "leaves out a part" not in out
    assert "a is a constant: drawn by .sample() in line 4" in out


def test_a_stack_of_one_matrix_is_reshaped_in_a_product(run):
    text = LAYER + "x = torch.randn(1, 3, 2)\ny = torch.tanh(x * 2)\nlin(y).pow(2).sum().backward()\n"
    assert ".T @ reshape(y, (3, 2))  " in run("import torch\n" + text).out


def test_the_mask_of_an_attention_is_not_called_as_the_input_of_its_module(run):
    text = "import torch; torch.manual_seed(0)\nmha = torch.nn.MultiheadAttention(2, 1)\nx = torch.randn(3, 2, 2)\n"
    text += "mask = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)\ny, w = mha(x, x, x, attn_mask=mask)\n"
    out = run(text + "y.sum().backward()\n").out
    assert "[[0, -inf, -inf]" in out
    assert "x_2" not in out
    loss = run(text + "loss = (mha(x, x, x)[0] ** 2).sum()\nloss.backward()\n").out
    assert "loss1" not in loss  # of the attention: the line assigns what is computed of it


def test_the_entropy_of_a_divergence_is_not_called_as_its_first_argument(run):
    text = X + "q = torch.tensor([0.25, 0.75])\nlogp = x.log_softmax(0)\nkl = torch.nn.KLDivLoss(reduction='sum')\n"
    out = run(text + "kl(logp, q).backward()\n").out
    assert "logp_2" not in out
    assert " - q*logp)" in out


def test_an_index_is_no_number_that_leaves_out_a_part_of_the_loss(run):
    out = run(X + "k = x.argmax()\nloss = x[k] + x[0].item() * x.sum()\nloss.backward()\n").out
    assert "cuts it off: .item() returns a plain number;" in " ".join(out.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = torch.ones(3, requires_grad=True)\ne = 2 * a\ne", "a.grad = vᵀJ, with J = ∂e/∂a, needs a weight v"),
        ("(2 * torch.ones(3, requires_grad=True))", "y has 3 elements: a gradient vᵀJ needs a weight v for each"),
    ],
)
def test_a_backward_without_v_is_told_with_the_leaf_of_the_script(run, text, told):
    assert told in " ".join(run(f"import torch\n{text}.backward()\n", status=1).err.split())


def test_a_gradient_of_minus_0_is_written_as_in_the_formula(run):
    text = "import torch\nx = torch.tensor([1., 0., -1.], requires_grad=True)\ny = torch.log(x)\n"
    out = run(text + "z = torch.where(x > 0, y, 0.)\nz.sum().backward()\n").out
    assert "= [1, nan, 0]\n" in out
    assert "x.grad: None → [1, nan, 0]\n" in out


DEAD = """import torch
w1 = torch.tensor([[1.], [-1.]], requires_grad=True); w2 = torch.tensor([[-1.]], requires_grad=True)
v = torch.tensor([[2.]], requires_grad=True)
def relu(h):
    return torch.relu(h)
y = relu(relu(torch.tensor([[3., 1.]]) @ w1) @ w2) @ v
y.sum().backward()
"""


def test_a_gradient_of_0_is_told_by_the_derivative_or_the_factor_on_its_way(run):
    out = " ".join(run(DEAD).out.split())
    none = "has the derivative 0 at all of its inputs: none of them is above 0"
    assert f"the gradients of w1 and w2 are 0: the 2nd relu that line 5 computes {none}" in out
    assert (
        "gradient of v is 0: the result of the 2nd relu that line 5 computes, a factor of the derivative, is 0" in out
    )
    text = X + "w = torch.ones(2, requires_grad=True)\n((x * w - 5).relu() + w).sum().backward()\n"
    assert f"the gradient of x is 0: relu (line 4) {none}" in " ".join(run(text).out.split())


def test_a_number_that_was_detached_is_told_where_its_name_is_anothers(run):
    text = "import torch\nx = torch.tensor(1.5, requires_grad=True)\nh = torch.sin(x)\nh = h.detach() * x\n"
    out = run(f"{text}h.backward()\n").out
    assert "h = 0.997495*x" in out
    assert "0.997495 is a constant: detached in line 4\n" in out
    assert "constant" not in run(X + "h = x * torch.tensor([3., 4.])\nh.sum().backward()\n").out
