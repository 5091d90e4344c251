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
# --- func vjp and jvp
from torch.func import vjp, jvp
x = torch.tensor([1., 2.])
y, pull = vjp(lambda x: x ** 2, x)
print(y, pull(torch.tensor([1., 10.])))
print(jvp(lambda x: x ** 2, (x,), (torch.tensor([1., 1.]),)))
# --- vmap
x = torch.arange(6.).view(3, 2)
print(torch.vmap(lambda v: v.sum())(x), torch.func.vmap(torch.func.grad(lambda v: (v ** 2).sum()))(x), torch.vmap(torch.dot)(x, x))
# --- grad of a vector
torch.func.grad(lambda x: x * 2)(torch.ones(2))
# --- testing
torch.testing.assert_close(torch.tensor([1., 2.]), torch.tensor([1., 2.]))
print("close")
# --- linalg
A = torch.tensor([[2., 1.], [1., 3.]])
print(torch.linalg.norm(A), torch.linalg.det(A), torch.linalg.inv(A), torch.linalg.solve(A, torch.tensor([1., 2.])), torch.linalg.vector_norm(A), torch.linalg.matrix_norm(A))
