# --- recurrent layers
def shown(name, layer, *given):
    out, last = layer(*given)
    print(name, layer, out, last, sep="\n")
    (out.sum() + last.sum()).backward()
    for n, p in layer.named_parameters():
        print(n, p.grad)
torch.manual_seed(0)
shown("one", nn.RNN(3, 4), torch.randn(5, 2, 3))
shown("two", nn.RNN(3, 4, 2, batch_first=True), torch.randn(2, 5, 3))
shown("both", nn.RNN(3, 2, 2, bidirectional=True), torch.randn(4, 2, 3))
shown("relu", nn.RNN(3, 2, nonlinearity="relu", bias=False), torch.randn(4, 2, 3), torch.randn(1, 2, 2))
shown("alone", nn.RNN(3, 2), torch.randn(4, 3), torch.randn(1, 2))
shown("dropout", nn.RNN(3, 2, 2, dropout=0.5), torch.randn(4, 2, 3))
print(nn.RNNCell(3, 2)(torch.randn(4, 3)), nn.RNNCell(3, 2, nonlinearity="relu")(torch.randn(4, 3), torch.randn(4, 2)))
nn.RNN(3, 2)(torch.randn(4, 2, 3), torch.randn(1, 5, 2))
# --- padding of an embedding
torch.manual_seed(0)
table = nn.Embedding(5, 3, padding_idx=0)
print(table, table.weight)
out = table(torch.tensor([[0, 1, 2], [2, 0, 4]]))
print(out)
out.sum().backward()
print(table.weight.grad)
# --- more layers
torch.manual_seed(0)
for layer, given in (
    (nn.PReLU(3), (torch.randn(2, 3),)), (nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3))), (torch.randn(2, 4),)),
    (nn.Sequential(nn.Conv1d(1, 2, 3), nn.MaxPool1d(2)), (torch.randn(1, 1, 8),)), (nn.DataParallel(nn.Linear(1, 1)), (torch.ones(1, 1),)),
):
    print(layer, layer(*given))
x = torch.randn(3, 4)
for layer in (nn.Hardswish(), nn.Hardsigmoid(), nn.Hardshrink(), nn.Threshold(0.1, 2.0), nn.GLU(), nn.GELU("tanh"), nn.CELU()):
    print(layer, layer(x))
# --- more losses
torch.manual_seed(0)
x, y, signs = torch.randn(3, 4, requires_grad=True), torch.rand(3, 4), torch.tensor([1.0, -1.0, 1.0])
classes, weight = torch.tensor([0, 1, 2]), torch.tensor([1.0, 2.0, 3.0, 4.0])
for loss, given in (
    (nn.PoissonNLLLoss(), (x, y)), (nn.GaussianNLLLoss(), (x, y, torch.ones(3, 4))), (nn.HingeEmbeddingLoss(), (x, torch.ones(3, 4))),
    (nn.MarginRankingLoss(0.5), (x[:, 0], x[:, 1], signs)), (nn.CosineEmbeddingLoss(), (x, y, signs)),
    (nn.TripletMarginLoss(), (x, y, y.flip(0))), (nn.CrossEntropyLoss(label_smoothing=0.1), (x, classes)),
    (nn.CrossEntropyLoss(label_smoothing=0.1, weight=weight), (x, classes)),
    (nn.CrossEntropyLoss(ignore_index=1, weight=weight, label_smoothing=0.2), (x, classes)),
    (nn.KLDivLoss(reduction="batchmean"), (x.log_softmax(1), y)), (nn.KLDivLoss(), (x.log_softmax(1), y)),
):
    found = loss(*given)
    x.grad = None
    found.backward(retain_graph=True)
    print(loss, found, x.grad)
# --- places and elements put there
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
i = torch.tensor([0, 2])
for made in (x.scatter(0, i, 5.0), x.scatter_add(0, i, x[:2]), x.index_add(0, i, x[:2], alpha=2), x.index_fill(0, i, 0.0)):
    print(made, torch.autograd.grad(made.sum(), x, retain_graph=True))
for made in (x.index_copy(0, i, x[:2]), x.index_put((i,), x[:2]), x.take(i), torch.diag(x, -1)):
    print(made, torch.autograd.grad((made**2).sum(), x, retain_graph=True))
y = torch.zeros(3)
y[torch.tensor([0, 0])] = torch.tensor([1.0, 2.0])
print(y, x[torch.tensor(True)])
z = torch.zeros(2, 3, 4)
z[0, :, [1, 2]] = torch.arange(6.0).view(3, 2)
print(z)
# --- what PyTorch computes in one step
x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
m = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
for made in (
    *(x.addcmul(x, x, value=2), x.addcdiv(x, x + 1), x.rsqrt(), x.exp2(), x.logit(), torch.sinc(x), torch.xlogy(x, x)),
    *(torch.deg2rad(x), x.clamp_min(0.2), x.clamp(max=x.detach()), torch.logaddexp2(x, x), torch.fmax(x, x - 1)),
    *(
        torch.special.expit(x), x.nansum(), torch.dist(x, x * 2), torch.cdist(m, m), m.adjoint(), torch.tensordot(m, m, 1),
        torch.inner(m, x[:2]), m.flip(0, 1), m.logdet(),
    ),
    *(x.kthvalue(2), torch.aminmax(x), m.matrix_power(3)),
    *(x.diff(), m.diagonal(1), torch.diag(m), torch.diag(x, 1), m.roll(1, 0), torch.div(x, 0.07, rounding_mode="floor")),
):
    print(made)
# --- views in place
x = torch.ones(1, 3, requires_grad=True)
for how in ("unsqueeze_(0)", "squeeze_()", "squeeze_(0)", "t_()", "transpose_(0, 1)", "normal_()", "uniform_()", "zero_()"):
    y = x * 2
    eval(f"y.{how}")
    print(how, y.shape, y.grad_fn.name(), y._version)
y = torch.zeros(2).copy_(torch.ones(2, requires_grad=True))
print(y)
torch.ones(1).expand(3).add_(1)
# --- digits of float64
x = torch.tensor([0.1, 3.0], dtype=torch.float64)
print((x / 0.1).tolist(), x.tolist(), torch.DoubleTensor([0.1]).tolist(), x.new_tensor([0.7]).tolist())
# --- long sums
torch.manual_seed(0)
for n in (5, 8, 16, 33, 100, 1000, 5000):
    print(n, torch.rand(n).sum().item(), torch.rand(n).mean().item(), torch.rand(n, dtype=torch.float64).sum().item())
print(torch.randn(40, 37).sum(0).tolist(), torch.randn(7, 50).sum(1).tolist(), torch.randn(9).cumsum(0).tolist())
# --- drawn by weights
torch.manual_seed(0)
print(torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), 2), torch.multinomial(torch.rand(2, 4), 3))
print(torch.multinomial(torch.rand(3, 4), 6, True), torch.rand(2))
torch.multinomial(torch.tensor([1.0, 2.0]), 3)
# --- the derivative of a quotient rounded down
x = torch.tensor([3.0], requires_grad=True)
y = x // 2
print(y)
y.backward()
# --- told once
x = torch.ones(2, 2, 2)
x.T, x.T, torch.tensor(1.0).T, torch.tensor(1.0).mT
print(float(torch.tensor(2.0, requires_grad=True)), torch.ones(1).std())
# --- generators of a module's parts
m = nn.Sequential(nn.Linear(1, 1))
for ask in (m.parameters, m.named_parameters, m.buffers, m.named_buffers, m.children, m.named_children, m.modules):
    print(ask(), len(list(ask())))
# --- names of devices and of modules
import torch.nn.parallel
import torch.utils.model_zoo as model_zoo
from torch.autograd import grad_mode
from torch.autograd.graph import save_on_cpu
from torch.optim.adagrad import Adagrad
w = torch.tensor([2.0], requires_grad=True)
with grad_mode.no_grad():
    print((w * 2).requires_grad, w.get_device(), torch.set_grad_enabled(True))
with save_on_cpu():
    y = (w * w).exp()
y.backward()
print(w.grad, torch.nn.parallel.DataParallel(torch.nn.Linear(1, 1)), Adagrad([w]).defaults["lr"])
print(torch.cuda.OutOfMemoryError is torch.OutOfMemoryError, torch.OutOfMemoryError.__mro__, torch.cuda.FloatTensor)
print(torch.nn.utils.clip_grad_norm([w], 1.0), w.grad)
told(lambda: torch.cuda.device(0).__enter__(), lambda: torch.cuda.FloatTensor(2))
# --- names that neither tensors nor steps have
x = torch.ones(3, requires_grad=True)
y = x * 2
for owner in (x, torch.Tensor, nn.Parameter(x), y.grad_fn, y.grad_fn.next_functions[0][0]):
    for name in ("item_", "tolist_", "numpys", "_modules", "__wrong__"):
        print(hasattr(owner, name))
        told(lambda: getattr(owner, name))
print(torch.Tensor.__bases__, torch.Tensor.sinh(x), torch.Tensor.relu_(torch.tensor([-1.0, 1.0])))
y.grad_fn.metadata["own"] = 1
print(y.grad_fn.metadata, y.grad_fn.next_functions[0][0].metadata)
x.tolist_()
# --- the functions of layers under another name
from torch.functional import F as functions
A = torch.tensor([[1.0, 0.0], [2.0, 3.0]], requires_grad=True)
print(functions is F, torch.spmm(A, A), torch.functional.norm(A).item())
# --- the steps of products of any two ranks
sizes = {1: (3,), 2: (3, 3), 3: (2, 3, 3), 4: (2, 2, 3, 3)}
pairs = [(a, b) for a in sizes.values() for b in sizes.values()]
pairs += [((1, 3), (2, 3, 4)), ((4, 2, 3), (1, 3, 5)), ((1, 2, 3), (4, 3, 5)), ((5, 1, 2, 3), (4, 3, 2)), ((2, 2, 2, 3), (1, 1, 3, 4))]
for a, b in pairs:
    for first, second in ((True, True), (True, False), (False, True)):
        x, w = torch.ones(a, requires_grad=first), torch.ones(b, requires_grad=second)
        y = x @ w
        print(a, b, y.grad_fn.name())
# --- names of methods in place
x = torch.rand(3, 3, requires_grad=True)
for name in "acosh_ asinh_ atanh_ t_ unsqueeze_ squeeze_ transpose_ round_ polygamma_".split():
    more = {"unsqueeze_": (0,), "transpose_": (0, 1), "polygamma_": (1,)}.get(name, ())
    print(name, type(getattr((x + 2).clone(), name)(*more).grad_fn).__name__)
# --- names by a star
from torch import *
from torch.nn import *
from torch.nn.functional import *
from torch.optim.lr_scheduler import *
x = tensor([[1.0, 2.0]], requires_grad=True)
print(relu(sin(x)), scaled_dot_product_attention(x, x, x), conv1d(ones(1, 1, 3), ones(1, 1, 2)), one_hot(tensor(1)))
print(Linear(2, 1), Parameter(ones(1)), CrossEntropyLoss(), mse_loss(x, ones(1, 2)), no_grad, CyclicLR, StepLR, float, save)
