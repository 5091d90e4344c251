# --- momentum
torch.manual_seed(0)
for make in [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1), lambda p: torch.optim.Adam(p, lr=0.1), lambda p: torch.optim.AdamW(p, lr=0.1), lambda p: torch.optim.RMSprop(p, lr=0.1), lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True), lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.01)]:
    w = torch.tensor([1., -2.], requires_grad=True)
    opt = make([w])
    for i in range(5):
        opt.zero_grad()
        ((w - 1) ** 2).sum().backward()
        opt.step()
    print(w)
# --- schedulers
w = torch.tensor([1.], requires_grad=True)
for make in [lambda o: torch.optim.lr_scheduler.StepLR(o, 2, gamma=0.5), lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.9 ** e), lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.5), lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 3]), lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4)]:
    opt = torch.optim.SGD([w], lr=1.0)
    s = make(opt)
    for i in range(4):
        opt.step()
        s.step()
        print(round(s.get_last_lr()[0], 6), end=" ")
    print(round(opt.param_groups[0]["lr"], 6))
# --- zero grad
w = torch.tensor([1.], requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
(w * 2).sum().backward()
opt.zero_grad()
print(w.grad)
(w * 2).sum().backward()
opt.zero_grad(set_to_none=False)
print(w.grad)
# --- buffers
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.w = nn.Parameter(torch.ones(2))
        self.plain = torch.ones(1)
    def forward(self, x): return (x - self.mean) * self.w
net = Net()
print(net.state_dict(), [n for n, _ in net.named_buffers()], net(torch.tensor([1., 2.])))
net.mean += 1
print(net(torch.tensor([1., 2.])))
# --- train and eval
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
x = torch.tensor([[1., 2.], [3., 5.], [0., 1.]])
print(net.training, net(x))
net.eval()
print(net.training, net[1].training, net(x), net[1].running_mean, net[1].num_batches_tracked)
# --- batch norm gradients
bn = nn.BatchNorm1d(2)
x = torch.tensor([[1., 2.], [3., 5.], [0., 1.]], requires_grad=True)
(bn(x) ** 3).sum().backward()
print(x.grad, bn.weight.grad, bn.bias.grad)
ln = nn.LayerNorm(2)
x.grad = None
(ln(x) * torch.tensor([1., 2.])).sum().backward()
print(x.grad.abs().max() < 0.01, ln.weight.grad)
# --- conv net
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2))
x = torch.randn(2, 1, 6, 6)
out = net(x)
print(out)
out.sum().backward()
print(net[0].weight.grad, net[4].bias.grad)
# --- apply
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight, 0.5)
        nn.init.zeros_(m.bias)
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
net.apply(init)
print(net(torch.ones(1, 2)))
# --- module hooks
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
nn.init.ones_(net[0].weight); nn.init.zeros_(net[0].bias)
h = net[0].register_forward_hook(lambda m, i, o: print("forward", type(m).__name__, i[0].shape, o))
net[0].register_full_backward_hook(lambda m, gi, go: print("backward", gi, go))
net[1].register_forward_pre_hook(lambda m, i: print("pre", i))
x = torch.ones(1, 2, requires_grad=True)
net(x).sum().backward()
h.remove()
print(x.grad)
# --- losses as modules
x, t = torch.tensor([[1., 2.], [0., 1.]]), torch.tensor([[0., 1.], [1., 1.]])
for loss in [nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss(), nn.BCEWithLogitsLoss(), nn.MSELoss(reduction="sum"), nn.MSELoss(reduction="none")]:
    print(type(loss).__name__, loss(x, t))
print(nn.CrossEntropyLoss()(x, torch.tensor([0, 1])), nn.NLLLoss()(F.log_softmax(x, 1), torch.tensor([1, 1])), nn.BCELoss()(torch.sigmoid(x), t), nn.CrossEntropyLoss(weight=torch.tensor([1., 3.]))(x, torch.tensor([0, 1])))
# --- gradients of losses
for loss in [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits]:
    x = torch.tensor([0.5, -2., 1.], requires_grad=True)
    y = loss(x, torch.tensor([0., 1., 1.]))
    y.backward()
    print(y, x.grad)
x = torch.tensor([[1., 2., 3.], [0., 0., 1.]], requires_grad=True)
y = F.cross_entropy(x, torch.tensor([2, 0]))
y.backward()
print(y, x.grad)
# --- closures
w = torch.tensor([5.], requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
def closure():
    opt.zero_grad()
    loss = (w ** 2).sum()
    loss.backward()
    return loss
for i in range(2):
    print(opt.step(closure), w)
# --- rnn trained
torch.manual_seed(0)
rnn, head = nn.RNN(1, 4, batch_first=True), nn.Linear(4, 1)
x = torch.sin(torch.arange(0, 3, 0.5)).view(1, 6, 1)
out, h = rnn(x)
loss = F.mse_loss(head(out)[:, :-1], x[:, 1:])
loss.backward()
print(loss, rnn.weight_hh_l0.grad, h.shape)
# --- save and load
import tempfile, os
with tempfile.TemporaryDirectory() as d:
    p = os.path.join(d, "m.pt")
    net = nn.Linear(2, 1)
    torch.save(net.state_dict(), p)
    other = nn.Linear(2, 1)
    print(other.load_state_dict(torch.load(p)), torch.equal(net.weight, other.weight))
    torch.save({"x": torch.arange(3), "epoch": 5, "l": [1.5, "a", None, True]}, p)
    print(torch.load(p))
# --- norms, pools and sizes
torch.manual_seed(0)
x = torch.randn(2, 4, 6, 6)
for m in (nn.GroupNorm(2, 4), nn.GroupNorm(4, 4, affine=False), nn.InstanceNorm2d(4), nn.InstanceNorm2d(4, affine=True),
          nn.InstanceNorm1d(4), nn.AdaptiveMaxPool2d(2), nn.AdaptiveMaxPool2d((3, None)), nn.AdaptiveMaxPool1d(3),
          nn.AdaptiveAvgPool1d(3), nn.AdaptiveAvgPool1d(1), nn.Upsample(scale_factor=2),
          nn.Upsample(size=(3, 9), mode="bilinear", align_corners=True)):
    own = (x[:, :, 0] if "1d" in repr(m) else x).clone().requires_grad_()
    y = m(own)
    (y * y.detach()).sum().backward()
    print(m, list(m.state_dict()), y.shape, y.flatten()[::7][:6], own.grad.abs().sum().round())
for refused in (lambda: nn.GroupNorm(2, 3), lambda: F.group_norm(x, 3)):
    try: refused()
    except Exception as e: print(type(e), e)
print(nn.SoftMarginLoss()(torch.tensor([0.5, -1.], requires_grad=True), torch.tensor([1., 1.])))
# --- parameters by name
p = nn.ParameterDict({"a": nn.Parameter(torch.ones(2, 3)), "b": torch.zeros(3)})
p["c"] = nn.Parameter(torch.ones(1))
p.update({"d": nn.Parameter(torch.ones(2))})
print(p, list(p.keys()), "a" in p, len(p), [n for n, _ in p.named_parameters()], list(p))
print(p.values(), p.items(), p.pop("a").shape, list(p.values()), p.b, nn.ParameterDict({"w": torch.ones(2)}), nn.ParameterDict())
d = nn.ModuleDict({"a": nn.ReLU()})
d.update([("b", nn.Tanh())])
del d["a"]
print(d, d.pop("b"), len(d))
# --- save and load modules
import tempfile, os
import numpy as np
net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.2), nn.LayerNorm(3)).eval()
net.again, net.own, net.device = net[0], {"k": [2], 1: (2, "a")}, torch.device("cpu")
with tempfile.TemporaryDirectory() as d:
    p = os.path.join(d, "m.pt")
    for saved in (net, [net[1]], {"best": np.float64(1.5)}, np.arange(3), {"a": torch.float64}, [net[0].weight] * 2):
        torch.save(saved, p)
        try: print(torch.load(p) == saved)
        except Exception as e: print(type(e), e)
        print(type(torch.load(p, weights_only=False)))
    torch.save(net, p)
    other = torch.load(p, weights_only=False)
    print(other, other.again is other[0], other.own, other.device, other.training)
    x = torch.ones(1, 2)
    print(other[3](other[1](other[0](x))).equal(net[3](net[1](net[0](x)))), other[0].weight.requires_grad)
# --- save and load what holds itself
import io
own, named = [torch.ones(2), 3], {"a": 1}
own += [own, (own, 4)]
named["self"] = [named, own]
for saved in (own, named):
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    found = torch.load(file)
    print(found, found == found)
    inner = found if saved is own else found["self"][1]
    print(inner is inner[2], inner[3][0] is inner, found is inner or found["self"][0] is found)
# --- steps by the squares of gradients
for kind in (torch.optim.Adagrad, torch.optim.Adadelta):
    for own in ({}, {"lr": 0.5, "weight_decay": 0.1}, {"lr_decay": 0.1, "initial_accumulator_value": 0.5}, {"rho": 0.8},
                {"rho": 2}, {"lr_decay": -1}, {"initial_accumulator_value": -1}, {"maximize": True}):
        w = torch.tensor([1., -2., 0.3], requires_grad=True)
        try:
            opt = kind([w], **own)
        except (TypeError, ValueError) as e:
            print(type(e), e if "Invalid" in str(e) else "")
            continue
        for _ in range(5):
            opt.zero_grad()
            (w ** 3).sum().backward()
            opt.step()
        print(w, opt.state_dict())
    print(opt)
# --- a reduction of old
print(nn.MSELoss(reduction="elementwise_mean")(torch.ones(2), torch.zeros(2)))
loss = nn.MSELoss(reduction="median")
loss(torch.ones(2), torch.zeros(2))
# --- batches of texts
from torch.utils.data import DataLoader
print(*DataLoader([("a", 1), ("b", 2), ("c", 3)], batch_size=2), *DataLoader(["x", "y"], batch_size=2))
# --- steps of optimizers
def stepped(make, n, d):
    torch.manual_seed(n)
    w = torch.randn(n, dtype=d).requires_grad_()
    opt = make([w])
    for _ in range(25):
        w.grad = torch.randn(n, dtype=d)
        opt.step()
    return w.tolist()
O = torch.optim
for d in (torch.float32, torch.float64):
    for n in (1, 5, 8, 37):
        for more in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"weight_decay": 0.1}, {"momentum": 0.9, "dampening": 0.3}):
            print(n, stepped(lambda p: O.SGD(p, lr=0.01, **more), n, d))
        if d == torch.float64 and n < 8:
            for kind in (O.Adam, O.AdamW, O.RMSprop):
                print(n, stepped(lambda p: kind(p, lr=0.01), n, d))
# --- what an optimizer does not take
for p in ([nn.Linear(1, 1)], [3], ["a"], [None], nn.Linear(1, 1), torch.ones(1), 3, [nn.Linear(1, 1).parameters()], [[torch.ones(1)]]):
    told(lambda: torch.optim.SGD(p, lr=0.1))
for p in (torch.tensor(1), torch.tensor([1, 2])):
    told(lambda: F.cross_entropy(torch.zeros(1, 3), p))
# --- rates on a plateau
from torch.optim.lr_scheduler import MultiplicativeLR, ReduceLROnPlateau, _LRScheduler, LRScheduler
losses = [1., 0.9, 0.9, 0.9, 0.9, 0.8, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]
for more in ({}, {"mode": "max"}, {"threshold_mode": "abs", "threshold": 0.2}, {"mode": "max", "threshold_mode": "abs"}, {"cooldown": 2}, {"min_lr": 0.05}, {"eps": 0.5}):
    w = torch.ones(1, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)
    plateau = ReduceLROnPlateau(opt, patience=1, factor=0.3, **more)
    rates = []
    for loss in losses:
        opt.step()
        plateau.step(torch.tensor(loss))
        rates += plateau.get_last_lr()
    print(more, rates, plateau.best, plateau.num_bad_epochs, plateau.last_epoch)
for more in ({"factor": 1.}, {"mode": "least"}, {"threshold_mode": "some"}):
    told(lambda: ReduceLROnPlateau(opt, **more))
schedule = MultiplicativeLR(opt, lambda epoch: 0.95)
for _ in range(3):
    opt.step()
    schedule.step()
    print(schedule.get_last_lr())
print(_LRScheduler, isinstance(schedule, _LRScheduler), issubclass(ReduceLROnPlateau, LRScheduler))
# --- linear of what is not contiguous
torch.manual_seed(0)
linear, x = nn.Linear(3, 2), torch.randn(4, 5, 3)
for a in (x, x.transpose(0, 1), torch.randn(3, 5).t(), torch.randn(2, 5, 3, 2).transpose(2, 3), x[:, ::2], x[::2], x[0, 0], x[:, :1]):
    linear.zero_grad()
    y = linear(a)
    y.sum().backward()
    print(y.grad_fn.name(), y.stride(), y.flatten()[:3], linear.weight.grad)
# --- training lines
for n, inner, outer in ((4, 1, 1), (100, 1, 1), (20, 1, 1), (5, 3, 2), (50, 2, 1), (100, 4, 1)):
    torch.manual_seed(n)
    x = torch.randn(n, inner) * 3
    y = x[:, :1] * 2 + 1 + torch.zeros(n, outer)
    model = nn.Linear(inner, outer)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(10):
        loss = nn.MSELoss()(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(n, loss.item(), model.weight.flatten().tolist(), model.weight.grad.flatten().tolist(), model.bias.grad.tolist())
# --- losses whose settings are told by their places
torch.manual_seed(0)
x, w = torch.randn(3, 4, requires_grad=True), torch.tensor([1.0, 2.0, 3.0, 4.0])
t = torch.tensor([0, 3, 1])
print(nn.CrossEntropyLoss(w, None, 3)(x, t), F.cross_entropy(x, t, w, None, 3, None, "sum"))
print(nn.NLLLoss(w, None, 0, None, "sum")(x.log_softmax(1), t), nn.SmoothL1Loss(None, None, "sum", 0.5)(x, x.detach() + 1))
y = torch.rand(3, 4)
print(F.poisson_nll_loss(x, y, False, True, None, 1e-3, None, "sum"), F.huber_loss(x, y, "sum", 0.5), F.l1_loss(x, y, None, None, "sum"))
told(lambda: F.softplus(torch.tensor([1, 2]), 2.0), lambda: F.triplet_margin_loss(x, x, x, reduction="most"))
# --- a divergence of one number has no batch
x = torch.tensor(-0.5, requires_grad=True)
print(F.kl_div(x, torch.tensor(0.3), reduction="batchmean"))
# --- numbers spread over windows
torch.manual_seed(0)
x = torch.randn(2, 2, 4, 5)
for layer in (
    nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1), nn.ConvTranspose1d(2, 3, 3),
    nn.ConvTranspose2d(2, 4, (2, 3), groups=2, bias=False, dilation=2),
):
    given = torch.randn(*(1, 2, 3, 4)[: 2 + len(layer.kernel_size)], requires_grad=True)
    out = layer(given)
    out.pow(2).sum().backward()
    print(layer, out, given.grad, *(p.grad for p in layer.parameters()))
print(nn.ConvTranspose2d(1, 3, 3)(torch.ones(1, 4, 4)).shape)
told(lambda: nn.ConvTranspose2d(2, 3, 3)(torch.ones(1, 3, 4, 4)))
# --- pictures in another size
row = torch.arange(6.0).view(1, 2, 3).requires_grad_()
picture = torch.arange(6.0).view(1, 1, 2, 3).requires_grad_()
for x, settings in (
    *((row, {"scale_factor": 2}), (row, {"scale_factor": 2, "mode": "linear"})),
    *((row, {"size": 5, "mode": "linear", "align_corners": True}), (picture, {"size": (3, 4)})),
    *((picture, {"scale_factor": 2}), (picture, {"scale_factor": 1.5}), (picture, {"size": (1, 2), "mode": "bilinear"})),
    (picture, {"size": (3, 5), "mode": "bilinear", "align_corners": True}), (picture, {"scale_factor": (2, 1.5), "mode": "bilinear"}),
):
    y = F.interpolate(x, **settings)
    print(settings, y, torch.autograd.grad((y**2).sum(), x))
for settings in ({}, {"size": 3, "scale_factor": 2}, {"size": 3, "align_corners": True}):
    told(lambda: F.interpolate(picture, **settings))
# --- old backward hooks
def told(m, gi, go):
    print(type(m).__name__, [g if g is None else tuple(g.shape) for g in gi], [tuple(g.shape) for g in go], type(gi))
class Several(nn.Module):
    def __init__(self, made):
        super().__init__()
        self.made = made
    def forward(self, x): return self.made(x)
torch.manual_seed(0)
x = torch.randn(4, 3, requires_grad=True)
layer = nn.Linear(3, 2)
handle = layer.register_backward_hook(told)
layer(x).sum().backward()
layer(x.detach()).sum().backward()
handle.remove()
layer(x).sum().backward()
for module, given in ((nn.Conv2d(1, 2, 3), torch.randn(1, 1, 5, 5)), (nn.ReLU(), x * 1), (nn.Sequential(nn.Linear(3, 2), nn.ReLU()), x)):
    module.register_backward_hook(told)
    module(given).sum().backward()
for made, one in ((lambda x: (x * 2, x * 3), lambda y: y[0] + y[1]), (lambda x: {"a": x * 2}, lambda y: y["a"]), (lambda x: [x * 2], lambda y: y[0])):
    for register in ("register_backward_hook", "register_full_backward_hook"):
        module = Several(made)
        getattr(module, register)(told)
        one(module(x)).sum().backward()
x.grad = None
relu = nn.ReLU()
relu.register_backward_hook(lambda m, gi, go: (gi[0] * 2,))
relu(x).sum().backward()
print(x.grad)
scaled = nn.Sequential(nn.Identity())
scaled.register_full_backward_hook(lambda m, gi, go: [g * 42 for g in gi])
scaled(x).sum().backward()
print(x.grad)
try: scaled.register_backward_hook(told)
except RuntimeError as e: print(e)
for wrong in (lambda m, gi, go: gi[0], lambda m, gi, go: gi[:1]):
    layer = nn.Linear(3, 2)
    layer.register_backward_hook(wrong)
    try: layer(x).sum().backward()
    except (TypeError, RuntimeError) as e: print(e)
# --- an optimizer of a script's own
from torch.optim.optimizer import Optimizer
from torch.nn.modules.activation import PReLU
import torch.functional
class Slow(Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                p.add_(state["m"].mul_(0.9).add_(p.grad, alpha=0.1), alpha=-group["lr"])
w = nn.Parameter(torch.ones(3))
slow = Slow([w])
for _ in range(3):
    slow.zero_grad()
    (w**2).sum().backward()
    slow.step()
print(slow, w, slow.state_dict()["param_groups"], PReLU(), torch.functional.einsum("i,i->", w, w), torch.version.cuda)
# --- losses of what is no tensor
x = torch.tensor([0.5, 0.25, 0.75])
names = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss kl_div"
for name in names.split():
    for target in (3.0, 1, [1.0, 2.0, 3.0], None, x.numpy()):
        try: getattr(F, name)(x, target)
        except (AttributeError, TypeError) as error: print(name, error)
told(lambda: F.mse_loss(3.0, x), lambda: F.cross_entropy([1.0, 2.0], x), lambda: F.nll_loss(2.0, x), lambda: nn.MSELoss()(x, [1.0]))
nn.CrossEntropyLoss()(x, 2)
# --- transposed convolutions
torch.manual_seed(0)
for given in ((2, 3, 3, 2), (4, 2, 4, 2, 1), (2, 2, 3, 2, 1, 1), (4, 4, 3, 1, 0, 0, 2), (2, 2, 3, 1, 1, 0, 1, False, 2)):
    m = nn.ConvTranspose2d(*given)
    x = torch.randn(1, given[0], 3, 4, requires_grad=True)
    y = m(x)
    print(m, y.shape, y.grad_fn.name())
    y.pow(2).sum().backward()
    print(y.flatten()[:5].data, x.grad.flatten()[:5], m.weight.grad.flatten()[:5])
m = nn.ConvTranspose1d(2, 3, 4, (2,), 1, bias=False)
print(m, m.weight.shape, m(torch.ones(2, 5)))
print(torch.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), stride=2))
one, image = torch.ones(2, 3, 3, 3), torch.ones(1, 2, 4, 4)
told(
    lambda: F.conv_transpose2d(torch.ones(1, 3, 4, 4), one), lambda: F.conv_transpose2d(torch.ones(4, 4), one),
    lambda: F.conv_transpose2d(image.double(), one), lambda: F.conv_transpose2d(image, one, torch.ones(2)),
    lambda: F.conv_transpose2d(image, one, output_padding=(1, 0)), lambda: F.conv_transpose1d(image[0], one[0], output_padding=1),
)
# --- classes learnt
def learnt(make, loss, y):
    torch.manual_seed(0)
    x, m = torch.randn(30, 4), make()
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    for _ in range(10):
        o.zero_grad()
        l = loss(m(x), y)
        l.backward()
        o.step()
    print(l.item(), *(p.flatten()[-1].item() for p in m.parameters()), *(b.sum().item() for b in m.buffers()))
y = torch.arange(30) % 3
wide = lambda *more: nn.Sequential(nn.Linear(4, 10), *more, nn.ReLU(), nn.Linear(10, 3))
learnt(wide, nn.CrossEntropyLoss(), y)
learnt(wide, nn.BCEWithLogitsLoss(), F.one_hot(y).float())
learnt(lambda: wide(nn.LayerNorm(10)), nn.CrossEntropyLoss(), y)
learnt(lambda: wide(nn.BatchNorm1d(10)), nn.CrossEntropyLoss(), y)
# --- texts of modules
for m in (
    nn.GELU(), nn.GELU("tanh"), nn.ReLU(True), nn.LeakyReLU(0.2, True), nn.Hardtanh(), nn.Softplus(2), nn.Softmax(1), nn.Threshold(1, 2),
    nn.Hardshrink(), nn.Hardswish(), nn.GLU(), nn.ELU(), nn.SELU(), nn.Mish(True), nn.PReLU(), nn.LogSoftmax(dim=1), nn.Softshrink(1.0),
    nn.Linear(2, 3, bias=False), nn.Conv1d(1, 2, 3), nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 4, 3, 1, (1, 0), groups=2, bias=False),
    nn.Conv2d(1, 1, 3, padding="same"), nn.Conv2d(1, 2, (3, 2), stride=2, dilation=2), nn.ConvTranspose1d(1, 2, 3, bias=False, dilation=2),
    nn.MaxPool1d(2), nn.MaxPool2d((2, 1), ceil_mode=True), nn.AvgPool1d(3, 1, 1), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((1, None)),
    nn.BatchNorm2d(3, affine=False, track_running_stats=False), nn.LayerNorm([2, 3], bias=False), nn.Dropout2d(0.1, True), nn.Flatten(0),
    nn.RNN(2, 3, 2, bias=False, batch_first=True, dropout=0.5, bidirectional=True), nn.RNNCell(2, 3, False, "relu"), nn.Embedding(3, 2, -1),
    nn.HuberLoss(delta=2.0), nn.CrossEntropyLoss(torch.ones(2)), nn.Sequential(nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 2)})),
):
    print(m, type(m), list(m.state_dict()), [n for n, _ in m.named_buffers()])
told(lambda: nn.Linear(2), lambda: nn.Conv2d(2, 3), lambda: nn.Threshold(), lambda: nn.Softmax(a=1), lambda: nn.Dropout(2))
# --- modules under two names
shared = nn.Linear(1, 1)
net = nn.ModuleDict({"a": shared, "b": nn.Sequential(shared, nn.Tanh())})
print(list(net.state_dict()), [n for n, _ in net.named_parameters()], [n for n, _ in net.named_modules()])
print([n for n, _ in net.named_parameters(remove_duplicate=False)], [n for n, _ in net.named_modules(remove_duplicate=False)])
print(net.load_state_dict({n: v * 0 + 2 for n, v in net.state_dict().items()}), shared.weight, shared.weight._version)
print(net.state_dict(keep_vars=True)["b.0.weight"] is shared.weight, net.load_state_dict({"c": shared.weight}, strict=False))
net.load_state_dict({"a.weight": torch.ones(2), "c": shared.weight})
# --- what a layer is not made for
def attempt(layer, x):
    told(lambda: layer(x))
for indices in (torch.tensor([1.0]), torch.tensor([True]), torch.tensor([1], dtype=torch.uint8), torch.tensor([3.0]).double()):
    attempt(nn.Embedding(3, 2), indices)
for layer in (nn.BatchNorm1d(3), nn.BatchNorm1d(3).eval(), nn.BatchNorm1d(3, track_running_stats=False), nn.LayerNorm(3), nn.LayerNorm((4, 2))):
    attempt(layer, torch.ones(2, 4))
attempt(nn.BatchNorm2d(3), torch.ones(2, 4, 2, 2))
# --- embedding of a bounded length
torch.manual_seed(0)
for table in (nn.Embedding(5, 3, max_norm=1), nn.Embedding(5, 3, max_norm=1.0, norm_type=1.0, padding_idx=0)):
    y = table(torch.tensor([[0, 1], [3, 3]]))
    y.sum().backward()
    print(table, y, table.weight, table.weight.grad)
# --- states and groups that an optimizer does not take
net = nn.Linear(2, 2)
adam = torch.optim.Adam(net.parameters())
others = (torch.optim.Adam([net.weight]), torch.optim.Adam([{"params": [p]} for p in net.parameters()]))
for state in (adam, {}, *(o.state_dict() for o in others)):
    told(lambda: adam.load_state_dict(state))
torch.optim.SGD([{"params": {net.weight}}], lr=0.1)
# --- modules that are not one another, and losses by places
print(isinstance(nn.Dropout2d(), nn.Dropout), isinstance(nn.Conv2d(1, 1, 1), nn.Conv1d))
print(isinstance(nn.ConvTranspose2d(1, 1, 1), nn.ConvTranspose1d), nn.Conv2d.__module__, nn.Softplus.__module__)
a, b, w = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.0, 2.0], [1.0, 1.0]]), torch.arange(4.0).view(2, 2)
print(nn.functional.mse_loss(a, b, None, None, "mean", w), nn.functional.huber_loss(a, b, "sum", 0.5, w))
print(nn.functional.cross_entropy(a, torch.tensor([0, 1]), None, None, -100, None, "none", 0.1))
print(nn.functional.triplet_margin_loss(a, b, w, 1.0, 2.0, 1e-6, True, None, None, "sum"))
# --- a table that shares its numbers
layer = nn.Linear(4, 6, bias=False)
table = nn.Embedding(6, 4, 2, _weight=layer.weight)
print(table, table.weight is layer.weight, table.weight.data_ptr() == layer.weight.data_ptr())
table(torch.tensor([0, 2])).sum().backward()
print(table.weight.grad, layer.weight.grad, list(table.state_dict()))
# --- a layer of nothing
m = nn.Linear(0, 2)
print(m(torch.zeros(0)), m.weight, m.bias, nn.Linear(2, 0)(torch.ones(2)))
# --- packed sequences
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence
rows = [torch.arange(4.0), torch.arange(3.0) + 10, torch.arange(2.0) + 20]
padded = pad_sequence(rows, batch_first=True)
packed = pack_padded_sequence(padded[[2, 0, 1]], torch.tensor([2, 4, 3]), batch_first=True, enforce_sorted=False)
print(packed, pad_packed_sequence(packed, batch_first=True), pack_sequence(rows))
print(pad_packed_sequence(pack_padded_sequence(padded, [4, 3, 2], True), True, -1, 5), type(packed))
told(
    lambda: pack_padded_sequence(padded, [2, 4, 3], batch_first=True), lambda: pack_padded_sequence(padded, [4], True),
    lambda: pack_padded_sequence(padded, [4, 3, 0], True), lambda: pad_packed_sequence(packed, total_length=3),
)
torch.manual_seed(0)
x = torch.randn(3, 4, 2, requires_grad=True)
for lengths, settings in (([4, 3, 1], {"bidirectional": True}), ([1, 4, 3], {"num_layers": 2, "batch_first": True})):
    rnn = nn.RNN(2, 3, **settings)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=lengths[0] == 4)
    out, h = rnn(packed, torch.randn(2, 3, 3))
    print(packed, out, h)
    y, sizes = pad_packed_sequence(out, batch_first=True)
    y.sum().backward()
    print(sizes, y.shape, x.grad, rnn.weight_hh_l0.grad)
# --- numbers around
x = torch.arange(12.0, requires_grad=True)
for mode in ("reflect", "replicate", "circular"):
    for shape, ends in (((1, 1, 12), (2, 1)), ((1, 1, 3, 4), (1, 2, 1, 0)), ((3, 4), (2, 1))):
        y = F.pad(x.view(shape), ends, mode=mode)
        print(y)
        (y * y).sum().backward()
        print(x.grad)
    torch.manual_seed(0)
    conv = nn.Conv2d(1, 2, 3, padding=1, padding_mode=mode)
    print(conv, conv(x.view(1, 1, 3, 4)))
for ends, mode in (((4, 4, 1, 0), "reflect"), ((5, 4, 1, 0), "circular"), ((1, 1), "odd")):
    told(lambda: F.pad(x.view(1, 1, 3, 4), ends, mode=mode))
for kind in (nn.ReflectionPad2d, nn.ReplicationPad2d, nn.ZeroPad2d):
    print(kind(2), kind((1, 2, 0, 1)), kind(1)(x.view(1, 1, 3, 4)), kind(1).padding)
print(nn.ConstantPad1d(1, 2.5), nn.ReflectionPad1d(2), nn.ConstantPad2d((0, 1, 0, 1), 2.5)(x.view(1, 3, 4)))
print(nn.PixelShuffle(2), F.pixel_shuffle(x[:8].view(1, 4, 1, 2), 2), nn.BatchNorm3d(2))
print(nn.CosineSimilarity(dim=1), nn.CosineSimilarity()(x.view(3, 4), x.view(3, 4) + 1))
print(nn.BatchNorm3d(2)(torch.arange(32.0).view(2, 2, 2, 2, 2)).flatten()[:4])
# --- orthogonal weights
torch.manual_seed(0)
print(nn.init.orthogonal_(torch.empty(3, 4)), nn.init.orthogonal_(torch.empty(4, 2), gain=2))
print(nn.init.orthogonal_(nn.Linear(3, 3).weight), nn.init.orthogonal_(torch.empty(2, 2, 3)).shape)
nn.init.orthogonal_(torch.ones(3))
# --- lengths of zeros
for p in (0.5, 1, 1.5, 2, 3, float("inf")):
    x = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, -2.0]], requires_grad=True)
    torch.norm(x, p=p, dim=1).sum().backward()
    print(p, x.grad)
# --- interpolation of float64
torch.set_printoptions(precision=12)
x = torch.tensor([[[0., 1., 2., 3.]]], dtype=torch.float64)
for x in (x, x.float()):
    print(F.interpolate(x, size=6, mode="linear", align_corners=True))
    print(F.interpolate(x, scale_factor=1.7, mode="linear"))
    print(F.interpolate(x, size=5, mode="linear"), F.interpolate(x, scale_factor=1.7))
    print(F.interpolate(x[None], size=(2, 3), mode="bilinear"))
    print(F.interpolate(x, scale_factor=1.2, mode="linear"), F.interpolate(x, scale_factor=1.2))
    print(F.interpolate(x[None], scale_factor=(1.5, 1.2), mode="bilinear"))
# --- insertion into a sequence, and clipping as it is called
m = nn.Sequential(nn.Linear(1, 2), nn.ReLU())
for i in (3, -3, 2, -2, 0, -1):
    told(lambda: [type(x).__name__ for x in m.insert(i, nn.Tanh())])
print([type(x).__name__ for x in (lambda l: l.insert(7, nn.ReLU()) or l)(nn.ModuleList([nn.Tanh()]))])
l = nn.Linear(2, 2)
l.weight.grad = torch.full((2, 2), 2.)
print(nn.utils.clip_grad_norm_(l.parameters(), 1., foreach=True), l.weight.grad)
nn.utils.clip_grad_value_(l.parameters(), 0.1, foreach=False)
print(l.weight.grad)
print(nn.utils.clip_grad_norm_(l.parameters(), 1., 2, False, True))
print(nn.utils.clip_grad_norm_(l.parameters(), 1., "inf"))
# --- targets of whole numbers
x, t = torch.tensor([[0.5, 1.0, 2.5]], requires_grad=True), torch.arange(3).view(1, 3)
for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss):
    found = loss(x, t)
    print(found, torch.autograd.grad(found, x)[0])
# --- names in modules, and what may have them
m = nn.Module()
m.plain = 5
m.register_buffer("b", torch.ones(1)); m.p = nn.Parameter(torch.ones(2)); m.l = nn.Linear(1, 1)
for name in ("plain", "b", "p", "l", "x.y", "", 3, "forward"):
    told(
        lambda: m.register_buffer(name, torch.ones(1)), lambda: m.register_parameter(name, nn.Parameter(torch.ones(1))),
        lambda: m.add_module(name, nn.ReLU()),
    )
told(
    lambda: m.register_buffer("n", 5), lambda: m.register_parameter("n", torch.ones(1)), lambda: m.add_module("n", 5),
    lambda: m.add_module("n", nn.ReLU), lambda: m.register_parameter("n", nn.Parameter(torch.ones(1)) * 2),
    lambda: m.register_parameter("n", None), lambda: m.register_buffer("q", None), lambda: m.add_module("r", None),
)
print(list(m._parameters), list(m._buffers), list(m._modules), m)
n = nn.Module()
n.a = None; n.a = nn.Parameter(torch.ones(1)); n.b = nn.Parameter(torch.zeros(1)); n.a = None; print([k for k, _ in n.named_parameters()])
n.a = nn.Parameter(torch.ones(3)); print([k for k, _ in n.named_parameters()])
n.a = nn.Parameter(torch.ones(4)); print([k for k, _ in n.named_parameters()])
del n.a; n.a = nn.Parameter(torch.ones(4)); print([k for k, _ in n.named_parameters()])
n.a2 = nn.Linear(1, 1); n.z = nn.ReLU(); n.a2 = nn.Tanh(); print(n)
n.z = nn.Parameter(torch.ones(1)) if False else None; print(n); n.z = nn.ReLU(); print(n)
s = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1), nn.Tanh())
print([k for k in dir(s) if k.isdigit()])
del s[-1]; print(s); del s[0:2]; print(s)
l = nn.ModuleList([nn.ReLU(), nn.Tanh()])
l += [nn.Linear(1, 2)]; print(l); del l[0]; print(l); del l[0:2]; print(len(l))
l = nn.ModuleList([nn.ReLU(), nn.Tanh()]) + nn.ModuleList([nn.Sigmoid()]); print(l, l[torch.tensor(1)])
told(lambda: l.extend(nn.ReLU()), lambda: l.append(5))
q = nn.ParameterList([nn.Parameter(torch.ones(1))]); q += [nn.Parameter(torch.ones(2))]; print(q)
s = nn.Sequential(nn.ReLU()); s += nn.Sequential(nn.Tanh()); print(s); s.append(nn.Sigmoid()); print(s)
def del_(x, i): del x[i]
told(lambda: del_(s, 7)); told(lambda: del_(s, -1)); print(s)
told(lambda: s.pop(0)); told(lambda: s.insert(0, nn.Linear(1, 1))); print(s)
net = nn.Sequential(nn.Linear(3, 3))
for args in ((torch.long,), ("cpu", torch.long), (torch.tensor(3),), (torch.float64,), ("cpu",), (torch.device("cpu"), torch.float32), (torch.ones(1).double(),)):
    told(lambda: net.to(*args)[0].weight.dtype)
# --- states of a recurrence that do not fit
cell = nn.RNNCell(10, 20)
for shapes in (((3, 10), (1, 20)), ((3, 10), (3, 1)), ((3, 1), (3, 20)), ((3, 10), (3, 20)), ((10,), (20,)), ((10,), (3, 20)), ((2, 3, 10), (3, 20)), ((3, 10), (1, 3, 20)), ((5,), (20,))):
    told(lambda: cell(*map(torch.zeros, shapes)).shape)
rnn = nn.RNN(4, 5)
for shapes in (((7, 3, 4), (1, 3, 5)), ((7, 3, 4), (1, 2, 5)), ((7, 3, 4), (2, 3, 5)), ((7, 3, 2), (1, 3, 5)), ((7, 4), (1, 5)), ((7, 4), (1, 3, 5)), ((7, 3, 4), (1, 5)), ((4,), (1, 5)), ((7, 3, 4, 1), (1, 3, 5))):
    told(lambda: rnn(*map(torch.zeros, shapes))[0].shape)
# --- schedulers that are given epochs
import warnings
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LambdaLR, MultiStepLR, StepLR
w = [torch.zeros(1, requires_grad=True)]
for make in (
    lambda o: StepLR(o, 2, 0.3), lambda o: MultiStepLR(o, [2, 3, 3], 0.3), lambda o: ExponentialLR(o, 0.7),
    lambda o: CosineAnnealingLR(o, 5, 0.01), lambda o: LambdaLR(o, lambda epoch: 0.9**epoch),
):
    optimizer = torch.optim.SGD(w, 0.1)
    scheduler = make(optimizer)
    optimizer.step()
    for epoch in (1, 2, 5, 3, 0, 4):
        scheduler.step(epoch)
        print(scheduler.last_epoch, optimizer.param_groups[0]["lr"], scheduler.get_last_lr())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(4.0)), drop_last=True)
print(loader.num_workers, loader.pin_memory, loader.timeout, loader.worker_init_fn, loader.prefetch_factor)
print(loader.persistent_workers, loader.drop_last)
out = torch.ones(2, 3)
torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=out)
print(out)
torch.set_default_tensor_type(torch.DoubleTensor)
torch.set_default_tensor_type("torch.FloatTensor")
# --- init fills as tensors' own methods do
w = nn.Parameter(torch.zeros(2, 3))
print(nn.init.constant_(w, torch.tensor(2.5)), w._version)
torch.manual_seed(0)
print(nn.init.normal_(w, torch.tensor(1.0), 0.5), nn.init.uniform_(w.t(), -1, 1))
told(
    lambda: nn.init.constant_(w, torch.ones(3)), lambda: nn.init.normal_(torch.zeros(2, 3, dtype=torch.int64)),
    lambda: nn.init.kaiming_normal_(torch.zeros(2, 3, dtype=torch.int64)),
)
# --- what is in a module, asked for one by one
net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.BatchNorm1d(2))
for ask in (net.parameters, net.buffers, net.modules, net.children):
    print(str(ask()).partition(" at ")[0])
    for args, settings in (((), {}), ((False,), {}), ((True, 2), {}), ((), {"recurse": False}), ((), {"remove_duplicate": False})):
        told(lambda: len(list(ask(*args, **settings))))
# --- modules that a script derives
class Frame(nn.ZeroPad2d): pass
class Picture(nn.Conv2d): pass
class Norm(nn.BatchNorm2d): pass
class Rows(nn.InstanceNorm1d): pass
for module, shape in ((Frame(1), (1, 1, 2, 2)), (Picture(1, 2, 1), (1, 1, 2, 2)), (Norm(2), (1, 2, 2, 2)), (Rows(2), (1, 2, 3)), (Norm(2), (1, 2))):
    told(lambda: (module, module(torch.ones(shape)).shape))
# --- the files of modules
import pickle
from torch.nn.modules.upsampling import Upsample
from torch.nn.modules.instancenorm import InstanceNorm1d
print(Upsample, InstanceNorm1d is nn.InstanceNorm1d)
for module in (nn.InstanceNorm2d(2), nn.Upsample(2), nn.Conv1d(1, 1, 1), nn.ZeroPad2d(1), nn.PixelShuffle(2), nn.CosineSimilarity(), nn.GroupNorm(1, 2)):
    print(type(module).__module__, pickle.loads(pickle.dumps(module)))
# --- layers of a dtype, on a device
torch.manual_seed(0)
f = torch.float64
for make in (
    lambda **how: nn.Conv1d(1, 2, 2, **how), lambda **how: nn.Conv2d(1, 2, 2, **how), lambda **how: nn.ConvTranspose2d(1, 2, 2, **how),
    lambda **how: nn.BatchNorm1d(2, **how), lambda **how: nn.InstanceNorm2d(2, affine=True, **how), lambda **how: nn.GroupNorm(1, 2, **how),
    lambda **how: nn.LayerNorm(2, **how), lambda **how: nn.RNN(1, 2, **how), lambda **how: nn.RNNCell(1, 2, **how), lambda **how: nn.PReLU(**how),
    lambda **how: nn.Linear(1, 2, **how),
):
    layer = make(dtype=f, device="cpu")
    print(layer, [x.dtype for x in layer.state_dict().values()])
    print(next(layer.parameters()))
    told(lambda: make(device="cuda"))
torch.set_default_dtype(f)
print(nn.BatchNorm2d(2).running_var)
# --- constructors that are another class's
for made in (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.BatchNorm2d):
    for args, settings in (((), {}), ((2,), {"foo": 1}), (tuple(range(9)), {})):
        try: made(*args, **settings)
        except TypeError as error: print(str(error).replace("from 2 to 3", "2"))
# --- division by the root mean square
torch.manual_seed(0)
x = torch.randn(2, 3, 4, requires_grad=True)
norm = nn.RMSNorm(4)
y = norm(x)
(y**3).sum().backward()
print(norm, y, x.grad, norm.weight.grad, [name for name, _ in norm.named_parameters()])
print(nn.RMSNorm((3, 4), eps=1e-5, elementwise_affine=False), F.rms_norm(x, (3, 4)), F.rms_norm(x, [4], eps=0.1).grad_fn.name())
F.rms_norm(x, (5,))
# --- channels, dropouts of channels, margins and bilinear maps
torch.manual_seed(0)
x = torch.randn(2, 4, 6, 6, requires_grad=True); s = torch.randn(3, 5, requires_grad=True); y = torch.tensor([1, 0, 4])
def g(r, v=x): return torch.autograd.grad((r * torch.linspace(-1, 1, r.numel()).view_as(r)).sum(), v)[0].flatten()[:6] + 0.0
for m in (nn.ChannelShuffle(2), nn.PixelUnshuffle(2), nn.LocalResponseNorm(3), nn.AdaptiveAvgPool2d((4, 5)), nn.AdaptiveAvgPool2d((1, 4)), nn.Dropout3d(0.3).eval(), nn.AlphaDropout(0.3)):
    r = m(x); print(m, r.shape, r.flatten()[:4], r.grad_fn and r.grad_fn.name(), g(r))
print(F.adaptive_avg_pool1d(s, 3), F.local_response_norm(torch.ones(1, 3, 4), 2)[0], nn.Dropout1d(.5)(torch.ones(2, 5, 3)), nn.Dropout3d(.5)(torch.ones(2, 3, 1, 1, 2)).flatten())
b = nn.Bilinear(5, 5, 2); r = b(s, s * 2); print(b, r, b.weight[0, 0], b.bias, g(r, s), b(s, s).grad_fn.name(), F.bilinear(s, s, b.weight).grad_fn.name())
for L in (nn.MultiMarginLoss(), nn.MultiMarginLoss(2, .5, torch.arange(1., 6.)), nn.MultiMarginLoss(reduction="none")): r = L(s, y); print(L, r, g(r, s))
t = torch.tensor([[1., 0, 1, 0, 0]] * 3)
for L in (nn.MultiLabelSoftMarginLoss(), nn.MultiLabelSoftMarginLoss(torch.arange(1., 6.), reduction="sum"), nn.MultiLabelSoftMarginLoss(reduction="none")): r = L(s, t); print(L, r, g(r, s))
torch.manual_seed(1); print(F.gumbel_softmax(s, tau=.5), F.gumbel_softmax(s, hard=True)); r = F.gumbel_softmax(s, hard=True, dim=0); print(g(r, s))
m = nn.Linear(3, 2); v = nn.utils.parameters_to_vector(m.parameters()); print(v, v.grad_fn.name()); nn.utils.vector_to_parameters(torch.arange(8.), m.parameters()); print(m.weight, m.bias, m.get_parameter("bias").shape, nn.BatchNorm1d(2).get_buffer("running_mean"))
told(lambda: nn.Dropout3d(2), lambda: nn.AlphaDropout(-1), lambda: nn.Bilinear(1))
