"""Indices, positions and numbers that vary from call to call are operands: no recipe is made for each of them."""

from __future__ import annotations

import contextlib
import io

from gradcli.process.script import Script
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


def test_a_list_grows_by_a_size():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run(Script("import torch\nsizes = [1]\nsizes += torch.ones(2, 3).shape\nprint(sizes)\n", "-c", None))
    assert out.getvalue() == "[1, 2, 3]\n"
