# --- creation
print(torch.zeros(2), torch.ones(2, 2), torch.full((2,), 7.), torch.full((2,), 7), torch.eye(2), torch.arange(3), torch.arange(1, 2, 0.25), torch.arange(5, 1, -2), torch.linspace(0, 1, 5), torch.zeros((2, 1)), torch.ones(2, dtype=torch.int64))
x = torch.tensor([[1, 2], [3, 4]])
print(torch.zeros_like(x), torch.ones_like(x, dtype=torch.float32), torch.full_like(x, 5), x.new_zeros(2), x.new_tensor([1., 2.]), x.float().new_ones(1))
print(torch.empty(2, 3).shape, torch.Tensor(2, 3).shape, torch.Tensor([1, 2]), torch.FloatTensor([1, 2]), torch.LongTensor([1, 2]), torch.DoubleTensor([1]), torch.IntTensor([3]), torch.BoolTensor([True]), torch.tensor(range(3)))
# --- dtypes
print(torch.tensor([1, 2]).dtype, torch.tensor([1., 2]).dtype, torch.tensor(True).dtype, torch.tensor([1, 2.5]).dtype, torch.float, torch.long, torch.float32 == torch.float)
x = torch.tensor([1, 2])
print((x / 2).dtype, (x // 2).dtype, (x * 1.5).dtype, (x + True).dtype, (x ** 2).dtype, (x > 1).dtype, x.float().dtype, x.double().dtype, x.type(), x.float().type(), x.sum().dtype, (x > 1).sum().dtype, x.float().mean().dtype)
print((torch.tensor([1], dtype=torch.int32) + x).dtype, (torch.ones(1) + torch.tensor(1., dtype=torch.float64)).dtype, (torch.ones(1) + torch.ones(1, dtype=torch.float64)).dtype, (torch.tensor(1) + torch.tensor(1.5)).dtype, (x + torch.tensor(1.5)).dtype)
# --- arithmetic
a, b = torch.tensor([7., -7.]), torch.tensor([2., 2.])
print(a + b, a - b, a * b, a / b, a // b, a % b, a ** b, -a, 2 ** b, 1 / a, 5 - a, a.fmod(2), torch.remainder(a, 3), abs(a), 10 // b, 10 % b)
c = torch.tensor([7, -7])
print(c // 2, c % 3, c / 2, c * 2.5, torch.div(c, 2, rounding_mode="trunc"), torch.div(c, 2, rounding_mode="floor"), c ** 2, -c)
print(torch.add(a, b, alpha=2), a.add(1), torch.sub(a, 1), torch.mul(a, 3), a.pow(2), a.square(), a.sqrt(), torch.true_divide(c, 2), a.reciprocal(), a.rsqrt(), torch.addcmul(a, a, b, value=0.5))
# --- comparisons
x = torch.tensor([1., 2., 3.])
print(x > 2, x >= 2, x == 2, x != 2, x < torch.tensor([2., 2., 4.]), (x > 1) & (x < 3), (x < 2) | (x > 2), ~(x > 1), x.eq(1), torch.gt(x, 1), torch.equal(x, x), torch.allclose(x, x + 1e-9), x.isnan().any(), (x > 0).all(), x.any(), torch.isinf(x / 0))
print(bool(x[0] == 1), x[0].item(), float(x[1]), int(x[2]), x.tolist(), 2 in x, len(x), x[0] < x[1])
# --- functions
x = torch.tensor([0.1, 0.5, 0.9])
for f in "sin cos tan asin acos atan sinh cosh tanh exp log log2 log10 log1p expm1 sqrt sigmoid erf erfc lgamma digamma i0 floor ceil round trunc frac sign abs relu neg asinh atanh reciprocal square rsqrt".split():
    print(f, getattr(torch, f)(x), getattr(x, f)())
# --- zeta and running extremes
x = torch.tensor([2.0, 3.0])
q = torch.tensor([1.5, 2.0], requires_grad=True)
z = torch.special.zeta(x, q)
z.sum().backward()
print(z, q.grad, torch.special.zeta(3, q), torch.special.zeta(x, 2.0), torch.special.zeta(torch.tensor([2]), torch.tensor([1])))
print(torch.special.zeta(torch.tensor([1.0, 0.5, 2.0, 2.0, 2.0]), torch.tensor([2.0, 2.0, 0.0, -1.0, -1.5])))
g, = torch.autograd.grad(torch.special.zeta(x, q).sum(), q, create_graph=True)
g.sum().backward()
print(g.detach(), q.grad, torch.special.zeta(x, x, out=torch.zeros(2)))
print(torch.special.zeta(x.clone().requires_grad_(), q).requires_grad)
told(
    lambda: torch.special.zeta(x.clone().requires_grad_(), q).sum().backward(), lambda: torch.special.zeta("a", 2.0),
    lambda: torch.special.zeta(2, 3),
)
m = torch.tensor([[1.0, 3.0, 2.0], [3.0, 3.0, 5.0]], requires_grad=True)
print(m.cummax(0), m.cummin(1), torch.vmap(lambda r: r.cummax(0).values)(m))
(m.cummax(0).values.sum() + m.cummin(1)[0].pow(2).sum()).backward()
h, = torch.autograd.grad((m.cummax(1).values ** 3).sum(), m, create_graph=True)
h.sum().backward()
print(m.grad, h.detach(), m.cummax(1).values.grad_fn.next_functions[0][1])
n = torch.tensor([1.0, float("nan"), 2.0, float("nan")], requires_grad=True)
r = n.cummax(0)
r.values.sum().backward()
print(r, n.grad, torch.cummax(torch.tensor([1, 3, 2]), 0), torch.cummin(torch.tensor([True, False]), 0))
print(torch.cummax(torch.tensor(2.0, requires_grad=True), 0), torch.cummax(torch.zeros(0, 3, requires_grad=True), 0).values)
# --- functions of torch.special
x = torch.tensor([-0.5, 0., 2.], requires_grad=True)
y = torch.special.i1(x)
y.sum().backward()
print(y, x.grad, torch.special.i1(torch.tensor([1, 2])), torch.special.i1(x.detach(), out=torch.zeros(3)))
print(torch.special.i0(x), torch.special.expit(x), torch.special.gammaln(x[2]), torch.special.psi(x[2]))
for name in "i1", "i0", "expit", "psi", "log1p":
    told(lambda: getattr(torch.special, name)("a"))
y = torch.special.i1(x)
y.detach().mul_(2)
y.sum().backward()
# --- functions of integers
x = torch.tensor([1, 2, 3])
print(x.sin(), x.exp(), x.sqrt(), x.sum(), x.prod(), x.abs(), x.float().mean(), x.max(), x.cumsum(0), x.softmax(0, dtype=torch.float32) if False else x.float().softmax(0), x.sigmoid(), x.relu())
# --- activations
x = torch.tensor([-2., -0.5, 0., 1., 3.])
for f in [F.relu, F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish, F.softplus, F.softsign, F.tanhshrink, F.leaky_relu, F.hardtanh, F.relu6, torch.sigmoid, torch.tanh]:
    print(f.__name__, f(x))
print(F.softmax(x, dim=0), F.log_softmax(x, dim=0), F.softmin(x, dim=0), F.normalize(x, dim=0), F.elu(x, 0.5), F.leaky_relu(x, 0.2), F.logsigmoid(x))
# --- reductions
x = torch.tensor([[1., 5., 3.], [4., 2., 6.]])
print(x.sum(), x.sum(0), x.sum(1), x.sum(dim=1, keepdim=True), x.sum((0, 1)), x.mean(), x.mean(0), x.mean(dim=-1), x.prod(), x.prod(1), x.std(), x.std(0), x.var(1), x.var(unbiased=False), x.norm(), x.norm(1), x.norm(dim=1), x.norm(p=3), x.norm(float("inf")))
print(x.max(), x.min(), x.max(0), x.min(dim=1), x.argmax(), x.argmax(1), x.argmin(dim=0), x.amax(1), x.amin(0), x.median(), x.median(1), x.max(1, keepdim=True)[0], torch.max(x, 1)[1], x.max(1).indices, torch.max(x, torch.tensor(3.)))
print(x.cumsum(0), x.cumsum(1), x.cumprod(1), x.logsumexp(1), x.softmax(1), x.all(), x.any(dim=1), (x > 2).sum(), (x > 2).float().mean(), x.numel(), x.count_nonzero() if False else (x != 0).sum())
# --- sorting
x = torch.tensor([3., 1., 2.])
print(x.sort(), x.sort(descending=True), x.argsort(), x.topk(2), torch.sort(x)[0], x.topk(1, largest=False), torch.argsort(x, descending=True), x.unique(), torch.tensor([1, 1, 2]).unique(return_counts=True))
# --- shapes
x = torch.arange(6.)
print(x.view(2, 3), x.reshape(3, -1), x.view(-1, 1).shape, x[None].shape, x.unsqueeze(1).shape, x.view(1, 6).squeeze().shape, x.view(2, 3).t(), x.view(2, 3).T.shape, x.view(1, 2, 3).permute(2, 0, 1).shape, x.view(1, 2, 3).transpose(0, 2).shape, x.view(2, 3).flatten().shape, x.view(1, 2, 3).flatten(1).shape, x.expand(2, 6).shape, x.repeat(2).shape, x.repeat(2, 1).shape, x.view(2, 3).view_as(torch.ones(3, 2)).shape)
print(torch.cat([x, x]).shape, torch.stack([x, x], dim=1).shape, torch.cat([x.view(2, 3), x.view(2, 3)], dim=1), torch.hstack([x, x]).shape, torch.vstack([x, x]).shape, x.chunk(3), x.split(4), x.view(2, 3).unbind(1), torch.flip(x, [0]), x.roll(1), torch.tile(x, (2,)).shape, x.repeat_interleave(2).shape, torch.squeeze(x.view(1, 6), 0).shape, torch.unsqueeze(x, 0).shape, torch.swapaxes(x.view(2, 3), 0, 1).shape, x.view(2, 3).contiguous().is_contiguous(), x.view(2, 3).t().is_contiguous(), x.view(2, 3).stride())
# --- indexing
x = torch.arange(12.).view(3, 4)
print(x[0], x[0, 1], x[-1], x[:, 0], x[1:], x[:, 1:3], x[::2], x[..., -1], x[None, 0], x[[0, 2]], x[torch.tensor([1, 0])], x[x > 5], x[[0, 1], [1, 2]], x[:, [0, 3]], x[torch.tensor(1)], x[1, None, 2:], x[0][1], x[1:2, ..., 0], x[torch.tensor([True, False, True])])
print(x.index_select(1, torch.tensor([0, 2])), x.gather(1, torch.tensor([[0], [1], [2]])), x.take(torch.tensor([0, 5])), x.masked_select(x > 9), x.nonzero().shape, (x > 9).nonzero(), torch.where(x > 9), x.narrow(0, 1, 1), x.select(1, 2), x.diagonal() if x.shape[0] == x.shape[1] else "", torch.tril(x), torch.triu(x, 1))
# --- matrices
A, v = torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 2.])
print(A @ A, A @ v, v @ A, v @ v, A.mm(A), A.mv(v), v.dot(v), torch.matmul(A, v), A.t() @ A, torch.outer(v, v), A.det(), A.inverse(), A.trace(), torch.diag(v), torch.diag(A), torch.einsum("ij,jk->ik", A, A), torch.bmm(A[None], A[None]), torch.linalg.norm(A), torch.linalg.inv(A), torch.linalg.det(A), torch.kron(v, v), torch.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]), dim=0), torch.addmm(v, A, A))
# --- clamp and where
x = torch.tensor([-2., 0., 5.])
print(x.clamp(0, 1), x.clamp(min=-1), torch.clamp(x, max=2), x.clip(0, 3), torch.where(x > 0, x, torch.zeros(3)), torch.where(x > 0, 1., 0.), torch.maximum(x, torch.zeros(3)), torch.minimum(x, torch.tensor(1.)), x.where(x > 0, torch.tensor(9.)))
# --- one hot and losses
print(F.one_hot(torch.tensor([0, 2])), F.one_hot(torch.tensor([1]), 4), F.mse_loss(torch.ones(2), torch.zeros(2)), F.l1_loss(torch.ones(2), torch.tensor([3., 0.])), F.smooth_l1_loss(torch.ones(2), torch.tensor([3., 0.5])), F.huber_loss(torch.ones(2), torch.tensor([3., 0.5])))
x = torch.tensor([[1., 2., 3.], [1., 0., -1.]])
t = torch.tensor([2, 0])
print(F.cross_entropy(x, t), F.cross_entropy(x, t, reduction="sum"), F.cross_entropy(x, t, reduction="none"), F.nll_loss(F.log_softmax(x, 1), t), F.cross_entropy(x, t, weight=torch.tensor([1., 2., 3.])), F.cross_entropy(x, torch.softmax(x, 1)), F.cross_entropy(x, t, label_smoothing=0.1), F.cross_entropy(x, torch.tensor([2, -100])))
p = torch.sigmoid(x)
y = (x > 0).float()
print(F.binary_cross_entropy(p, y), F.binary_cross_entropy_with_logits(x, y), F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor([1., 2., 3.])), F.mse_loss(x, y, reduction="sum"), F.kl_div(F.log_softmax(x, 1), torch.softmax(y, 1), reduction="batchmean"), F.cosine_similarity(x, y + 1))
# --- convolutions
x = torch.arange(16.).view(1, 1, 4, 4)
w = torch.ones(1, 1, 2, 2)
print(F.conv2d(x, w), F.conv2d(x, w, stride=2), F.conv2d(x, w, padding=1).shape, F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.max_pool2d(x, 2, stride=1).shape, F.conv1d(torch.arange(5.).view(1, 1, 5), torch.tensor([[[1., -1.]]])), F.pad(torch.ones(2), (1, 2)), F.max_pool1d(torch.arange(4.).view(1, 1, 4), 2))
# --- python numbers
x = torch.tensor(2.)
print(x + 1, 1 + x, x * 2, 3 / x, x ** 0.5, 2 ** x, round(x.item(), 2), max(x, torch.tensor(3.)), sum([x, x]), [i for i in torch.arange(3)], float(x) + 1, x.numpy(), torch.tensor([x, x]) if False else "")
# --- numpy meets tensors
import numpy as np
x = torch.tensor([1., 2.])
print(np.sin(x.numpy()), np.array(x), torch.from_numpy(np.array([[1, 2]])), torch.tensor(np.float32(2.5)), torch.tensor(np.array([1.5], dtype=np.float32)), x.numpy().tolist(), np.asarray(x).dtype)
print(x.detach().cpu().numpy(), torch.as_tensor(np.eye(2)))
# --- devices
x = torch.ones(1)
print(x.device, torch.device("cpu"), x.to("cpu"), x.to(torch.float64), torch.cuda.is_available(), x.is_cuda, x.cpu(), x.to(x.device).device.type, torch.device("cuda:0").index, str(torch.device("cpu")))
# --- size and shape
x = torch.ones(2, 3)
print(x.size(), x.size(0), x.dim(), x.ndim, x.numel(), x.nelement(), x.shape == (2, 3), x.shape[1:], tuple(x.shape), len(x.shape), x.shape + (4,), x.element_size())
n, m = x.shape
print(n * m)
# --- default dtype
torch.set_default_dtype(torch.float64)
print(torch.tensor([1.5]), torch.ones(1).dtype, torch.rand(1).dtype, torch.arange(2.).dtype, (torch.tensor([1]) / 2).dtype, torch.get_default_dtype())
# --- hashing and identity
x = torch.ones(2)
d = {x: 1}
print(d[x], x is x, x == 1, isinstance(x, torch.Tensor), type(x), isinstance(x, torch.FloatTensor), torch.is_tensor(x), id(x) == id(x), x.data_ptr() == x.data_ptr(), x.data_ptr() == x.view(2).data_ptr())
# --- reductions of nothing
print(torch.tensor([]).sum(), torch.zeros(0, 2).sum(0), torch.tensor([]).mean())
# --- meshgrid and friends
a, b = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
print(a, b, torch.bincount(torch.tensor([0, 1, 1])), torch.logical_and(torch.tensor([True]), torch.tensor([False])), torch.logical_not(torch.tensor([0, 1])))
# --- one matrix for all of a stack
a, b = torch.arange(6.).view(1, 2, 3).requires_grad_(), torch.arange(24.).view(4, 3, 2).requires_grad_()
for x, y in ((a, b), (b, a)):
    (x @ y).sum().backward()
    print(x.grad, y.grad)
# --- products of matrices
def numbers(x): return x.flatten().tolist()
torch.manual_seed(0)
for n, m, k in ((4, 3, 2), (5, 10, 3), (3, 10, 7), (8, 17, 5), (6, 9, 1), (1, 12, 10), (32, 2, 16), (20, 6, 13), (1, 16, 4)):
    a, b = torch.randn(n, m, requires_grad=True), torch.randn(k, m, requires_grad=True)
    y = a @ b.t()
    y.backward(torch.randn(n, k))
    print((n, m, k), numbers(y)[-1], numbers(a.grad)[-1], numbers(b.grad)[-1])
    w = torch.randn(m, k, requires_grad=True)
    y = a @ w
    y.backward(torch.randn(n, k))
    print(numbers(y)[-1], numbers(w.grad)[-1], numbers(nn.Linear(m, k)(a))[-1])
print([numbers(torch.randn(n).dot(torch.randn(n))) for n in (2, 3, 7, 12, 20, 33, 64)], numbers(torch.randn(8, 9) @ torch.randn(9)))
# --- values and gradients of layers and losses
def numbers(*tensors): print([x.tolist() for x in tensors])
torch.manual_seed(0)
x, t = torch.randn(2, 9, requires_grad=True), torch.rand(2, 9)
v = torch.rand(2, 9)
for f in (torch.sigmoid, torch.tanh, F.silu, lambda x: x.softmax(1), lambda x: x.softmax(0), lambda x: x.log_softmax(1)):
    y = f(x)
    numbers(y, torch.autograd.grad(y, x, v)[0] if f is not F.silu else y)
for f in (F.mse_loss, lambda x, t: F.binary_cross_entropy(torch.sigmoid(x), t), F.binary_cross_entropy_with_logits):
    y = f(x, t)
    numbers(y, torch.autograd.grad(y, x)[0])
numbers(*torch.autograd.grad(F.cross_entropy(x[:, :3], torch.tensor([2, 0])), x))
for y in (x.norm() * 0.7, x.var(1), t / x):
    numbers(torch.autograd.grad(y, x, torch.rand(y.shape))[0])
# --- the constructor of old
x = torch.ones(2, dtype=torch.float64)
print(x.new([1, 2]), x.new(2, 3).shape, x.new().shape)
print(torch.get_default_device(), torch.set_default_device("cpu"))
y = torch.zeros(2, 2)
print(torch.matmul(torch.ones(2, 3), torch.ones(3, 2), out=y), y)
# --- what a plotting library asks for
print(hasattr(torch.ones(2), "values"), callable(torch.ones(2).values))
torch.ones(2).values()
# --- halves and short integers
import numpy as np
a, b = torch.tensor([1, 2], dtype=torch.int8), torch.tensor([1, 2], dtype=torch.uint8)
print(a + b, a.short(), a.half(), a.char(), torch.iinfo(torch.int8), torch.short, torch.half)
print(torch.tensor([1.5], dtype=torch.half) + torch.tensor(2.5, dtype=torch.float64), torch.HalfTensor([1, 2]))
torch.manual_seed(1)
print(torch.rand(3, dtype=torch.half), torch.randn(3, dtype=torch.half), torch.zeros(2, 3, dtype=torch.int16))
x = torch.linspace(0, 1, 5, dtype=torch.half)
print(x, x.mean(), x.std(), x.softmax(0), x.exp(), x.norm(), x.prod(), x.tanh(), (x + 1).log(), x ** 3, 1 / (x + 1))
x = torch.rand(3, 4).half().requires_grad_()
y = x @ torch.rand(4, 2).half()
y.mean().backward()
print(y, x.grad, x.type(), torch.tensor([0.1]).half().item(), torch.tensor(70000., dtype=torch.half))
print(torch.tensor(300).to(torch.int8), torch.arange(5, dtype=torch.int16).sum(), torch.arange(5, dtype=torch.int16) / 2)
print(torch.from_numpy(np.array([1, 2], np.float16)), torch.ones(2).type("torch.HalfTensor") * torch.ones(2))
told(lambda: torch.tensor(70000, dtype=torch.int16), lambda: torch.from_numpy(np.array(["a"])))
# --- ranges
for d in (torch.float32, torch.float64):
    for bounds in ((-3, 3, 0.1), (-5, 5, 0.3), (0, 1, 0.02), (7, -7, -0.7)):
        print(torch.arange(*bounds, dtype=d).tolist())
print(torch.arange(-3, 3, 0.1), torch.range(0, 10), torch.range(1, 2, 0.5), torch.range(1, 4, dtype=torch.int64))
# --- tensors in lists
def p(f):
    try: r = f(); print(r, r.shape, r.dtype)
    except Exception as e: print(type(e).__name__, e)
a, z, o = torch.tensor([1.]), torch.tensor(2.), torch.ones(1, 1)
for data in ([a, a], [[a], [a]], [z, z], [[z, 1.], [2, a]], [torch.ones(2)] * 2, [o, o], [1, a], [a, 1], [[a]]):
    p(lambda: torch.tensor(data))
for data in ([torch.tensor(1), torch.tensor(2.)], [torch.tensor(1), 2], [torch.tensor([1]), 2.], [z.double()]):
    p(lambda: torch.tensor(data))
p(lambda: torch.FloatTensor([a, a]))
p(lambda: torch.Tensor([a, z]))
p(lambda: torch.as_tensor([a, z]))
# --- devices that there are none of
import torch.backends.cudnn as cudnn
cudnn.deterministic = True
cudnn.benchmark = torch.backends.cudnn.enabled = False
print(torch.cuda.is_available(), torch.backends.mps.is_available(), torch.backends.mps.is_built(), torch.mps.is_available())
print(torch.accelerator.is_available(), torch.accelerator.current_accelerator(), hasattr(torch.backends, "mps"))
print(torch.backends.cudnn.deterministic, hasattr(torch.ones(1), "index"))
# --- slices of all
y, z = (torch.ones(n, requires_grad=True) * 1 for n in ((2,), (2, 2)))
for v in (y[:], y[:3], y[0:], y[-2:], y[...], y[::1], y[(slice(None),)], z[:], z[:, :], z[:, :3], z[0:5], z[..., :], z[:, None]):
    print(v.grad_fn.name(), v.grad_fn.next_functions[0][0].name())
for key in (slice(None), (slice(None), slice(None)), ..., slice(0, 5)):
    for value in (3, torch.ones(2)):
        z = torch.ones(2, 2, requires_grad=True) * 1
        z[key] = value
        print(z.grad_fn.name(), [f and f[0].name() for f in z.grad_fn.next_functions if f[0]])
# --- resized in place
x=torch.arange(6.); y=x; x.resize_(2,3); print(x, y.shape, x.is_contiguous()); x[0,0]=9; print(x.resize_(3)); print(x.resize_((3,1)), y)
z=torch.arange(4); w=z.view(2,2); z.resize_(2,2)[0,0]=7; print(w, z)
for a in (torch.ones(2,requires_grad=True), torch.ones(2,requires_grad=True)*1):
    told(lambda: a.resize_(2,1))
# --- the memory behind views
x = torch.arange(6.0).view(2, 3)
y = x.t()
print(x.storage().data_ptr() == y.storage().data_ptr(), x.data_ptr() == y.data_ptr(), y[1:].data_ptr() - x.data_ptr())
print(y.storage(), y[1:].storage_offset(), x[1, 1:].storage_offset())
print(x.untyped_storage(), x.untyped_storage().data_ptr() == y.clone().untyped_storage().data_ptr(), x.nbytes)
print(len(x.storage()), x.storage().size(), x.storage().nbytes(), x.storage().tolist(), x.storage()[2])
y.storage()[0] = 9.0
print(x, y.contiguous().storage().tolist(), x[0].expand(2, 3).storage().tolist(), type(x.storage()))
z = torch.tensor([1, 2, 3])
print(z[1:].storage(), z[1:].storage_offset(), z.detach()[2:].storage_offset(), z.unbind()[1].storage_offset())
# --- arrays as operands
import numpy as np
def tried(f):
    told(lambda: f())
for t in (torch.ones(3), torch.ones(3, requires_grad=True)):
    for a in (np.ones(3), np.array(2.0), np.float64(2)):
        for f in (lambda: t * a, lambda: a * t, lambda: t + a, lambda: t / a, lambda: a / t, lambda: t - a, lambda: a - t, lambda: t**a, lambda: t > a, lambda: t == a, lambda: t != a):
            tried(f)
    for f in (np.sin, np.isnan, np.floor, np.maximum.reduce):
        tried(lambda: f(t))
tried(lambda: torch.add(torch.ones(3), np.ones(3)))
tried(lambda: torch.ones(3) == [1, 2, 3])
tried(lambda: torch.ones(3) != None)
# --- Python's types as dtypes
x = torch.tensor([2.3], dtype=float)
print(x, x.tolist(), torch.tensor([2.7, 0.0], dtype=int), torch.tensor([2.7, 0.0], dtype=bool))
for y in (torch.zeros(2, dtype=float), torch.rand(1, dtype=float), torch.ones(1).to(float), torch.eye(2, dtype=int)):
    print(y.dtype)
print(torch.ones(2, dtype=int), torch.arange(3, dtype=float), torch.full((1,), 2.3, dtype=float).tolist())
print(torch.ones(2).sum(dtype=float), torch.ones(2).to(dtype=int), nn.Linear(1, 1, dtype=float).weight.dtype)
print(F.cross_entropy(torch.tensor([[5.0, 2.3, 0.3]], dtype=float), torch.tensor([0])).item())
# --- many numbers in little memory
print(torch.zeros(1).expand(5000, 5000).shape, torch.zeros(2, 1).expand(2, 2**26)[1, -1])
told(lambda: torch.randn(2**35, device="cuda"))
# --- lists of arrays
import numpy as np
for data in (
    [np.ones(2), np.zeros(2)], [np.float64(1), 2.0], [np.float32(1.5), 2], [np.int64(1), 2], [np.int32(1), 2.0],
    [np.arange(2), np.arange(2)], [np.zeros(2), np.ones(2, "f4")], [[np.ones(2)]], [np.ones(2, "i4")],
    (np.ones(2, bool), np.ones(2, bool)), [[1.0, 2.0], np.ones(2)], [np.float64(1), torch.tensor(1)],
):  # fmt: skip
    print(torch.tensor(data), torch.tensor(data, dtype=torch.float).dtype)
print(torch.as_tensor([np.ones(2)]), torch.FloatTensor([np.ones(2)]), torch.Tensor([np.ones(2)]))
for place in ("gpu", "CPU", "mps"):
    told(lambda: torch.ones(2).to(place))
print(torch.device("cuda:1"))
# --- parts, differences, sums of products and repetitions
x = torch.arange(9).view(3, 3)
a = torch.tensor([1, 3, 2.0])
y = torch.tensor([[1, 2], [3, 4.0]], requires_grad=True)
told(
    lambda: torch.narrow(x,0,-1,1), lambda: torch.narrow(x,0,-4,1), lambda: torch.narrow(x,0,4,0), lambda: torch.narrow(x,0,0,-1),
    lambda: torch.narrow(x,0,-1,2), lambda: x.narrow(1,torch.tensor(1),2), lambda: x.narrow(1,torch.tensor([1]),2),
    lambda: x.narrow(1,torch.tensor(1.),2), lambda:x.narrow(0,3,0), lambda: x.narrow(0,-3,3),
    lambda: torch.diff(a,append=torch.tensor([4.,5])), lambda: torch.diff(a,prepend=torch.tensor([4.]),n=2), lambda: torch.diff(a,n=0),
    lambda: torch.diff(a,n=5), lambda: torch.diff(torch.tensor(1.)), lambda: torch.diff(torch.tensor([True,False])),
    lambda: torch.einsum('...ij,...jk->...ik', torch.ones(2,3,4), torch.ones(4,5)).shape,
    lambda: torch.einsum('...ii->...i', torch.ones(2,3,3)).shape, lambda: torch.einsum('...,...->...', torch.ones(2,3), torch.ones(3)),
    lambda: torch.einsum('i...->...', torch.ones(2,3,requires_grad=True)),
    lambda: torch.einsum('b...i,b...i->b...', torch.ones(2,3,4,requires_grad=True), torch.ones(2,3,4)),
    lambda: torch.einsum('...ij', torch.ones(2,3,4)).shape, lambda: torch.einsum('...ij->ij', torch.ones(2,3,4)).shape,
    lambda: torch.einsum(torch.ones(2,3),[0,1],torch.ones(3,4),[1,2]).shape, lambda: torch.einsum(torch.ones(2,3),[0,1],[1,0]).shape,
    lambda: torch.einsum(torch.ones(2,3),[0,52],[1,0]).shape, lambda: torch.repeat_interleave(y,torch.tensor([1,2]),dim=0),
    lambda: torch.repeat_interleave(y,torch.tensor([1,2]),dim=1), lambda: torch.repeat_interleave(torch.tensor([1,2,0])),
    lambda: torch.repeat_interleave(y,torch.tensor([3]),dim=0), lambda: torch.repeat_interleave(y,torch.tensor([3,1,1]),dim=0),
    lambda: torch.repeat_interleave(y,torch.tensor([3,1])), lambda: y.repeat_interleave(torch.tensor([1,2,3,0])),
    lambda: torch.repeat_interleave(y,torch.tensor([1.,2]),dim=0), lambda: torch.repeat_interleave(y,2),
    lambda: y.repeat_interleave(2,dim=1), lambda: torch.repeat_interleave(y,torch.tensor([1,2]),dim=0,output_size=3),
    lambda: torch.repeat_interleave(y,-1), lambda: torch.repeat_interleave(y,torch.tensor([1,-2]),dim=0),
    lambda: torch.cross(torch.arange(6.).view(2,3),torch.ones(2,3)), lambda: torch.cross(torch.arange(12.).view(4,3),torch.ones(4,3)),
    lambda: torch.linalg.cross(torch.arange(3.),torch.ones(3)), lambda: torch.arange(9.).view(3,3).cross(torch.ones(3,3)),
)
print(torch.div(y, y + 1), torch.div(y, y + 1, rounding_mode='trunc'))
# --- lists of indices
x = torch.arange(12.0).reshape(3, 4)
for key in ([[0, 1]], [[0], [1]], [[0, 1], [1, 2]], [torch.tensor(0), torch.tensor(1)], [0, None], [..., 0], [(0, 1)], [0, 1]):
    print(x[key])
# --- powers at even steps
print(torch.logspace(-3, 2, 50), torch.logspace(0.1, 1.0, steps=5, base=2), torch.logspace(1, 1, 1), torch.logspace(0, 0, 0))
print(torch.logspace(0, 2, 3, requires_grad=True), torch.logspace(0, 3, 4, dtype=torch.int64), torch.logspace(1, -1, 3, dtype=torch.float64))
# --- quotients that are rounded pass nothing back
for mode in ("trunc", "floor"):
    a = torch.tensor([7.0, -7, 5, 0], requires_grad=True)
    b = torch.tensor([[2.0]], requires_grad=True)
    y = torch.div(a, b, rounding_mode=mode)
    y.backward(torch.tensor([[1.0, -1, 2, 3]]), retain_graph=True)
    print(y, a.grad, b.grad)
    with torch.no_grad():
        b.add_(1)
    told(lambda: y.sum().backward())
# --- solve, as it was
A, b = torch.eye(2), torch.ones(2, 1)
told(lambda: torch.solve(b, A), lambda: b.solve(A))
print(torch.linalg.solve(A, b))
x = torch.ones(2, requires_grad=True)
told(lambda: x.unique().sum().backward())
# --- numbers that a dtype does not hold
x = torch.tensor([1, 200], dtype=torch.uint8)
told(
    lambda: x + (-1), lambda: x * -2, lambda: -1 - x, lambda: torch.full_like(x, -9), lambda: torch.add(x, x, alpha=-3), lambda: x == -1,
    lambda: x > -1, lambda: x.fill_(-1), lambda: torch.where(x > 3, x, -1), lambda: torch.ones(2) * 1e300,
    lambda: torch.ones(2) + float("inf"),
)
x[0] = -2
print(x)
def put(x, key, value): x[key] = value
for a, v in ((x, 300), (x, -300), (x.int(), 2**40), (torch.ones(2), 1e300), (x.long(), float("inf")), (x.int(), float("nan"))):
    told(
        lambda: a + v, lambda: torch.full_like(a, v), lambda: a.clone().fill_(v), lambda: put(a, 0, v),
        lambda: put(a, torch.tensor([0]), v), lambda: a.masked_fill(a > 3, v), lambda: torch.full((2,), v, dtype=a.dtype),
    )
told(lambda: torch.full((1,), -1, dtype=torch.uint8))
# --- indices without places, and old masks
x, m = torch.zeros(3), torch.tensor([1, 0, 1], dtype=torch.uint8)
told(
    lambda: torch.arange(6)[[]], lambda: torch.zeros(2, 3)[[], []], lambda: x[torch.ones(0)], lambda: torch.zeros(3, 3)[[0, 1], [0, 1, 2]],
    lambda: x[m],
)
def assign(value): x[m] = value
told(lambda: assign(1), lambda: assign(torch.ones(2)))
print(x)
def delete(): del x[0]
told(delete)
told(
    lambda: torch.add(torch.ones(2), 1, out=torch.ones(2).long()), lambda: torch.div(torch.ones(2).long(), 2, out=torch.ones(2).long()),
    lambda: torch.mul(torch.ones(2), 2, out=torch.ones(2).double()),
)
# --- shallow copies, bytes below 0, chances in a tensor, out of joined
import copy
a = torch.randn(2, 2); b = copy.copy(a); b.fill_(1); print(a, b is a)
p = nn.Parameter(torch.ones(2)); p.grad = torch.ones(2); c = copy.copy(p); c.data[0] = 5; print(p, c, c.grad, type(c))
z = (p * 2); told(lambda: copy.copy(z))
for d in ([-1], [255], [256], [-256], [-300], -1, 300, 3.7, [-1.5]):
    told(lambda: torch.tensor(d, dtype=torch.uint8))
told(
    lambda: torch.full((2,), -1, dtype=torch.uint8), lambda: torch.tensor([1, 2], dtype=torch.int8),
    lambda: torch.tensor(2**40, dtype=torch.int32),
)
x = torch.zeros(4); torch.manual_seed(0); print(x.bernoulli_(torch.tensor([0.1, 0.9, 0.5, 0.5])))
out = torch.empty(2, 2); told(lambda: torch.stack([torch.ones(2), torch.zeros(2)], out=out)); print(out); told(lambda: torch.cat([torch.ones(1, 2), torch.zeros(1, 2)], out=out)); print(out)
# --- the old constructors show what they are given
w = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.FloatTensor(w)
print(y, y._is_view(), y._base is w)
z = torch.Tensor(w * 3)
print(z)
told(lambda: y.add_(1))
z.add_(1)
print(z)
z.sum().backward()
print(w.grad)
with torch.no_grad():
    print(torch.Tensor(w), torch.Tensor(w).requires_grad)
t = torch.ones(2)
u = torch.Tensor(t)
u[0] = 5
print(t, u is t, t.new(w))
double = torch.tensor([1.0], dtype=torch.float64)
for kind, x in (
    (torch.FloatTensor, double), (torch.Tensor, double), (torch.LongTensor, t), (torch.ByteTensor, torch.tensor([True])),
    (torch.BoolTensor, torch.tensor([1], dtype=torch.uint8)),
):
    told(lambda: kind(x))
# --- sizes of expand that are below any
for shape in ((2,), (2, 1), (1,)):
    for sizes in ((-2,), (-2, 3), (3, -2), (2, -2), (1, -2, 3), (-1, -1, 3), (-1, 2)):
        told(lambda: torch.ones(shape).expand(*sizes).shape)
print(next(iter(torch.nn.Linear(2, 1).__dict__)))
# --- a sum to a size
x = torch.ones(3, 2, requires_grad=True)
for s in ((2,), (3, 1), (1, 2), (1,), (3, 2), (1, 1), (5,), (2, 3), (1, 3, 2), (3,)):
    try:
        y = x.sum_to_size(*s)
        print(s, y, y.grad_fn and y.grad_fn.next_functions[0][0].name())
    except RuntimeError as error:
        print(error)
# --- schedulers ask their functions once
w = [torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)]
sgd = torch.optim.SGD([{"params": [p]} for p in w], 0.1)
asked = []
scheduler = torch.optim.lr_scheduler.LambdaLR(sgd, lambda epoch: asked.append(epoch) or 0.5**epoch)
sgd.step()
scheduler.step(3)
print(asked, scheduler.get_last_lr())
# --- quantiles, modes, running extremes, sets and blocks
x = torch.tensor([[1., 5., 2., 5.], [4., 4., 9., -1.]], requires_grad=True)
def g(y): print(torch.autograd.grad(y.sum(), x)[0])
print(torch.quantile(x, .5), torch.quantile(x, torch.tensor([.25, .75]), dim=1), x.quantile(.3, 0, True), x.quantile(.4, keepdim=True).shape, x.quantile(torch.tensor([.1, .9]), dim=1, keepdim=True).shape)
for how in ("linear", "lower", "higher", "midpoint", "nearest"): print(torch.quantile(x, .4, 1, interpolation=how))
g(torch.quantile(x, .4, 1)); g(torch.quantile(x, torch.tensor([.2, .8])))
told(lambda: torch.quantile(x, 1.5), lambda: torch.quantile(x, .5, interpolation="a"))
print(torch.quantile(torch.tensor([1., float("nan")]), .5))
n = torch.tensor([[1., float("nan"), 3.], [2., 2., float("nan")]], requires_grad=True)
print(torch.nanmean(n), n.nanmean(1)); print(torch.autograd.grad(n.nanmean(1).sum(), n)[0])
print(torch.mode(x, 1), torch.mode(torch.tensor([3, 1, 1, 3]), keepdim=True)); g(x.mode(1).values)
print(x.cummax(1), torch.cummin(x, 0), torch.logcumsumexp(x, 1)); g(x.cummax(1)[0]); g(x.logcumsumexp(1) ** 2)
print(torch.msort(x), torch.histc(x.detach(), 4), torch.histc(torch.tensor([1., 2., 1.]), bins=4, min=0, max=3), torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 3])), torch.isin(torch.tensor([1, 2]), 2, invert=True))
b = torch.tensor([1, 3, 5, 7, 9]); print(torch.bucketize(torch.tensor([[3, 6, 9], [3, 6, 9]]), b), torch.searchsorted(b, torch.tensor([3, 6]), right=True), torch.searchsorted(torch.tensor([[1, 3], [2, 4]]), torch.tensor([[3], [1]])), torch.bucketize(4, b))
print(torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 1]), return_counts=True, return_inverse=True), x.unique_consecutive())
print(torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4])), torch.combinations(torch.tensor([1., 2, 3]), 2, True), torch.combinations(x[0]), torch.block_diag(torch.ones(1, 2), torch.tensor(3.), x))
print(torch.atleast_2d(torch.tensor(1.)), torch.atleast_1d(torch.tensor(1.), x)[0], torch.atleast_3d(x).shape, +x, x.conj() is x, torch.is_nonzero(torch.tensor(2.)))
m = torch.tensor([[True, False, True, False], [False, True, False, False]])
y = x.masked_scatter(m, torch.tensor([10., 20, 30, 40])); print(y); g(y ** 2)
s = torch.arange(4., requires_grad=True); z = torch.zeros(2, 4).masked_scatter(m, s); print(z, torch.autograd.grad((z ** 2).sum(), s)); told(lambda: x.masked_scatter(m, torch.ones(2)))
i = torch.tensor([0, 0, 1, 0]); s = torch.tensor([2., 5., 4., 5.], requires_grad=True); w = torch.tensor([5., 1., 7.], requires_grad=True)
for how in ("sum", "mean", "amax", "amin"):
    for inc in (True, False):
        r = w.scatter_reduce(0, i, s, reduce=how, include_self=inc); print(how, inc, r, *torch.autograd.grad((r * torch.arange(1., 4.)).sum(), (w, s), allow_unused=True))
q = torch.ones(3, 3); q.fill_diagonal_(0); print(q)
# --- conversions by position, by name and like another tensor
x, y = torch.ones(2), torch.ones(1, dtype=torch.float64)
for args in ((), (None,), (torch.float32, False, True), (y, False, True), (x, False, True), ("cpu", None, False, True), (None, torch.float64), (1.5,), (True,), (torch.float32, True)):
    print(x.to(*args).dtype, x.to(*args) is x)
for keywords in ({"tensor": y}, {"tensor": x, "copy": True}, {"copy": True}, {"device": "cpu", "dtype": torch.float64}, {"dtype": int, "non_blocking": True}):
    print(x.to(**keywords).dtype, x.to(**keywords) is x)
told(
    lambda: x.to(other=y), lambda: x.to(torch.float64, torch.float32), lambda: x.to(y, torch.float32), lambda: x.to([1]),
    lambda: x.to(torch.float64, "cpu"), lambda: nn.Linear(1, 1).to(torch.float64, False, False, True),
)
