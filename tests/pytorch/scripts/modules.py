# --- tables of vectors that are given draw nothing
torch.manual_seed(0)
e = nn.Embedding.from_pretrained(torch.zeros(3, 2))
print(torch.rand(2), e, e.weight.requires_grad)
torch.manual_seed(0)
print(nn.EmbeddingBag.from_pretrained(torch.ones(3, 2), mode="sum"), torch.rand(2))
torch.manual_seed(0)
print(nn.Embedding(3, 2, _weight=torch.ones(3, 2)).weight, torch.rand(2))
print(nn.Embedding(3, 2, padding_idx=0).weight, torch.rand(2))
e = nn.Embedding.from_pretrained(torch.arange(6.0).view(3, 2), freeze=False, padding_idx=1)
print(e, e.weight)
vectors = torch.ones(3, 2)
e = nn.Embedding.from_pretrained(vectors)
vectors[0, 0] = 9
print(e.weight[0])
told(lambda: nn.Embedding(3, 2, _weight=torch.ones(4, 2)), lambda: nn.Embedding.from_pretrained(torch.ones(3)))
# --- running statistics that are means over all batches
for kind, size in ((nn.BatchNorm1d, (4, 2)), (nn.BatchNorm2d, (4, 2, 3, 3)), (nn.BatchNorm1d, (4, 2, 3))):
    m = kind(2, momentum=None)
    for k in range(3):
        m(torch.arange(float(torch.Size(size).numel())).reshape(size) * (k + 1))
    print(m, m.running_mean, m.running_var, m.num_batches_tracked, m.num_batches_tracked._version)
    m.eval()
    print(m(torch.ones(size)).mean())
m.momentum = 0.5
m.train()
m(torch.ones(2, 2, 2))
print(m.running_mean)
m.reset_running_stats()
print(m.running_mean, m.running_var, m.num_batches_tracked)
m = nn.BatchNorm1d(2, track_running_stats=False, momentum=None)
print(m(torch.eye(2)), m.eval()(torch.eye(2)))
m = nn.InstanceNorm1d(2, momentum=0.25, track_running_stats=True)
print(m(torch.eye(6)[:, :2].reshape(2, 2, 3)), m.running_mean, m.running_var, m.num_batches_tracked)
print(m.eval()(torch.ones(1, 2, 3)))
# --- a module in another dtype takes its gradients along
m = nn.Linear(2, 1)
nn.init.ones_(m.weight)
m(torch.ones(1, 2)).sum().backward()
weight, g = m.weight, m.weight.grad
for change in (m.double, m.half, m.float, lambda: m.to(torch.float64), lambda: m.type(torch.float32)):
    change()
    print(m.weight.dtype, m.weight.grad, m.weight is weight, m.weight.grad is g)
m.double()
m(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
print(m.weight.grad)
m = nn.BatchNorm1d(2)
mean = m.running_mean
print(m.double().running_mean.dtype, m.num_batches_tracked.dtype, m.running_mean is mean, m.double() is m)
mean = m.running_mean
print(m.double().running_mean is mean)
m.to(torch.int32)
# --- gradients that are set to 0 count as changed
m = nn.Linear(2, 1)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
m(torch.ones(1, 2)).sum().backward()
g = m.weight.grad
print(g._version)
opt.zero_grad(set_to_none=False)
print(g._version, m.weight.grad is g, g)
m(torch.ones(1, 2)).sum().backward()
m.zero_grad(set_to_none=False)
print(g._version, g)
m.zero_grad()
print(m.weight.grad, g)
w = torch.ones(2, requires_grad=True)
(w**3).sum().backward(create_graph=True)
g = w.grad
print(g, g._version)
torch.optim.SGD([w], lr=0.1).zero_grad(set_to_none=False)
print(w.grad, g._version, w.grad is g, w.grad.requires_grad)
w = torch.ones(2, requires_grad=True)
(w**2).sum().backward()
y = torch.ones(2, requires_grad=True) * w.grad
torch.optim.SGD([w], lr=0.1).zero_grad(set_to_none=False)
y.sum().backward()
# --- a module's own attributes and methods have any names
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self._hooks, self._transient, self._named = [], {}, "net"
        self.layer = nn.Linear(2, 2)
        nn.init.ones_(self.layer.weight)
        self.register_buffer("step", torch.zeros(1), persistent=False)
    def _forget(self, x): return torch.sigmoid(self.layer(x))
    def _holder(self): return self._hooks
    def _noted(self, x, y):
        self._holder().append(x.shape)
        return x * y
    def _check_name(self): return self._named
    def forward(self, x): return self._noted(self._forget(x), x)
net = Net()
net.layer.bias.data.zero_()
net(torch.ones(1, 2)).sum().backward()
print(net._hooks, net._check_name(), net._transient, list(net.state_dict()), net.layer.weight.grad)
net._parameters["extra"] = nn.Parameter(torch.ones(1))
print([n for n, _ in net.named_parameters()], [n for n, _ in net.named_buffers()], net.extra)
del net.extra
print(hasattr(net, "extra"))
