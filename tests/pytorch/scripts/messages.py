# --- second backward
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x**2).sum()
y.backward()
y.backward()
# --- other shape
x = torch.tensor([1.0, 2.0], requires_grad=True)
(x * 2).backward(torch.ones(3))
# --- leaf element
x = torch.tensor([1.0, 2.0], requires_grad=True)
x[0] = 1
# --- anomaly in place
with torch.autograd.set_detect_anomaly(True):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y += 1
    y.sum().backward()
# --- anomaly nan
with torch.autograd.set_detect_anomaly(True):
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = (x.sqrt() * 0).sum()
    y.backward()
# --- integers
x = torch.tensor([1, 2], requires_grad=True)
# --- integers later
x = torch.tensor([1, 2]).requires_grad_()
# --- grad unused
x = torch.tensor(1.0, requires_grad=True)
z = torch.tensor(2.0, requires_grad=True)
torch.autograd.grad(x * 2, z)
# --- grad of what needs none
x = torch.tensor(1.0, requires_grad=True)
z = torch.tensor(2.0)
torch.autograd.grad(x * z, z)
# --- numpy
x = torch.tensor([1.0], requires_grad=True)
x.numpy()
# --- deepcopy
import copy

x = torch.tensor([1.0], requires_grad=True)
copy.deepcopy(x * 2)
# --- requires_grad False
x = torch.tensor([1.0], requires_grad=True)
y = x * 2
y.requires_grad = False
# --- out
x = torch.tensor([1.0], requires_grad=True)
z = torch.zeros(1)
torch.add(x, 1, out=z)
# --- grad of an intermediate
x = torch.tensor([1.0], requires_grad=True)
y = x * 2
y.sum().backward()
print(y.grad)
# --- item
torch.tensor([1.0, 2.0]).item()
# --- if
if torch.tensor([1.0, 2.0]):
    pass
# --- dtype
torch.ones(2, 3) @ torch.ones(3, 2).double()
# --- inference
with torch.inference_mode():
    w = torch.ones(2)
x = torch.ones(2, requires_grad=True)
(x * w).sum().backward()


# --- too few gradients
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod
    def backward(ctx, g):
        return g


x = torch.ones(2, requires_grad=True)
y = torch.ones(2, requires_grad=True)
Fn.apply(x, y).sum().backward()


# --- wrong gradient shape
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, g):
        return torch.ones(3)


x = torch.ones(2, requires_grad=True)
Fn.apply(x).sum().backward()


# --- no backward
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2


x = torch.ones(2, requires_grad=True)
Fn.apply(x).sum().backward()
# --- assigned grad of another shape
x = torch.ones(2, requires_grad=True)
x.grad = torch.ones(3)
# --- assigned number
x = torch.ones(2, requires_grad=True)
x.grad = 1.0
# --- more outputs than gradients
x = torch.ones(2, requires_grad=True)
torch.autograd.grad([x.sum(), (x * 2).sum()], x, grad_outputs=[torch.tensor(1.0)])
# --- optimizer of an intermediate
x = torch.ones(2, requires_grad=True)
torch.optim.SGD([x * 2], lr=0.1)
# --- rows in place
x = torch.ones(2, 2, requires_grad=True)
y = x * 1
for row in y:
    row += 1
# --- a view made under no_grad
x = torch.ones(2, requires_grad=True)
y = x * 1
with torch.no_grad():
    v = y[0]
v += 1
# --- retain_grad
x = torch.ones(2)
x.retain_grad()
# --- register_hook
x = torch.ones(2)
x.register_hook(lambda g: g)
# --- tensor of a tensor
x = torch.ones(2)
y = torch.tensor(x)
print(y)
# --- create_graph
x = torch.tensor(2.0, requires_grad=True)
y = x**3
y.backward(create_graph=True)
print(x.grad)
# --- do not broadcast
torch.ones(2) + torch.ones(3)
# --- matrices do not fit
torch.ones(2, 3) @ torch.ones(2, 3)


# --- no parameter
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))


net = Net()
net.w = torch.ones(2)
# --- once differentiable
from torch.autograd.function import once_differentiable


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a**2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return 2 * a * g


x = torch.tensor(3.0, requires_grad=True)
(g,) = torch.autograd.grad(Fn.apply(x), x, create_graph=True)
print(g.item())
g.backward()
# --- mse warns
print(F.mse_loss(torch.ones(3, 1), torch.zeros(3)))
# --- cross entropy of floats
F.cross_entropy(torch.ones(2, 3), torch.tensor([0.0, 1.0]))
# --- bce of other shapes
F.binary_cross_entropy_with_logits(torch.ones(2, 1), torch.ones(2))
# --- bounds of activations
def told(make):
    try:
        print(make())
    except (RuntimeError, ValueError, AssertionError) as error:
        print(type(error).__name__, error)


x = torch.tensor([-2.0, 0.1, 1.5])
for low, high in ((2.0, 1.0), (1.0, 1.0)):
    told(lambda: F.hardtanh(x, low, high))
    told(lambda: F.hardtanh_(x.clone(), low, high))
    told(lambda: nn.Hardtanh(low, high))
for lambd in (-1.0, 0.0, 1e39, -0.123456789, float("nan")):
    told(lambda: F.softshrink(x, lambd))
    told(lambda: F.softshrink(x.double(), lambd))
    told(lambda: nn.Softshrink(lambd)(x))
told(lambda: F.hardshrink(x, -1.0))
told(lambda: F.hardtanh(x, 5.0))
# --- zero_ of None
x = torch.ones(2, requires_grad=True)
x.grad.zero_()
# --- gradients that are no tensors
x = torch.ones(2, requires_grad=True)
(x * 2).backward([1.0, 1.0])
# --- a saved input changed
x = torch.tensor([1.0, 2.0], requires_grad=True)
w = x * 1
z = w * w
w += 1
z.sum().backward()
# --- a saved constant changed
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.tensor([1.0, 2.0])
z = x * y
y += 1
z.sum().backward()
# --- a leaf changed under no_grad
x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([1.0, 2.0], requires_grad=True)
z = x * w
with torch.no_grad():
    w += 1
z.sum().backward()
# --- index out of range
torch.ones(3)[5]
# --- too many indices
torch.ones(3)[0, 0]
# --- dimension out of range
torch.ones(3).sum(dim=2)
# --- view of another size
torch.ones(3).view(2, 2)
# --- view of a transpose
torch.ones(2, 3).t().view(-1)
# --- cat of other sizes
torch.cat([torch.ones(2, 3), torch.ones(2, 2)])
# --- stack of other sizes
torch.stack([torch.ones(2), torch.ones(3)])
# --- mean of integers
torch.tensor([1, 2]).mean()
# --- linear of another size
nn.Linear(3, 2)(torch.ones(4, 5))
# --- iteration over a number
for x in torch.tensor(1.0):
    pass
# --- len of a number
len(torch.tensor(1.0))
# --- an integer result in place
x = torch.tensor([1, 2])
x += 0.5
# --- broadcast in place
x = torch.ones(2)
x += torch.ones(3, 2)
# --- a class out of bounds
F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5]))
# --- dot of matrices
torch.dot(torch.ones(2, 2), torch.ones(2, 2))
# --- minus of booleans
torch.tensor([True]) - torch.tensor([False])
# --- backward of an integer
x = torch.tensor(3.0)
x.backward()


# --- forward is missing
class Net(nn.Module):
    pass


Net()(1)


# --- attribute is missing
class Net(nn.Module):
    pass


Net().fc


# --- super is missing
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(1, 1)


Net()
# --- state that does not fit
a, b = nn.Linear(2, 1), nn.Linear(3, 1)
a.load_state_dict(b.state_dict())
# --- keys that are missing
nn.Linear(2, 1).load_state_dict({"weight": torch.ones(1, 2), "w": torch.ones(1)})
# --- expanding what does not fit
for sizes in ((5, 4), (-1, 2, 3), (3,)):
    try:
        print(torch.ones(2, 3).expand(*sizes))
    except RuntimeError as error:
        print(error)
# --- anomaly detection warns
class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, g): raise RuntimeError("no way back")
x = torch.ones(2, requires_grad=True)
y = x.exp()
y += 1
z = Broken.apply(x)
with torch.autograd.detect_anomaly():
    print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    for out in (z, y, Broken.apply(x)):
        try: out.sum().backward()
        except RuntimeError as e: print(e)
# --- numbers of what requires grad
x = torch.ones(2, requires_grad=True)
print(torch.tensor([x.sum(), x.mean()]), [t.output_nr for t in x.unbind()], x.output_nr)
# --- an old variable, an old resize
x = torch.autograd.Variable(torch.arange(3.0), volatile=True).requires_grad_()
y = x.resize(3, 1)
(y * y).sum().backward()
print(y, x.grad)
for size in ((5,), ((3, 1),)):
    try: x.resize(*size)
    except RuntimeError as e: print(e)
try: torch.save(x, "./nowhere/x.pt")
except RuntimeError as e: print(e)
# --- names and settings that were given up
x = torch.autograd.Variable(torch.ones(2, 2), volatile=True)
print(nn.init.eye(x), nn.init.constant(x, 3.0), nn.init.uniform(torch.zeros(3)).shape, x.ndimension())
for ask in (torch.cuda.get_device_name, torch.cuda.current_device):
    try:
        ask()
    except AssertionError as error:
        print(error)
print(torch.cuda.is_initialized(), torch.cuda.memory_allocated())
# --- what is no tensor
import numpy as np


def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)


told(lambda: torch.sum([1, 2]))
told(lambda: torch.mean([1.0, 2.0]))
told(lambda: torch.mm([1], [2]))
told(lambda: torch.dot(torch.ones(1), [2.0]))
told(lambda: torch.where([0, 1]))
told(lambda: F.relu(3.0))
told(lambda: nn.Linear(2, 1)([1.0, 2.0]))
told(lambda: nn.Linear(2, 1)(np.ones(2)))
told(lambda: torch.ones(2, 2).mm([[1.0]]))
told(lambda: torch.ones(2).dot(np.ones(2)))
told(lambda: torch.ones(2).equal(2))
told(lambda: torch.ones(2, 2).addmm(torch.ones(2, 2), 2))
told(lambda: torch.ones(2).masked_select([True, False]))
told(lambda: torch.zeros_like([1, 2]))
told(lambda: torch.meshgrid(torch.ones(2), 3, indexing="ij"))
told(lambda: F.linear(torch.ones(2), torch.ones(2, 2), 3))
told(lambda: F.conv_transpose1d(torch.ones(1, 2, 2), None))
told(lambda: F.one_hot(2))
told(lambda: torch.one_hot(2))
told(lambda: torch.stack(torch.ones(2)))
told(lambda: torch.cat(torch.ones(1) for _ in range(2)))
told(lambda: torch.func.vmap(torch.sin)(3.0))
told(lambda: torch.func.vmap(lambda a, b: a @ b)(torch.zeros(2, 3), torch.ones(3, 3)))
told(lambda: torch.func.vmap(lambda a: 1.0)(torch.zeros(2)))
# --- classes of another shape
for size, target in (
    *(((3,), (2,)), ((3,), (1,)), ((3,), ()), ((3,), (3,)), ((2, 3), (2, 1)), ((2, 3), (1,)), ((2, 3), (2, 3))),
    *(((2, 3), ()), ((2, 3, 4), (2, 3)), ((2, 3, 4), (2,)), ((2, 3, 4, 5), (2, 4, 4)), ((2, 3, 4, 5), (2,))),
):
    for loss in (F.cross_entropy, F.nll_loss):
        for dtype in (torch.long, torch.float):
            try:
                print(size, target, loss(torch.zeros(size), torch.zeros(target, dtype=dtype)))
            except Exception as error:
                print(size, target, type(error).__name__, error)
# --- what hooks may not return
def told(g): return torch.ones(5)
for r in (told, lambda g: 3, lambda g: [g], lambda g: (g,), lambda g: g.double(), lambda g: torch.ones(1)):
    for made in (lambda x: x * 2, lambda x: x):
        x = torch.ones(3, requires_grad=True)
        y = made(x)
        y.register_hook(r)
        try: print(y.sum().backward())
        except Exception as e: print(type(e).__name__, e)
y = x * 2
y.grad_fn.register_prehook(lambda g: torch.ones(3))
try: y.sum().backward()
except TypeError as e: print(e)
a = torch.ones(2)
print(torch.sin_(a) is a, torch.relu_(torch.tensor([-1.0, 2.0])), torch.fill_(a, 3), torch.zero_(a))
for wrong in (lambda: torch.sin_(x), lambda: torch.equal(..., a), lambda: torch.equal(a, 3), lambda: torch.allclose(a, 3)):
    try: wrong()
    except Exception as e: print(type(e).__name__, e)
# --- parts that there are not
x = torch.ones(2, 3)
for part in (lambda: x.split([1, 1], 1), lambda: x.split(-1), lambda: x.split(0), lambda: x.chunk(0), lambda: x.sum().split(1)):
    try: part()
    except RuntimeError as e: print(e)
for part in (lambda: x.select(1, 3), lambda: x.narrow(1, 2, 2), lambda: x.sum().unbind(), lambda: torch.cat([x, x.t()]), lambda: torch.cat([])):
    try: part()
    except (RuntimeError, IndexError, ValueError) as e: print(type(e).__name__, e)
# --- products whose sizes do not meet
sizes = [((3,), (2, 2)), ((2, 2), (3,)), ((5, 2, 3), (5, 2, 3)), ((5, 2, 3), (2, 3)), ((6, 5, 2, 3), (2,)), ((3,), (6, 5, 2, 2)), ((4, 2, 3), (5, 3, 2)), ((2, 3), (1, 2, 2))]
for a, b in sizes:
    try: torch.ones(a) @ torch.ones(b)
    except RuntimeError as e: print(e)
try: nn.Linear(2, 2, bias=False)(torch.ones(3))
except RuntimeError as e: print(e)
# --- gradients of nothing
x = torch.ones(2, requires_grad=True)
print(torch.autograd.backward([]))
for asked in (lambda: torch.autograd.grad(x.sum(), []), lambda: x.sum().backward(inputs=[])):
    try: asked()
    except RuntimeError as e: print(e)
# --- products of different dtypes
a = torch.ones(2, 2)
for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool, torch.float64):
    x = a.to(dtype)
    for made in (lambda: x @ a, lambda: torch.mv(x, a[0]), lambda: torch.dot(x[0], a[0]), lambda: F.linear(x, a), lambda: F.linear(x, a, a[0]), lambda: x[None] @ a[None]):
        try: made()
        except (RuntimeError, NotImplementedError) as e: print(e)
# --- linear of other sizes
layer = nn.Linear(3, 2)
for size in ((), (2,), (2, 2), (1, 2, 2)):
    for made in (lambda: layer(torch.zeros(size)), lambda: layer(torch.zeros(size).double()), lambda: F.linear(torch.zeros(size), torch.ones(3))):
        try: made()
        except RuntimeError as e: print(e)
try: F.linear(torch.zeros(2, 3), torch.ones(2, 3), torch.ones(3))
except RuntimeError as e: print(e)
# --- factors of other dtypes
a, i = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64)
for made in (lambda: torch.add(a, i, alpha=2), lambda: a.sub(i, alpha=2), lambda: torch.add(i, a, alpha=0.5), lambda: a.add(a.double(), alpha=2), lambda: torch.ones(2).add(torch.tensor(1.0, dtype=torch.float64), alpha=2)):
    print(made().dtype, made().sum())
# --- what may require a gradient by its attribute, and v of other shapes and counts
x = torch.ones(2, requires_grad=True)
y = x * 2
print(y.requires_grad_())
for v in ([torch.ones(1), torch.ones(2), torch.ones(1)], [torch.tensor(1.0)]):
    try:
        torch.autograd.backward([y.sum(), y], v)
    except RuntimeError as error:
        print(error)
y.requires_grad = True
# --- number of a device
x, layer = torch.ones(2), nn.Linear(2, 1)
for ask in (lambda: x.cuda(1), lambda: x.to(0), lambda: layer.cuda(0), lambda: layer.to(1), lambda: torch.device(0)):
    try:
        print(ask())
    except RuntimeError as error:
        print(error)
try:
    layer.cuda()
except AssertionError as error:
    print(error)
print(x.to("cpu", non_blocking=True), nn.ReLU().cuda())
# --- gradcheck of float32
import warnings

with warnings.catch_warnings(record=True) as caught:
    torch.autograd.gradcheck(torch.square, torch.ones(1, requires_grad=True), eps=1e-2, atol=1)
print([str(w.message) for w in caught])
# --- what is not computed of booleans, or of integers
a, m = torch.tensor([True, False]), torch.ones(2, 2, dtype=torch.bool)
for made in (
    *(lambda name=name: getattr(torch, name)(a) for name in ("abs", "ceil", "floor", "trunc", "round")),
    *(lambda name=name: getattr(torch, name)(a, a) for name in ("fmod", "remainder", "floor_divide", "pow", "dot")),
    *(lambda name=name: getattr(torch, name)(a.long(), a) for name in ("hypot", "logaddexp", "logaddexp2")),
    *(lambda mode=mode: torch.div(a, a, rounding_mode=mode) for mode in ("floor", "trunc")),
    lambda: True % a,
    lambda: True**a,
    lambda: a.clone().abs_(),
    lambda: torch.addcmul(a, a, a),
    lambda: torch.trace(m),
    lambda: torch.cross(torch.ones(3) > 0, torch.ones(3) > 0, dim=0),
    lambda: m @ m,
    lambda: m @ a,
    lambda: m[None] @ m[None],
    lambda: F.linear(m, m, a),
    lambda: F.threshold(a, 0, 1),
    lambda: F.conv1d(m[None], m[None]),
    lambda: F.conv2d(m[None, None], m[None, None]),
    lambda: F.max_pool1d(m.long()[None], 2),
    lambda: F.max_pool2d(m[None], 2),
    lambda: F.avg_pool1d(m[None], 2),
    lambda: F.avg_pool2d(m[None], 2),
):
    try:
        print(made())
    except NotImplementedError as error:
        print(error)
print(torch.pow(a, True), torch.remainder(a, 2), torch.addcmul(a, a.long(), a), torch.hypot(a, torch.ones(2)))
# --- operands that are no tensors, of methods, in place, and in conditions
x, mask = torch.ones(2, 2), torch.tensor([True, False])
for name in ("add_", "sub_", "mul_", "div_", "atan2_", "hypot_", "logical_and_", "logical_or", "maximum", "mm", "kron"):
    try:
        print(getattr(x.clone(), name)(None))
    except TypeError as error:
        print(error)
for name in ("logical_and", "logical_xor", "maximum", "mm", "heaviside", "dot", "outer", "masked_select"):
    try:
        print(getattr(torch, name)(x, 2.0))
    except TypeError as error:
        print(error)
print(mask & True, mask | False, mask ^ mask, mask.logical_and(mask), torch.logical_xor(mask, mask.long()))
# --- backward with an argument it does not take
x = torch.tensor([1.0], requires_grad=True)
try:
    x.backward(gradian=x)
except TypeError as error:
    print(error)
try:
    x.backward(x, None, False, None, 1)
except TypeError as error:
    print(error)
# --- new tensors without a size, and other calls that fit no function
def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)
told(lambda: torch.randn())
told(lambda: torch.rand(dtype=torch.float64))
told(lambda: torch.zeros(requires_grad=True))
told(lambda: torch.ones())
told(lambda: torch.full((2,)))
told(lambda: torch.full((2,), "a"))
told(lambda: torch.randint(3))
told(lambda: torch.randperm())
told(lambda: torch.eye())
told(lambda: torch.arange())
told(lambda: torch.linspace(0, 1))
told(lambda: torch.normal(0, 1))
told(lambda: torch.randn(2, generator=3))
told(lambda: torch.randn(2, wrong=3))
told(lambda: torch.zeros(2, wrong=1))
told(lambda: torch.tensor())
told(lambda: torch.zeros_like())
told(lambda: torch.ones(2).new_zeros())
told(lambda: torch.ones(2).new_full((2,)))
told(lambda: torch.ones(2).unsqueeze())
told(lambda: torch.transpose(torch.ones(2, 2)))
told(lambda: torch.matmul(torch.ones(2)))
told(lambda: torch.randn(()).shape)
told(lambda: torch.randn(size=(2,)).shape)
# --- equations that do not fit
def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)
told(lambda: torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(2, 4)))
told(lambda: torch.einsum("ij,jk->iz", torch.ones(2, 3), torch.ones(3, 4)))
told(lambda: torch.einsum("ij", torch.ones(2, 3), torch.ones(3, 4)))
told(lambda: torch.einsum("ij,jk", torch.ones(2, 3)))
told(lambda: torch.einsum("ij,jk->ijj", torch.ones(2, 3), torch.ones(3, 4)))
told(lambda: torch.einsum("i1,jk", torch.ones(2, 3), torch.ones(3, 4)))
told(lambda: torch.einsum("ii->i", torch.ones(2, 3)))
told(lambda: torch.einsum("ij,ij->ij", torch.ones(1, 3), torch.ones(2, 3)))
# --- sizes of layers that are no integers
wrong = torch.ones(1, 2)
for make in (
    lambda: nn.Linear(2, wrong), lambda: nn.Linear(wrong, 2), lambda: nn.Linear(2, 2.5), lambda: nn.Linear("2", 2),
    lambda: nn.Linear(2, None), lambda: nn.Linear(2, (3,)), lambda: nn.Linear(2, torch.tensor(3)).weight.shape,
    lambda: nn.Linear(2, -1), lambda: nn.Embedding(3, 2.5), lambda: nn.Embedding(wrong, 2), lambda: nn.Embedding(-1, 2),
    lambda: nn.Conv2d(1, 2, "3"), lambda: nn.GRUCell(2, 2.5),
):  # fmt: skip
    try:
        print(make())
    except (RuntimeError, TypeError) as error:
        print(error)
# --- reductions by NumPy's functions
import numpy as np

x, y = torch.ones(2, 3), torch.ones(2, requires_grad=True)
for call in (
    lambda: np.sum(x), lambda: np.sum(y * 2), lambda: np.sum(x, axis=0), lambda: np.mean(x), lambda: np.mean(x, axis=1),
    lambda: np.std(x), lambda: np.std(x, axis=1), lambda: np.var(y), lambda: np.prod(x), lambda: np.max(x),
    lambda: np.max(x, axis=1), lambda: np.any(x > 0), lambda: np.argmax(x), lambda: np.cumsum(x, 0), lambda: np.exp(x),
    lambda: np.exp(y), lambda: x.sum(axis=None), lambda: x.sum(dim=None, out=None), lambda: x.std(axis=0, ddof=1),
    lambda: x.mean(axis=0, keepdims=True), lambda: x.max(axis=None, out=None),
):  # fmt: skip
    try:
        print(call())
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__, str(error).split("\n")[0])
