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
y = torch.zeros(2, 3)
for value in ([1.0, 2, 3], "s", None, torch.ones(4), torch.ones(2, 2, 3), torch.ones(1, 1, 3)):
    told(lambda: y.__setitem__(0, value))
told(
    lambda: y.__setitem__(y == 0, torch.ones(5)), lambda: y.copy_(torch.ones(4)), lambda: y.copy_(torch.ones(2, 2, 3)),
    lambda: y.fill_(torch.ones(2)),
)
print(y, y.fill_(torch.tensor(2.0)), y.copy_(5))
k = torch.tensor([True, False])
k[k] = -2.5
print(k, k.diagflat())
told(lambda: torch.tensor(1.0)[..., 0])
# --- what convolutions refuse
def told(*calls):
    for call in calls:
        try: print(call().shape)
        except Exception as e: print(type(e).__name__, e)
x, w = torch.ones(2, 3, 5, 6), torch.ones(4, 3, 2, 2)
told(
    lambda: nn.Conv2d(3, 4, 3)(x).view(2, -1), lambda: F.conv2d(x, torch.ones(4, 2, 2, 2)), lambda: F.conv2d(x[0, 0], w),
    lambda: F.conv2d(x, w, torch.ones(3)), lambda: F.conv2d(x, torch.ones(4, 3, 7, 7)), lambda: F.conv2d(x, w.double()),
    lambda: F.conv2d(x.double(), w), lambda: F.conv2d(x, w, torch.ones(4).double()), lambda: F.conv2d(x, w, stride=0),
    lambda: F.conv2d(x, w, padding=-1), lambda: F.conv2d(x, w, padding=(1, 1, 1)), lambda: F.conv2d(x, w, stride=2, padding="same"),
    lambda: F.conv2d(x, w, groups=3), lambda: F.conv1d(x, torch.ones(1, 1, 1)), lambda: nn.Conv1d(3, 4, 2, groups=2),
)
print(F.conv2d(torch.ones(1, 2, 2, requires_grad=True), torch.ones(1, 1, 2, 2)))
# --- what pooling refuses
def told(*calls):
    for call in calls:
        try: print(call().shape)
        except Exception as e: print(type(e).__name__, e)
x = torch.ones(2, 3, 5, 6)
for pool in (F.max_pool2d, F.avg_pool2d):
    told(
        lambda: pool(x, 7), lambda: pool(x, 2, -1), lambda: pool(x, 2, 0), lambda: pool(x, 2, padding=2), lambda: pool(x[0, 0], 2),
        lambda: pool(x, (1, 2, 3)),
    )
for pool in (F.max_pool1d, F.avg_pool1d):
    told(lambda: pool(x[0], 7), lambda: pool(x[0], 2, -1), lambda: pool(x[0], 2, padding=2), lambda: pool(x[0, 0, 0], 2))
print(nn.AvgPool2d(2, ceil_mode=True)(x).shape, nn.AvgPool1d(2, count_include_pad=False, padding=1)(x[0]).dtype)
print(F.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4, requires_grad=True), 2))
# --- what matrices refuse
m, r = torch.tensor([[1.0, 2.0], [2.0, 4.0]]), torch.ones(2, 3)
for f in (torch.det, torch.inverse, torch.logdet, torch.linalg.inv):
    told(lambda: f(r), lambda: f(torch.ones(3)))
told(
    lambda: torch.inverse(m), lambda: torch.linalg.inv(torch.zeros(2, 2, 2)), lambda: torch.linalg.solve(m, torch.ones(2)),
    lambda: torch.linalg.solve(torch.eye(2), torch.ones(3)), lambda: torch.bmm(r, r), lambda: torch.addmm(r, r, torch.ones(2)),
)
print(torch.addmm(torch.ones(2, 2), m, m, beta=0.5, alpha=2))
told(lambda: torch.allclose(m, torch.ones(2, 2, dtype=torch.int64)))
# --- losses with weights
a, b = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([[3.0, 5.0]])
w = torch.tensor([[1.0, 3.0]])
for loss in (F.mse_loss, F.l1_loss, F.huber_loss):
    for how in ("mean", "sum", "none"):
        print(loss(a, b, weight=w, reduction=how))
for loss in (F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits, F.kl_div):
    told(lambda: loss(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64)))
told(lambda: F.binary_cross_entropy_with_logits(a, torch.ones(1, 2, dtype=torch.int64)))
scores = torch.tensor([[1.0, 2.0]], requires_grad=True)
loss = F.cross_entropy(scores, torch.tensor([-100]))
loss.backward()
print(loss, scores.grad)
told(lambda: F.cross_entropy(scores, torch.tensor([0]), torch.ones(3)))
# --- dropout in place and of channels
torch.manual_seed(1)
x = torch.ones(2, 3, 4)
y = x.clone()
print(F.dropout(y, inplace=True) is y, y)
print(F.dropout2d(x[None]), F.dropout(x.transpose(0, 2)[0]))
z = torch.ones(2, requires_grad=True)
print(F.dropout(z, 0.0) is z, nn.Dropout(0.3, inplace=True))
for wrong in (torch.ones(2, dtype=torch.int64), torch.ones(2)):
    told(lambda: F.dropout(wrong, 1.5) if wrong.is_floating_point() else F.dropout(wrong))
# --- numbers in the order of memory
torch.manual_seed(0)
x = torch.zeros(3, 2).t()
print(x.uniform_(), x.exponential_(), torch.rand_like(x), torch.randn_like(x))
# --- nan in activations
x = torch.tensor([float("nan"), float("inf"), -float("inf"), -4.0, 0.25], requires_grad=True)
print(F.hardswish(x), F.hardsigmoid(x), F.softshrink(x), x.clamp_min(0.0), torch.logit(x))
print(F.leaky_relu(x.clone(), inplace=True), F.elu(x.clone(), inplace=True), x.clone().asinh_())
# --- what modules refuse
told(
    lambda: nn.ReLU(foo=1), lambda: nn.ReLU(1, 2), lambda: nn.Tanh(1), lambda: nn.MSELoss(reduction="foo")(torch.ones(1), torch.ones(1)),
    lambda: nn.Sequential(nn.Linear(1, 1), 3), lambda: nn.Sequential(nn.ReLU), lambda: nn.Sequential(nn.ReLU())[1],
    lambda: nn.Module().add_module("a.b", nn.ReLU()),
)
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
x = torch.ones(2, requires_grad=True)
O = torch.optim
told(
    lambda: O.SGD([x], lr=-1), lambda: O.RMSprop([x], alpha=-1), lambda: O.SGD([{"params": [x]}, {"params": [x]}], lr=0.1),
    lambda: O.SGD([x, x], lr=0.1), lambda: O.lr_scheduler.StepLR(3, 2),
    lambda: O.lr_scheduler.LambdaLR(O.SGD([x], lr=0.1), [lambda e: 1, lambda e: 2]),
)
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
x = torch.arange(6.0).reshape(2, 3)
told(
    lambda: torch.cat([]), lambda: torch.stack([]), lambda: torch.vstack([]), lambda: x.chunk(0), lambda: x.split(-1), lambda: x.split(0),
    lambda: x.repeat(0, 2), lambda: x.repeat(1, -1), lambda: x.flip(2), lambda: x.flip(0, 0), lambda: x.masked_select(x),
    lambda: torch.broadcast_tensors(x, torch.ones(4)), lambda: torch.argmax(x > 1), lambda: torch.unsqueeze(input=x, dim=0).shape,
    lambda: x.squeeze(0, 1).shape, lambda: x.ravel()[:2],
)
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
told(lambda: torch.tensor([1e10], dtype=torch.int32))
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
told(lambda: torch.ones(2, requires_grad=True).apply_(lambda x: x))
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
told(
    lambda: torch.zeros(n / 2), lambda: torch.zeros(n / 2, 3), lambda: torch.ones((n / 2, 3)), lambda: torch.ones(3, n / 2),
    lambda: torch.rand([3, n / 2]), lambda: a.reshape(n / 2, 3), lambda: a.view(3, n / 2), lambda: a.expand(n / 2, 3),
    lambda: a.repeat(n / 2, 1), lambda: a.permute(1.0, 0), lambda: a.new_zeros(n / 2, 3), lambda: torch.zeros("3"),
    lambda: torch.Tensor(2.0), lambda: torch.maximum(a, 0), lambda: torch.logical_and(a, 1), lambda: torch.sin([1, 2]),
    lambda: a.diagonal(0, 1, 1), lambda: a.take(a), lambda: nn.MSELoss(pred, target), lambda: nn.MSELoss()(pred),
    lambda: nn.CrossEntropyLoss()(), lambda: nn.BCELoss()(a * 2, a * 3),
)
# --- of no elements, and other ends
a = torch.tensor([[1.5, -0.5], [0.25, 3.0]], requires_grad=True)
print(F.cross_entropy(torch.zeros(2, 0), torch.zeros(2, 0)), F.cross_entropy(torch.zeros(0, 2), torch.zeros(0, 2)))
print(torch.zeros(0).median(), torch.zeros(0, requires_grad=True).median())
print(torch.tensor([1.5, 2.0]).polygamma(1), torch.polygamma(2, torch.tensor([1.5])))
print(torch.softmax(a, 1, dtype=torch.float64), a.cumsum(0, dtype=torch.float64))
told(
    lambda: torch.roll(torch.tensor(1.0), 1, 0), lambda: torch.div(a, 2, rounding_mode="down"), lambda: a[None, "first"],
    lambda: nn.Parameter(3), lambda: torch.utils.data.DataLoader([1], batch_size=0),
)
told(
    lambda: torch.einsum("ij,jk->ik", a, a[0]), lambda: F.one_hot(torch.zeros(0, dtype=torch.int64)),
    lambda: F.pad(torch.arange(2), (1, 0), value=0.5), lambda: torch.tensor(1).movedim(0, -1), lambda: torch.full((2,), None),
    lambda: nn.MSELoss(size=1), lambda: nn.Dropout(q=1), lambda: nn.MaxPool2d(2, size=1),
)
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
told(
    lambda: x.sum('a'), lambda: x.sum(1.5), lambda: x.sum(bad=1), lambda: torch.sum(), lambda: torch.sum(3), lambda: torch.sum([1, 2]),
    lambda: x.mean('a'), lambda: x.view(), lambda: x.view('a'), lambda: x.view(2.0, 3.0), lambda: x.view(x), lambda: x.reshape(),
    lambda: x.reshape(1.5), lambda: torch.reshape(x), lambda: x.transpose(), lambda: x.transpose(0), lambda: x.transpose('a', 1),
    lambda: x.permute(), lambda: x.permute('a'), lambda: x.t(1), lambda: x.squeeze('a'), lambda: x.unsqueeze(), lambda: x.unsqueeze('a'),
    lambda: torch.zeros(), lambda: torch.zeros('a'), lambda: torch.zeros(1.5), lambda: torch.zeros(x), lambda: torch.full(),
    lambda: torch.full((2,)), lambda: torch.full(2, 3), lambda: torch.arange(), lambda: torch.arange('a'), lambda: torch.linspace(0, 1),
    lambda: torch.linspace(0, 1, 2.5), lambda: torch.randint(), lambda: torch.randint(3), lambda: torch.randint(0, 3, 2),
    lambda: torch.eye(), lambda: torch.eye('a'), lambda: torch.cat(x, x), lambda: torch.cat(x), lambda: torch.cat([x, 1]),
    lambda: torch.cat(), lambda: torch.cat([x], 'a'), lambda: torch.stack(x, x), lambda: torch.stack([1, 2]), lambda: torch.matmul(x),
    lambda: torch.matmul(x, 2), lambda: torch.mm(x, [1]), lambda: v.dot(), lambda: v.dot(2), lambda: x.add(), lambda: x.add('a'),
    lambda: torch.add(x), lambda: torch.mul(x, None), lambda: torch.exp(1.0), lambda: torch.exp(), lambda: torch.exp(x, x),
    lambda: x.exp(1), lambda: torch.pow(2, 3), lambda: torch.pow(x), lambda: x.pow(), lambda: x.pow('a'), lambda: x.clamp('a'),
    lambda: x.clamp(min='a'), lambda: torch.max(1, 2), lambda: x.max('a'), lambda: torch.max(x, 1, 2), lambda: torch.maximum(x, 1),
    lambda: x.argmax('a'), lambda: x.argmax(1.5), lambda: x.sort('a'), lambda: x.topk(), lambda: x.topk('a'), lambda: torch.softmax(x),
    lambda: torch.softmax(x, 'a'), lambda: torch.where(x > 0, 1), lambda: x.chunk(), lambda: x.expand(), lambda: x.expand('a'),
    lambda: x.repeat(), lambda: x.repeat('a'), lambda: x.gather(0), lambda: x.flatten('a'), lambda: x.detach().fill_(),
    lambda: x.detach().fill_('a'), lambda: x.detach().zero_(1), lambda: x.var('a'), lambda: x.std(dim='a'), lambda: x.masked_fill(1, 2),
    lambda: x.index_select(0, 1), lambda: x.unbind('a'), lambda: x.detach().abs_(1), lambda: x.detach().add_(), lambda: x.sub('a'),
    lambda: x.div(), lambda: x.prod('a'), lambda: x.any('a'), lambda: x.all(1.5), lambda: x.diag('a'), lambda: x.tril('a'),
    lambda: x.roll(), lambda: x.flip('a'), lambda: x.narrow(0), lambda: x.round('a'),
)
# --- limits of dtypes, ranks and shapes
i, f = torch.tensor([1, 2]), torch.tensor([1., 2.])
d, b, m, n, im = f.double(), torch.tensor([True, False]), torch.ones(2, 2), torch.tensor(1.), torch.ones(2, 2).long()
def told(*calls):
    for call in calls:
        try: print(call())
        except Exception as e: print(type(e).__name__, str(e).split("\n")[0])
told(
    lambda: torch.relu(b), lambda: b.relu(), lambda: F.relu(b), lambda: F.relu6(b), lambda: F.hardtanh(b), lambda: F.hardtanh(f, 2.0, 1.0),
    lambda: F.hardtanh(f, min_val=2.0, max_val=1.0), lambda: F.softshrink(f, -1.0), lambda: torch.lerp(f, d, 0.5), lambda: f.lerp(d, 0.5),
    lambda: torch.lerp(f, f, d), lambda: torch.addcdiv(f, i, i), lambda: f.addcdiv(i, i), lambda: f.addcdiv(i, f), lambda: i.std(),
    lambda: i.var(), lambda: b.argmax(), lambda: torch.argmin(b), lambda: torch.isclose(f, d), lambda: torch.allclose(f, d),
    lambda: f.masked_fill(i, 0.0), lambda: f.masked_fill(b, f), lambda: f.masked_select(i), lambda: f.gather(0, f),
    lambda: f.scatter(0, i - 1, d), lambda: f.scatter_(0, i - 1, d), lambda: f.scatter_add(0, i - 1, d),
    lambda: f.clone().scatter_add_(0, i - 1, d), lambda: f.index_add(0, i - 1, d), lambda: f.index_copy(0, i - 1, d),
    lambda: f.index_put((i - 1,), d), lambda: f.index_put((i - 1,), d, accumulate=True), lambda: f.take(f), lambda: f.take(b),
    lambda: f.bincount(), lambda: torch.bincount(im), lambda: torch.bincount(-i), lambda: torch.multinomial(i, 1),
    lambda: n.tensor_split(2), lambda: f.tensor_split(0), lambda: f.tensor_split(f), lambda: f.tensor_split(i), lambda: n.hsplit(1),
    lambda: f.vsplit(1), lambda: m.dsplit(1), lambda: torch.hsplit(n, 1), lambda: torch.mm(f, m), lambda: m.mm(f), lambda: m.mv(m),
    lambda: f.mv(f), lambda: f.dot(m), lambda: torch.dot(n, f), lambda: m.bmm(m), lambda: torch.bmm(m[None], m),
    lambda: torch.addmm(m, f, m), lambda: m.addmm(m, f), lambda: torch.outer(m, f), lambda: f.ger(n), lambda: F.linear(m, f, f),
    lambda: F.linear(m, f), lambda: F.linear(m[None], f, n), lambda: F.linear(m, m[:1], 3), lambda: F.one_hot(f), lambda: F.one_hot(-i),
    lambda: F.max_unpool1d(m, m, 2), lambda: F.scaled_dot_product_attention(f, f, f),
    lambda: F.scaled_dot_product_attention(m, m.double(), m), lambda: F.scaled_dot_product_attention(m, m, f),
    lambda: F.binary_cross_entropy(f / 2, m), lambda: F.binary_cross_entropy(f / 2, d), lambda: F.binary_cross_entropy_with_logits(f, m),
    lambda: torch.optim.Adam([f.requires_grad_()], betas=(1.0, 0.0)), lambda: torch.optim.Adam([f], betas=(0.0, -1.0)),
    lambda: F.embedding_bag(n.long(), m), lambda: F.embedding_bag(i - 1, m, torch.tensor([0]), mode='x'), lambda: F.dropout(f, p=2.0),
    lambda: F.dropout(f, p='a'), lambda: F.embedding(i, f), lambda: m.tril(), lambda: f.tril(), lambda: f.narrow(0, 0, -1),
    lambda: f.chunk(0), lambda: f.diff(-1), lambda: f.div(f, rounding_mode='x'), lambda: torch.quantile(f, 0.5, interpolation='x'),
    lambda: f.fliplr(), lambda: torch.linspace(0, 1, -1), lambda: i.repeat_interleave(f), lambda: torch.repeat_interleave(f),
)
# --- arguments of layers' functions of another type, too many and too few
x, w, im, k = torch.ones(2, 3), torch.ones(4, 3), torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
told(
    lambda: F.linear(x), lambda: F.linear(), lambda: F.linear(x, 1), lambda: F.linear(x, w, 1), lambda: F.linear(x, w, w[:, 0], w),
    lambda: F.linear(x, w, foo=1), lambda: F.conv2d(im), lambda: F.conv2d(im, 1), lambda: F.conv2d(im, k, stride='a'),
    lambda: F.conv2d(im, k, None, 1, 0, 1, 1, 1), lambda: F.conv1d(), lambda: F.gelu(), lambda: F.gelu(1), lambda: F.softplus(1),
    lambda: F.softplus(x, 'a'), lambda: F.hardshrink(1), lambda: F.softshrink(1), lambda: F.cosine_similarity(x),
    lambda: F.pixel_shuffle(im), lambda: F.one_hot(torch.tensor([1]), 'a'), lambda: F.avg_pool2d(im), lambda: F.avg_pool2d(1, 2),
    lambda: F.avg_pool2d(im, 'a'), lambda: F.prelu(x), lambda: F.bilinear(x), lambda: F.scaled_dot_product_attention(x),
    lambda: F.scaled_dot_product_attention(x, x, 1), lambda: F.max_pool2d(im), lambda: F.max_pool2d(1, 2), lambda: F.dropout(),
    lambda: F.embedding(x), lambda: F.layer_norm(x), lambda: F.batch_norm(x), lambda: F.softmax(x, 'a'), lambda: F.leaky_relu(x, 'a'),
    lambda: F.elu(1), lambda: F.hardtanh(1), lambda: F.pairwise_distance(x), lambda: F.conv_transpose2d(im), lambda: F.celu(),
    lambda: F.channel_shuffle(im), lambda: F.unfold(im),
)
# --- sizes of another kind
x, i, f = torch.ones(2, 3), torch.tensor(2), torch.tensor(2.)
def told(*calls):
    for call in calls:
        try: print(call().shape)
        except Exception as e: print(type(e).__name__, e)
told(
    lambda: torch.zeros(2, 'a'), lambda: torch.zeros(['a', 2]), lambda: torch.zeros([2, 'a']), lambda: torch.zeros('a', 2),
    lambda: torch.zeros(2.0, 2), lambda: torch.zeros(True), lambda: torch.zeros(i, 2), lambda: torch.zeros(f), lambda: torch.zeros(i),
    lambda: x.view(i, 3), lambda: x.view(3, f), lambda: x.view([3, 'a']), lambda: x.view(3, None), lambda: x.reshape(3, None),
    lambda: x.reshape([3, 2.0]), lambda: x.expand(2, 'a'), lambda: x.repeat(2, None), lambda: x.permute(0, 'a'), lambda: x.permute('a', 0),
    lambda: x.new_zeros(2, 'a'), lambda: x.new_zeros('a'), lambda: torch.rand(2, None), lambda: torch.full((2, 'a'), 0.0),
    lambda: torch.full('a', 0.0), lambda: torch.empty(None), lambda: torch.ones((2,), 3), lambda: torch.randn((2, 3), 4),
    lambda: torch.randint(0, 3, ('a',)), lambda: x.sum_to_size('a'), lambda: x.view(x.shape), lambda: x.view(size=(6,)),
    lambda: torch.zeros(size=(2,)), lambda: torch.zeros(size='a'), lambda: x.reshape(shape=('a',)), lambda: x.view(2.5),
    lambda: torch.tensor([1.0]).view(f), lambda: torch.zeros([[2]]), lambda: x.tile(2, 'a'), lambda: x.broadcast_to((2, 'a')),
)
