"""What a page of `gradcli run` calls values that no variable holds any more, or that lists and calls hold."""

from __future__ import annotations

import re

import pytest
from conftest import long

FUNCTION = """
class S(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x*x
    @staticmethod
    def backward(ctx, g):
        return 2*ctx.saved_tensors[0]*g
"""
HEAD = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
X = "x = torch.tensor([1., 2.], requires_grad=True)\n"
D = """
D = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
real, fake = torch.randn(4, 2), torch.randn(4, 2)
"""
VAE = """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.logvar = nn.Linear(3, 2), nn.Linear(3, 2)
    def sample(self, mu, logvar):
        std = torch.exp(0.5*logvar)
        eps = torch.randn_like(std)
        return mu + eps*std
    def forward(self, x):
        return self.sample(self.mu(x), self.logvar(x))
vae = VAE()
"""
FROZEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.head = nn.Linear(2, 3), nn.Linear(3, 1)
        for p in self.base.parameters():
            p.requires_grad = False
    def forward(self, x):
        features = torch.tanh(self.base(x))
        return self.head(features)
net = Net()
"""
BY_HAND = """
def loss_of(a):
    h = torch.exp(a*3 + 1) / torch.sum(torch.exp(a*3 + 1) + a.sin()*a.cos()*a.tanh())
    return (h*h).sum() + h.prod()
"""
OUTPUTS = """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.logvar, self.dec = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(2, 3)
    def forward(self, x):
        mu = self.mu(x)
        lv = self.logvar(x)
        return self.dec(mu + torch.randn_like(mu)*torch.exp(lv))
vae = VAE()
"""
LAYERS = "layers = [nn.Linear(2, 2) for _ in range(22)]\nh = torch.ones(1, 2)\nfor l in layers:\n    h = l(h)\n"
BLOCKS = """
blocks = [{"w": x, "b": x*2} for x in [torch.ones(2, requires_grad=True)]]
ws = [[torch.ones(2).requires_grad_()]]
"""


@pytest.fixture
def run(run):
    def shown(text, **beside):
        out = run(text, **beside).out
        assert "not explained" not in out
        return re.sub(" +", " ", out)

    return shown


@pytest.mark.parametrize(
    ("text", "shown", "not_shown"),
    [
        (FUNCTION + X + "y = (2*S.apply(x)).sum()\ny.backward()", ["s = S(x)", "y = sum(2*s)"], ["z = "]),
        (FUNCTION + X + "y = S.apply(x)\nz = y.sum()\nz.backward()", ["y = S(x)", "z = sum(y)"], ["s = "]),
        (VAE + "vae(torch.randn(4, 3)).sum().backward()", ["eps 4×2"], ["data"]),
        (FROZEN + "net(torch.randn(4, 2)).sum().backward()", ["features = [["], ["data"]),
        (
            D + "loss = D(real).mean() - D(fake).mean()\nloss.backward()",
            ["D(real).0 = linear(real, D.0.weight, bias=D.0.bias)", "D(fake).2 = linear(D(fake).1",
             "loss = mean(D(real).2) - mean(D(fake).2)"],
            ["D.0_2", "D.0 ="],
        ),
        (
            OUTPUTS + "vae(torch.randn(9, 3)).sum().backward()",
            ["mu = linear(x, vae.mu.", "lv = linear(x, vae.logvar", "vae.dec = linear(mu + randn_like*exp(lv), "],
            ["data", "vae.mu =", "vae.logvar ="],
        ),
        (
            D + "loss = D(fake).mean() - D(real).mean() + D(fake + real).mean()**2\nloss.backward()",
            ["loss = mean(D(fake).2) - mean(D(real).2) + mean(D.2)**2", "D(fake).0 = linear(", "D.0 = linear(fake + "],
            ["D.0_2", "D.0_3"],
        ),
        (D + "loss = D(real).mean()\nloss.backward()", ["D.0 = linear(real, D.0.weight"], ["D(real)"]),
        (LAYERS + "h.sum().backward()", ["layers[3].weight.grad", "layers[21].bias"], ["leaf", "l.weight"]),
        (BLOCKS + "(blocks[0]['b']*ws[0][0]).sum().backward()", ["ws[0][0].grad", "blocks[0].w"], ["leaf"]),
        (
            X + "ys = [x*2]\nlosses = []\nloss = (ys[0]**2).sum()\nlosses.append(loss)\nloss.backward()",
            ["loss = sum(ys[0]**2)"], ["losses"],
        ),
        (
            X + "d = torch.distributions.Categorical(logits=x)\n(d.logits*x).sum().backward()",
            ["d.logits = x - logsumexp(x"], ["_param"],
        ),
        (BY_HAND + X + "loss_of(x).backward()", ["h = "], ["h1"]),
        (
            X + "a = x*3\nb = x.sin()\n(b*a + a).sum().backward()",  # the result reads b first
            ["a = x*3 = [3, 6] at x = [1, 2]\nb = sin(x)"], [],
        ),
    ],
    ids=[
        "part", "function", "eps", "frozen", "passes", "outputs", "three passes", "pass", "layers", "lists",
        "loss", "public", "local", "order",
    ],
)  # fmt: skip
def test_a_value_is_called_as_where_it_was_made(run, text, shown, not_shown):
    out = run(HEAD + text + "\n")
    assert [part for part in shown if part not in out] == [], out
    assert [part for part in not_shown if part in out] == [], out


def test_the_adjoint_of_a_dotted_or_long_name_is_a_derivative(run):
    out = run(HEAD + D + "loss = D(real).mean() - D(fake).mean()\nloss.backward()\n")
    assert "D.0.weight.grad = (∂loss/∂D(real).0).T @ real + (∂loss/∂D(fake).0).T @ fake" in out
    assert "\u0304" not in out


def test_parameters_of_a_module_without_a_name_do_not_have_the_name_of_its_input(run):
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 1)\n"
    )
    text += "    def forward(self, x):\n        return self.a(x)\n"
    out = run(f"{HEAD}{text}x = torch.ones(1, 2)\nNet()(x).sum().backward()\n")
    assert "sum(linear(x, parameter, bias=parameter_2))" in out
    assert "two tensors are called x" not in out


def test_a_gradient_of_0_that_arrives_is_not_called_none(run):
    text = "x = torch.tensor([-1., -2.], requires_grad=True)\nw = torch.ones(2, requires_grad=True)\n"
    text += (
        "g, = torch.autograd.grad((torch.relu(x)*w).sum(), x, create_graph=True)\ng.sum().backward()\nprint(x.grad)\n"
    )
    out = run(HEAD + text)
    assert "tensor([0., 0.])" in out
    assert "x.grad is None in PyTorch" not in out


@long
def test_a_gradient_has_the_same_digits_wherever_a_page_shows_it(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    text = "for k in range(40):\n    w = torch.randn(2, requires_grad=True)\n"
    text += "    (torch.tanh(w*1.7)**3/7).sum().backward()\n"
    (tmp_path / "script.py").write_text(HEAD + text, "utf-8")
    out = cli.done("run", "--all", str(tmp_path / "script.py")).out
    shown = re.findall(r"^w\.grad .*= (\[[^\]]*\])$", out, re.MULTILINE)
    held = re.findall(r"^w\.grad: None → (\[[^\]]*\])(?:, as far as float32 has digits)?$", out, re.MULTILINE)
    assert len(shown) == 40
    assert shown == held
