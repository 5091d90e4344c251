# --- scalars
for v in [0.0, 1.0, -1.5, 1e-5, 123456789.0, 1e10, float("nan"), float("inf"), -float("inf"), 0.1, 1 / 3, 100000.0, 1e8, 12345.678]:
    print(torch.tensor(v))
# --- vectors
print(torch.tensor([1.0, 2.0, 3.0]))
print(torch.tensor([1.5, 2.0, 3.0]))
print(torch.tensor([1e-5, 1.0]))
print(torch.tensor([1000.0, 0.5]))
print(torch.tensor([100.0, 0.05]))
print(torch.tensor([1e10, 1.0]))
print(torch.tensor([1.0, float("nan"), float("inf")]))
print(torch.tensor([1.5, float("nan"), -float("inf")]))
print(torch.tensor([-1.0, 0.0, 10.0]))
print(torch.tensor([0.0, 0.0]))
print(torch.tensor([-0.0, 0.0]))
print(torch.tensor([51.2, 512.0, 0.0512]))
# --- integers and booleans
print(torch.tensor([1, 20, -300]))
print(torch.tensor([True, False]))
print(torch.tensor(5))
print(torch.tensor(True))
print(torch.tensor([[1, 2], [3, 4]]))
print(torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1], dtype=torch.uint8))
# --- matrices
print(torch.tensor([[1.0, 2.0], [3.5, 40.0]]))
print(torch.zeros(2, 3, 2))
print(torch.ones(1, 1, 1, 2))
print(torch.arange(24.0).reshape(2, 3, 4))
# --- empty
print(torch.tensor([]))
print(torch.zeros(0, 3))
print(torch.zeros(2, 0, dtype=torch.int64))
print(torch.empty(0, dtype=torch.float64))
# --- wrapped
print(torch.arange(30))
print(torch.arange(30.0))
print(torch.arange(60.0).reshape(3, 20) / 7)
# --- summarised
print(torch.arange(2000))
print(torch.zeros(100, 100))
print(torch.arange(3000.0).reshape(3, 1000))
print(torch.arange(1001.0) / 3)
print(torch.zeros(20, 10, 10))
# --- print options
torch.set_printoptions(precision=2)
print(torch.tensor([1.23456, 2.0]))
torch.set_printoptions(precision=8, sci_mode=False)
print(torch.tensor([1e-5, 1.23456789]))
torch.set_printoptions(sci_mode=True, precision=3)
print(torch.tensor([1.0, 2.0]))
torch.set_printoptions(profile="default")
print(torch.tensor([1.5]))
torch.set_printoptions(threshold=5, edgeitems=1)
print(torch.arange(10))
torch.set_printoptions(linewidth=40, threshold=1000)
print(torch.arange(30.0))
# --- grad_fn
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
for y in [
    x + 1, x - 1, 1 - x, x * 2, 2 / x, x / 2, x**2, 2**x, -x, x.exp(), x.log(), x.sin(), x.sqrt(), x.abs(), x.relu(), x.sigmoid(), x.tanh(),
    x.sum(), x.sum(0), x.mean(), x.max(), x.max(0)[0], x.min(), x.prod(), x.norm(), x.std(), x.var(), x[0], x[1:], x[None], x.view(3, 1),
    x.reshape(1, 3), x.unsqueeze(0), x.t(), x.clone(), x.softmax(0), x.log_softmax(0), x.cumsum(0), x @ x, torch.stack([x, x]),
    torch.cat([x, x]), x.clamp(0, 1), x.expand(2, 3), x.repeat(2), x.flip(0), torch.where(x > 1, x, -x), x.double(), x[x > 1], x.sort()[0],
    x.topk(2)[0], torch.maximum(x, x), x.cos(), x.median(), x.logsumexp(0), F.relu(x), F.softplus(x), F.elu(x), F.leaky_relu(x), F.gelu(x),
    F.silu(x), x.outer(x), x.dot(x),
]:
    print(y.grad_fn.name(), end=" ")
print(x.grad_fn)
# --- next functions in the order of the operands
b, c = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
m = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
classes = F.nll_loss(m, torch.tensor([0, 1]))
for y in (2 * b, b * 2, 2 + b, 2 - b, torch.rsub(b, c), 2**b, b % 2, 2 % b, b.fmod(2), c * b, classes):
    print(y.grad_fn.name(), [(f and f.name(), i) for f, i in y.grad_fn.next_functions])
chosen = torch.where(b > 0, b, 0.0), b.masked_fill(b > 1, 0.0), torch.clamp(b, min=c), F.conv1d(m[None], m[None])
for y in (*chosen, F.batch_norm(m, None, None, b, None, True), F.layer_norm(m, (2,)), F.conv1d(m[None], m[None], b)):
    print(y.grad_fn.name(), [f and f.name() for f, _ in y.grad_fn.next_functions])
# --- products are never -0, but of columns with rows
for m, k, n in ((1, 1, 2), (2, 1, 1), (2, 1, 3), (1, 3, 2), (4, 2, 12)):
    a, b = torch.full((m, k), -2.0), torch.zeros(k, n)
    print(a @ b, a @ b[:, 0], a[0] @ b, a[0] @ b[:, 0], torch.nn.functional.linear(a, b.T), (a.double() @ b.double())[0, 0])
