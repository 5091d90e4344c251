# --- jacobian
from torch.autograd.functional import jacobian, hessian, vjp, jvp, hvp, vhp
f = lambda x: torch.stack([3 * x[0] ** 2, x[0] ** 2 + 2 * x[1] ** 3, 10 * x[1]])
x = torch.tensor([1., 2.])
print(jacobian(f, x))
print(vjp(f, x, torch.tensor([1., 10., 100.])))
print(jvp(f, x, torch.tensor([1., 1.])))
print(jacobian(lambda a, b: a * b, (torch.tensor([1., 2.]), torch.tensor([3., 4.]))))
# --- hessian
from torch.autograd.functional import jacobian, hessian, vjp, jvp, hvp, vhp
g = lambda x: (x ** 3).sum() + x[0] * x[1]
x = torch.tensor([1., 2.])
print(hessian(g, x))
print(hvp(g, x, torch.tensor([1., 0.])), vhp(g, x, torch.tensor([0., 1.])))
print(torch.autograd.functional.hessian(lambda a, b: (a * b ** 2).sum(), (torch.tensor([1.]), torch.tensor([2.]))))
# --- func grad
from torch.func import grad, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian, vmap
f = lambda x: (x ** 3).sum()
x = torch.tensor([1., 2.])
print(grad(f)(x), grad_and_value(f)(x), grad(lambda x: grad(lambda x: x ** 3)(x))(torch.tensor(2.)))
print(jacrev(lambda x: x ** 2)(x), jacfwd(lambda x: x ** 2)(x), hessian(f)(x))
print(grad(lambda a, b: (a * b).sum(), argnums=1)(x, x * 2), grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x * 2))
# --- parameters in dicts
from torch.func import functional_call, vmap, grad, jacrev, vjp, jvp, hessian, grad_and_value, stack_module_state
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
params = {k: v.detach() for k, v in net.named_parameters()}
buffers = dict(net.named_buffers())
def loss(params, buffers, x, t):
    y = functional_call(net, (params, buffers), (x.unsqueeze(0),))
    return nn.functional.mse_loss(y, t.unsqueeze(0))
x, t = torch.randn(5, 3), torch.randn(5, 2)
per = vmap(grad(loss), in_dims=(None, None, 0, 0))(params, buffers, x, t)
for k, v in per.items(): print(k, v.shape, v[0])
g, value = grad_and_value(loss)(params, buffers, x[0], t[0]); print(value, list(g))
f = lambda p, x: functional_call(net, p, x)
j = jacrev(f)(params, x[0]); print({k: v.shape for k, v in j.items()}); print(j['0.bias'])
print(torch.func.jacrev(lambda x: (x**2, {'s': x.sum()}))(torch.tensor([1., 2.])))
y, pull = vjp(lambda p: f(p, x), params); (gp,) = pull(torch.ones_like(y)); print(gp['2.bias'], y)
y, d = jvp(lambda p: f(p, x), (params,), ({k: torch.ones_like(v) for k, v in params.items()},)); print(d)
print(net[0].weight.requires_grad, functional_call(net, params, x[0]))
print(vmap(lambda d: d['a'] * d['b'][0])({'a': torch.arange(3.), 'b': [torch.ones(3, 2)]}))
print(grad(lambda w: (w['a'] * w['b'][0]).sum())({'a': torch.arange(3.), 'b': (torch.ones(3),)}))
print(hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.])))
models = [nn.Linear(2, 1) for _ in range(3)]
p, bufs = stack_module_state(models); print(p, bufs)
out = vmap(lambda p, x: functional_call(models[0], p, (x,)), in_dims=(0, None))(p, torch.ones(2)); print(out.shape)
# --- vmap of a backward
a = torch.arange(3.).requires_grad_()
b = a.pow(2)
print(torch.vmap(lambda v: torch.autograd.grad(b, a, v)[0])(torch.eye(3)))
b = a.pow(2)
torch.autograd.grad(b, a, torch.ones(3))
# --- what vmap refuses
from torch.func import vmap, grad
x = torch.arange(3.)
def told(f, *args, **how):
    try: print(vmap(f, **how)(*(args or (x,))))
    except RuntimeError as error: print(error)
for f in (lambda a: a.item(), lambda a: a * float(a), lambda a: a * int(a), lambda a: a if a > 1 else -a):
    told(f)
told(lambda a: a.tolist()); told(lambda a: torch.tensor(a.numpy()))
told(lambda a: a + torch.rand(2)); told(lambda a: F.dropout(a)); told(lambda a: torch.randperm(3) + a)
try: vmap(lambda a: a, randomness="x")
except RuntimeError as error: print(error)
torch.manual_seed(0)
for how in ("different", "same"):
    told(lambda a: a + torch.rand(2), randomness=how); told(F.dropout, randomness=how); told(torch.randn_like, randomness=how)
y = torch.tensor(2.)
told(lambda a: a * y.item() if y > 1 else a)
told(lambda a: vmap(lambda b: b * 2)(torch.ones(2)).sum().item() * a)
told(lambda a: vmap(lambda b: b * 2 * a)(torch.ones(2)).sum().item() * a)
z = vmap(lambda a: a * 2)(x)
told(lambda a: a * z.sum().item())
print(z.sum().item(), bool(z[1] > 1))
vmap(lambda a: a if a > 1 else -a)(x)
# --- testing
torch.testing.assert_close(torch.tensor([1., 2.]), torch.tensor([1., 2.]))
print("close")
# --- linalg
A = torch.tensor([[2., 1.], [1., 3.]])
print(torch.linalg.norm(A), torch.linalg.det(A), torch.linalg.inv(A), torch.linalg.solve(A, torch.tensor([1., 2.])), torch.linalg.vector_norm(A), torch.linalg.matrix_norm(A))
# --- norms of matrices
A = torch.tensor([[1.0, 2.0], [3.0, -4.0]], requires_grad=True)
for order in (1, -1, float("inf"), -float("inf"), "fro"):
    y = torch.linalg.norm(A, order)
    print(y, torch.autograd.grad(y, A), torch.linalg.norm(A, ord=order, dim=(1, 0), keepdim=True))
told(lambda: torch.linalg.matrix_norm(A, 3))
# --- lanes of several results, and Jacobians of nothing
x = torch.tensor([[1.0, 3.0], [4.0, 2.0]])
print(*torch.vmap(lambda r: r.min(0))(x))
empty = torch.zeros(2, 0)
print(torch.func.jacrev(torch.sin)(empty), torch.func.jacfwd(torch.sin)(empty))
# --- functions that are transformed, and what they may not do
from torch.func import grad, vmap, jacrev, jacfwd, hessian, vjp, jvp, grad_and_value
x=torch.tensor([1.,2.])
def aux(x): return x.sin(), (x.cos(), {'a': x.sum()})
told(
    lambda: jacrev(aux,has_aux=True)(x), lambda: jacfwd(aux,has_aux=True)(x), lambda: jvp(aux,(x,),(x,),has_aux=True),
    lambda: vjp(aux,x,has_aux=True)[2], lambda: vmap(grad(lambda x: (x**3).sum()))(torch.eye(2)),
)
def f(x):
    y=torch.ones(2).requires_grad_()
    return (x*y).sum()
told(lambda: grad(f)(x))
def k(x):
    (x*x).sum().backward(); return x.grad
told(
    lambda: grad(k)(x), lambda: vmap(k)(x), lambda: vmap(lambda x: torch.autograd.functional.jacobian(torch.sin,x))(x),
    lambda: torch.autograd.functional.jacobian(grad(lambda z: z.sin().sum()), x),
)
x.requires_grad_(); print(x)
d={'w':torch.eye(2),'b':torch.ones(2)}
told(
    lambda: vmap(lambda p, x: p['w']@x+p['b'], in_dims=({'w':None,'b':None},0))(d, torch.eye(2)),
    lambda: vmap(lambda p, x: p['w']*x+p['b'], in_dims=({'w':0,'b':None},0))(d, torch.eye(2)),
    lambda: vmap(lambda p: p[0]*p[1], in_dims=((0,1),))((torch.eye(2),torch.arange(4.).view(2,2))),
    lambda: vmap(lambda p: p[0]*p[1], in_dims=([0,1],))((torch.eye(2),torch.arange(4.).view(2,2))),
    lambda: vmap(lambda a,b: (a,b), out_dims=(0,1))(torch.eye(2),torch.arange(6.).view(2,3)),
    lambda: vmap(lambda a,b: (a,b), in_dims=(0,))(torch.eye(2),torch.arange(6.).view(2,3)),
    lambda: vmap(lambda a: a, in_dims=None)(torch.eye(2)), lambda: vmap(lambda a: a, out_dims=1)(torch.eye(2)),
    lambda: vmap(lambda a, b: a*b, in_dims=(0,None))(torch.eye(2), 3.), lambda: vmap(lambda a: 3.)(torch.eye(2)),
    lambda: vmap(torch.dot, in_dims=(-1,0))(torch.arange(6.).view(2,3),torch.arange(6.).view(3,2)),
    lambda: jacrev(jacrev(lambda x: x.sin().sum()))(x),
)
# --- Jacobians of what does not stand in order
x = torch.arange(6.0).reshape(2, 3)
print(torch.autograd.functional.jacobian(lambda x: x.t(), x))
print(torch.func.jacrev(lambda x: (x * 2).T)(x.T), torch.func.jacfwd(lambda x: x.T * 2)(x.T))
# --- gradients that autograd.grad is asked for in transforms
from torch.func import grad, vmap
rows, w = torch.ones(3, 2, requires_grad=True), torch.tensor([1., 2.], requires_grad=True)
told(
    lambda: vmap(lambda x: torch.autograd.grad((x*w).sum(), w)[0])(rows),
    lambda: vmap(lambda x: torch.autograd.grad((x*w).sum(), x)[0])(rows),
    lambda: vmap(lambda x: torch.autograd.grad((w*w).sum(), w)[0] + x)(rows),
    lambda: grad(lambda x: torch.autograd.grad((x**2*w).sum(), x, create_graph=True)[0].sum())(rows[0].detach()),
    lambda: vmap(grad(lambda x: (x**2*w).sum()))(rows), lambda: vmap(lambda x: torch.func.jacrev(lambda t: t*w)(x))(rows),
)
# --- where several tensors are not close
def told(f):
    try: f()
    except AssertionError as error: print(error)
a, b = torch.tensor([0.0, 1.0, 2.0, 0.0]), torch.tensor([0.0, 1.0, 0.0, 0.0])
told(lambda: torch.testing.assert_close(a, b))
told(lambda: torch.testing.assert_close((a, b), [a, a]))
told(lambda: torch.testing.assert_close([a, (b, a)], [a, (b, b[:2])]))
told(lambda: torch.testing.assert_close([1.0, 2.0], [1.0, 2.5]))
told(lambda: torch.testing.assert_close(torch.zeros(3), torch.tensor([0.0, 1.0, 0.0])))
told(lambda: torch.testing.assert_close(torch.tensor(0.5), torch.tensor(0.0)))
# --- zeros of Hessians
from torch.func import hessian
x = torch.tensor([1.5, -0.5, 2.0])
for f in (lambda x: x.sin().sum(), lambda x: (x**3).sum(), lambda x: -(x**2).sum(), lambda x: (1 / x).sum()):
    print(hessian(f)(x))
print(hessian(lambda x: x[0] * x[1] + x[2].sin())(x))
# --- func: modes outside, and what stands beside a result
from torch.func import grad, grad_and_value, vjp, jvp, jacrev, hessian, jacfwd
x = torch.tensor(1.5, requires_grad=True)
def shifted(x):
    with torch.no_grad():
        _, value = grad_and_value(lambda x: x**3)(x)
        _, pushed = jvp(lambda x: x**2, (x,), (torch.ones(()),))
    return x**3 - value - pushed * x
y = grad(shifted)(x)
print(y, torch.autograd.grad(y, x))
with torch.no_grad():
    print(grad(torch.sin)(x), jacrev(torch.sin)(x), hessian(torch.sin)(x), vjp(torch.sin, x)[0], jvp(torch.sin, (x,), (x,)))
out, pull = vjp(torch.sin, x)
with torch.no_grad():
    print(pull(torch.tensor(1.)), out.requires_grad)
out, pull = vjp(lambda x: (torch.tensor(2.), x * 2), torch.tensor(1.))
print(pull((torch.tensor(1.), torch.tensor(1.))))
out, pull = vjp(lambda x: torch.tensor(2.), torch.tensor(1.))
print(pull(torch.tensor(1.)))
told(
    lambda: grad(torch.sin, has_aux=True)(x), lambda: vjp(torch.sin, x, has_aux=True), lambda: jvp(torch.sin, (x,), (x,), has_aux=True),
    lambda: jacrev(torch.sin, has_aux=True)(x), lambda: jacfwd(torch.sin, has_aux=True)(x),
)
# --- what is asserted to be close in lists and dicts, and what cannot be
import numpy as np
p = nn.Parameter(torch.ones(2))
pairs = [
    (p, p.data), (torch.ones(2), [1., 1.]), (1, 1.0), (1, 2), (True, False), ([p], [p.data]), ([1], [1, 2]), ("a", "a"),
    ({"a": 1}, {"a": 2.}), ({"a": 1, "b": 2}, {"a": 1, "c": 3}), (None, None), (1, torch.tensor(1)), (1., 2.),
    (np.ones(2), np.zeros(2)), (np.ones(2), torch.ones(2)), (torch.ones(2, 3).t(), torch.ones(3, 2)), ([torch.ones(2)], [torch.ones(3)]),
]
how = [
    {}, {"allow_subclasses": False}, {"check_dtype": False}, {"check_stride": True}, {"rtol": 0.1},
    {"rtol": 0., "atol": 1.5}, {"msg": "far"}, {"msg": lambda text: "well: " + text},
]
for settings in how:
    for a, b in pairs:
        try:
            torch.testing.assert_close(a, b, **settings)
            print("close")
        except Exception as error:
            print(type(error).__name__, error)
# --- v and tangents that do not fit in func
from torch.func import vjp, jvp
x = torch.tensor([1., 2.])
calls = [
    lambda: vjp(lambda x: {"a": x.sin(), "b": x.cos()}, x)[1](x), lambda: vjp(lambda x: (x, x), x)[1](x),
    lambda: vjp(lambda x: [x, (x, x)], x)[1]((x, x)), lambda: vjp(lambda x: x, x)[1]((x,)),
    lambda: vjp(lambda x: {"a": [x]}, x)[1]({"b": x}), lambda: vjp(lambda x: {"a": [x]}, x)[1]({"a": [x]}),
    lambda: jvp(lambda x: x, x, x), lambda: jvp(lambda x: x, (x,), (torch.ones(3),)),
]
for call in calls:
    told(lambda: call())
# --- signs of 0, axes that do not meet, what asarray copies
x = torch.tensor([1., -2., 0., -0.], requires_grad=True)
y = torch.copysign(x, torch.tensor([-1., 2., -3., 1.]))
y.sum().backward()
print(y, x.grad, torch.copysign(torch.tensor([1, 2]), -0.0), torch.copysign(y.detach(), torch.tensor(float("-inf"))))
for dims in (1, 2, ([0], [1]), ([0, 1], [1, 0])):
    told(lambda: torch.tensordot(torch.ones(3, 4, 5), torch.ones(4, 3, 2), dims).shape)
a = torch.ones(3)
print(*[torch.asarray(a, copy=copy).data_ptr() == a.data_ptr() for copy in (None, True, False)], torch.asarray([1, 2]))
# --- elements of a vmap are not written into a tensor that is none
def copied(y):
    z = torch.zeros(5)
    z.copy_(y)
    return z
def assigned(y):
    z = torch.zeros(5)
    z[:2] = y[:2]
    return z
def by_mask(y):
    z = torch.zeros(5)
    z[y > 0] = 1.0
    return z
ways = {"copied": copied, "assigned": assigned, "by_mask": by_mask}
for name in ("add_", "sub_", "mul_", "fill_"):
    ways[name] = lambda y, name=name: getattr(torch.zeros(5), name)(y[0] if name == "fill_" else y)
ways["a view"] = lambda y: torch.zeros(5).view(5).add_(y)
ways["zeros_like"] = lambda y: torch.zeros_like(y).copy_(y)
ways["new_zeros"] = lambda y: y.new_zeros(5).add_(y)
ways["no element"] = lambda y: torch.zeros(5).copy_(torch.ones(5)) + y
ways["a clone"] = lambda y: y.clone().mul_(torch.ones(5))
for name, f in ways.items():
    try: print(name, torch.vmap(f)(torch.ones(3, 5)).shape)
    except RuntimeError as error: print(name, error)
# --- derivatives that are strict
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
x = torch.ones(2)
ways = {
    "cut": lambda: jacobian(lambda x: x.detach() * 2, x, strict=True),
    "constant": lambda: jacobian(lambda x: torch.ones(2), x, strict=True), "right": lambda: jacobian(lambda x: x * 2, x, strict=True),
    "unused": lambda: jacobian(lambda x, y: x * 2, (x, x), strict=True),
    "second output": lambda: jacobian(lambda x: (x * 2, torch.ones(1)), x, strict=True),
    "linear": lambda: jacobian(lambda x: x * 2, x, strict=True, create_graph=True),
    "square": lambda: jacobian(lambda x: x**2, x, strict=True, create_graph=True),
    "vectorized": lambda: jacobian(lambda x: x * 2, x, strict=True, vectorize=True),
    "hessian": lambda: hessian(lambda x: (x**2).sum(), x, strict=True),
    "hessian of a linear": lambda: hessian(lambda x: (x * 2).sum(), x, strict=True),
    "hessian, unused": lambda: hessian(lambda x, y: (x**2).sum(), (x, x), strict=True),
    "hessian, partly linear": lambda: hessian(lambda x, y: (x**2).sum() + y.sum(), (x, x), strict=True),
    "hessian, cut": lambda: hessian(lambda x: x.detach().sum(), x, strict=True),
    "hessian, bilinear": lambda: hessian(lambda x, y: (x * y).sum(), (x, x), strict=True),
    "vjp": lambda: vjp(lambda x: x.detach() * 2, x, x, strict=True), "vjp, unused": lambda: vjp(lambda x, y: x * 2, (x, x), x, strict=True),
    "vjp, constant": lambda: vjp(lambda x: x.detach() * 2, x, x), "jvp": lambda: jvp(lambda x: x.detach() * 2, x, x, strict=True),
    "jvp, unused": lambda: jvp(lambda x, y: x * 2, (x, x), (x, x), strict=True),
    "jvp, right": lambda: jvp(lambda x: x * 2, x, x, strict=True), "vhp": lambda: vhp(lambda x: (x * 2).sum(), x, x, strict=True),
    "hvp": lambda: hvp(lambda x: (x.detach() * 2).sum(), x, x, strict=True),
}
for name, f in ways.items():
    try: print(name, f())
    except RuntimeError as error: print(name, error)
# --- a function that is linearized
import warnings
warnings.simplefilter("ignore")
y, along = torch.func.linearize(lambda x, y: (x * y, x.sin()), torch.ones(2), torch.tensor([2.0, 3.0]))
print(y, along(torch.ones(2), torch.zeros(2)), along(torch.zeros(2), torch.ones(2)))
