# --- hooks of a forward that take keyword arguments
class Scaled(nn.Module):
    def forward(self, x, scale=1.0, *, mask=None): return x * scale if mask is None else x * scale * mask
m, x, mask = Scaled(), torch.ones(1, 2), torch.tensor([1.0, 0.0])
def before(module, args, kwargs):
    print("before", type(module).__name__, args, kwargs)
    return args, {**kwargs, "scale": 3.0}
def behind(module, args, kwargs, result):
    print("behind", args, kwargs, result)
    return result + 1
handles = m.register_forward_pre_hook(before, with_kwargs=True), m.register_forward_hook(behind, with_kwargs=True)
print(m(x, mask=mask), m(x=x))
for handle in handles:
    handle.remove()
print(m(x, scale=2.0))
m.register_forward_pre_hook(lambda module, args: print("second", args))
m.register_forward_pre_hook(lambda module, args, kwargs: None, with_kwargs=True)
m.register_forward_pre_hook(lambda module, args: print("first"), prepend=True)
m.register_forward_hook(lambda module, args, result: print("second", args, result))
m.register_forward_hook(lambda module, args, result: print("first"), prepend=True)
m(x, scale=2.0)
for wrong in (lambda module, a, k: (a,), lambda module, a, k: [a, k]):
    m = Scaled()
    m.register_forward_pre_hook(wrong, with_kwargs=True)
    told(lambda: m(x))
# --- hooks before a backward
def before(module, grads):
    print("before", type(module).__name__, grads)
    return (grads[0] * 10,)
m, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
nn.init.ones_(m.weight)
handle = m.register_full_backward_pre_hook(before)
m(x).sum().backward()
print(type(handle).__name__, x.grad, m.weight.grad, m.bias.grad)
m.register_full_backward_hook(lambda module, grads, outer: print("behind", grads, outer))
for _ in range(2):
    x.grad = None
    m(x).sum().backward()
    print(x.grad)
    handle.remove()
m = nn.Linear(2, 2)
m.register_full_backward_pre_hook(lambda module, grads: [grads[0] * 2])
m.register_full_backward_pre_hook(lambda module, grads: print("second", grads))
m.register_full_backward_pre_hook(lambda module, grads: print("first", grads), prepend=True)
m(torch.ones(1, 2)).sum().backward()
print(m.weight.grad)
for wrong in (3, (1, 2), torch.ones(1)):
    m = nn.Linear(2, 2)
    m.register_full_backward_pre_hook(lambda module, grads: wrong)
    told(lambda: m(torch.ones(1, 2)).sum().backward())
# --- hooks of all layers before and behind a backward
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
for p in net.parameters():
    nn.init.constant_(p, 0.5)
for name, m in net.named_children():
    m.register_full_backward_pre_hook(lambda module, grads, name=name: print("before", name, grads))
    m.register_full_backward_hook(lambda module, grads, outer, name=name: print("behind", name, grads, outer))
    m.register_full_backward_hook(lambda module, grads, outer, name=name: print("first", name), prepend=True)
net(torch.ones(1, 2)).sum().backward()
# --- gradients of a backward that is once differentiable
from torch.autograd.function import once_differentiable
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return y * g, x * g
a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
print(torch.autograd.grad(Product.apply(a, b), (a, b), create_graph=True))
first, second = torch.autograd.grad(Product.apply(a, b) ** 2, (a, b), create_graph=True)
print(first, second, first.grad_fn.name(), first.is_leaf)
print(torch.autograd.grad(first + second, a, allow_unused=True))
(first + second).backward()
# --- a double backward that reaches the inputs alone calls no hook
loss, x, y = nn.MSELoss(), torch.tensor([1.0], requires_grad=True), torch.tensor([3.0])
loss.register_full_backward_hook(lambda module, grads, outer: print("behind", [g.detach() for g in grads], outer))
f = loss(x, y)
(g,) = torch.autograd.grad(f, x, create_graph=True)
print(torch.autograd.grad(g.sum(), x))
net = nn.Sequential(nn.Linear(1, 1), nn.Tanh())
nn.init.ones_(net[0].weight), nn.init.zeros_(net[0].bias)
net.register_full_backward_hook(lambda module, grads, outer: print("behind", [g.detach() for g in grads], outer))
f = net(x)
for _ in range(2):
    f.sum().backward(retain_graph=True)
(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
g.sum().backward()
print(x.grad)
