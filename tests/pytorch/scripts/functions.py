# --- where of what is no tensor
import numpy as np
x = torch.arange(3.)
yes = x > 1
cases = [(yes, [1.0], x), (yes, x, (1, 2)), ([True], x, x), (yes, None, x), (yes, 1.0, "a"), (yes, x, np.ones(3)), (yes, x)]
cases += [(yes, [1], [2.0]), (yes, [], x), (yes, [x], x), (yes, [1, [2]], x), (1, x, x), (yes, True, np.float32(1))]
for case in cases:
    told(lambda: torch.where(*case))
x.where(yes, [1.0])
# --- non differentiable
class Top(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        v, i = x.max(0)
        ctx.mark_non_differentiable(i)
        ctx.i = i
        ctx.n = len(x)
        return v, i
    @staticmethod
    def backward(ctx, g, _):
        out = torch.zeros(ctx.n)
        out[ctx.i] = g
        return out
x = torch.tensor([1., 3., 2.], requires_grad=True)
v, i = Top.apply(x)
print(v, i, i.requires_grad)
v.backward()
print(x.grad)
# --- straight through
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.round()
    @staticmethod
    def backward(ctx, g): return g
x = torch.tensor([0.4, 1.6], requires_grad=True)
y = Round.apply(x)
(y ** 2).sum().backward()
print(y, x.grad)
# --- gradcheck of a wrong one
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * g
x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(Wrong.apply, x, raise_exception=False))
torch.autograd.gradcheck(Wrong.apply, x)
# --- what an own step is shown as
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return g * 2
y = Twice.apply(torch.ones(2, requires_grad=True))
print(str(y.grad_fn).split(" object")[0], y)
# --- log1p and expm1 at their ends
x = torch.tensor([-1.0, -1.5, -0.0, 1e-30, 1e-9, -17.0, float("inf"), -float("inf"), 2e-4])
print(x.log1p(), x.expm1())
x = x.repeat(8)
print(x.log1p()[:9], x.expm1()[:9], F.elu(x)[:9].tolist())
# --- what a backward may not return
class Scaled(torch.autograd.Function):
    returned = None
    @staticmethod
    def forward(ctx, x, n): return x * n
    @staticmethod
    def backward(ctx, g): return Scaled.returned(g)
x = torch.ones(2, 2, requires_grad=True)
for n, returned in (
    (2, lambda g: (g, g)), (2, lambda g: (g, 3)), (2, lambda g: [g, None]), (2, lambda g: ([g], None)), (2, lambda g: (g.numpy(), None)),
    (torch.tensor(2.0), lambda g: (2.0, None)), (torch.tensor(2.0), lambda g: (g, g.sum())),
):
    Scaled.returned = returned
    try:
        Scaled.apply(x, n).sum().backward()
        print(x.grad)
    except RuntimeError as e:
        print(e)
# --- a function as an instance
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return g * 2
twice = Twice()
y = twice.apply(torch.ones(2, requires_grad=True))
print(y, y.grad_fn, type(y.grad_fn), y.grad_fn.name())
twice(torch.ones(2))
# --- a view that a function made, changed in place
class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view(-1)
    @staticmethod
    def backward(ctx, g): return g.view(2, 2)
class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y): return x * y, x
    @staticmethod
    def backward(ctx, g, h): return g, g
def attempt(change):
    told(lambda: change())
x = torch.ones(2, 2, requires_grad=True)
y = Flat.apply(x * 1)
print(y, y.output_nr)
attempt(lambda: y.mul_(2))
y, z = Both.apply(x * 1, x)
attempt(lambda: z.mul_(2))
attempt(lambda: y.mul_(2))
relu = nn.ReLU(inplace=True)
relu.register_full_backward_hook(lambda *_: print("hook"))
print(relu(torch.ones(2)))
attempt(lambda: relu(x * 1))
linear = nn.Linear(2, 2)
linear.register_full_backward_hook(lambda *_: print("hook"))
attempt(lambda: linear(torch.ones(1, 2)).add_(1))
linear = nn.Linear(2, 1)
handle = linear.register_full_backward_hook(lambda module, into, out: into[0])
print(handle)
attempt(lambda: linear(torch.ones(2, requires_grad=True)).backward())
# --- what cannot be saved
class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x, None, n)
        return x * n
    @staticmethod
    def backward(ctx, g): return g * ctx.saved_tensors[2], None
print(Times.apply(torch.ones(2), 3))
Times.apply(torch.ones(2, requires_grad=True), 3)
# --- gradcheck of what needs no gradient
torch.autograd.gradcheck(lambda x: x**2, (torch.ones(2),))
# --- a gradient of another dtype
class Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return g.double()
x = torch.ones(2, requires_grad=True)
Wide.apply(F.gelu(x, approximate="tanh")).sum().backward()
print(x.grad)
# --- weights that gradgradcheck draws
torch.manual_seed(0)
x = torch.rand(3, dtype=torch.float64, requires_grad=True)
class Forgetful(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        return ctx.y.clone()
    @staticmethod
    def backward(ctx, g): return g * ctx.y
print(torch.autograd.gradcheck(Forgetful.apply, x))
told(lambda: torch.autograd.gradgradcheck(Forgetful.apply, x))
print(torch.rand(2))
# --- matrices times vectors, and gradients of roots
torch.manual_seed(0)
for rows in range(1, 8):
    for kind in (torch.float32, torch.float64):
        a, v = (torch.randint(-9999, 9999, size).to(kind) / 777 for size in ((rows, 50), (1, 50)))
        print((a @ v.t()).flatten().tolist(), (v @ a.t()).tolist(), torch.nn.functional.linear(a, v).tolist())
for exponent in (0.5, -0.5, 1.5):
    x = (torch.arange(1.0, 12) / 7).requires_grad_()
    (x**exponent).sum().backward()
    print(x.grad.tolist())
# --- arguments at the edge
told(
    lambda: torch.arange(6).view(2, 3).flip(()), lambda: torch.arange(6).view(2, 3).flip(dims=[]),
    lambda: torch.addmm(torch.ones(2, 2).long(), torch.ones(2, 2).long(), torch.ones(2, 2).long(), beta=1.7, alpha=2.5),
    lambda: torch.addmv(torch.ones(2).long(), torch.ones(2, 2).long(), torch.ones(2).long(), beta=1.7, alpha=2.5),
    lambda: torch.addmm(torch.arange(3.), torch.ones(2, 0), torch.ones(0, 3)),
    lambda: torch.diff(torch.tensor([1., 3.]), n=0, prepend=torch.ones(1)), lambda: torch.diff(torch.tensor([1., 3.]), n=-1),
    lambda: torch.tensor(3.).kthvalue(1, 0, True), lambda: F.prelu(torch.tensor(-3.), torch.tensor([0.5])),
    lambda: F.prelu(torch.tensor(-3.), torch.tensor([0.5, 1])), lambda: torch.arange(0.0, -8.000001, -4.0, dtype=torch.int64),
    lambda: torch.arange(-0.9, 2.1, 2.0, dtype=torch.int32), lambda: torch.arange(0.5, 3, dtype=torch.int64),
    lambda: torch.arange(0.5, 3.7, 1.2, dtype=torch.int32),
)
x = torch.tensor([1, 200], dtype=torch.uint8)
told(
    lambda: x.cumsum(0, dtype=torch.uint8), lambda: x.cumsum(0, dtype=torch.float64),
    lambda: F.softmin(torch.tensor([1, 2], dtype=torch.uint8), 0, dtype=torch.float64),
    lambda: torch.cdist(torch.ones(2, 2), torch.zeros(3, 2), 2.0, "donot_use_mm_for_euclid_dist"),
    lambda: torch.cdist(torch.ones(2, 2), torch.zeros(3, 2), compute_mode="donot_use_mm_for_euclid_dist"),
    lambda: F.pad(torch.arange(6.).view(1, 2, 3), (-1, 1), mode="replicate"),
    lambda: F.pad(torch.arange(6.).view(1, 2, 3), (-1, 1), mode="circular"),
    lambda: F.pad(torch.arange(6.).view(1, 2, 3), (-1, 1), mode="reflect"), lambda: F.pad(torch.arange(6.).view(1, 2, 3), (-1, 1)),
    lambda: torch.tensor([1.,2]).flipud(), lambda: torch.tensor(1.).flipud(), lambda: F.gelu(torch.ones(1), approximate="asdf"),
    lambda: F.embedding(torch.tensor([0]), torch.ones(1, 1, 1)), lambda: torch.isclose(torch.ones(1), torch.ones(1), rtol=-0.4),
    lambda: torch.addcdiv(torch.ones(2).long(), torch.ones(2).long(), torch.ones(2).long()), lambda: torch.add(1, 1, alpha=True),
    lambda: torch.add(torch.ones(2), 1, alpha=True), lambda: torch.add(torch.ones(2).long(), 1, alpha=True),
)
x = torch.arange(6.).view(2, 3).requires_grad_()
told(
    lambda: x.flip(0, 1), lambda: x.flip([1]), lambda: torch.flip(input=x, dims=[0, 1]), lambda: x.flip(()), lambda: torch.arange(0, 3, 0),
    lambda: torch.linspace(0, 1, -1), lambda: torch.arange(0.5, 4.2, 1.7, dtype=torch.int32),
    lambda: torch.linalg.solve(2 * torch.eye(3).expand(2, 3, 3), torch.arange(6.).view(2, 3)),
)
# --- nothing in a batch
def linear():
    e, w, b = (torch.ones(*n, requires_grad=True) for n in ((0, 3), (4, 3), (4,)))
    y = F.linear(e, w, b)
    y.sum().backward()
    return y, e.grad, w.grad, b.grad
told(linear)
def product():
    a, b = torch.ones(5, 4, 0, requires_grad=True), torch.ones(0, 3, requires_grad=True)
    y = a @ b
    y.sum().backward()
    return y.shape, a.grad, b.grad
told(product)
told(lambda: torch.ones(0, 3).view(-1, 0))
# --- places of other axes
q = torch.arange(6.).view(3, 2)
a = torch.tensor([1, 0, 1])
told(
    lambda: q.gather(1, a), lambda: torch.gather(q, 1, a), lambda: q.gather(1, a.unsqueeze(1)),
    lambda: q.gather(1, torch.zeros(4, 1).long()), lambda: q.gather(0, torch.zeros(4, 1).long()),
    lambda: q.gather(0, torch.zeros(1, 3).long()), lambda: q.scatter(1, a, 1.), lambda: q.scatter_add(1, a, q),
    lambda: q.scatter(1, torch.zeros(4, 1).long(), 1.), lambda: q.scatter(1, torch.zeros(3, 2).long(), torch.ones(3, 1)),
    lambda: q.scatter_add(1, torch.zeros(4, 1).long(), torch.ones(4, 1)), lambda: q.gather(1, a.unsqueeze(1).float()),
    lambda: q.scatter(1, a.unsqueeze(1), torch.ones(3, 1).double()), lambda: q.gather(1, torch.tensor([[2]])),
    lambda: q.gather(1, torch.tensor(1)), lambda: torch.tensor(3.).gather(0, torch.tensor([0])),
    lambda: torch.tensor(3.).gather(0, torch.tensor(0)),
)
# --- signs of remainders that are 0
x = torch.tensor([-4., 4., -0., 0., -2., 3., float("inf"), -3.5])
for d in (2., -2., torch.tensor(-2.), torch.tensor(2.)):
    print(torch.remainder(x, d), x % d, torch.fmod(x, d), x // d)
print(torch.remainder(-4., torch.tensor([2., -2.])), 4. % torch.tensor([-2., 2.]), torch.tensor([-7, 7]) % torch.tensor([3, -3]))
y = torch.tensor([-4., 3.], requires_grad=True)
(y % 2).sum().backward()
print(y.grad)
# --- medians of numbers alone, products at indices, random slopes
nan = float("nan")
m = torch.tensor([[1., nan, 3., 2.], [nan, 5., 5., 1.], [nan] * 4], requires_grad=True)
print(m.nanmedian(), m[:2].nanmedian(1), m.nanmedian(1).values, torch.nanmedian(m, 0, keepdim=True), torch.nanmedian(m[2]))
m.nanmedian().backward()
print(m.grad)
m.nanmedian(1).values[:2].sum().backward()
print(m.grad, torch.tensor(3.).nanmedian(0))
a = torch.tensor([[1., 2., 3.], [4., 5., 6.]], requires_grad=True)
s = torch.tensor([[2., 3., 0.], [5., -1., 7.]], requires_grad=True)
index = torch.tensor([[0, 1, 0], [1, 1, 1]])
for include in (True, False):
    for d in (0, 1):
        r = a.scatter_reduce(d, index, s, "prod", include_self=include)
        print(r, *torch.autograd.grad((r * torch.arange(1., 7).view(2, 3)).sum(), (a, s)))
torch.manual_seed(1)
y = torch.randn(3, 4, requires_grad=True)
r = F.rrelu(y, training=True)
r.sum().backward()
print(r, y.grad, F.rrelu(y), nn.RReLU(), nn.RReLU(0.1, 0.3, True), torch.rand(2))
layer = nn.RReLU()
print(layer(y), layer.eval()(y), F.rrelu(y.detach().clone(), training=True, inplace=True), torch.rand(1))
# --- vectors on diagonals, and functions of layers under torch
torch.manual_seed(0)
x=torch.randn(2,3,requires_grad=True)
for args in ((),(1,),(-1,),(0,0,1),(0,1,2),(1,0,2),(0,-1,0),(0,2,0)):
    y=torch.diag_embed(x,*args); print(y, y.shape); print(torch.autograd.grad((y*torch.arange(y.numel()).reshape(y.shape)).sum(),x))
print(torch.tensor([1.,2.]).diag_embed(), torch.diag(torch.tensor([1,2]),1), x.diag_embed(offset=1,dim1=0,dim2=1).grad_fn.name())
a,b=torch.randn(4,3,requires_grad=True),torch.randn(4,3)
print(torch.cosine_similarity(a,b), torch.cosine_similarity(a,b,dim=0,eps=1e-6), torch.pairwise_distance(a,b), torch.pairwise_distance(a,b,1.,1e-6,True))
print(torch.layer_norm(a,(3,)), torch.group_norm(torch.randn(2,4,3),2), torch.pixel_shuffle(torch.randn(1,4,2,2),2), torch.pixel_unshuffle(torch.randn(1,1,2,2),2))
print(torch.bilinear(a,b,torch.randn(2,3,3)), torch.rrelu(a))
torch.cosine_similarity(a,b).sum().backward(); print(a.grad)
# --- rolls, of numbers too
x=torch.arange(6.,requires_grad=True).view(2,3); n=torch.tensor(1.)
def t(f):
    try: r=f(); print(r, r.grad_fn and r.grad_fn.name())
    except Exception as e: print(type(e).__name__, e)
for f in (
    lambda: x.roll(1), lambda: x.roll(1,0), lambda: x.roll((1,2),(0,1)), lambda: torch.roll(x,shifts=1,dims=-1), lambda: n.roll(1), lambda: n.roll(1,0), lambda: n.roll(1,()), lambda: x.roll(), lambda: x.roll((1,2),0), lambda: x.roll(1,5), lambda: torch.roll(1,1), lambda: x.roll(1,(0,1)), lambda: x.roll("a"), lambda: x.roll(1, None), lambda: x.roll(shifts=(1,),dims=(1,))
): t(f)
