"""What `gradcli run` tells: a page for each backward, and after an error why, and what fixes it."""

from __future__ import annotations

import importlib.util
import json

import pytest

DOUBLED = """\
import torch
x = torch.tensor([0.1, 1.0, 0.0001], requires_grad=True)
y = x * 2
while y.data.norm() < 1000:
    y = y * 2
y.backward(torch.tensor([1., 10., 100.]))  # don't # show this
print(x.grad)
"""
TRAINING = """\
import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, t = torch.ones(3, 2), torch.zeros(3, 1)
for i in range(4):
    opt.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), t)
    loss.backward()
    opt.step()
print(loss.item() > 0)
"""


def test_a_line_is_explained_once_unless_all_is_asked_for(run):
    once = run(TRAINING)
    assert once.out.count("── line 9: loss.backward() ") == 1
    more = "line 9, 3 more times; --all shows them\nline 10, 3 more times; --all shows them\n"
    assert once.err == more
    assert "net.weight.grad: None → [[" in once.out
    assert run(TRAINING, "--all").out.count("── line 9: loss.backward() ") == 4
    assert "──" not in run(TRAINING, "--line", "3").out


SUMS = "import torch\nx = torch.tensor([1., 2., 3.], requires_grad=True)\nw = torch.tensor(2., requires_grad=True)\n"


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        ("x.grad = None; (x*x).sum().backward()", ""),
        ("(4*x*x/3).sum().backward()", ": x.grad accumulates to [8, 16, 24]"),
        ("(w*x).sum().backward()", ": w.grad and x.grad accumulate"),
        ("(w*x).sum().backward(); x.grad = None", ": w.grad accumulates to 18"),
        ("(x*x).sum().backward(); x.grad.zero_()", ""),
        ("(x*x).sum().backward(); x.grad *= 0.5", ""),
        ("torch.autograd.grad((x*x).sum(), x)", ""),
        (
            "(w*w).backward(); w.requires_grad_(False).sub_(w.grad); w.requires_grad_()",
            ": w.grad accumulates to -4 over the updates: call\n  `optimizer.zero_grad()` once per step",
        ),
    ],
)
def test_a_line_that_is_reached_again_tells_what_adds_up(loop, said, run):
    err = run(f"{SUMS}for k in range(3):\n    {loop}\n", columns=100).err
    assert err == f"line 5, 2 more times; --all shows them{said}\n"


def test_json_has_an_object_for_each_call_and_the_rest_goes_to_standard_error(run):
    text = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\ny = x**2\nprint('here')\n"
    text += "y.backward(torch.tensor([1., 10.]), retain_graph=True)\ny.sum().backward()\n"
    outcome = run(text, "-f", "json", columns=100)
    first, second = (json.loads(line) for line in outcome.out.splitlines())
    assert outcome.err == "here\n"
    assert first == {
        "line": 5,
        "code": "y.backward(torch.tensor([1., 10.]), retain_graph=True)",
        "outputs": {"y": [1.0, 4.0]},
        "v": {"y": [1.0, 10.0]},
        "leaves": {"x": {"before": None, "own": [2.0, 40.0], "after": [2.0, 40.0]}},
        "retained": {},
        "freed": False,
        "formulas": {"y": ["x**2"], "x.grad": ["2*v*x", "[1·2, 10·4]"]},
        "notes": [],
    }
    assert second["leaves"]["x"] == {"before": [2.0, 40.0], "own": [2.0, 4.0], "after": [4.0, 44.0]}


def test_a_document_holds_the_script_its_output_and_the_pages(run):
    out = run(DOUBLED, "-f", "markdown", columns=100).out
    assert out.startswith("```python\nimport torch\n")
    assert "\n## `line 6: y.backward" in out
    assert "\n### In the script\n" in out
    assert "```text\ntensor([  1024." in out
    assert r"\begin{verbatim}" in run(DOUBLED, "-f", "latex", columns=100).out


@pytest.mark.parametrize(
    ("ending", "style"), [("md", "markdown"), ("tex", "latex"), ("json", "json"), ("txt", "table"), ("log", "table")]
)
def test_the_ending_of_the_output_chooses_the_format(cli, run, tmp_path, ending, style):
    found = []
    for name, options in ((f"a.{ending}", []), ("b.txt", ["-f", style])):
        run(DOUBLED, *options, "--output", str(tmp_path / name))
        found.append((tmp_path / name).read_text("utf-8"))
    assert found[0] == found[1]
    if ending in ("md", "tex", "json"):
        refused = cli.refused("run", "-f", "table", "--output", f"a.{ending}", "-c", DOUBLED)
        assert f"-f table, but the file extension of `a.{ending}` says {style}" in refused


def test_a_latex_document_shows_the_signs_of_errors_as_signs(run):
    text = "import torch\nx = torch.ones(2, requires_grad=True)\nprint('← · é')\nz = (x**2).sqrt()\nz.backward()\n"
    out = run(text, "-f", "latex", status=1).out
    assert "x.grad = vᵀJ" in out
    assert r"\DeclareUnicodeCharacter{1D40}{\ensuremath{^{\top}}}" in out
    assert r"\DeclareUnicodeCharacter{2190}{\ensuremath{\gets}}" in out
    assert "U+" not in out


@pytest.mark.parametrize(
    ("code", "module", "package"),
    [
        ("import matplotlib_of_none.pyplot as plt", "matplotlib_of_none", "matplotlib_of_none"),
        ("from sklearn.datasets import load_iris", "sklearn", "scikit-learn"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(code, module, package, cli):
    if importlib.util.find_spec(module):
        pytest.skip(f"{module} is installed")
    outcome = cli("run", "-c", code)
    assert outcome.status == 1
    told = " ".join(outcome.err.split())
    assert f"needs `{module}`, and the Python that runs gradcli has no module of this name" in told
    assert f"fix: `python -m pip install {package}` where gradcli is installed" in told


CHECKPOINT = """\
import torch
from torch.utils.checkpoint import checkpoint
w = torch.ones(2, requires_grad=True)
checkpoint(lambda w: (w ** 2).sum(), w, use_reentrant=True).mul(3).backward()
"""


def test_a_function_of_pytorch_s_is_told_apart_and_the_call_within_it_has_no_page(run):
    out = " ".join(run(CHECKPOINT).out.split())
    assert "CheckpointFunction is PyTorch's" in out
    assert "the script's own" not in out
    (row,) = run(CHECKPOINT, "-f", "json").objects
    assert (row["outputs"], row["leaves"]["w"]["own"]) == ({"y": 6.0}, [6.0, 6.0])
    assert "no autograd.Function" in run(CHECKPOINT, "--check").err
