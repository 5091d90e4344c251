"""Which intermediates keep a gradient under `retain_grad`: those between an output and a leaf, as in PyTorch."""

from __future__ import annotations

import pytest

NOTE = "`u.retain_grad()` would keep it"
KEPT = "unless u.retain_grad() comes before backward"
STAYS = "u.grad stays None, even after u.retain_grad(), and no hook on u is called"
NEEDLESS = "u does not require a gradient in PyTorch: u.grad is None, and u.retain_grad() is an error"

# What PyTorch 2.13 does with `u.retain_grad()` and a hook on u: it keeps a gradient, or None, or raises an error.
CASES = {
    ("u=x*x", "z=u*x"): KEPT,
    ("u=x*x", "z=detach(u)*x"): STAYS,
    ("u=x*x", "w=detach(u)", "z=w*x"): STAYS,
    ("u=x*x", "z=detach(u)*x + 0*u"): KEPT,
    ("u=x*x", "z=where(u > 2, x, 2*x)"): STAYS,
    ("u=x*x", "z=floor(u)*x"): KEPT,
    ("u=2*detach(x)", "z=u*x"): NEEDLESS,
}


@pytest.mark.parametrize("system", CASES)
def test_what_a_page_says_of_retain_grad_is_what_pytorch_does(system, cli):
    page = " ".join(cli.done("backward", *system, "--at", "x=3", "--retain", "u").out.split())
    assert {text for text in (KEPT, STAYS, NEEDLESS) if text in page} == {CASES[system]}
    assert ("u.retain_grad() z.backward()" in page) == (CASES[system] is KEPT)
    assert (NOTE in " ".join(cli.done("backward", *system, "--at", "x=3").err.split())) == (CASES[system] is KEPT)


def test_a_leaf_that_is_left_out_requires_no_gradient(cli):
    page = cli.done("backward", "u=x*x", "z=u*y", "--at", "x=3,y=2", "--wrt", "y", "--retain", "u").out
    assert NEEDLESS in " ".join(page.split())
