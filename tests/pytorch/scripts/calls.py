# --- the factor in front, as of old
a, b = torch.ones(2, 2), torch.full((2, 2), 3.0)
a.add_(-0.5, b)
print(a)
a.addcdiv_(-0.1, b, torch.full((2, 2), 2.0))
print(a, torch.add(a, 2, b), torch.sub(a, 2, b))
a.addcmul_(2, b, b)
print(a)

# --- a wider operand in place
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.clone()
y /= torch.tensor([2.0, 4.0], dtype=torch.float64)
y += torch.tensor([1.0, 1.0], dtype=torch.float64)
print(y)
y.sum().backward()
print(x.grad)

# --- what is assigned
def told(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, error)

y = torch.zeros(2, 3)
for value in ([1.0, 2, 3], "s", None, torch.ones(4), torch.ones(2, 2, 3), torch.ones(1, 1, 3)):
    told(lambda: y.__setitem__(0, value))
told(lambda: y.__setitem__(y == 0, torch.ones(5)))
told(lambda: y.copy_(torch.ones(4)))
told(lambda: y.copy_(torch.ones(2, 2, 3)))
told(lambda: y.fill_(torch.ones(2)))
print(y, y.fill_(torch.tensor(2.0)), y.copy_(5))
k = torch.tensor([True, False])
k[k] = -2.5
print(k, k.diagflat())
told(lambda: torch.tensor(1.0)[..., 0])

# --- what convolutions refuse
def told(f):
    try:
        print(f().shape)
    except Exception as error:
        print(type(error).__name__, error)

x, w = torch.ones(2, 3, 5, 6), torch.ones(4, 3, 2, 2)
told(lambda: nn.Conv2d(3, 4, 3)(x).view(2, -1))
told(lambda: F.conv2d(x, torch.ones(4, 2, 2, 2)))
told(lambda: F.conv2d(x[0, 0], w))
told(lambda: F.conv2d(x, w, torch.ones(3)))
told(lambda: F.conv2d(x, torch.ones(4, 3, 7, 7)))
told(lambda: F.conv2d(x, w.double()))
told(lambda: F.conv2d(x.double(), w))
told(lambda: F.conv2d(x, w, torch.ones(4).double()))
told(lambda: F.conv2d(x, w, stride=0))
told(lambda: F.conv2d(x, w, padding=-1))
told(lambda: F.conv2d(x, w, padding=(1, 1, 1)))
told(lambda: F.conv2d(x, w, stride=2, padding="same"))
told(lambda: F.conv2d(x, w, groups=3))
told(lambda: F.conv1d(x, torch.ones(1, 1, 1)))
told(lambda: nn.Conv1d(3, 4, 2, groups=2))
print(F.conv2d(torch.ones(1, 2, 2, requires_grad=True), torch.ones(1, 1, 2, 2)))

# --- what pooling refuses
def told(f):
    try:
        print(f().shape)
    except Exception as error:
        print(type(error).__name__, error)

x = torch.ones(2, 3, 5, 6)
for pool in (F.max_pool2d, F.avg_pool2d):
    told(lambda: pool(x, 7))
    told(lambda: pool(x, 2, -1))
    told(lambda: pool(x, 2, 0))
    told(lambda: pool(x, 2, padding=2))
    told(lambda: pool(x[0, 0], 2))
    told(lambda: pool(x, (1, 2, 3)))
for pool in (F.max_pool1d, F.avg_pool1d):
    told(lambda: pool(x[0], 7))
    told(lambda: pool(x[0], 2, -1))
    told(lambda: pool(x[0], 2, padding=2))
    told(lambda: pool(x[0, 0, 0], 2))
print(nn.AvgPool2d(2, ceil_mode=True)(x).shape, nn.AvgPool1d(2, count_include_pad=False, padding=1)(x[0]).dtype)
print(F.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4, requires_grad=True), 2))

# --- what matrices refuse
def told(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, error)

m, r = torch.tensor([[1.0, 2.0], [2.0, 4.0]]), torch.ones(2, 3)
for f in (torch.det, torch.inverse, torch.logdet, torch.linalg.inv):
    told(lambda: f(r))
    told(lambda: f(torch.ones(3)))
told(lambda: torch.inverse(m))
told(lambda: torch.linalg.inv(torch.zeros(2, 2, 2)))
told(lambda: torch.linalg.solve(m, torch.ones(2)))
told(lambda: torch.linalg.solve(torch.eye(2), torch.ones(3)))
told(lambda: torch.bmm(r, r))
told(lambda: torch.addmm(r, r, torch.ones(2)))
print(torch.addmm(torch.ones(2, 2), m, m, beta=0.5, alpha=2))
told(lambda: torch.allclose(m, torch.ones(2, 2, dtype=torch.int64)))

# --- losses with weights
a, b = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([[3.0, 5.0]])
w = torch.tensor([[1.0, 3.0]])
for loss in (F.mse_loss, F.l1_loss, F.huber_loss):
    for how in ("mean", "sum", "none"):
        print(loss(a, b, weight=w, reduction=how))
for loss in (F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits, F.kl_div):
    try:
        loss(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64))
    except Exception as error:
        print(type(error).__name__, error)
try:
    F.binary_cross_entropy_with_logits(a, torch.ones(1, 2, dtype=torch.int64))
except RuntimeError as error:
    print(error)
scores = torch.tensor([[1.0, 2.0]], requires_grad=True)
loss = F.cross_entropy(scores, torch.tensor([-100]))
loss.backward()
print(loss, scores.grad)
try:
    F.cross_entropy(scores, torch.tensor([0]), torch.ones(3))
except RuntimeError as error:
    print(error)

# --- dropout in place and of channels
torch.manual_seed(1)
x = torch.ones(2, 3, 4)
y = x.clone()
print(F.dropout(y, inplace=True) is y, y)
print(F.dropout2d(x[None]), F.dropout(x.transpose(0, 2)[0]))
z = torch.ones(2, requires_grad=True)
print(F.dropout(z, 0.0) is z, nn.Dropout(0.3, inplace=True))
for wrong in (torch.ones(2, dtype=torch.int64), torch.ones(2)):
    try:
        F.dropout(wrong, 1.5) if wrong.is_floating_point() else F.dropout(wrong)
    except Exception as error:
        print(type(error).__name__, error)

# --- numbers in the order of memory
torch.manual_seed(0)
x = torch.zeros(3, 2).t()
print(x.uniform_(), x.exponential_(), torch.rand_like(x), torch.randn_like(x))

# --- nan in activations
x = torch.tensor([float("nan"), float("inf"), -float("inf"), -4.0, 0.25], requires_grad=True)
print(F.hardswish(x), F.hardsigmoid(x), F.softshrink(x), x.clamp_min(0.0), torch.logit(x))
print(F.leaky_relu(x.clone(), inplace=True), F.elu(x.clone(), inplace=True), x.clone().asinh_())

# --- what modules refuse
def told(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, error)

told(lambda: nn.ReLU(foo=1))
told(lambda: nn.ReLU(1, 2))
told(lambda: nn.Tanh(1))
told(lambda: nn.MSELoss(reduction="foo")(torch.ones(1), torch.ones(1)))
told(lambda: nn.Sequential(nn.Linear(1, 1), 3))
told(lambda: nn.Sequential(nn.ReLU))
told(lambda: nn.Sequential(nn.ReLU())[1])
told(lambda: nn.Module().add_module("a.b", nn.ReLU()))
print(nn.Mish(inplace=True), nn.CELU(0.5, True), nn.Hardtanh(0, 1, inplace=True))
print(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.Tanh()]))
print(nn.ParameterList([nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(2))]))
net = nn.Sequential(nn.Linear(1, 1))
print(net.insert(0, nn.Tanh()), net.extend([nn.ReLU()]), net.pop(0), net + nn.Sequential(nn.Tanh()))

# --- types
x = torch.ones(1, requires_grad=True)
y = x * 2
print(type(y.grad_fn), type(y.grad_fn).__name__, type(y.grad_fn.next_functions[0][0]).__name__)
print(type(nn.Linear(1, 1)), type(nn.ReLU()), type(nn.MSELoss()), type(torch.optim.SGD([x], lr=0.1)))
print(torch.finfo(torch.float32), torch.finfo(torch.float64).eps, torch.iinfo(torch.int64))

# --- what optimizers refuse
def told(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, error)

x = torch.ones(2, requires_grad=True)
O = torch.optim
told(lambda: O.SGD([x], lr=-1))
told(lambda: O.RMSprop([x], alpha=-1))
told(lambda: O.SGD([{"params": [x]}, {"params": [x]}], lr=0.1))
told(lambda: O.SGD([x, x], lr=0.1))
told(lambda: O.lr_scheduler.StepLR(3, 2))
told(lambda: O.lr_scheduler.LambdaLR(O.SGD([x], lr=0.1), [lambda e: 1, lambda e: 2]))
optimizer = O.RMSprop([x], lr=0.5, momentum=0.5, centered=True, maximize=True)
for _ in range(3):
    optimizer.zero_grad()
    (x * x).sum().backward()
    optimizer.step()
print(x, optimizer, optimizer.state_dict())
scheduler = O.lr_scheduler.MultiStepLR(optimizer, [1, 2], 0.5)
scheduler.step()
print(scheduler.state_dict(), scheduler.get_last_lr())
early = O.lr_scheduler.StepLR(O.SGD([x], lr=0.1), 1)
early.step()

# --- joining nothing, and parts of wrong sizes
def told(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, error)

x = torch.arange(6.0).reshape(2, 3)
told(lambda: torch.cat([]))
told(lambda: torch.stack([]))
told(lambda: torch.vstack([]))
told(lambda: x.chunk(0))
told(lambda: x.split(-1))
told(lambda: x.split(0))
told(lambda: x.repeat(0, 2))
told(lambda: x.repeat(1, -1))
told(lambda: x.flip(2))
told(lambda: x.flip(0, 0))
told(lambda: x.masked_select(x))
told(lambda: torch.broadcast_tensors(x, torch.ones(4)))
told(lambda: torch.argmax(x > 1))
told(lambda: torch.unsqueeze(input=x, dim=0).shape)
told(lambda: x.squeeze(0, 1).shape)
told(lambda: x.ravel()[:2])

# --- kinds of steps
x = torch.tensor([0.5, 1.5], requires_grad=True)
print(x.sum(dim=None), x.mean(dim=None), x.clamp_min(x), x.xlogy(2.0), torch.xlogy(2.0, x), x.copysign(-1.0))
print(torch.nansum(torch.tensor([1, 2])), torch.trace(torch.ones(2, 2, dtype=torch.int32)), x.arccosh())
y = x.clone()
y.retain_grad()
(y * y).sum().backward(create_graph=True)
(y * y).sum().backward(create_graph=True)
print(y.grad)

# --- sums with a factor are one step
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.add(x, x, alpha=2)
y.backward(torch.ones(2))
y.backward(torch.ones(2))
print(y, x.grad, torch.sub(x, 2, alpha=3), torch.rsub(x, x.double(), alpha=2), y.grad_fn.next_functions)

# --- joined without elements
e = torch.zeros(2, 0, dtype=torch.int64)
print(torch.stack([e, e]).dtype, torch.cat([torch.zeros(0, dtype=torch.float64), torch.ones(2)]))
print(torch.zeros(0, dtype=torch.int64).softmax(0), torch.zeros(2, 0).log_softmax(1))

# --- numbers of tensors
x = torch.tensor(1.5, requires_grad=True)
print(int(x), x.real, x.layout, torch.tensor([1.0]).layout == torch.strided, torch.tensor([1e100]))
try:
    torch.tensor([1e10], dtype=torch.int32)
except RuntimeError as error:
    print(error)

# --- a variance that is changed
x = torch.tensor([1.0, 3.0], requires_grad=True)
y = x.var()
with torch.no_grad():
    y /= 1
y.sigmoid().backward()
print(x.grad)

# --- a kept gradient off the way
a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
c = a * 2
c.retain_grad()
d = c - b
print(torch.autograd.grad(d.sum(), b, retain_graph=True), c.grad, c.is_leaf)
print(torch.autograd.grad(d.sum(), a), c.grad)

# --- operands by their names
x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 1.0])
for f in (torch.maximum, torch.minimum, torch.atan2, torch.hypot, torch.logaddexp, torch.fmax):
    print(f(x, other=y), f(input=x, other=y).grad_fn)
# --- sizes and parts by their names
x = torch.arange(end=6.0).view(size=(2, 3))
print(x.permute(dims=(1, 0)), torch.permute(x, dims=(1, 0)).shape, x[:1].expand(size=(2, 3)), x.reshape(shape=(3, -1)))
print(x.repeat(repeats=(1, 2)), torch.tile(x, dims=(2,)), torch.broadcast_to(input=x[0], size=(2, 3)))
print(torch.split(x, split_size_or_sections=[1, 2], dim=1), torch.split(tensor=x, split_size_or_sections=1))
print(torch.logical_and(input=x > 1, other=x < 4), torch.arange(start=1, end=3), x.split(split_size=2, dim=1))
print(torch.promote_types(type1=torch.int32, type2=torch.float32))

# --- several dots in an index
x = torch.arange(24.0).view(2, 3, 4)
print(x[..., ::2, ...], x[..., 0, ...], x[0, ..., ...].shape, x[..., ...].shape, x[..., None, ...].shape)
print(x[0, ..., 1, ..., 2, ...], x[0, ..., torch.tensor([0, 1]), ...])
x[..., 1, ...] = 0
print(x)

# --- axes under NumPy's names
a = torch.arange(4.).reshape(2, 2)
print(torch.stack([a, a], axis=1), a.squeeze(axis=0), a.unsqueeze(axis=1), torch.cat([a, a], axis=0), a.std(axis=0))
print(a.var(axis=0, keepdims=True), a.sort(axis=0).values, a.topk(1, axis=0).values, torch.chunk(a, 2, axis=0))
print(torch.max(a, axis=0, keepdims=True), a.all(axis=0, keepdims=True), a.argmax(axis=0, keepdims=True))
print(a.sum(axis=(0, 1), keepdims=True), torch.mean(a, axis=0), a.softmax(axis=0), torch.diff(a, axis=0), a.unbind(axis=0))
print(torch.tensor([3, 4]).apply_(lambda x: x * 2.5), torch.tensor(3.).apply_(lambda x: x + 1))
try:
    torch.ones(2, requires_grad=True).apply_(lambda x: x)
except RuntimeError as e:
    print(e)
# --- old names of backwards
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        print(ctx.saved_variables)
        return g * 2
x = torch.ones(2, requires_grad=True)
y = Double.apply(x)
print(y.grad_fn.apply(torch.ones(2)))
print(torch.autograd.gradcheck(lambda x: x * 2, x, eps=1e-3))
w = nn.Parameter(torch.ones(1))
schedule = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([w], 0.1), 2)
print(schedule.get_lr(), schedule.get_last_lr())
# --- what few call and what they are given
x = torch.zeros(3, 4)
x.diagonal(1).fill_(2.0)
x.diagonal(-1)[0] = 5
print(x, torch.diagonal(x, 1).stride(), torch.zeros(2, 3, 3).diagonal(dim1=-2, dim2=-1).shape)
a = torch.tensor([[1.5, -0.5, 2.0], [0.25, 3.0, -1.0]], requires_grad=True)
print(a.diagonal(1), a.argmax(keepdim=True), torch.tensor([1, 2], dtype=torch.uint8).any())
print(torch.bincount(torch.tensor([0, 1, 1]), torch.tensor([1, 2, 3])), torch.add(2, 3), torch.div(3, 2))
s = torch.tensor([0.0, 0.5], requires_grad=True)
print(torch.autograd.grad((torch.sinc(s) + torch.xlogy(s, 2)).sum(), s))
print(torch.nan_to_num(torch.arange(3), nan=1.0), F.hardtanh(torch.arange(3), max_val=1.0))
print(torch.xlogy(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([float("nan"), float("inf"), 0.0])))
print(torch.xlogy(torch.tensor([0.0, 0.5]), torch.tensor([0.25, 0.5])))
print(F.mse_loss(a, a * 2, reduce=0), F.mse_loss(a, a * 2, 0.5), torch.tensor([-0.0, -1.0]).relu())
print(torch.diff(a, prepend=a[:, :1]), torch.nansum(a, dtype=torch.float64))
print(torch.gather(a, 1, torch.tensor([[0], [1]]), sparse_grad=False), a.is_contiguous(memory_format=torch.contiguous_format))
print(torch.tril_indices(2, 3, dtype=torch.int32), F.interpolate(a[None], 2, antialias=False))

# --- sizes and operands of another kind
n, a = 4, torch.ones(2, 3)
pred, target = torch.ones(2, requires_grad=True), torch.zeros(2)
for call in (
    lambda: torch.zeros(n / 2),
    lambda: torch.zeros(n / 2, 3),
    lambda: torch.ones((n / 2, 3)),
    lambda: torch.ones(3, n / 2),
    lambda: torch.rand([3, n / 2]),
    lambda: a.reshape(n / 2, 3),
    lambda: a.view(3, n / 2),
    lambda: a.expand(n / 2, 3),
    lambda: a.repeat(n / 2, 1),
    lambda: a.permute(1.0, 0),
    lambda: a.new_zeros(n / 2, 3),
    lambda: torch.zeros("3"),
    lambda: torch.Tensor(2.0),
    lambda: torch.maximum(a, 0),
    lambda: torch.logical_and(a, 1),
    lambda: torch.sin([1, 2]),
    lambda: a.diagonal(0, 1, 1),
    lambda: a.take(a),
    lambda: nn.MSELoss(pred, target),
    lambda: nn.MSELoss()(pred),
    lambda: nn.CrossEntropyLoss()(),
    lambda: nn.BCELoss()(a * 2, a * 3),
):
    try:
        print(call())
    except (TypeError, RuntimeError) as error:
        print(type(error).__name__, error)
# --- of no elements, and other ends
a = torch.tensor([[1.5, -0.5], [0.25, 3.0]], requires_grad=True)
print(F.cross_entropy(torch.zeros(2, 0), torch.zeros(2, 0)), F.cross_entropy(torch.zeros(0, 2), torch.zeros(0, 2)))
print(torch.zeros(0).median(), torch.zeros(0, requires_grad=True).median())
print(torch.tensor([1.5, 2.0]).polygamma(1), torch.polygamma(2, torch.tensor([1.5])))
print(torch.softmax(a, 1, dtype=torch.float64), a.cumsum(0, dtype=torch.float64))
for call in (
    lambda: torch.roll(torch.tensor(1.0), 1, 0),
    lambda: torch.div(a, 2, rounding_mode="down"),
    lambda: a[None, "first"],
    lambda: nn.Parameter(3),
    lambda: torch.utils.data.DataLoader([1], batch_size=0),
):
    try:
        print(call())
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        print(type(error).__name__, error)
for call in (
    lambda: torch.einsum("ij,jk->ik", a, a[0]),
    lambda: F.one_hot(torch.zeros(0, dtype=torch.int64)),
    lambda: F.pad(torch.arange(2), (1, 0), value=0.5),
    lambda: torch.tensor(1).movedim(0, -1),
    lambda: torch.full((2,), None),
    lambda: nn.MSELoss(size=1),
    lambda: nn.Dropout(q=1),
    lambda: nn.MaxPool2d(2, size=1),
):
    try:
        print(call())
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__, error)
# --- mixed precision that is turned off
import warnings
warnings.simplefilter("always")
def t(f):
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        try: print(f())
        except Exception as e: print(type(e).__name__, e)
        for x in w: print("  W", x.category.__name__, x.message)
m = torch.nn.Linear(2, 1); o = torch.optim.SGD(m.parameters(), .1)
def run(ctx):
    with ctx() as c: y = m(torch.ones(1, 2)).sum()
    return y.dtype
t(lambda: run(lambda: torch.autocast("cpu", enabled=False)))
t(lambda: run(lambda: torch.autocast("cuda")))
t(lambda: run(lambda: torch.autocast(device_type="cuda", dtype=torch.float16)))
t(lambda: run(lambda: torch.cuda.amp.autocast()))
t(lambda: run(lambda: torch.cuda.amp.autocast(enabled=False)))
t(lambda: run(lambda: torch.amp.autocast("cuda", enabled=False)))
t(lambda: torch.amp.autocast)
t(lambda: torch.autocast("foo"))
t(lambda: torch.is_autocast_enabled())
def scaler(make):
    s = make(); l = m(torch.ones(1, 2)).sum(); o.zero_grad(); s.scale(l).backward(); s.unscale_(o); r = s.step(o); s.update()
    return s.is_enabled(), s.get_scale(), s.state_dict(), r, s.scale(l) is l, type(s).__name__
t(lambda: scaler(lambda: torch.cuda.amp.GradScaler()))
t(lambda: scaler(lambda: torch.cuda.amp.GradScaler(enabled=False)))
t(lambda: scaler(lambda: torch.amp.GradScaler("cuda")))
t(lambda: scaler(lambda: torch.amp.GradScaler("cpu", enabled=False)))
t(lambda: scaler(lambda: torch.GradScaler()))
t(lambda: scaler(lambda: torch.amp.GradScaler(enabled=torch.cuda.is_available())))
@torch.autocast("cpu", enabled=False)
def f(x): return x * 2
t(lambda: f(torch.ones(2)))
from torch.cuda.amp import autocast, GradScaler
from torch.amp import autocast, GradScaler
# --- arguments of another type, too many and too few
x, v = torch.ones(2, 3), torch.ones(3)
def t(f):
    try: print("no error", f())
    except Exception as e: print(type(e).__name__, e)
t(lambda: x.sum('a'))
t(lambda: x.sum(1.5))
t(lambda: x.sum(bad=1))
t(lambda: torch.sum())
t(lambda: torch.sum(3))
t(lambda: torch.sum([1, 2]))
t(lambda: x.mean('a'))
t(lambda: x.view())
t(lambda: x.view('a'))
t(lambda: x.view(2.0, 3.0))
t(lambda: x.view(x))
t(lambda: x.reshape())
t(lambda: x.reshape(1.5))
t(lambda: torch.reshape(x))
t(lambda: x.transpose())
t(lambda: x.transpose(0))
t(lambda: x.transpose('a', 1))
t(lambda: x.permute())
t(lambda: x.permute('a'))
t(lambda: x.t(1))
t(lambda: x.squeeze('a'))
t(lambda: x.unsqueeze())
t(lambda: x.unsqueeze('a'))
t(lambda: torch.zeros())
t(lambda: torch.zeros('a'))
t(lambda: torch.zeros(1.5))
t(lambda: torch.zeros(x))
t(lambda: torch.full())
t(lambda: torch.full((2,)))
t(lambda: torch.full(2, 3))
t(lambda: torch.arange())
t(lambda: torch.arange('a'))
t(lambda: torch.linspace(0, 1))
t(lambda: torch.linspace(0, 1, 2.5))
t(lambda: torch.randint())
t(lambda: torch.randint(3))
t(lambda: torch.randint(0, 3, 2))
t(lambda: torch.eye())
t(lambda: torch.eye('a'))
t(lambda: torch.cat(x, x))
t(lambda: torch.cat(x))
t(lambda: torch.cat([x, 1]))
t(lambda: torch.cat())
t(lambda: torch.cat([x], 'a'))
t(lambda: torch.stack(x, x))
t(lambda: torch.stack([1, 2]))
t(lambda: torch.matmul(x))
t(lambda: torch.matmul(x, 2))
t(lambda: torch.mm(x, [1]))
t(lambda: v.dot())
t(lambda: v.dot(2))
t(lambda: x.add())
t(lambda: x.add('a'))
t(lambda: torch.add(x))
t(lambda: torch.mul(x, None))
t(lambda: torch.exp(1.0))
t(lambda: torch.exp())
t(lambda: torch.exp(x, x))
t(lambda: x.exp(1))
t(lambda: torch.pow(2, 3))
t(lambda: torch.pow(x))
t(lambda: x.pow())
t(lambda: x.pow('a'))
t(lambda: x.clamp('a'))
t(lambda: x.clamp(min='a'))
t(lambda: torch.max(1, 2))
t(lambda: x.max('a'))
t(lambda: torch.max(x, 1, 2))
t(lambda: torch.maximum(x, 1))
t(lambda: x.argmax('a'))
t(lambda: x.argmax(1.5))
t(lambda: x.sort('a'))
t(lambda: x.topk())
t(lambda: x.topk('a'))
t(lambda: torch.softmax(x))
t(lambda: torch.softmax(x, 'a'))
t(lambda: torch.where(x > 0, 1))
t(lambda: x.chunk())
t(lambda: x.expand())
t(lambda: x.expand('a'))
t(lambda: x.repeat())
t(lambda: x.repeat('a'))
t(lambda: x.gather(0))
t(lambda: x.flatten('a'))
t(lambda: x.detach().fill_())
t(lambda: x.detach().fill_('a'))
t(lambda: x.detach().zero_(1))
t(lambda: x.var('a'))
t(lambda: x.std(dim='a'))
t(lambda: x.masked_fill(1, 2))
t(lambda: x.index_select(0, 1))
t(lambda: x.unbind('a'))
t(lambda: x.detach().abs_(1))
t(lambda: x.detach().add_())
t(lambda: x.sub('a'))
t(lambda: x.div())
t(lambda: x.prod('a'))
t(lambda: x.any('a'))
t(lambda: x.all(1.5))
t(lambda: x.diag('a'))
t(lambda: x.tril('a'))
t(lambda: x.roll())
t(lambda: x.flip('a'))
t(lambda: x.narrow(0))
t(lambda: x.round('a'))
# --- limits of dtypes, ranks and shapes
i, f = torch.tensor([1, 2]), torch.tensor([1., 2.])
d, b, m, n, im = f.double(), torch.tensor([True, False]), torch.ones(2, 2), torch.tensor(1.), torch.ones(2, 2).long()
def t(f):
    try: print("no error", f())
    except Exception as e: print(type(e).__name__, str(e).split("\n")[0])
t(lambda: torch.relu(b))
t(lambda: b.relu())
t(lambda: F.relu(b))
t(lambda: F.relu6(b))
t(lambda: F.hardtanh(b))
t(lambda: F.hardtanh(f, 2.0, 1.0))
t(lambda: F.hardtanh(f, min_val=2.0, max_val=1.0))
t(lambda: F.softshrink(f, -1.0))
t(lambda: torch.lerp(f, d, 0.5))
t(lambda: f.lerp(d, 0.5))
t(lambda: torch.lerp(f, f, d))
t(lambda: torch.addcdiv(f, i, i))
t(lambda: f.addcdiv(i, i))
t(lambda: f.addcdiv(i, f))
t(lambda: i.std())
t(lambda: i.var())
t(lambda: b.argmax())
t(lambda: torch.argmin(b))
t(lambda: torch.isclose(f, d))
t(lambda: torch.allclose(f, d))
t(lambda: f.masked_fill(i, 0.0))
t(lambda: f.masked_fill(b, f))
t(lambda: f.masked_select(i))
t(lambda: f.gather(0, f))
t(lambda: f.scatter(0, i - 1, d))
t(lambda: f.scatter_(0, i - 1, d))
t(lambda: f.scatter_add(0, i - 1, d))
t(lambda: f.clone().scatter_add_(0, i - 1, d))
t(lambda: f.index_add(0, i - 1, d))
t(lambda: f.index_copy(0, i - 1, d))
t(lambda: f.index_put((i - 1,), d))
t(lambda: f.index_put((i - 1,), d, accumulate=True))
t(lambda: f.take(f))
t(lambda: f.take(b))
t(lambda: f.bincount())
t(lambda: torch.bincount(im))
t(lambda: torch.bincount(-i))
t(lambda: torch.multinomial(i, 1))
t(lambda: n.tensor_split(2))
t(lambda: f.tensor_split(0))
t(lambda: f.tensor_split(f))
t(lambda: f.tensor_split(i))
t(lambda: n.hsplit(1))
t(lambda: f.vsplit(1))
t(lambda: m.dsplit(1))
t(lambda: torch.hsplit(n, 1))
t(lambda: torch.mm(f, m))
t(lambda: m.mm(f))
t(lambda: m.mv(m))
t(lambda: f.mv(f))
t(lambda: f.dot(m))
t(lambda: torch.dot(n, f))
t(lambda: m.bmm(m))
t(lambda: torch.bmm(m[None], m))
t(lambda: torch.addmm(m, f, m))
t(lambda: m.addmm(m, f))
t(lambda: torch.outer(m, f))
t(lambda: f.ger(n))
t(lambda: F.linear(m, f, f))
t(lambda: F.linear(m, f))
t(lambda: F.linear(m[None], f, n))
t(lambda: F.linear(m, m[:1], 3))
t(lambda: F.one_hot(f))
t(lambda: F.one_hot(-i))
t(lambda: F.max_unpool1d(m, m, 2))
t(lambda: F.scaled_dot_product_attention(f, f, f))
t(lambda: F.scaled_dot_product_attention(m, m.double(), m))
t(lambda: F.scaled_dot_product_attention(m, m, f))
t(lambda: F.binary_cross_entropy(f / 2, m))
t(lambda: F.binary_cross_entropy(f / 2, d))
t(lambda: F.binary_cross_entropy_with_logits(f, m))
t(lambda: torch.optim.Adam([f.requires_grad_()], betas=(1.0, 0.0)))
t(lambda: torch.optim.Adam([f], betas=(0.0, -1.0)))
t(lambda: F.embedding_bag(n.long(), m))
t(lambda: F.embedding_bag(i - 1, m, torch.tensor([0]), mode='x'))
t(lambda: F.dropout(f, p=2.0))
t(lambda: F.dropout(f, p='a'))
t(lambda: F.embedding(i, f))
t(lambda: m.tril())
t(lambda: f.tril())
t(lambda: f.narrow(0, 0, -1))
t(lambda: f.chunk(0))
t(lambda: f.diff(-1))
t(lambda: f.div(f, rounding_mode='x'))
t(lambda: torch.quantile(f, 0.5, interpolation='x'))
t(lambda: f.fliplr())
t(lambda: torch.linspace(0, 1, -1))
t(lambda: i.repeat_interleave(f))
t(lambda: torch.repeat_interleave(f))
# --- arguments of layers' functions of another type, too many and too few
x, w, im, k = torch.ones(2, 3), torch.ones(4, 3), torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
def t(f):
    try: print("no error", f())
    except Exception as e: print(type(e).__name__, e)
t(lambda: F.linear(x))
t(lambda: F.linear())
t(lambda: F.linear(x, 1))
t(lambda: F.linear(x, w, 1))
t(lambda: F.linear(x, w, w[:, 0], w))
t(lambda: F.linear(x, w, foo=1))
t(lambda: F.conv2d(im))
t(lambda: F.conv2d(im, 1))
t(lambda: F.conv2d(im, k, stride='a'))
t(lambda: F.conv2d(im, k, None, 1, 0, 1, 1, 1))
t(lambda: F.conv1d())
t(lambda: F.gelu())
t(lambda: F.gelu(1))
t(lambda: F.softplus(1))
t(lambda: F.softplus(x, 'a'))
t(lambda: F.hardshrink(1))
t(lambda: F.softshrink(1))
t(lambda: F.cosine_similarity(x))
t(lambda: F.pixel_shuffle(im))
t(lambda: F.one_hot(torch.tensor([1]), 'a'))
t(lambda: F.avg_pool2d(im))
t(lambda: F.avg_pool2d(1, 2))
t(lambda: F.avg_pool2d(im, 'a'))
t(lambda: F.prelu(x))
t(lambda: F.bilinear(x))
t(lambda: F.scaled_dot_product_attention(x))
t(lambda: F.scaled_dot_product_attention(x, x, 1))
t(lambda: F.max_pool2d(im))
t(lambda: F.max_pool2d(1, 2))
t(lambda: F.dropout())
t(lambda: F.embedding(x))
t(lambda: F.layer_norm(x))
t(lambda: F.batch_norm(x))
t(lambda: F.softmax(x, 'a'))
t(lambda: F.leaky_relu(x, 'a'))
t(lambda: F.elu(1))
t(lambda: F.hardtanh(1))
t(lambda: F.pairwise_distance(x))
t(lambda: F.conv_transpose2d(im))
t(lambda: F.celu())
t(lambda: F.channel_shuffle(im))
t(lambda: F.unfold(im))
# --- sizes of another kind
x, i, f = torch.ones(2, 3), torch.tensor(2), torch.tensor(2.)
def t(f):
    try: print("no error", f().shape)
    except Exception as e: print(type(e).__name__, e)
t(lambda: torch.zeros(2, 'a'))
t(lambda: torch.zeros(['a', 2]))
t(lambda: torch.zeros([2, 'a']))
t(lambda: torch.zeros('a', 2))
t(lambda: torch.zeros(2.0, 2))
t(lambda: torch.zeros(True))
t(lambda: torch.zeros(i, 2))
t(lambda: torch.zeros(f))
t(lambda: torch.zeros(i))
t(lambda: x.view(i, 3))
t(lambda: x.view(3, f))
t(lambda: x.view([3, 'a']))
t(lambda: x.view(3, None))
t(lambda: x.reshape(3, None))
t(lambda: x.reshape([3, 2.0]))
t(lambda: x.expand(2, 'a'))
t(lambda: x.repeat(2, None))
t(lambda: x.permute(0, 'a'))
t(lambda: x.permute('a', 0))
t(lambda: x.new_zeros(2, 'a'))
t(lambda: x.new_zeros('a'))
t(lambda: torch.rand(2, None))
t(lambda: torch.full((2, 'a'), 0.0))
t(lambda: torch.full('a', 0.0))
t(lambda: torch.empty(None))
t(lambda: torch.ones((2,), 3))
t(lambda: torch.randn((2, 3), 4))
t(lambda: torch.randint(0, 3, ('a',)))
t(lambda: x.sum_to_size('a'))
t(lambda: x.view(x.shape))
t(lambda: x.view(size=(6,)))
t(lambda: torch.zeros(size=(2,)))
t(lambda: torch.zeros(size='a'))
t(lambda: x.reshape(shape=('a',)))
t(lambda: x.view(2.5))
t(lambda: torch.tensor([1.0]).view(f))
t(lambda: torch.zeros([[2]]))
t(lambda: x.tile(2, 'a'))
t(lambda: x.broadcast_to((2, 'a')))
