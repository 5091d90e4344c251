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
# --- too few gradients
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b): return a * b
    @staticmethod
    def backward(ctx, g): return g
x = torch.ones(2, requires_grad=True)
y = torch.ones(2, requires_grad=True)
Fn.apply(x, y).sum().backward()
# --- wrong gradient shape
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a): return a * 2
    @staticmethod
    def backward(ctx, g): return torch.ones(3)
x = torch.ones(2, requires_grad=True)
Fn.apply(x).sum().backward()
# --- bounds of activations
x = torch.tensor([-2.0, 0.1, 1.5])
for low, high in ((2.0, 1.0), (1.0, 1.0)):
    told(lambda: F.hardtanh(x, low, high), lambda: F.hardtanh_(x.clone(), low, high), lambda: nn.Hardtanh(low, high))
for lambd in (-1.0, 0.0, 1e39, -0.123456789, float("nan")):
    told(lambda: F.softshrink(x, lambd), lambda: F.softshrink(x.double(), lambd), lambda: nn.Softshrink(lambd)(x))
told(lambda: F.hardshrink(x, -1.0), lambda: F.hardtanh(x, 5.0))
# --- forward is missing
class Net(nn.Module): pass
Net()(1)
# --- expanding what does not fit
for sizes in ((5, 4), (-1, 2, 3), (3,)):
    told(lambda: torch.ones(2, 3).expand(*sizes))
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
        told(lambda: out.sum().backward())
# --- an old variable, an old resize
x = torch.autograd.Variable(torch.arange(3.0), volatile=True).requires_grad_()
y = x.resize(3, 1)
(y * y).sum().backward()
print(y, x.grad)
for size in ((5,), ((3, 1),)):
    told(lambda: x.resize(*size))
told(lambda: torch.save(x, "./nowhere/x.pt"))
# --- names and settings that were given up
x = torch.autograd.Variable(torch.ones(2, 2), volatile=True)
print(nn.init.eye(x), nn.init.constant(x, 3.0), nn.init.uniform(torch.zeros(3)).shape, x.ndimension())
told(torch.cuda.get_device_name, torch.cuda.current_device)
print(torch.cuda.is_initialized(), torch.cuda.memory_allocated())
# --- what is no tensor
import numpy as np
told(
    lambda: torch.sum([1, 2]), lambda: torch.mean([1.0, 2.0]), lambda: torch.mm([1], [2]), lambda: torch.dot(torch.ones(1), [2.0]),
    lambda: torch.where([0, 1]), lambda: F.relu(3.0), lambda: nn.Linear(2, 1)([1.0, 2.0]), lambda: nn.Linear(2, 1)(np.ones(2)),
    lambda: torch.ones(2, 2).mm([[1.0]]), lambda: torch.ones(2).dot(np.ones(2)), lambda: torch.ones(2).equal(2),
    lambda: torch.ones(2, 2).addmm(torch.ones(2, 2), 2), lambda: torch.ones(2).masked_select([True, False]),
    lambda: torch.zeros_like([1, 2]), lambda: torch.meshgrid(torch.ones(2), 3, indexing="ij"),
    lambda: F.linear(torch.ones(2), torch.ones(2, 2), 3), lambda: F.conv_transpose1d(torch.ones(1, 2, 2), None), lambda: F.one_hot(2),
    lambda: torch.one_hot(2), lambda: torch.stack(torch.ones(2)), lambda: torch.cat(torch.ones(1) for _ in range(2)),
    lambda: torch.func.vmap(torch.sin)(3.0), lambda: torch.func.vmap(lambda a, b: a @ b)(torch.zeros(2, 3), torch.ones(3, 3)),
    lambda: torch.func.vmap(lambda a: 1.0)(torch.zeros(2)),
)
# --- classes of another shape
for size, target in (
    *(((3,), (2,)), ((3,), (1,)), ((3,), ()), ((3,), (3,)), ((2, 3), (2, 1)), ((2, 3), (1,)), ((2, 3), (2, 3))),
    *(((2, 3), ()), ((2, 3, 4), (2, 3)), ((2, 3, 4), (2,)), ((2, 3, 4, 5), (2, 4, 4)), ((2, 3, 4, 5), (2,))),
):
    for loss in (F.cross_entropy, F.nll_loss):
        for dtype in (torch.long, torch.float):
            try: print(size, target, loss(torch.zeros(size), torch.zeros(target, dtype=dtype)))
            except Exception as error: print(size, target, type(error).__name__, error)
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
told(
    lambda: x.split([1, 1], 1), lambda: x.split(-1), lambda: x.split(0), lambda: x.chunk(0), lambda: x.sum().split(1),
    lambda: x.select(1, 3), lambda: x.narrow(1, 2, 2), lambda: x.sum().unbind(), lambda: torch.cat([x, x.t()]), lambda: torch.cat([]),
)
# --- products whose sizes do not meet
sizes = [((3,), (2, 2)), ((2, 2), (3,)), ((5, 2, 3), (5, 2, 3)), ((5, 2, 3), (2, 3)), ((6, 5, 2, 3), (2,)), ((3,), (6, 5, 2, 2)), ((4, 2, 3), (5, 3, 2)), ((2, 3), (1, 2, 2))]
for a, b in sizes:
    told(lambda: torch.ones(a) @ torch.ones(b))
told(lambda: nn.Linear(2, 2, bias=False)(torch.ones(3)))
# --- gradients of nothing
x = torch.ones(2, requires_grad=True)
print(torch.autograd.backward([]))
told(lambda: torch.autograd.grad(x.sum(), []), lambda: x.sum().backward(inputs=[]))
# --- products of different dtypes
a = torch.ones(2, 2)
for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool, torch.float64):
    x = a.to(dtype)
    told(
        lambda: x @ a, lambda: torch.mv(x, a[0]), lambda: torch.dot(x[0], a[0]), lambda: F.linear(x, a), lambda: F.linear(x, a, a[0]),
        lambda: x[None] @ a[None],
    )
# --- linear of other sizes
layer = nn.Linear(3, 2)
for size in ((), (2,), (2, 2), (1, 2, 2)):
    told(lambda: layer(torch.zeros(size)), lambda: layer(torch.zeros(size).double()), lambda: F.linear(torch.zeros(size), torch.ones(3)))
told(lambda: F.linear(torch.zeros(2, 3), torch.ones(2, 3), torch.ones(3)))
# --- number of a device
x, layer = torch.ones(2), nn.Linear(2, 1)
told(lambda: x.cuda(1), lambda: x.to(0), lambda: layer.cuda(0), lambda: layer.to(1), lambda: torch.device(0), lambda: layer.cuda())
print(x.to("cpu", non_blocking=True), nn.ReLU().cuda())
# --- gradcheck of float32
import warnings
with warnings.catch_warnings(record=True) as caught:
    torch.autograd.gradcheck(torch.square, torch.ones(1, requires_grad=True), eps=1e-2, atol=1)
print([str(w.message) for w in caught])
# --- what is not computed of booleans, or of integers
a, m = torch.tensor([True, False]), torch.ones(2, 2, dtype=torch.bool)
told(
    *(lambda name=name: getattr(torch, name)(a) for name in ("abs", "ceil", "floor", "trunc", "round")),
    *(lambda name=name: getattr(torch, name)(a, a) for name in ("fmod", "remainder", "floor_divide", "pow", "dot")),
    *(lambda name=name: getattr(torch, name)(a.long(), a) for name in ("hypot", "logaddexp", "logaddexp2")),
    *(lambda mode=mode: torch.div(a, a, rounding_mode=mode) for mode in ("floor", "trunc")), lambda: True % a, lambda: True**a,
    lambda: a.clone().abs_(), lambda: torch.addcmul(a, a, a), lambda: torch.trace(m),
    lambda: torch.cross(torch.ones(3) > 0, torch.ones(3) > 0, dim=0), lambda: m @ m, lambda: m @ a, lambda: m[None] @ m[None],
    lambda: F.linear(m, m, a), lambda: F.threshold(a, 0, 1), lambda: F.conv1d(m[None], m[None]),
    lambda: F.conv2d(m[None, None], m[None, None]), lambda: F.max_pool1d(m.long()[None], 2), lambda: F.max_pool2d(m[None], 2),
    lambda: F.avg_pool1d(m[None], 2), lambda: F.avg_pool2d(m[None], 2),
)
print(torch.pow(a, True), torch.remainder(a, 2), torch.addcmul(a, a.long(), a), torch.hypot(a, torch.ones(2)))
# --- operands that are no tensors, of methods, in place, and in conditions
x, mask = torch.ones(2, 2), torch.tensor([True, False])
for name in ("add_", "sub_", "mul_", "div_", "atan2_", "hypot_", "logical_and_", "logical_or", "maximum", "mm", "kron"):
    told(lambda: getattr(x.clone(), name)(None))
for name in ("logical_and", "logical_xor", "maximum", "mm", "heaviside", "dot", "outer", "masked_select"):
    told(lambda: getattr(torch, name)(x, 2.0))
print(mask & True, mask | False, mask ^ mask, mask.logical_and(mask), torch.logical_xor(mask, mask.long()))
# --- backward with an argument it does not take
x = torch.tensor([1.0], requires_grad=True)
told(lambda: x.backward(gradian=x), lambda: x.backward(x, None, False, None, 1))
# --- new tensors without a size, and other calls that fit no function
told(
    lambda: torch.randn(), lambda: torch.rand(dtype=torch.float64), lambda: torch.zeros(requires_grad=True), lambda: torch.ones(),
    lambda: torch.full((2,)), lambda: torch.full((2,), "a"), lambda: torch.randint(3), lambda: torch.randperm(), lambda: torch.eye(),
    lambda: torch.arange(), lambda: torch.linspace(0, 1), lambda: torch.normal(0, 1), lambda: torch.randn(2, generator=3),
    lambda: torch.randn(2, wrong=3), lambda: torch.zeros(2, wrong=1), lambda: torch.tensor(), lambda: torch.zeros_like(),
    lambda: torch.ones(2).new_zeros(), lambda: torch.ones(2).new_full((2,)), lambda: torch.ones(2).unsqueeze(),
    lambda: torch.transpose(torch.ones(2, 2)), lambda: torch.matmul(torch.ones(2)), lambda: torch.randn(()).shape,
    lambda: torch.randn(size=(2,)).shape,
)
# --- equations that do not fit
told(
    lambda: torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(2, 4)),
    lambda: torch.einsum("ij,jk->iz", torch.ones(2, 3), torch.ones(3, 4)), lambda: torch.einsum("ij", torch.ones(2, 3), torch.ones(3, 4)),
    lambda: torch.einsum("ij,jk", torch.ones(2, 3)), lambda: torch.einsum("ij,jk->ijj", torch.ones(2, 3), torch.ones(3, 4)),
    lambda: torch.einsum("i1,jk", torch.ones(2, 3), torch.ones(3, 4)), lambda: torch.einsum("ii->i", torch.ones(2, 3)),
    lambda: torch.einsum("ij,ij->ij", torch.ones(1, 3), torch.ones(2, 3)),
)
# --- sizes of layers that are no integers
wrong = torch.ones(1, 2)
told(
    lambda: nn.Linear(2, wrong), lambda: nn.Linear(wrong, 2), lambda: nn.Linear(2, 2.5), lambda: nn.Linear("2", 2),
    lambda: nn.Linear(2, None), lambda: nn.Linear(2, (3,)), lambda: nn.Linear(2, torch.tensor(3)).weight.shape, lambda: nn.Linear(2, -1),
    lambda: nn.Embedding(3, 2.5), lambda: nn.Embedding(wrong, 2), lambda: nn.Embedding(-1, 2), lambda: nn.Conv2d(1, 2, "3"),
    lambda: nn.GRUCell(2, 2.5),
)
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
    try: print(call())
    except (RuntimeError, TypeError) as error: print(type(error).__name__, str(error).split("\n")[0])
