"""Indices, positions and numbers that vary from call to call are operands: no recipe is made for each of them."""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np
import pytest

from gradcli.process.script import Script
from gradcli.pytorch import recipes
from gradcli.pytorch.session import run

# Views whose base is changed in place get a new step, of the recipe that made them: recipes that are gone meanwhile,
# more than are kept, are not taken for others.
REFRESHED = """\
import torch
N = 400
x = torch.arange(float(N)).requires_grad_()
t = torch.zeros(5000)
views = []
for k in range(150):
    y = x * 1
    views.append((y, y[k:k + 3]))
for i in range(4200):
    t[i]
for y, v in views:
    y += 1
    v.grad_fn
del views, y, v
bad = 0
for k in range(150, 390):
    y = x * 1
    v = y[k:k + 3]
    y += 1
    g, = torch.autograd.grad(v.sum(), x)
    right = torch.zeros(N)
    right[k:k + 3] = 1
    bad += not torch.equal(g, right)
print(bad)
"""


def test_views_of_what_was_changed_in_place_have_their_own_gradients(cli):
    assert cli.done("run", "--quiet", "-c", REFRESHED).out == "0\n"


# Each line has operations of a number `a`, an integer `i` and an index array `p`, which vary from call to call.
VARYING = """\
(x[i] * x[-i] * x[..., i]).backward()
x[i:i + 2].sum().backward()
x[p].sum().backward()
m[:, p[:2] % 3].sum().backward()
m[i % 3, p[:2] % 3].sum().backward()
x[x >= x.sort()[0][3]].sum().backward()
x.index_select(0, p).sum().backward()
m.gather(0, p[:3].reshape(1, 3) % 3).sum().backward()
(x.take(p), x.masked_select(x == x[i]), x.sort()[0], x.topk(2)[0], x.argsort(), x.select(0, i), x.narrow(0, i, 2))
(x.index_add(0, p[:2], x[:2], alpha=a), x.index_fill(0, p, a), x.scatter(0, p, x), x.scatter_add(0, p, x))
y = x * 1; y[i] = x[i]**2; y[p] = a; y[p[:2]] += 1; y[i:i + 2].mul_(a); y.sum().backward()
torch.nn.functional.embedding(p % 3, m, padding_idx=1).sum().backward()
torch.nn.functional.nll_loss(m, p[:3] % 3, weight=torch.tensor([a, 1, 2])).backward()
(x.clamp(max=a), x.clamp(a, a + 1), x.clamp_min(a), f.hardtanh(x, -a, a))
((x.abs() + 1)**(a + 4)).sum().backward()
(torch.add(x, x, alpha=a), torch.sub(x, x, alpha=a), x.norm(a + 4), torch.lerp(x, x, a), x * a, x / a, a - x)
(torch.addcmul(x, x, x, value=a), torch.addcdiv(x, x, x + 9, value=a), torch.xlogy(x, a), torch.logit(x, eps=a / 9))
(x * 1).add_(x, alpha=a).sum().backward()
(f.leaky_relu(x, a), f.elu(x, a), f.celu(x, a), f.softshrink(x, a), f.hardshrink(x, a), f.threshold(x, a, a))
(f.softplus(x, a, a), f.huber_loss(x, x + 1, delta=a), f.smooth_l1_loss(x, x + 1, beta=a), f.pad(x, (1, 1), value=a))
(f.layer_norm(x, (6,), eps=a), f.batch_norm(m, None, None, training=True, eps=a), f.dropout(x, a / 2))
torch.autograd.grad((x[p] * x[i:i + 1]**(a + 4)).sum(), x, create_graph=True)[0].sum().backward()
torch.func.jvp(lambda z: z[p] * z[i] + z.clamp(max=a), (x.detach(),), (x.detach(),))
"""
SETUP = """\
import torch, torch.nn.functional as f
torch.manual_seed({seed})
a, i, p = {seed} / 10, {seed}, torch.randperm(6)
x = torch.randn(6, requires_grad=True)
m = torch.randn(3, 3, requires_grad=True)
"""


def kept_after(line, seed):
    """Return the keys of the recipes that are kept after a script has run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ending = run(Script(SETUP.format(seed=seed) + line, "script.py", None))
    assert ending.error is None, ending.error
    return {*recipes._RECIPES}


def parts(key):
    """Yield what a key consists of."""
    for part in key:
        yield from parts(part) if isinstance(part, tuple) else [part]


@pytest.mark.parametrize("line", VARYING.splitlines())
def test_a_recipe_is_kept_for_a_kind_of_call_and_not_for_its_numbers(line):
    before = kept_after(line, 1)
    assert kept_after(line, 3) == before
    for part in parts(before):
        is_static = part is None or isinstance(part, str | bool | int | np.dtype)
        assert is_static or (isinstance(part, range) and part.start == 0), part


def test_slices_of_nothing_are_told_apart_from_those_that_count_down():
    """Ranges without elements are equal, wherever they end: none is taken for another."""
    lines = "import torch; x = torch.ones(4, requires_grad=True)\nfor a, b in ((4, 1), (1, 0), (0, 0), (3, 1)):\n"
    lines += "    print(x[a:b].sum().backward(), x.grad.tolist(), (x * 1)[a:b].mul_(2).shape)"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(Script(lines, "script.py", None)).error is None
    assert out.getvalue() == "None [0.0, 0.0, 0.0, 0.0] torch.Size([0])\n" * 4


SELECTED = """\
import torch
x, u = torch.randn(4, 3), torch.randn(4, 3)
i = torch.tensor([2, 0, 2])
for f in (lambda z: z[2], lambda z: z[1:3], lambda z: z[1:, 2], lambda z: z[i], lambda z: z[1:][:, i],
          lambda z: z[i, i], lambda z: z.index_select(0, i), lambda z: z.index_add(0, i, z[:3]),
          lambda z: z.gather(1, i.reshape(1, 3))):
    assert torch.equal(torch.func.jvp(f, (x,), (u,))[1], f(u))
    v = torch.randn_like(f(x))
    assert torch.allclose((f(u) * v).sum(), (torch.func.vjp(f, x)[1](v)[0] * u).sum(), atol=1e-5)
"""


def test_the_tangent_of_selected_elements_is_theirs_and_the_pullback_its_transpose():
    assert run(Script(SELECTED, "script.py", None)).error is None
