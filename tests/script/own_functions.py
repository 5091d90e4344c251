"""Own functions as people write them: right ones, and wrong ones whose names end in Bad.  PyTorch runs it, too."""

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

torch.manual_seed(0)


class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s * (1 - s))


class SwishBad(Swish):
    @staticmethod
    def backward(ctx, g):
        _, s = ctx.saved_tensors
        return g * s


class Linear(Function):
    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w, b)
        y = x.mm(w.t())
        if b is not None:
            y = y + b.unsqueeze(0).expand_as(y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, b = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = g.mm(w)
        if ctx.needs_input_grad[1]:
            gw = g.t().mm(x)
        if b is not None and ctx.needs_input_grad[2]:
            gb = g.sum(0)
        return gx, gw, gb


class LinearBad(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.t() @ x, g.mean(0)


class Scale(Function):
    @staticmethod
    def forward(ctx, x, k, name="a"):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None, None


class ScaleBad(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return -g * ctx.k, None


class Polar(Function):
    @staticmethod
    def forward(ctx, r, t):
        ctx.save_for_backward(r, t)
        return r * torch.cos(t), r * torch.sin(t)

    @staticmethod
    def backward(ctx, gx, gy):
        r, t = ctx.saved_tensors
        return gx * torch.cos(t) + gy * torch.sin(t), -gx * r * torch.sin(t) + gy * r * torch.cos(t)


class PolarBad(Polar):
    @staticmethod
    def backward(ctx, gx, gy):
        r, t = ctx.saved_tensors
        return gx * torch.cos(t), -gx * r * torch.sin(t) + gy * r * torch.cos(t)


class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.T, a.T @ g


class MatMulBad(MatMul):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b, a.T @ g


class StraightThroughBad(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    def backward(ctx, g):
        return g


class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, z, t):
        p = torch.softmax(z, 1)
        ctx.save_for_backward(p, t)
        return -torch.log(p[torch.arange(len(t)), t]).mean()

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        d = p.clone()
        d[torch.arange(len(t)), t] -= 1
        return g * d / len(t), None


class CrossEntropyBad(CrossEntropy):
    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        d = p.clone()
        d[torch.arange(len(t)), t] -= 1
        return g * d, None


class InNumpy(Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(a) * a)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        a = x.detach().numpy()
        return g * torch.from_numpy(np.sin(a) + a * np.cos(a))


class InNumpyBad(InNumpy):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        a = x.detach().numpy()
        return g * torch.from_numpy(np.sin(a) + np.cos(a))


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, w, b, eps):
        m = x.mean(-1, keepdim=True)
        v = ((x - m) ** 2).mean(-1, keepdim=True)
        r = torch.rsqrt(v + eps)
        h = (x - m) * r
        ctx.save_for_backward(h, w, r)
        return h * w + b

    @staticmethod
    def backward(ctx, g):
        h, w, r = ctx.saved_tensors
        gh = g * w
        gx = r * (gh - gh.mean(-1, keepdim=True) - h * (gh * h).mean(-1, keepdim=True))
        return gx, (g * h).sum(0), g.sum(0), None


class LayerNormBad(LayerNorm):
    @staticmethod
    def backward(ctx, g):
        h, w, r = ctx.saved_tensors
        gh = g * w
        gx = r * (gh - gh.mean(-1, keepdim=True))
        return gx, (g * h).sum(0), g.sum(0), None


class Cube(Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


class Huber(Function):
    @staticmethod
    def forward(ctx, r, d):
        ctx.save_for_backward(r)
        ctx.d = d
        a = r.abs()
        return torch.where(a <= d, 0.5 * r**2, d * (a - 0.5 * d)).sum()

    @staticmethod
    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return g * torch.clamp(r, -ctx.d, ctx.d), None


class HuberBad(Huber):
    @staticmethod
    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return g * torch.where(r.abs() <= ctx.d, r, torch.full_like(r, ctx.d)), None


class NormBad(Function):
    @staticmethod
    def forward(ctx, x):
        n = torch.sqrt((x * x).sum())
        ctx.x = x
        ctx.n = n
        return n

    @staticmethod
    def backward(ctx, g):
        return ctx.x / ctx.n


class OnceOnly(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tan(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / torch.cos(x) ** 2


class TopK(Function):
    @staticmethod
    def forward(ctx, x, k):
        v, i = torch.topk(x, k)
        ctx.mark_non_differentiable(i)
        ctx.save_for_backward(i)
        ctx.n = x.shape[-1]
        return v, i

    @staticmethod
    def backward(ctx, g, _):
        (i,) = ctx.saved_tensors
        out = torch.zeros(ctx.n)
        out[i] = g
        return out, None


class Stack(Function):
    @staticmethod
    def forward(ctx, *xs):
        ctx.n = len(xs)
        return torch.stack(xs)

    @staticmethod
    def backward(ctx, g):
        return tuple(g[i] for i in range(ctx.n))


class StackBad(Stack):
    @staticmethod
    def backward(ctx, g):
        return tuple(g[0] for i in range(ctx.n))


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class InPlaceBad(InPlace):
    @staticmethod
    def backward(ctx, g):
        return g


class Branch(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.pos = bool(x.sum() > 0)
        ctx.save_for_backward(x)
        return x**2 if ctx.pos else x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g if ctx.pos else 3 * x**2 * g


class BranchBad(Branch):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g if ctx.pos else 2 * x**2 * g


class NotMaterialized(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, ga, gb):
        x, y = ctx.saved_tensors
        gx = gy = None
        if ga is not None:
            gx, gy = ga * y, ga * x
        if gb is not None:
            gx = gb if gx is None else gx + gb
            gy = gb if gy is None else gy + gb
        return gx, gy


class ForgottenBad(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        _, y = ctx.saved_tensors
        return g * y, None


class BroadcastBad(Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(1)


class Squares(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return ((a - b) ** 2).mean()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        d = 2 * (a - b) * g
        return d / a.numel(), -d / a.numel()


class SquaresBad(Squares):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        d = 2 * (a - b) * g
        return d / len(a), d / len(a)


class Convolution(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.nn.functional.conv1d(x, w, padding=1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = torch.nn.functional.conv1d(g, w.flip(-1).transpose(0, 1), padding=1)
        gw = torch.nn.functional.conv1d(x.transpose(0, 1), g.transpose(0, 1), padding=1).transpose(0, 1)
        return gx, gw


class ConvolutionBad(Convolution):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = torch.nn.functional.conv1d(g, w.transpose(0, 1), padding=1)
        gw = torch.nn.functional.conv1d(x.transpose(0, 1), g.transpose(0, 1), padding=1).transpose(0, 1)
        return gx, gw


class DropoutBad(Function):
    @staticmethod
    def forward(ctx, x, p):
        m = (torch.rand_like(x) > p).float()
        ctx.save_for_backward(m)
        ctx.p = p
        return x * m / (1 - p)

    @staticmethod
    def backward(ctx, g):
        (m,) = ctx.saved_tensors
        return g * m, None


class Power(Function):
    @staticmethod
    def forward(ctx, x, cfg):
        ctx.cfg = cfg
        ctx.save_for_backward(x)
        return x ** cfg["n"]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = ctx.cfg["n"]
        return g * n * x ** (n - 1), None


class PowerBad(Power):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = ctx.cfg["n"]
        return g * n * x**n, None


class Cubed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * Squared.apply(x) * g


class Squared(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


torch.manual_seed(0)


def numbers(*shape):
    return torch.randn(*shape, requires_grad=True)


x, y, b = numbers(4), numbers(4), numbers(2)
X, W, A, B = numbers(3, 4), numbers(2, 4), numbers(3, 3), numbers(3, 3)
labels = torch.tensor([0, 2, 1])
for f in (Swish, SwishBad, StraightThroughBad, InNumpy, InNumpyBad, Cube, NormBad, OnceOnly, Cubed):
    f.apply(x).sum().backward()
Linear.apply(X, W, b).sum().backward()
Linear.apply(X, W).sum().backward()
LinearBad.apply(X, W, b).sum().backward()
Scale.apply(x, 3, "b").sum().backward()
ScaleBad.apply(x, 2.5).sum().backward()
for f in (Polar, PolarBad):
    first, second = f.apply(x, y)
    (first + second**2).sum().backward()
for f in (MatMul, MatMulBad):
    f.apply(A, B).sum().backward()
for f in (CrossEntropy, CrossEntropyBad):
    f.apply(X, labels).backward()
for f in (LayerNorm, LayerNormBad):
    f.apply(X, numbers(4), numbers(4), 1e-5).sum().backward()
for f in (Huber, HuberBad):
    f.apply(3 * x, 1.0).backward()
TopK.apply(x, 2)[0].sum().backward()
for f in (Stack, StackBad, ForgottenBad, Squares, SquaresBad):
    f.apply(x, y).sum().backward()
for f in (InPlace, InPlaceBad):
    f.apply(x.clone()).sum().backward()
for f in (Branch, BranchBad):
    f.apply(x.abs()).sum().backward()
    f.apply(-x.abs()).sum().backward()
NotMaterialized.apply(x, y)[1].sum().backward()
BroadcastBad.apply(numbers(4, 4), x).sum().backward()
for f in (Convolution, ConvolutionBad):
    f.apply(numbers(2, 2, 5), numbers(3, 2, 3)).sum().backward()
DropoutBad.apply(x, 0.5).sum().backward()
for f in (Power, PowerBad):
    f.apply(x, {"n": 4}).sum().backward()
with torch.no_grad():
    Squared.apply(x)
Squared.apply(torch.rand(3, dtype=torch.float64, requires_grad=True)).sum().backward()
