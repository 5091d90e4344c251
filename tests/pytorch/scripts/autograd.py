# --- outputs that share a step
a = torch.arange(1., 5).requires_grad_()
y = a * 2
p, q = y.split(2)
print(p.grad_fn is q.grad_fn, p.output_nr, q.output_nr, p.grad_fn.name())
u = y.unbind(); print(u[0].grad_fn is u[3].grad_fn, [v.output_nr for v in u])
c = y.chunk(2); print(c[0].grad_fn is c[1].grad_fn, c[0].grad_fn is p.grad_fn)
s = y.split([1, 3]); print(s[0].grad_fn is s[1].grad_fn)
z = p * q
print([(f.name(), i) for f, i in z.grad_fn.next_functions], z.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[1][0])
print([(f.name(), i) for f, i in q.grad_fn.next_functions])
seen = set()
def walk(f, depth=0):
    print("  " * depth + f.name(), f in seen)
    seen.add(f)
    for g, _ in f.next_functions:
        if g is not None: walk(g, depth + 1)
walk(z.sum().grad_fn)
b, d = a.unsqueeze(0).unbind()[0].split(2)
(b * d.detach()).sum().backward(); print(a.grad)
q.sum().backward(); print(a.grad)
m, n = torch.max(a.view(2,2)*1, 0)
p, q = (a * 2).split(2)
q.grad_fn.register_hook(lambda given, taken: print(given))
q.sum().backward()
# --- no_grad
x = torch.tensor(3., requires_grad=True)
with torch.no_grad():
    y = x * 2
    print(y.requires_grad, torch.is_grad_enabled())
    with torch.enable_grad():
        print((x * 2).requires_grad)
print(torch.is_grad_enabled())
@torch.no_grad()
def f(x): return x * 2
print(f(x))
with torch.set_grad_enabled(False):
    print((x * 2).requires_grad)
torch.set_grad_enabled(False)
print((x * 2).requires_grad)
torch.set_grad_enabled(True)
print((x * 2).requires_grad)
# --- data
x = torch.tensor([1., 2.], requires_grad=True)
y = x ** 2
x.data[0] = 5
print(x, y)
y.sum().backward()
print(x.grad, x.data)
x.data -= 0.1 * x.grad.data
print(x)
# --- second derivatives of functions
for f in [torch.sin, torch.exp, torch.log, torch.tanh, torch.sigmoid, torch.sqrt, lambda x: x ** 3, lambda x: 1 / x, F.softplus, lambda x: x * x * x]:
    x = torch.tensor(0.7, requires_grad=True)
    g, = torch.autograd.grad(f(x), x, create_graph=True)
    h, = torch.autograd.grad(g, x)
    print(g.item() != 0, f"{g.item():.5f} {h.item():.5f}")
# --- hessian by hand
x = torch.tensor([1., 2.], requires_grad=True)
y = x[0] ** 2 * x[1] + x[1] ** 3
g, = torch.autograd.grad(y, x, create_graph=True)
print(g)
print(torch.stack([torch.autograd.grad(g[i], x, retain_graph=True)[0] for i in range(2)]))
# --- hooks and retain_grad
x = torch.tensor(1., requires_grad=True)
y = x * 2
y.register_hook(lambda g: g * 100)
y.retain_grad()
(y * 3).backward()
print(y.grad, x.grad)
x = torch.tensor(1., requires_grad=True)
y = x * 2
y.register_hook(lambda g: g * 100)
z = y * 3
print(torch.autograd.grad(z, [x, y], retain_graph=True), torch.autograd.grad(z, y, retain_graph=True))
z.backward(inputs=[x, y])
print(x.grad, y.grad)
# --- several tensors
x = torch.tensor(1., requires_grad=True)
torch.autograd.backward([x * 2, x * 3])
print(x.grad)
torch.autograd.backward([x * torch.ones(2)], [torch.tensor([1., 2.])])
print(x.grad)
# --- corners
x = torch.tensor([0., -1., 1.], requires_grad=True)
for f in [torch.relu, torch.abs, lambda x: x.clamp(-1, 1), lambda x: torch.maximum(x, torch.zeros(3)), torch.sign, F.leaky_relu, F.elu, torch.floor]:
    x.grad = None
    f(x).sum().backward()
    print(x.grad)
# --- corners of reductions
x = torch.tensor([2., 1., 2.], requires_grad=True)
for f in [lambda x: x.max(), lambda x: x.max(0)[0], lambda x: x.amax(0), lambda x: x.min(), lambda x: x.norm(), lambda x: x.prod(), lambda x: x.median(), lambda x: x.sort()[0][0], lambda x: x.std(), lambda x: x.var(unbiased=False), lambda x: x.topk(2)[0].sum(), lambda x: x.cumsum(0)[1], lambda x: x.logsumexp(0), lambda x: x.softmax(0)[0]]:
    x.grad = None
    f(x).backward()
    print(x.grad)
# --- norm and sqrt at 0
x = torch.zeros(2, requires_grad=True)
x.norm().backward()
print(x.grad)
x.grad = None
(x ** 2).sum().sqrt().backward()
print(x.grad)
# --- matrices
A = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
b = torch.tensor([1., 2.], requires_grad=True)
for f in [lambda: (A @ b).sum(), lambda: (b @ A).sum(), lambda: (A @ A).sum(), lambda: torch.det(A), lambda: torch.inverse(A).sum(), lambda: A.trace(), lambda: torch.outer(b, b).sum(), lambda: (A * b).sum(), lambda: (A.t() @ b)[0], lambda: torch.einsum("ij,j->i", A, b)[1], lambda: A.diagonal().prod(), lambda: torch.linalg.solve(A, b + 1).sum()]:
    A.grad = b.grad = None
    f().backward()
    print(A.grad, b.grad)
# --- types
x = torch.tensor(2., requires_grad=True)
y = torch.tensor(3, dtype=torch.float64, requires_grad=True)
z = x * y
z.backward()
print(z.dtype, x.grad, y.grad, x.grad.dtype, y.grad.dtype)
w = (x * torch.tensor([1, 2])).sum()
print(w)
# --- a function keeps one of several outputs
class Sinh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        up, down = torch.exp(x), torch.exp(-x)
        ctx.save_for_backward(up, down)
        return (up - down) / 2, up, down
    @staticmethod
    def backward(ctx, g, g_up, g_down):
        up, down = ctx.saved_tensors
        return g * (up + down) / 2 + g_up * up - g_down * down
x = torch.tensor([0.5, 0.7], dtype=torch.double, requires_grad=True)
print(torch.autograd.gradgradcheck(lambda x: Sinh.apply(x)[0], x))
g, = torch.autograd.grad(Sinh.apply(x)[0].sum(), x, create_graph=True)
print(g, torch.autograd.grad(g.sum(), x))
# --- operands that a step takes down
x, t = torch.ones(3, requires_grad=True), torch.tensor(2.0)
for y in (2 - x, 2 / x, x - 2, x**2, 2**x, 2 + x, 2 * x, x * 2, t * x, t - x, torch.rsub(x, t), torch.where(x > 0, x, 0.0), x.fmod(2), x % 2, x.masked_fill(x > 3, 0)):
    print(type(y.grad_fn).__name__, [type(e).__name__ for e, _ in y.grad_fn.next_functions])
# --- gradients with and without create_graph
torch.manual_seed(0)
w, x = torch.randn(16, 16), torch.randn(16, requires_grad=True)
for f in (torch.tanh, F.silu, F.gelu, F.softmax, F.log_softmax):
    more = {"dim": 0} if "soft" in f.__name__ else {}
    own = [[torch.autograd.grad((f(w @ x, **more) * w[0]).sum() ** 2, x, create_graph=c)[0]] for c in (False, True)]
    print(f.__name__, torch.allclose(*(o[0].detach() for o in own)), own[1][0][:4])
# --- what a step keeps
x = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
z = torch.tensor([[0.5, 0.6], [0.7, 0.8]], requires_grad=True)
v = torch.tensor([1.0, 2.0], requires_grad=True)
for y, words in (
    *((x**3, "self"), (x**z, "self exponent result"), (x * z, "self other"), (x * z.detach(), "other"), (x / z, "self other")),
    *((x.exp(), "result"), (x.log(), "self"), (x.tanh(), "result"), (x.relu(), "result"), (x.sqrt(), "result"), (x.reciprocal(), "result")),
    *((x @ z, "self mat2"), (x @ v, "self vec"), (v @ v, "self tensor"), (F.linear(x, z, v), "mat1 mat2"), (x.prod(), "self result")),
    *((x.norm(), "self result"), (x.max(), "self result"), (torch.where(x > 0.2, x, z), "condition"), (x.clamp(0.2), "self")),
    *((x.softmax(1), "result"), (F.mse_loss(x, z), "self target"), (F.leaky_relu(x), "self"), (F.gelu(x), "self"), (x.std(), "self result")),
    *((x.logsumexp(1), "self result"), (torch.maximum(x, z), "self other")),
):
    step = y.grad_fn
    print(step.name())
    for word in words.split():
        kept = getattr(step, f"_saved_{word}")
        print("  ", word, kept, kept is x, isinstance(kept, torch.Tensor) and kept.grad_fn is step)
y = x.pow(2)
print(x.equal(y.grad_fn._saved_self), isinstance(y.grad_fn, torch.autograd.graph.Node))
y.sum().backward()
told(lambda: y.grad_fn._saved_self)
h = x * 1
y = h.exp()
with torch.no_grad():
    y.add_(1)
told(lambda: y.grad_fn._saved_result)
y = h.reciprocal()
h.add_(1)
print(torch.autograd.grad(y.sum(), x))
# --- a step that scripts look at
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2
y.grad_fn.metadata["seen"] = 1
y.grad_fn.register_hook(lambda passed, given: print("hook", passed, given))
y.sum().backward()
print(y.grad_fn.metadata, x.grad)
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.k = 5
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g
y = Square.apply(x)
print(y.grad_fn.saved_tensors, y.grad_fn.k, y.grad_fn.needs_input_grad)
for step in (y.grad_fn, y.sum().grad_fn, y.grad_fn.next_functions[0][0]):
    told(lambda: step.absent)
# --- hooks on what is kept
x = torch.tensor([1.0, 2.0], requires_grad=True)
graph = torch.autograd.graph
def pack(t):
    print("pack", t, t is x, torch.is_grad_enabled())
    return t.detach().clone()
def unpack(t):
    print("unpack", t, torch.is_grad_enabled())
    return t
with graph.saved_tensors_hooks(pack, unpack):
    y = x**2 * 3
    z = y.exp()
    w = z.sum()
print(z.grad_fn._saved_result)
w.backward()
print(x.grad)
with graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
    y = x**3
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
print(g, torch.autograd.grad(g.sum(), x))
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
with graph.saved_tensors_hooks(lambda t: (print("pack", tuple(t.shape)), t)[1], lambda t: t):
    loss = F.mse_loss(net(torch.ones(4, 2)), torch.zeros(4, 1))
loss.backward()
for hooks in ((lambda t: t.mul_(2), unpack), (lambda t: 5, lambda t: t)):
    try:
        with graph.saved_tensors_hooks(*hooks):
            y = x.detach().requires_grad_() ** 2
        y.sum().backward()
    except (RuntimeError, TypeError) as error:
        print(error)
# --- a graph that is walked by hand
def walk(step, gradient):
    found, queue = {}, [(step, gradient)]
    while queue:
        step, gradient = queue.pop()
        passed = step(gradient)
        for g, (other, _) in zip(passed if isinstance(passed, tuple) else (passed,), step.next_functions):
            if type(other).__name__ == "AccumulateGrad":
                found[other.variable] = found.get(other.variable, 0) + g
            elif other is not None:
                queue.append((other, g))
    return list(found.values())
a, b = torch.tensor([3.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
y = b**2 + a**2 * b**2
print(walk(y.grad_fn, torch.tensor(1)), a.grad)
with torch.no_grad():
    print(walk(y.grad_fn, torch.tensor([1.0])))
x = torch.tensor([1.0, 2.0], requires_grad=True)
for y in (x - 3 * x, torch.cat([x, x * 2]), x.dot(torch.ones(2)), torch.where(x > 1, x, x**2), x[0], x.max()):
    print(y.grad_fn(torch.ones_like(y)))
y = x * x.detach()
y.grad_fn.register_hook(lambda *_: print("hook"))
leaf = y.grad_fn.next_functions[0][0]
print(y.grad_fn(torch.ones(2)), leaf(torch.ones(2)), x.grad)
y.sum().backward()
for arguments in ((torch.ones(2),), ()):
    told(lambda: y.grad_fn(*arguments))
# --- gradients of constant slopes that have a history
for f in (lambda x: x**1, F.hardshrink, F.softshrink, F.hardswish, lambda x: F.threshold(x, 0.0, 0.0), nn.PReLU()):
    x = torch.tensor([-1.0, 0.75, 2.0], requires_grad=True)
    g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    print(g.detach(), torch.autograd.grad(g.sum(), x))
# --- derivatives as long as there are any
x = torch.tensor([0.5, 1.0], requires_grad=True)
for f in (torch.sin, torch.tanh, torch.relu, lambda x: x**2, lambda x: (x - 1) ** 3, lambda x: 3 * x**2 + 2 * x):
    g = f(x)
    for _ in range(3):
        (g,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        print(g.detach())
# --- v changed before the second derivative
x = torch.tensor([3.0, 4.0], requires_grad=True)
v = torch.ones(1)
(g,) = torch.autograd.grad(x.norm().reshape(-1), x, v, create_graph=True)
print(g)
v[0] = 0
g[0].backward()
# --- own functions that change a view, or return one
class Added(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.add_(y)
    @staticmethod
    def backward(ctx, g): return g, g * 3
a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
x = a * 2
u = Added.apply(x[0], b)
print(u, x)
(x * x).sum().backward()
print(a.grad, b.grad)
x = torch.zeros(2, 2)
u = Added.apply(x[1], b)
print(u, x)
(x * x).sum().backward()
print(b.grad)
for part in (lambda: a[0], lambda: (a * 2).unbind()[1]):
    told(lambda: Added.apply(part(), b))
class Seen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view_as(x)
    @staticmethod
    def backward(ctx, g): return g
class Same(Seen):
    @staticmethod
    def forward(ctx, x): return x
for made in (Seen, Same):
    v = made.apply(torch.ones(2))
    print(v.requires_grad, v._is_view())
    try: v += b
    except RuntimeError as e: print(e)
# --- views of inference tensors
for grad in (True, False):
    with torch.inference_mode():
        c = torch.ones(1, 2, requires_grad=grad)
        w = c.view(-1)
    o = c.view(-1)
    for v in (w, o):
        print(v.requires_grad, v.is_inference(), v._is_view(), v.is_leaf)
    told(lambda: o.add_(1))
s = torch.ones(2, requires_grad=True)
with torch.inference_mode():
    v = s.view(-1)
print(v.is_inference(), v.requires_grad, v._is_view(), v.is_leaf)
told(lambda: torch.mul(torch.ones(1, 2), 2, out=c))
# --- hooks of a leaf, in their order
t = torch.ones(3, requires_grad=True)
node = (t * 1).grad_fn.next_functions[0][0]
node.register_prehook(lambda given: (given[0] / 5,))
t.register_hook(lambda g: g - 2)
node.register_hook(lambda passed, given: print("behind", passed, given))
t.register_post_accumulate_grad_hook(lambda t: print("there", t.grad))
t.sum().backward()
print(t.grad)
for returned in (1, t.detach()):
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda x: returned)
    told(lambda: x.sum().backward())
# --- modes around generators
@torch.no_grad()
def numbers():
    try:
        for i in range(3):
            got = yield i, torch.is_grad_enabled()
            print("got", got, torch.is_grad_enabled())
    except ValueError as e:
        print("caught", e, torch.is_grad_enabled())
        yield "last"
    return 5
def through(): print("returned", (yield from numbers()))
g = through()
print(next(g), torch.is_grad_enabled(), g.send("a"), torch.is_grad_enabled())
print(g.throw(ValueError("b")), list(g), torch.is_grad_enabled())
@torch.inference_mode()
def asked():
    try: yield torch.ones(2).is_inference()
    finally: print("closed", torch.is_inference_mode_enabled())
g = asked()
print(next(g), torch.ones(2).is_inference())
g.close()
# --- gradients that are made
x = torch.tensor(0.5, requires_grad=True)
a = torch.tensor(2., requires_grad=True)
(dy,) = torch.autograd.grad(x * a, x, create_graph=True)
(none,) = torch.autograd.grad(dy, x, create_graph=True, materialize_grads=True)
print(none, torch.autograd.grad(none, x, materialize_grads=True))
told(lambda: torch.autograd.grad(x * a, x, allow_unused=False, materialize_grads=True))
for name in ("acosh_", "asinh_", "atanh_"):
    y = getattr(x * 1, name)()
    print(y.grad_fn.name())
    told(lambda: y.backward())
d = torch.ones(2, dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(lambda x: x.int(), (d,)), torch.autograd.gradcheck(lambda x: torch.ones(2), (d,)))
told(lambda: torch.autograd.gradcheck(lambda x: x.detach() * 2, (d,)))
# --- what gradcheck calls
x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
told(
    lambda: torch.autograd.gradcheck(lambda x: torch.autograd.grad((x**3).sum(), x, create_graph=True)[0], (x,)),
    lambda: torch.autograd.gradcheck(lambda x, how: x * how["by"], (x, {"by": 2})),
    lambda: torch.autograd.gradcheck(lambda xs: xs[0] * 2, ([x],)),
    lambda: torch.autograd.gradgradcheck(lambda x, how: x**how["by"], (x, {"by": 3})),
)
seen = []
told(lambda: torch.autograd.gradcheck(lambda x: seen.append((x.requires_grad, torch.is_grad_enabled())) or x * 2, x))
print(set(seen))
opt = torch.optim.SGD([x], lr=1)
told(lambda: opt.regroup)
# --- anomaly detection by its module
from torch.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
x = torch.tensor([0., 4.], requires_grad=True)
with detect_anomaly():
    told(lambda: (x * 0 / x).sum().backward())
set_detect_anomaly(False)
(x * 0 / x).sum().backward()
print(x.grad)
# --- edges within products
def walk(step, depth=1):
    print("  " * depth + (type(step).__name__ if step else "None"))
    for edge, _ in step.next_functions if step else ():
        walk(edge, depth + 1)
shapes = [
    ((3,), (3, 4)), ((2, 5, 3), (3, 4)), ((2, 5, 3), (3,)), ((3,), (2, 3, 4)), ((2, 5, 3), (2, 3, 4)),
    ((5, 3), (2, 3, 4)), ((1, 3), (2, 3, 4)), ((5, 3), (2, 3, 1)), ((2, 2, 5, 3), (2, 3, 4)), ((3, 2), (2,)),
]
for a, b in shapes:
    for recorded in ((True, True), (True, False), (False, True)):
        x, y = (torch.ones(shape, requires_grad=r) for shape, r in zip((a, b), recorded))
        print(a, b, recorded)
        walk((x @ y).grad_fn)
step = (torch.ones(2, requires_grad=True) @ torch.ones(2, 3)).grad_fn
print(step.next_functions[0][0] is step.next_functions[0][0])
