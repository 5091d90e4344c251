"""Scripts with loops, as people write them; `inputs` are the variables that a page of one may read, by its names.

`index` is the index of its recurrence, `rounds` the first and the last.
"""

from typing import NamedTuple


class Case(NamedTuple):
    code: str
    inputs: dict[str, str]
    index: str = "t"
    rounds: str = ""
    statements: tuple[str, ...] = ()


RNN = """import torch
W = torch.tensor([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]], requires_grad=True)
U = torch.tensor([[0.2, -0.4], [0.6, 0.1], [-0.3, 0.5]], requires_grad=True)
xs = torch.tensor([[1., 2.], [0.5, -1.], [-0.3, 0.8], [1.5, 0.2], [-1., 0.4]])
h = torch.zeros(3)
for t in range(5):
    h = torch.tanh(W @ h + U @ xs[t])
loss = h.sum()
loss.backward()
"""
EULER = """import torch
x0 = torch.tensor(1., requires_grad=True)
v0 = torch.tensor(0.2, requires_grad=True)
k = torch.tensor(0.5, requires_grad=True)
x, v = x0, v0
dt = 0.1
for step in range(8):
    a = -k*torch.sin(x)
    v = v + dt*a
    x = x + dt*v
loss = x**2 + v**2
loss.backward()
"""
MAML = """import torch
w = torch.tensor([1., 2.], requires_grad=True)
lr = torch.tensor(0.01, requires_grad=True)
X = torch.tensor([[1., 2.], [3., 4.], [5., 6.]])
y = torch.tensor([1., 2., 3.])
p = w
for step in range(6):
    g = 2*X.T @ (X @ p - y)/3
    p = p - lr*g
loss = ((X @ p - y)**2).mean()
loss.backward()
"""
POWER = """import torch
A = torch.tensor([[2., 1.], [1., 3.]], requires_grad=True)
v = torch.ones(2)
for _ in range(10):
    v = A @ v
    v = v/v.norm()
lam = v @ A @ v
lam.backward()
"""
SCAN = """import torch
a = torch.tensor(0.9, requires_grad=True)
b = torch.tensor(0.4, requires_grad=True)
u = torch.tensor([1., 0.5, -0.2, 0.3, 0.8, -1., 0.1])
s, m = torch.tensor(0.3), torch.tensor(0.7)
for i, ui in enumerate(u):
    s, m = a*s + b*ui, m*torch.cos(s) + s
loss = s*m
loss.backward()
"""
FIBONACCI = """import torch
p = torch.tensor(1.1, requires_grad=True)
q = torch.tensor(0.9, requires_grad=True)
a, b = p, q
for _ in range(6):
    a, b = b, a*b
b.backward()
"""
RK4 = """import torch
w = torch.tensor(0.5, requires_grad=True)
x0 = torch.tensor(1., requires_grad=True)
def f(x):
    return torch.sin(w*x)
def step(x, h):
    k1 = f(x)
    k2 = f(x + h/2*k1)
    k3 = f(x + h/2*k2)
    k4 = f(x + h*k3)
    return x + h/6*(k1 + 2*k2 + 2*k3 + k4)
y = x0
for n in range(5):
    y = step(y, 0.1)
y.backward()
"""
NEWTON = """import torch
a = torch.tensor(2., requires_grad=True)
x0 = torch.tensor(1., requires_grad=True)
x = x0
while abs(x*x - a) > 1e-3:
    x = 0.5*(x + a/x)
x.backward()
"""
COMPACT = """import torch
y0 = torch.tensor(1., requires_grad=True)
y = y0
for _ in range(3):
    a = torch.sin(y); y = a + y
y.backward()
"""
LIST = """import torch
w = torch.tensor(0.5, requires_grad=True)
h0 = torch.tensor(1., requires_grad=True)
hs = [h0]
for t in range(1, 7):
    hs.append(torch.tanh(w*hs[-1]) + 0.1*t)
loss = torch.stack(hs).prod()
loss.backward()
"""
NESTED = """import torch
w = torch.tensor(0.5, requires_grad=True)
x = torch.tensor(1., requires_grad=True)
s = x
for i in range(3):
    for j in range(4):
        s = torch.sin(w*s)
    s = s + x
s.backward()
"""
WEIGHTS = """import torch
Ws = [torch.tensor([[0.5, -0.2], [0.1*k, 0.3]], requires_grad=True) for k in range(5)]
x0 = torch.tensor([1., -0.5])
x = x0
for W in Ws:
    x = torch.tanh(W @ x)
loss = x.sum()
loss.backward()
"""
STACKED = """import torch
W = torch.tensor([[0.5, -0.2], [0.1, 0.3]], requires_grad=True)
V = torch.tensor([[0.2, 0.7], [-0.4, 0.6]], requires_grad=True)
xs = torch.tensor([[1., 2.], [0.5, -1.], [-0.3, 0.8], [1.5, 0.2]])
h = torch.zeros(2)
hs = []
for t in range(4):
    h = torch.tanh(W @ h + xs[t])
    hs.append(h)
g = torch.ones(2)
for t in range(4):
    g = torch.tanh(V @ g + hs[t])
loss = g.sum()
loss.backward()
"""
DECAY = """import torch
x0 = torch.tensor([1., -2.], requires_grad=True)
x = x0
for t in range(6):
    x = x - 0.3*0.5**t*torch.sin(x)
loss = (x**2).sum()
loss.backward()
"""
IN_FUNCTION = """import torch
w = torch.tensor(0.7, requires_grad=True)
c = torch.tensor([0.1, 0.2, 0.3, 0.4])
def inner(x):
    for k in range(4):
        x = torch.cos(w*x + c[k])
    return x
x = torch.tensor(0.3)
total = torch.tensor(0.)
for i in range(3):
    total = total + inner(x + i)
total.backward()
"""
CYCLE = """import torch
w = torch.tensor(0.5, requires_grad=True)
x = torch.tensor([0.3, -0.2, 0.9, 0.1, -0.7], requires_grad=True)
h = torch.zeros(())
for t in range(12):
    h = torch.tanh(w*h + x[t % 5]*x[(t + 2) % 4])
h.backward()
"""
COLUMNS = """import torch
w = torch.tensor(0.5, requires_grad=True)
ys = torch.tensor([[0.3, -0.2, 0.9, 0.1, -0.7, 0.4], [1.2, 0.5, -0.6, 0.8, 0.2, -0.1]])
h = torch.zeros(2)
for t in range(6):
    h = torch.tanh(w*h + ys[:, t])
loss = h.sum()
loss.backward()
"""

CASES = {
    "rnn": Case(RNN, {"W": "W", "U": "U", "xs": "xs"}, "t", "1..5", ("h[t] = tanh(W @ h[t-1] + U @ xs[t-1])",)),
    "euler": Case(EULER, {"x0": "x0", "v0": "v0", "k": "k"}, "step", "1..8"),
    "maml": Case(MAML, {"w": "w", "lr": "lr", "X": "X", "y": "y"}, "step", "1..6"),
    "power": Case(POWER, {"A": "A"}, "t", "1..10"),
    "scan": Case(SCAN, {"a": "a", "b": "b", "u": "u"}, "i", "1..6"),
    "fibonacci": Case(FIBONACCI, {"p": "p", "q": "q"}, "t", "2..7", ("b[t] = b[t-2]*b[t-1]",)),
    "rk4": Case(RK4, {"w": "w", "x0": "x0"}, "n", "1..5"),
    "newton": Case(NEWTON, {"a": "a", "x0": "x0"}, "t", "1..3", ("x[t] = 0.5*(x[t-1] + a/x[t-1])",)),
    "compact": Case(COMPACT, {"y0": "y0"}, "t", "1..3"),
    "list": Case(LIST, {"w": "w", "h0": "h0"}, "t", "1..6", ("hs[t] = tanh(w*hs[t-1]) + 0.1*t",)),
    "nested": Case(NESTED, {"w": "w", "x": "x"}, "i", "1..3"),
    "weights": Case(WEIGHTS, {"Ws": "Ws", "x0": "x0"}, "t", "1..5", ("x[t] = tanh(Ws[t-1] @ x[t-1])",)),
    "stacked": Case(STACKED, {"W": "W", "V": "V", "xs": "xs"}, "t", "1..4"),
    "decay": Case(DECAY, {"x0": "x0"}, "t", "1..6"),
    "in_function": Case(IN_FUNCTION, {"w": "w", "c": "c"}),
    "cycle": Case(CYCLE, {"w": "w", "x": "x"}, "t", "1..12", ("h[t] = tanh(w*h[t-1] + x[(t-1) % 5]*x[(t+1) % 4])",)),
    "columns": Case(COLUMNS, {"w": "w", "ys": "ys"}, "t", "1..6", ("h[t] = tanh(w*h[t-1] + ys[:, t-1])",)),
}
