# --- gradients of a linear layer can be flattened
lin = nn.Linear(3, 5)
g = torch.autograd.grad(lin(torch.ones(4, 3)).sum(), lin.parameters())
print(g[0].stride(), torch.cat([t.view(-1) for t in g]))
g = torch.autograd.grad(lin(torch.ones(4, 3)).pow(2).sum(), lin.parameters(), create_graph=True)
h = torch.autograd.grad(sum((t * t).sum() for t in g), lin.parameters())
print(torch.cat([t.view(-1) for t in h]).shape)
# --- gradients of products of matrices
def show(name, f, *shapes):
    xs = [torch.ones(*shape, requires_grad=True) for shape in shapes]
    y = f(*xs)
    first = torch.autograd.grad(y, xs, torch.ones(y.shape), create_graph=True)
    again = torch.autograd.grad(sum((t * t).sum() for t in first if t.requires_grad), xs, allow_unused=True)
    print(name, y.stride(), *(t.stride() for t in first), *(t if t is None else t.stride() for t in again))
show("mm", lambda a, b: a @ b, (2, 3), (3, 4))
show("mm of a transposed", lambda a, b: a @ b.t(), (2, 3), (4, 3))
show("mm of two transposed", lambda a, b: a.t() @ b.mT, (3, 2), (4, 3))
show("addmm", lambda c, a, b: torch.addmm(c, a, b.t(), beta=2, alpha=3), (2, 4), (2, 3), (4, 3))
show("linear", F.linear, (2, 5, 3), (4, 3), (4,))
show("linear without bias", F.linear, (2, 5, 3), (4, 3))
show("linear of a vector", F.linear, (3,), (4, 3), (4,))
show("bmm", lambda a, b: torch.bmm(a, b.transpose(1, 2)), (2, 3, 4), (2, 5, 4))
show("mv", lambda a, b: torch.mv(a.t(), b), (4, 3), (4,))
show("a stack and a matrix", lambda a, b: a @ b.t(), (2, 5, 3), (4, 3))
show("bilinear", F.bilinear, (2, 3), (2, 4), (5, 3, 4), (5,))
a, b = torch.ones(3, 2).t().requires_grad_(), torch.ones(4, 3).t().requires_grad_()
print([g.stride() for g in torch.autograd.grad((a @ b).sum(), (a, b))])
# --- gradients of windows and of padding
def show(name, f, *shapes):
    xs = [torch.ones(*shape, requires_grad=True) for shape in shapes]
    y = f(*xs)
    print(name, y.stride(), *(g.stride() for g in torch.autograd.grad(y, xs, torch.ones(y.shape))))
show("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 2, 4, 4), (3, 2, 3, 3), (3,))
show("of groups", lambda x, w: F.conv2d(x, w, padding=1, groups=2), (2, 4, 4, 4), (4, 2, 3, 3))
show("conv1d", lambda x, w: F.conv1d(x, w, padding=2), (2, 2, 4), (3, 2, 3))
show("transposed", lambda x, w: F.conv_transpose2d(x, w, padding=1, stride=2), (2, 2, 4, 4), (2, 3, 3, 3))
show("avg_pool2d", lambda x: F.avg_pool2d(x, 2, padding=1), (2, 2, 4, 4))
show("adaptive", lambda x: F.adaptive_avg_pool2d(x, 1), (2, 2, 4, 4))
show("pad", lambda x: F.pad(x, (1, 1, 1, 1)), (2, 2, 4, 4))
show("unfold", lambda x: F.unfold(x, 3, padding=1), (2, 2, 4, 4))
show("fold", lambda x: F.fold(x, (4, 4), 3, padding=1), (2, 18, 16))
show("cat", lambda a, b: torch.cat([a, b], 1), (2, 3), (2, 3))
show("sum", lambda x: x.sum(0), (2, 3))
show("mean", lambda x: x.mean(), (2, 3))
show("expand", lambda x: x.expand(4, 2, 3) * 2, (2, 3))
show("permute", lambda x: x.permute(2, 0, 1).contiguous(), (2, 3, 4))
# --- gradients of recurrent layers
for kind in (nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell, nn.GRUCell):
    net = kind(3, 4)
    y = net(torch.ones(2, 3) if "Cell" in kind.__name__ else torch.ones(5, 2, 3))
    while isinstance(y, tuple):
        y = y[0]
    g = torch.autograd.grad(y.sum(), net.parameters(), create_graph=True)
    h = torch.autograd.grad(sum((t * t).sum() for t in g), net.parameters())
    print(kind.__name__, [t.stride() for t in g], torch.cat([t.view(-1) for t in h]).shape)
# --- gradients of functions
from torch.func import functional_call, grad, jacrev, vjp, vmap
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
p, x = dict(net.named_parameters()), torch.ones(5, 3)
loss = lambda p, x: functional_call(net, p, (x,)).pow(2).sum()
g = grad(loss)(p, x)
print({k: v.stride() for k, v in g.items()}, torch.cat([v.view(-1) for v in g.values()]).shape)
print({k: v.stride() for k, v in vmap(grad(loss), (None, 0))(p, x).items()})
print({k: v.stride() for k, v in jacrev(lambda p: functional_call(net, p, (x,)))(p).items()})
w = torch.ones(4, 3)
print(grad(lambda w: (x @ w.t()).sum())(w).stride(), vjp(lambda w: x @ w.t(), w)[1](torch.ones(5, 4))[0].stride())
# --- elementwise results
def show(*xs): print(*((tuple(x.shape), x.stride(), x.is_contiguous()) for x in xs))
v, m = torch.arange(3.0), torch.arange(24.0).reshape(2, 3, 4)
row, p = v.expand(2, 3), m.permute(2, 0, 1)
show(row.clone(), row * 2, row + row, row.exp(), row.contiguous(), torch.ones_like(row), v[:, None].expand(3, 2).clone())
show(p.clone(), p * 2, p.exp(), p.double(), p > 1, p.clamp(0), torch.zeros_like(p), torch.rand_like(p), F.dropout(p))
show(m[:, :, ::2].clone(), m[:, ::2] * 2, m.transpose(0, 2)[::2] * 3)
show(m.transpose(0, 1) + m.reshape(3, 2, 4), m.reshape(3, 2, 4) + m.transpose(0, 1), torch.where(p > 1, p, 0.0))
show(p.masked_fill(p > 1, 0), p.flip(0), p.cumsum(0), p.tril(), p.softmax(0), torch.cat([p, p]), p[[0, 1]])
show(p.clone(memory_format=torch.contiguous_format), p.clone(memory_format=torch.preserve_format))
print(torch.contiguous_format, torch.preserve_format)
# --- reshapes that are views of a strided tensor
x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
y = torch.arange(6.0).reshape(3, 2).requires_grad_()
for z in (
    y[:, 0].reshape(-1, 1), (y * 2)[::2].reshape(2, 2), y.expand(2, 3, 2).reshape(2, 6), y.permute(1, 0).reshape(2, 3),
    y[:, :1].flatten(), y.expand(2, 3, 2).flatten(1), y[:, 0].reshape(3, 1).reshape(3), y.diagonal().reshape(2, 1),
    y.unbind(1)[0].reshape(3, 1), y.sum().expand(3).reshape(3, 1), x.transpose(0, 1).reshape(3, 2, 2, 2),
    x[:, :2].reshape(2, 8), x[:, 1].reshape(2, 2, 2),  # views
    y.reshape(2, 3), y[1:].reshape(2, 2, 1), y[0].reshape(2), y.t().view(2, 3, 1), y.view(1, 6), y[:, None].reshape(3, 2),
    y.t().reshape(-1), y.t().flatten(), y[::2].reshape(-1), x.transpose(1, 2).reshape(2, 12), x.mT.reshape(8, 3),  # copies
    y.ravel(), y.t().ravel(), y[:, 0].ravel(), y.t().contiguous().view(6),
):  # fmt: skip
    print(z.grad_fn.name(), z.grad_fn.next_functions[0][0].name(), z._is_view(), z.stride())
print(y[:, 0].reshape(-1, 1))
z = (y * 2)[:, 0].reshape(-1, 1)
z *= 2
print(z)
z.sum().backward()
print(y.grad)
# --- arithmetic of sizes
s = torch.zeros(2, 3, 4).shape
print(s * 2, 2 * s, s * 0, s + (5,), (5,) + s, s + s, s[1:] + s[:1], s[::-1], s[0], (*s, 1), tuple(s) + s)
print(s.numel(), s[:2].numel(), torch.Size(), torch.Size([True]), torch.Size(torch.tensor([2, 3])), f"{s}", max(s))
print(s == (2, 3, 4), hash(s) == hash((2, 3, 4)), isinstance(s, tuple), list(s), s.count(2), s.index(3), s < (3,))
for bad in ("s + [1]", "s + None", "s * 1.5", "torch.Size([2.0])", "torch.Size(['a'])", "torch.Size(5)"):
    try: print(eval(bad))
    except TypeError as error: print(bad, error)
