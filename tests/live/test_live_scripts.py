"""Scripts as HTML: each line, what it printed, each call explained below it with a live page, errors with their fix."""

from __future__ import annotations

import html
import json
import re

import pytest
from conftest import long
from numpy.testing import assert_allclose
from pages import errors, numbers, until

pytestmark = long

STEPS = """\
import torch
x = torch.tensor(3., requires_grad=True)
y = (x**2 +
     x)
print(
    "y is", y.item())
y.backward()
print(x.grad)
"""
TRAINING = """\
import torch
from torch import nn
torch.manual_seed(0)
X = torch.tensor([[0., 0.], [0., 1.], [1., 0.], [1., 1.]])
y = torch.tensor([[0.], [1.], [1.], [0.]])
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid())
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(40):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(X), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


@pytest.fixture
def page(cli, tmp_path):
    def run(source, *options, status=0):
        (tmp_path / "script.py").write_text(source, "utf-8")
        target = tmp_path / "page.html"
        outcome = cli("run", *options, "--output", str(target), str(tmp_path / "script.py"))
        assert outcome.status == status, outcome.err
        return target

    return run


def texts(page):
    """Return what the document shows, a text for each block, without colours and gradients beside lines."""
    body = re.sub(r"<details[^>]*>.*?</details>", "<pre>EXPLAINED</pre>", page.read_text("utf-8"), flags=re.DOTALL)
    blocks = re.findall(r"<pre[^>]*>(.*?)</pre>", re.sub(r'<span class="beside">.*?</span>', "", body), re.DOTALL)
    return [html.unescape(re.sub(r"<.*?>", "", re.sub(r"</code>", "\n", b))).rstrip("\n") for b in blocks]


def test_what_a_line_prints_and_its_explanation_stand_below_its_statement(page):
    lines = STEPS.splitlines()
    assert texts(page(STEPS)) == [
        "\n".join(lines[:6]), "y is 12.0", lines[6], "EXPLAINED", lines[7], "tensor(7.)",
    ]  # fmt: skip


def test_the_gradient_stands_beside_the_lines_that_it_passed(page):
    whole = page(STEPS).read_text("utf-8")
    beside = re.findall(r'<code class=passed>.*?<span class="beside">(.*?)</span></code>', whole)
    assert beside == ["x.grad = 7", "∂y/∂y = 1"]
    assert whole.count("class=passed") == 2
    assert '<span class="result">y = 12 · x.grad = 7</span>' in whole
    assert '<span class="kn">import</span>' in whole


@pytest.mark.parametrize(
    ("call", "beside"),
    [
        ("y.backward(torch.tensor(10.))", ["x.grad = 70", "∂L/∂y = 10"]),
        ("torch.autograd.grad(y, x)", ["gradient of x = 7", "∂y/∂y = 1"]),
    ],
)
def test_what_stands_beside_a_line_is_so_with_any_v_and_for_what_is_returned(page, call, beside):
    whole = page(STEPS.replace("y.backward()", call)).read_text("utf-8")
    assert re.findall(r'<span class="beside">(.*?)</span>', whole) == beside


def test_an_error_stands_below_its_line_with_its_fix(page):
    source = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n(2*x).backward()\nprint('never')\n"
    first, told, rest = texts(page(source, status=1))
    assert first.endswith("(2*x).backward()")
    assert "grad can be implicitly created only for scalar outputs" in told
    assert "fix" in told
    assert rest == "print('never')"


def test_names_of_a_script_are_text(page):
    source = "import torch\nx = torch.tensor(2., requires_grad=True)\nprint('</pre><script>alert(1)</script>')\n"
    source += "(x**2).backward()  # </code><img src=x onerror=alert(1)>\n"
    whole = page(source).read_text("utf-8")
    assert whole.count("<script>") == 1
    assert "<img" not in whole


@pytest.fixture(scope="module")
def training(cli, tmp_path_factory):
    """The page of a training script with all its calls, and its JSON."""
    folder = tmp_path_factory.mktemp("training")
    (folder / "script.py").write_text(TRAINING, "utf-8")
    cli.done("run", "--all", "--output", str(folder / "page.html"), str(folder / "script.py"))
    return folder / "page.html", cli.done("run", "-f", "json", str(folder / "script.py")).objects


def test_forty_pages_of_a_training_script_are_about_2_mb(training):
    target, _ = training
    whole = target.read_text("utf-8")
    assert whole.count('<section class="live"') == 40
    assert target.stat().st_size < 2_200_000
    assert whole.count("const KERNELS") == 1


def test_live_pages_of_a_script_have_its_gradients(training, driver):
    target, rows = training
    for k in (0, 39):
        driver.get(target.as_uri())
        only = "const all = [...document.querySelectorAll('details')]; all[arguments[0]].open = true;"
        driver.execute_script(only + "all.forEach((e, k) => k === arguments[0] || e.remove())", k)
        shown = until(driver, numbers)
        leaves = rows[k]["leaves"]["model.0.weight"]["own"]
        assert_allclose([shown[f"grad-of model.0.weight[{i},1]"] for i in range(8)], [r[1] for r in leaves], 1e-4)
    assert errors(driver) == []


def test_functions_of_its_own_and_hooks_have_no_live_page(page):
    source = STEPS.replace("y.backward()", "x.register_hook(lambda g: 2*g)\ny.backward()")
    whole = page(source).read_text("utf-8")
    assert 'class="live"' not in whole
    assert "There is no live page" in whole
    assert json.dumps("There is no live page")[1:-1] in whole
