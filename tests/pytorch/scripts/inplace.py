# --- methods
x = torch.tensor([1., 2.])
x.add_(1).mul_(2).sub_(1).div_(2)
print(x, x._version)
x.zero_(); print(x); x.fill_(3); print(x); x.copy_(torch.tensor([5., 6.])); print(x)
x.clamp_(max=5.5); print(x); x.neg_(); print(x); x.abs_(); print(x); x.sqrt_(); print(x); x.pow_(2); print(x); x.exp_(); print(x)
x += 1; x -= 1; x *= 2; x /= 2; x **= 2
print(x, x._version)
# --- sigmoid and exp in place
x = torch.tensor([-1., 2.], requires_grad=True)
y = (x * 1).sigmoid_().exp_()
print(y)
y.sum().backward()
print(x.grad)
# --- version
x = torch.zeros(2)
print(x._version); x += 1; print(x._version); x[0] = 1; print(x._version); y = x.view(2); y += 1; print(x._version, y._version, x.detach()._version, x.data._version)
# --- harmless changes
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2
z = y + 1
y += 5
z.sum().backward()
print(x.grad)
# --- relu then change of its input
x = torch.tensor([1., -2.], requires_grad=True)
w = x * 1
y = torch.relu(w)
w += 100
y.sum().backward()
print(x.grad)
# --- what a result was made of is kept, not the result
x = torch.tensor([0.25, 0.5], requires_grad=True)
for f in (torch.asin, torch.acos, torch.erf, torch.erfc, torch.log2, torch.log10, F.hardsigmoid, F.softsign):
    y = f(x * 1)
    y += 1
    print(torch.autograd.grad(y.sum(), x))
net = nn.Sequential(nn.LayerNorm(2), nn.ReLU(inplace=True))
y = net(x)
y *= 2
print(y.grad_fn.next_functions)
# --- what is retained of a tensor that is changed in place
def changed(change, x=torch.tensor([1.0, 2.0], requires_grad=True)):
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: print("before", g))
    change(y)
    y.register_hook(lambda g: print("after", g))
    (y * 5).sum().backward()
    print(y.grad, y.retains_grad)
changed(lambda y: y.mul_(2))
changed(lambda y: y[0].mul_(2))
changed(lambda y: y.__setitem__(0, 7.0))
changed(lambda y: y.zero_())
changed(lambda y: y.detach().add_(1))
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3
z = y[:1]
z.retain_grad()
y.mul_(2)
print(z.retains_grad)
(z * 3 + y).sum().backward()
print(z.grad, x.grad)
# --- a diagonal is a copy, or a view
a = torch.arange(6.0).reshape(2, 3)
for b in (torch.diag(a), a.diag(1), torch.diagonal(a)):
    b.mul_(10)
    print(a, b, b._is_view())
a.requires_grad_()
b = torch.diag(a)
b.exp_()
b.sum().backward()
print(b, a.grad)
# --- repeated memory filled
def filled(change):
    a = torch.tensor([1.0, 2.0])
    c = a.expand(2, 2)
    try:
        change(c)
        print(c, a, a._version)
    except RuntimeError as error:
        print(error)
filled(lambda c: c.fill_(3))
filled(lambda c: c.zero_())
filled(lambda c: c[0].fill_(5))
filled(lambda c: c.masked_fill_(c > 1, 0))
filled(lambda c: c.add_(1))
filled(lambda c: c.copy_(torch.zeros(2, 2)))
# --- views of views that are not to be changed in place, and hooks of several inputs
class M(nn.Module):
    def forward(self,*a): return sum(x for x in a if isinstance(x,torch.Tensor))
m=M(); m.register_full_backward_hook(lambda m,gi,go: print(gi,go))
a=torch.ones(2,requires_grad=True)
m(torch.ones(2), a).sum().backward()
m(a, torch.ones(2,dtype=torch.float64), 3, torch.tensor([True,False])).sum().backward()
for f in (lambda v: v[0].view(-1), lambda v: v[0][1:], lambda v: v[0].unsqueeze(0), lambda v: v[0].t(), lambda v: v[0].view(-1)[1:], lambda v: v[0], lambda v: v[0][0]):
    x=torch.arange(6.).view(2,3).requires_grad_().clone(); told(lambda: f(x.unbind()).mul_(2)); x=torch.arange(6.).view(2,3).requires_grad_().clone(); told(lambda: f(x.split(1)[0]).mul_(2) is None)
class I(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x): return x.view(-1)
    @staticmethod
    def backward(ctx,g): return g.view(2,3)
x=torch.ones(2,3,requires_grad=True)*1
told(lambda: I.apply(x)[1:].mul_(2), lambda: I.apply(x).view(3,2).mul_(2), lambda: I.apply(x).mul_(2))
with torch.no_grad(): y=x.view(-1)
told(lambda: y[1:].mul_(2), lambda: y.mul_(2))
print(torch.autograd.grad((a*a).sum(), a, None, True, False, True, True), torch.autograd.grad((a*a).sum(), a, only_inputs=True))
# --- views that a change of their base leaves behind
def told(name, use):
    try: print(name, use())
    except RuntimeError as error: print(name, error)
x = torch.arange(4., requires_grad=True)
y = x*1
parts, rows = y.chunk(2), (x*1).unbind()
y.mul_(2)
told("one of several", lambda: parts[1].sum())
inner = parts[0][:1]
told("a view of it", lambda: inner*2)
with torch.no_grad():
    rows[0].add_(1)
    print(rows[1])
told("another one", lambda: rows[1]*2)
told("again", lambda: rows[2].grad_fn)
y = x*1
with torch.no_grad():
    part, several = y[1:], y.split(2)
later = part[:1]
y.mul_(2)
told("of no_grad", lambda: part.sum())
told("several of no_grad", lambda: several[1].sum())
told("a view of one of no_grad", lambda: later.sum())
with torch.no_grad():
    part = x[0]
    part.add_(1)
    print(part, x)
print(part, part.requires_grad)
told("changed in no_grad", lambda: part*2)
class Folded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return (x*3).view(2, 2)
    @staticmethod
    def backward(ctx, g): return g.view(4)*3
z = Folded.apply(x)
with torch.no_grad():
    z.mul_(2)
print(z)
told("of a function", lambda: z.sum())
# --- views of what requires nothing, changed by what does
def told(name, change):
    try:
        change()
        print(name, base)
    except RuntimeError as error:
        print(name, error)
w = torch.tensor(2., requires_grad=True)
base = torch.ones(2, 2)
with torch.no_grad():
    made, kept = torch.zeros(4).view(2, 2), base[0]
told("of no_grad", lambda: kept.mul_(w))
told("an element of it", lambda: made.__setitem__((0, 1), w))
told("all of it", lambda: made.copy_(w))
row = base.unbind()[0]
told("one of several", lambda: row.mul_(w))
told("places of it", lambda: row.__setitem__(torch.tensor([0]), w))
told("a part", lambda: base[1].mul_(w))
print(kept.requires_grad, row.requires_grad)
told("left behind", lambda: row.sum())
# --- views of inference_mode
def told(name, change):
    try: print(name, change())
    except RuntimeError as error: print(name, error)
w = torch.tensor(2., requires_grad=True)
x, y, base = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)*1, torch.ones(4)
with torch.inference_mode():
    a, b, c, made = x[:2], y[:2], base[:2], torch.ones(2)
print(a.requires_grad, a.is_inference(), made.is_inference())
told("of a leaf", lambda: a.mul_(2))
told("of numbers", lambda: c.mul_(w))
y.mul_(2)
told("left behind", lambda: b*2)
print(b, c*2)
# --- an operand that shows what is written
def tell(what, x):
    try: what(x)
    except RuntimeError as error: print(error)
    print(x)
def shift(x):
    x[1:] = x[:-1]
def picked(x):
    x[torch.tensor([0, 1, 2])] = x[1:4]
for what in (
    shift, picked, lambda x: x[1:].add_(x[:-1]), lambda x: x[:3].copy_(x[3:]), lambda x: x.copy_(x), lambda x: x.mul_(x),
    lambda x: x.mul_(x[0]), lambda x: x.view(2, 3).add_(x[:3]), lambda x: x[::2].add_(x[1::2]), lambda x: torch.exp(x[:3], out=x[2:5]),
    lambda x: x[:3].lerp_(x[1:4], 0.5),
):
    tell(what, torch.arange(6.0))
for what in (
    lambda m: m.copy_(m.t()), lambda m: m.add_(m.t()), lambda m: m.t().add_(m.t()), lambda m: m[:, 0].add_(m[:, 1]),
    lambda m: m[:2].masked_fill_(m[1:] > 4, 0), lambda m: m.copy_(m.flip(0)),
):
    tell(what, torch.arange(9.0).view(3, 3))
w = torch.ones(4, requires_grad=True)
h = w * 1
tell(lambda x: x[1:].add_(x[:-1]), h)
# --- data that is assigned before a backward
def L(*values): return torch.tensor([float(v) for v in values], requires_grad=True)
# A backward reads the numbers that an operand has then; what it keeps of a result are those of the forward.
x = L(1, 2, 3)
y = x * x
x.data = torch.tensor([10.0, 20.0, 30.0])
y.sum().backward()
print("a leaf", x.grad.tolist(), x._version)
x = L(1, 2, 3)
y = x * x
x.data = torch.tensor([10.0, 20.0, 30.0])
x.data = torch.tensor([5.0, 6.0, 7.0])
y.sum().backward()
print("twice", x.grad.tolist(), x._version)
x, w = L(1, 2), L(3, 4)
y = x / w
w.data = torch.tensor([5.0, 7.0])
y.sum().backward()
print("a divisor", x.grad, w.grad)
p = L(1, 2)
y, b = p**3, p.data
p.data = torch.tensor([4.0, 5.0])
p.data.mul_(2)
z = p**2
p.data = b
(y.sum() + z.sum()).backward()
print("a backup", p.grad.tolist(), b.tolist(), p._version, b._version)
p, ema = L(1, 2), torch.tensor([3.0, 4.0])
b, p.data = p.data, ema
(p**2).sum().backward()
p.data = b
print("an average", p.grad.tolist(), ema.tolist(), p.tolist())
x = L(1, 2, 3, 4)
v = x[:2]
y = v * v
x.data = torch.tensor([10.0, 20.0, 30.0, 40.0])
y.sum().backward()
print("a view", x.grad.tolist(), v.tolist(), x.tolist())
x = L(1, 2, 3, 4)
h = x * 1
v = h[:2]
y = v * v
v.data = torch.tensor([7.0, 8.0])
y.sum().backward()
print("of a view", x.grad.tolist(), v.tolist(), h.tolist())
x = L(1, 2, 3)
h = x * 2
y = h * h
h.data = torch.tensor([10.0, 20.0, 30.0])
y.sum().backward()
print("an intermediate", x.grad.tolist(), h._version)
x = L(1, 0, 4)
y = x.sqrt()
z = y * y
y.data = torch.tensor([10.0, 20.0, 30.0])
z.sum().backward()
print("a result", x.grad.tolist(), y.tolist())
x = L(1, 2)
c = torch.tensor([3.0, 4.0])
y = x * c
c.data = torch.tensor([5.0, 6.0])
y.sum().backward()
print("a constant", x.grad.tolist(), c._version)
x = L(1, 2)
y = x**3
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
x.data = torch.tensor([5.0, 6.0])
g.sum().backward()
print("before a second backward", g.tolist(), x.grad.tolist())
x = L(1, 2)
y = x**2
x.data = torch.tensor([5.0, 6.0])
print("saved", y.grad_fn._saved_self.tolist(), y.grad_fn._saved_self is x)
x, o = L(1, 2), torch.zeros(2)
with torch.no_grad():
    x.add_(1)
o.add_(1).add_(1)
x.data = o
o.add_(5)
with torch.no_grad():
    x.mul_(2)
print("versions", x._version, o._version, x.tolist(), o.tolist())
p = torch.nn.Parameter(torch.ones(2))
y = (p * p).sum()
p.data = p.data - 0.5 * p.data
y.backward()
print("a parameter", p.grad.tolist())
W, x = torch.ones(2, 2, requires_grad=True), L(1, 3)
y = W @ x
W.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
y.sum().backward()
print("a matrix", x.grad.tolist(), W.grad.tolist())
# --- data assigned, and a change in place before a backward
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
h = x * 1
y = h * h
h.data = torch.ones(3)
h.add_(1)
y.sum().backward()
# --- leaves that are views
def tried(name, f):
    try: f(); print(name, "fine")
    except RuntimeError as e: print(name, e)
def a():
    x = torch.arange(3.).view(3).requires_grad_(); x[0] = 5
def b():
    x = torch.zeros(4).view(2, 2).requires_grad_(); x += 1
def c():
    x = torch.arange(6.).reshape(2, 3).requires_grad_(); x.view(-1)[0] = 5
def d():
    w = torch.randn(6).reshape(3, 2).requires_grad_(); w.t().mul_(2)
def e():
    base = torch.zeros(4); w = torch.ones(2, requires_grad=True); v = base[:2]; v.mul_(w); v.add_(1); base.mul_(2); v.sum().backward()
def f():
    base = torch.zeros(4); w = torch.ones(2, requires_grad=True); base[0] = w[0]; base[1:3] = w; base[1:].mul_(3); base.sum().backward(); print(w.grad)
def g():
    x = torch.arange(3.).view(3).requires_grad_()
    with torch.no_grad(): x[0] = 5
    x.data[1] = 4; x.detach()[2] = 1; print(x)
def h():
    x = torch.arange(6.).view(2, 3).requires_grad_(); y = x * 2; y[0] = 1; y.view(-1)[5] = 0; y.t().mul_(2); y.sum().backward(); print(x.grad)
def i():
    x = torch.arange(6.).view(2, 3); x.requires_grad_(); x.detach_(); x[0] = 1; print(x)
for k in "abcdefghi": tried(k, globals()[k])
