"""Scripts that end with an error of autograd, of the kinds that people ask about; each is fixed by changing lines."""

from __future__ import annotations

from pathlib import Path

from detached import WORDS

ERRORS = Path(__file__).parent / "broken.json"  # what PyTorch says to each, recorded by record_fixes.py

X = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n"

BROKEN = {
    "values and indices at once": "import torch\ny = torch.ones(2, 3).max(dim=1)\nprint(y.sum())\n",
    "the gradient of a gradient of several numbers": """\
import torch
from torch.func import grad
def g(x): return (x ** 2).sum()
def f(x): return x ** 2
x = torch.tensor([1., 2.])
print(grad(g)(x))
print(grad(func=grad(func=f))(x))
""",
    "NumPy is given what is computed in the line": X + "y = (x * 2).numpy()\n",
    "whole numbers that are computed in the line": "import torch\ny = (torch.arange(3) * 2).requires_grad_()\n",
    "weights whose rows are the outputs": """\
import torch
w = torch.randn(3, 2, requires_grad=True)
x = torch.randn(4, 2)
y = x @ w
y.sum().backward()
""",
    "matrices in the wrong place": "import torch\na, b = torch.ones(2, 3), torch.ones(2, 4)\nc = torch.mm(a, b)\n",
    "a layer with too few inputs": """\
import torch
from torch import nn
model = nn.Sequential(nn.Linear(100, 16), nn.ReLU(), nn.Linear(16, 10))
print(model(torch.ones(2, 1, 28, 28).flatten(1)).shape)
""",
    "targets that are real numbers": """\
import torch
from torch import nn
model = nn.Linear(3, 2)
x, y = torch.ones(4, 3), torch.tensor([0., 1., 1., 0.])
loss = nn.CrossEntropyLoss()(model(x), y)
loss.backward()
""",
    "two losses share a layer": """\
import torch
net = torch.nn.Linear(2, 2)
h = net(torch.ones(1, 2)).tanh()
loss1 = h.sum()
loss2 = (h ** 2).sum()
loss1.backward()
loss2.backward()
""",
    "backward in a loop, the loss before it": """\
import torch
w = torch.tensor(2., requires_grad=True)
loss = (w - 1) ** 2
for i in range(3):
    loss.backward()
print(w.grad)
""",
    "a recurrent network carries its state": """\
import torch
cell = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
for t in range(4):
    x = torch.ones(1, 1)
    h = torch.tanh(cell(torch.cat([x, h], dim=1)))
    loss = h.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "the same with retain_graph": """\
import torch
cell = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
for t in range(4):
    h = torch.tanh(cell(torch.cat([torch.ones(1, 1), h], dim=1)))
    loss = h.pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
""",
    "the losses are added up": """\
import torch
w = torch.tensor(2., requires_grad=True)
total = 0
for i in range(3):
    loss = (w * i - 1) ** 2
    total = total + loss
    total.backward()
print(w.grad)
""",
    "a state in a class": """\
import torch
class Filter:
    def __init__(self):
        self.w = torch.tensor(0.5, requires_grad=True)
        self.state = torch.tensor(0.)
    def step(self, x):
        self.state = self.w * self.state + x
        return (self.state - 1) ** 2
f = Filter()
for x in [1., 2., 3.]:
    f.step(x).backward()
""",
    "grad twice": X + "y = (x ** 3).sum()\ng = torch.autograd.grad(y, x)\nh = torch.autograd.grad(y, x)\n",
    "y += 1 behind exp": X + "y = x.exp()\ny += 1\ny.sum().backward()\n",
    "y *= a sum": X + "y = x.sigmoid()\ny *= x + 1\ny.sum().backward()\n",
    "an element is set": X + "y = x.exp()\ny[0] = 0\ny.sum().backward()\n",
    "an element is changed": X + "y = x.tanh()\ny[0] += 1.\n(y ** 2).sum().backward()\n",
    "zero_ of a result": X + "y = x.exp()\nz = y * y\ny.zero_()\nz.sum().backward()\n",
    "add_ in a function": """\
import torch
def shift(h):
    h.add_(1)
    return h
x = torch.tensor([1., 2.], requires_grad=True)
y = shift(x.exp())
y.sum().backward()
""",
    "an activation in place": """\
import torch
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        h = torch.sigmoid(self.a(x))
        return self.relu(h) + h
net = Net()
net(torch.ones(1, 2)).sum().backward()
""",
    "no requires_grad": "import torch\nx = torch.tensor([1., 2.])\ny = (x ** 2).sum()\ny.backward()\nprint(x.grad)\n",
    "whole numbers": "import torch\nx = torch.tensor([1, 2])\ny = (x ** 2).sum()\ny.backward()\nprint(x.grad)\n",
    "no requires_grad in a function": """\
import torch
def loss(w, t):
    return ((w - t) ** 2).sum()
def main():
    w = torch.zeros(3)
    t = torch.ones(3)
    value = loss(w, t)
    value.backward()
    print(w.grad)
main()
""",
    "an old tensor": "import torch\nx = torch.FloatTensor([1, 2])\ny = (x * 3).sum()\ny.backward()\n",
    "detach on the way": X + "h = (x * 2).detach()\ny = h.sum()\ny.backward()\n",
    "data on the way": X + "h = x * 2\ny = (h.data ** 2).sum()\ny.backward()\n",
    "torch.tensor of a tensor": X + "loss = torch.tensor((x ** 2).sum())\nloss.backward()\n",
    "torch.tensor of tensors": X + "loss = torch.tensor([x[0] * 2, x[1] * 3]).sum()\nloss.backward()\n",
    "a comprehension of tensors": X + "ys = torch.tensor([v ** 2 for v in x])\nys.sum().backward()\n",
    "item on the way": X + "loss = torch.tensor((x ** 2).sum().item())\nloss.backward()\n",
    "backward of a number": X + "loss = (x ** 2).sum().item()\nloss.backward()\n",
    "no_grad around it": X + "with torch.no_grad():\n    y = x * 2\n    z = y.sum()\nz.backward()\n",
    "no_grad as a decorator": X + "@torch.no_grad()\ndef f(v):\n    return (v ** 2).sum()\nf(x).backward()\n",
    "set_grad_enabled": X + "torch.set_grad_enabled(False)\ny = (x ** 2).sum()\ny.backward()\n",
    "a vector": X + "y = x * 2\ny.backward()\n",
    "a vector in brackets": X + "(x ** 2 + 1).backward()\n",
    "a loss that is not reduced": """\
import torch
import torch.nn.functional as F
w = torch.zeros(3, requires_grad=True)
loss = F.mse_loss(w, torch.ones(3), reduction="none")
loss.backward()
""",
    "grad of a vector": X + "y = x * 2\ng, = torch.autograd.grad(y, x)\n",
    "v of another length": X + "y = x * 2\nv = torch.ones(3)\ny.backward(v)\n",
    "v as a row": X + "y = x * 2\ny.backward(torch.ones(1, 2))\n",
    "v for a scalar": X + "y = x.sum()\ny.backward(torch.ones(2))\n",
    "an input that is not used": X
    + "w = torch.ones(2, requires_grad=True)\ny = x.sum()\ntorch.autograd.grad(y, [x, w])\n",
    "grad by a constant": "import torch\nx = torch.ones(2)\nw = torch.ones(2, requires_grad=True)\ny = (w * x).sum()\n"
    "g = torch.autograd.grad(y, x)\n",
    "a leaf is changed": X + "(x ** 2).sum().backward()\nx -= 0.1 * x.grad\n",
    "an element of a leaf is set": X + "x[0] = 3.\n",
    "numpy": X + "y = x * 2\nprint(y.numpy())\n",
    "zero_ of no gradient": X + "for i in range(2):\n    x.grad.zero_()\n    (x ** 2).sum().backward()\n",
    "a parameter that is replaced": """\
import torch
w = torch.tensor(1., requires_grad=True)
for i in range(3):
    loss = (w - 2) ** 2
    loss.backward()
    w = w - 0.1 * w.grad
print(w)
""",
    "the gradient of an intermediate": X + "h = x * 2\nh.sum().backward()\nprint(h.grad * 1)\n",
    "a leaf that is reshaped": """\
import torch
x = torch.ones(4, requires_grad=True).reshape(2, 2)
(x ** 2).sum().backward()
print(x.grad + 1)
""",
    "a parameter that is scaled": """\
import torch
w = torch.randn(3, requires_grad=True) * 0.1
opt = torch.optim.SGD([w], lr=0.1)
""",
    "retain_grad of a constant": "import torch\nx = torch.ones(2)\ny = x * 2\ny.retain_grad()\n",
    "a hook on a constant": "import torch\nx = torch.ones(2)\ny = x * 2\ny.register_hook(print)\n",
    "requires_grad of integers": "import torch\nx = torch.tensor([1, 2], requires_grad=True)\nprint(x)\n",
    "requires_grad_ of integers": "import torch\nx = torch.arange(3)\nx.requires_grad_()\nprint(x)\n",
    "a copy of a result": "import copy\n" + X + "y = x * 2\nz = copy.deepcopy(y)\n",
    "too few gradients": """\
import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k
    @staticmethod
    def backward(ctx, g):
        return g * ctx.k
x = torch.ones(2, requires_grad=True)
Scale.apply(x, 3).sum().backward()
""",
    "a frozen network": """\
import torch
net = torch.nn.Linear(2, 1)
for p in net.parameters():
    p.requires_grad = False
net(torch.ones(1, 2)).sum().backward()
""",
    "two names at once": "import torch\nx, z = torch.tensor(3., requires_grad=True), torch.tensor(4.)\n"
    "torch.autograd.grad(x*z, z)\n",
    "a tensor of inference_mode": X
    + "with torch.inference_mode():\n    a = torch.tensor(2.) * 1\n(x * a).sum().backward()\n",
    "a second derivative of once_differentiable": """\
import torch
from torch.autograd.function import once_differentiable
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    @once_differentiable
    def backward(ctx, v):
        return 2 * ctx.saved_tensors[0] * v
x = torch.tensor(3., requires_grad=True)
v = torch.tensor(1., requires_grad=True)
(g,) = torch.autograd.grad(Square.apply(x), x, v, create_graph=True)
g.backward()
""",
    "rows of a matrix": "import torch\nx = torch.ones(2, 2, requires_grad=True) * 1\nfor row in x:\n    row += 1\n",
    "a view of no_grad": X + "y = x * 1\nwith torch.no_grad():\n    first = y[:1]\nfirst += x[1:]\n",
    "random numbers in a map": """\
import torch
def noisy(x):
    return x + torch.randn(2)
print(torch.func.vmap(noisy)(torch.zeros(3, 2)).shape)
""",
    "an output that is computed before the training": """\
import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(1, 2, requires_grad=True)
out = net(x)
for step in range(2):
    loss = (out ** 2).sum()
    loss.backward(retain_graph=True)
    opt.step()
""",
    "a view that is cut off": X + "first = (x * 1)[:1]\nfirst.detach_()\n",
    "a second derivative of a gradient without a graph": X
    + """\
y = (x ** 3).sum()
g, = torch.autograd.grad(y, x)
torch.autograd.grad(y, g, allow_unused=True)
""",
    "a backward hook before a ReLU in place": """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True), nn.Linear(2, 1))
net[0].register_full_backward_hook(lambda module, into, out: None)
net(torch.ones(1, 2)).sum().backward()
""",
    "grad of grad": """\
import torch
from torch.func import grad
def f(p):
    return (p["w"] ** 3).sum()
print(grad(grad(f))({"w": torch.ones(2)}))
""",
    "solve, as it was": """\
import torch
A, b = torch.eye(2) * 2, torch.ones(2, 1)
x, lu = torch.solve(b, A)
assert (A @ x == b).all()
""",
    "a ReLU in place of a leaf": """\
import torch
import torch.nn.functional as F
x = torch.ones(2, requires_grad=True)
x = F.relu(x, inplace=True)
x = F.dropout(x, p=0.1, inplace=True)
x.sum().backward()
""",
    "a Function that changes a leaf": """\
import torch
class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        return a.add_(b)
    @staticmethod
    def backward(ctx, v):
        return v, v
a, b = torch.ones(2, requires_grad=True), torch.ones(2)
c = Add.apply(a, b)
c.sum().backward()
assert (a.grad == 1).all()
""",
    "a mask that is cut off": """\
import torch
plane = torch.randn(3, requires_grad=True)
mask = torch.sigmoid(torch.ones(3, requires_grad=True))
out = (plane * (mask >= 0.5)).detach()
out.sum().backward()
assert plane.grad is not None
""",
    "the whole behind one of its parts": X + "y = x * 1\na, b = y.chunk(2)\ny.mul_(2)\nprint(b.sum())\n",
    "what a Function returns, changed without a gradient": X
    + """\
class Row(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x * 3).view(1, 2)
    @staticmethod
    def backward(ctx, g):
        return g.view(2) * 3
y = Row.apply(x)
with torch.no_grad():
    y.fill_(1)
y.sum().backward()
""",
    "out": X + "z = torch.zeros(2)\ntorch.add(x, 1, out=z)\nz.sum().backward()\n",
    "a computed tensor without a gradient": X + "y = 2 * x\ny.requires_grad = False\n",
    "a number as a gradient": X + "x.grad = 1.\n",
    "what an own function saved": """\
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, v):
        x, = ctx.saved_tensors
        return 2 * x * v
x = torch.tensor([1., 2.], requires_grad=True)
h = x * 1
y = Square.apply(h)
h += 1
y.sum().backward()
""",
    "what an own function returned": """\
import torch
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, v):
        y, = ctx.saved_tensors
        return y * v
x = torch.tensor([1., 2.], requires_grad=True)
y = Exp.apply(x)
y.mul_(2)
y.sum().backward()
""",
    "a nan that is looked for": """\
import torch
x = torch.zeros(1, requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    y = x.sqrt() * 0
    y.sum().backward()
""",
    "a gradient of another shape": X + "x.grad = torch.ones(3)\n",
    "a sum without room": X + "b = torch.zeros(1)\nb += x\nb.sum().backward()\n",
    "a view of a transpose": "import torch\nx = torch.ones(2, 3, requires_grad=True)\nx.t().view(6).sum().backward()\n",
    "probabilities that are whole numbers": """\
import torch
scores = torch.ones(2, 3, requires_grad=True)
t = torch.tensor([[0, 1, 0], [1, 0, 0]])
torch.nn.functional.cross_entropy(scores, t).backward()
""",
    "an image of more channels": "import torch\nnet = torch.nn.Conv2d(1, 4, 3)\nnet(torch.ones(2, 3, 8, 8))\n",
    "a module that has not begun": """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        self.layer = torch.nn.Linear(2, 3)
Net()
""",
    "a check in float32": """\
import torch
x = torch.tensor([0.3912, -0.6001, -0.3486], requires_grad=True)
torch.autograd.gradcheck(lambda x: (x**2).sum(), (x,))
""",
    "an array times a tensor": """\
import torch
import numpy as np
w, x = torch.ones(2, requires_grad=True), np.ones(2)
loss = (x * w).sum()
loss.backward()
""",
    "a tensor for a function of math": """\
import torch
import math
w = torch.ones(2, requires_grad=True)
loss = math.sin(w).sum()
loss.backward()
""",
    "a factor that is an array": """\
import torch
import numpy as np
w, x = torch.ones(2, requires_grad=True), np.ones(2)
loss = (w * x).sum()
loss.backward()
""",
    "a layer that is given float64": """\
import torch
import numpy as np
net = torch.nn.Linear(2, 1)
x, y = torch.from_numpy(np.ones((4, 2))), torch.from_numpy(np.ones((4, 1)))
torch.nn.MSELoss()(net(x), y).backward()
""",
}

# Their fix is no change of a line: what to do instead is said in words.
IN_WORDS = WORDS | {
    "rows that are no samples": """\
import torch
images, classes = torch.randn(4, 6), torch.tensor([1, 0, 1, 0])
scores = torch.nn.Linear(3, 2)(images.view(-1, 3))
torch.nn.functional.cross_entropy(scores, classes)
""",
    "classes before log-probabilities": """\
import torch
x, y = torch.randn(3, 5), torch.tensor([1, 0, 4])
torch.nn.functional.nll_loss(y, torch.log_softmax(x, 1))
""",
    "the step before the second backward": """\
import torch
w = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
loss1 = (w ** 2).sum()
loss2 = (w ** 3).sum()
loss1.backward()
opt.step()
loss2.backward()
""",
    "an update before the second backward": """\
import torch
w = torch.ones(2, requires_grad=True)
loss1 = (w ** 2).sum()
loss2 = (w ** 3).sum()
loss1.backward()
with torch.no_grad():
    w -= 0.1 * w.grad
loss2.backward()
""",
    "what a Function keeps of its own on the way": """\
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.twice = 2 * x
        return x ** 2
    @staticmethod
    def backward(ctx, v):
        return v * ctx.twice
x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
torch.manual_seed(0)
torch.autograd.gradgradcheck(Square.apply, x)
""",
    "a second derivative of what is linear": X
    + """\
g, = torch.autograd.grad((3 * x).sum(), x, create_graph=True)
torch.autograd.grad(g.sum(), x)
""",
    "a part that was taken, and changed, in no_grad": X
    + """\
with torch.no_grad():
    first = x[0]
    first += 1
print(first * 2)
""",
    "rows of a weight that an optimizer changes": """\
import torch
w = torch.nn.Parameter(torch.ones(2, 2))
opt = torch.optim.SGD([w], lr=0.1)
rows = w.unbind()
w.sum().backward()
opt.step()
print(rows[0].detach())
print(rows[0] * 2)
""",
    "rows that are changed by another name of theirs": """\
import torch
w = torch.nn.Parameter(torch.ones(2, 2))
rows = w.unbind()
w.detach().add_(1)
print(rows[0] * 2)
""",
    "a gradient of a gradient of a part of what is linear": X
    + """\
y = 2 * x
g = torch.autograd.grad(y.sum(), y, create_graph=True)[0]
g.sum().backward()
""",
    "a wrong backward is checked": """\
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, v):
        return v * ctx.saved_tensors[0]
x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Square.apply, x)
""",
    "a backward that returns nan": X
    + """\
class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x - x
    @staticmethod
    def backward(ctx, v):
        return v * torch.tensor(float("nan"))
with torch.autograd.detect_anomaly():
    Root.apply(x).sum().backward()
""",
    "what has no derivative": X + "x.unique().sum().backward()\n",
    "a gradient inside of vmap": X
    + "torch.func.vmap(lambda row: torch.autograd.grad((row * x).sum(), x)[0])(torch.ones(3, 2))\n",
    "a gradient inside of torch.func": """\
import torch
def f(x):
    x.requires_grad_()
    return x.sin().sum()
torch.func.grad(f)(torch.ones(2))
""",
    "a Hessian of several numbers": "import torch\ntorch.autograd.functional.hessian(torch.sin, torch.ones(2))\n",
    "a shape of other numbers": "import torch\ntorch.ones(2, 3).view(4, 2)\n",
    "a class without a score": """\
import torch
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))
""",
    "one sample alone": "import torch\ntorch.nn.BatchNorm1d(4)(torch.ones(1, 4))\n",
    "a Function that is called": """\
import torch
class Square(torch.autograd.Function):
    def forward(ctx, x):
        return x**2
Square()(torch.ones(2))
""",
    "accuracy as a loss": """\
import torch
net = torch.nn.Linear(2, 3)
prediction = net(torch.ones(4, 2)).argmax(dim=1)
loss = (prediction == torch.zeros(4)).float().mean()
loss.backward()
""",
    "a backward of the output's shape": """\
import torch
class ThreeSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a.sum() * torch.ones(3)
    @staticmethod
    def backward(ctx, v):
        return v
a = torch.tensor([2., 4.], requires_grad=True)
ThreeSums.apply(a).sum().backward()
""",
    "no backward": """\
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return 2 * a
a = torch.tensor(3., requires_grad=True)
Double.apply(a).backward()
""",
    "fewer weights than outputs": X + "torch.autograd.grad([x.sum(), x.mean()], x, [torch.tensor(1.)])\n",
    "a row before the first": "import torch\ntorch.nn.Embedding(3, 2)(torch.tensor([-1]))\n",
    "an index to gather that is not there": "import torch\ntorch.ones(2, 3).gather(1, torch.tensor([[3], [0]]))\n",
    "a slice that is not there": "import torch\ntorch.ones(2, 3).index_select(0, torch.tensor([2]))\n",
    "tensors of indices": "import torch\nx, i = torch.ones(3), torch.tensor([0, 3])\nx[i]\n",
    "more indices than axes": "import torch\ntorch.ones(3)[0, 0]\n",
    "an axis that does not repeat": "import torch\ntorch.ones(3, 2).expand(3, 4)\n",
    "a dropout of 50 percent": "import torch\ntorch.nn.Dropout(50)\n",
    "a class before the first": "import torch\ntorch.nn.functional.one_hot(torch.tensor([0, -1]), 3)\n",
    "a size that depends on a row": "import torch\ntorch.vmap(lambda r: r[: int(r.sum())])(torch.ones(3, 2))\n",
    "a loop that depends on a row": """\
import torch
def f(r):
    while r.norm() > 1:
        r = r / 2
    return r
torch.vmap(f)(torch.ones(3, 2))
""",
    "a state that is carried to a smaller batch": """\
import torch
gru, h = torch.nn.GRU(4, 6, batch_first=True), None
for n in (3, 2):
    out, h = gru(torch.ones(n, 5, 4), h)
    h = h.detach()
""",
}
