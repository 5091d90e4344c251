"""Operations whose last digits depend on the order of PyTorch's additions.

Each prints check sums of the bits of its results and gradients.
"""

from __future__ import annotations

HEAD = """
import zlib
import numpy as np, torch, torch.nn.functional as F

def show(x):
    a = x.detach().numpy()
    print(a.dtype.name, "×".join(map(str, a.shape)), f"{zlib.crc32((a + 0).tobytes()):08x}")

def try_(function, *shapes, kind=np.float32, positive=False):
    numbers = np.random.RandomState(len(shapes) + sum(map(sum, shapes)))
    arrays = [numbers.standard_normal(shape).astype(kind) for shape in shapes]
    tensors = [torch.from_numpy(abs(a) if positive else a).requires_grad_() for a in arrays]
    y = function(*tensors)
    show(y)
    y.backward(torch.from_numpy(numbers.standard_normal(tuple(y.shape)).astype(kind)))
    for x in tensors:
        if x.grad is not None:
            show(x.grad)
"""

_PRODUCTS = ((8, 48, 24), (5, 200, 12), (4, 400, 16), (9, 7, 3), (3, 17, 1), (1, 20, 1))
_NORMALIZE = """
def batch(x, w, b):
    mean, var = w.detach() / 3, b.detach() ** 2
    y = F.batch_norm(x, mean, var, w, b, True)
    show(mean)
    show(var)
    return y
"""
CASES = {
    **{
        f"products of float{bits}": "".join(
            f"try_(torch.mm, ({m}, {k}), ({k}, {n}), kind=np.float{bits})\n"
            for m, k, n in _PRODUCTS
            if bits == 32 or m != 5
        )
        for bits in (32, 64)
    },
    "linear layers": "".join(
        f"try_(F.linear, ({m}, {k}), ({n}, {k}), ({n},))\n"
        for m, k, n in ((6, 30, 16), (8, 400, 12), (5, 9, 2), (16, 40, 10))
    ),
    "linear layers of float64": "".join(
        f"try_(F.linear, ({m}, {k}), ({n}, {k}), ({n},), kind=np.float64)\n"
        for m, k, n in ((8, 30, 12), (40, 24, 2), (30, 17, 3), (10, 5, 7))
    ),
    "norms": """
for kind in (np.float32, np.float64):
    for n in (3, 5, 8, 15, 17, 31, 100):
        try_(lambda x: x.norm(dim=1), (20, n), kind=kind)
        try_(lambda x: x.norm(dim=0), (n, 20), kind=kind)
        try_(lambda x: x.norm(2, 1, keepdim=True), (20, n), kind=kind)
        try_(torch.norm, (2, 3, n), kind=kind)
    try_(F.normalize, (10, 3), kind=kind)
""",
    "a column's own product": "try_(torch.mv, (500, 1), (1,))\ntry_(lambda x, y: x.t() @ y, (100, 1), (100,))\n",
    "stacks of matrices": "try_(torch.bmm, (3, 4, 5), (3, 5, 2))\ntry_(torch.bmm, (2, 8, 20), (2, 20, 12))\n",
    "linspace and arange": """
for kind in (torch.float32, torch.float64):
    for n in (2, 7, 50, 101):
        show(torch.linspace(-1, 1, n, dtype=kind))
        show(torch.linspace(0, 3.3, n, dtype=kind))
    show(torch.arange(-3, 3, 0.05, dtype=kind))
""",
    "batch normalization": _NORMALIZE
    + "try_(batch, (8, 3), (3,), (3,))\ntry_(batch, (20, 16), (16,), (16,))\ntry_(batch, (2, 3, 4, 4), (3,), (3,))\n"
    "try_(batch, (8, 4), (4,), (4,), kind=np.float64)\n",
    "layer normalization": """
norm = lambda x, w, b: F.layer_norm(x, w.shape, w, b)
for shape in ((3, 3), (4, 16), (2, 3, 24)):
    try_(norm, shape, shape[-1:], shape[-1:])
    try_(norm, shape, shape[-1:], shape[-1:], kind=np.float64)
""",
    "variances": """
for kind in (np.float32, np.float64):
    for dim in (None, 0, 1):
        try_(lambda x: x.var(dim), (5, 9), kind=kind)
        try_(lambda x: x.var(dim, unbiased=False), (12, 4), kind=kind)
""",
    "losses of classes": """
for rows in (1, 16, 17, 40, 300):
    classes = torch.from_numpy(np.random.RandomState(rows).randint(0, 5, rows))
    x = torch.from_numpy(np.random.RandomState(rows).standard_normal((rows, 5)).astype(np.float32))
    show(F.nll_loss(x, classes))
    show(F.nll_loss(x, classes, reduction="sum"))
try_(lambda x: F.cross_entropy(x, torch.tensor([1, 0, 3])), (3, 4))
""",
    "probabilities": """
for kind in (np.float32, np.float64):
    try_(lambda x: F.log_softmax(x, 1), (5, 3), kind=kind)
    try_(lambda x: F.softmax(x, 1), (9, 20), kind=kind)
try_(lambda x: F.log_softmax(x, 1), (60, 4))
try_(lambda x: F.log_softmax(x, 0), (3, 50))
try_(lambda x: F.softmax(x, 1), (5, 8))
try_(torch.sigmoid, (40,))
try_(lambda x: F.mse_loss(x, torch.ones_like(x)), (9, 3), kind=np.float64)
try_(lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).float(), reduction="none"), (200,))
""",
    "activations": """
for f in (F.softplus, F.logsigmoid, F.silu, F.mish, F.elu, F.selu, F.hardswish, lambda x: F.celu(x, 1.3),
          lambda x: F.gelu(x, approximate="tanh"), torch.log1p, torch.expm1, torch.reciprocal, F.softsign):
    for n in (5, 32, 75):
        try_(f, (n,), positive=f is torch.log1p)
    try_(lambda x: f(x.t()), (3, 4), positive=f is torch.log1p)
""",
    "gradients of functions": """
for kind in (np.float32, np.float64):
    for f in (torch.log2, torch.log10, torch.rsqrt):
        try_(f, (40,), kind=kind, positive=True)
    for f in (torch.acos, torch.asin):
        x = torch.from_numpy(np.random.RandomState(0).uniform(0, 0.9, 40).astype(kind)).requires_grad_()
        f(x).sum().backward()
        show(x.grad)
    for f in (F.smooth_l1_loss, F.huber_loss, lambda x, y: F.huber_loss(x, y, reduction="sum", delta=0.7)):
        try_(lambda x, y: f(x, y).reshape(1), (9, 3), (9, 3), kind=kind)
    try_(lambda x, y: F.binary_cross_entropy(torch.sigmoid(x), (y > 0).to(y.dtype)), (9, 3), (9, 3), kind=kind)
    try_(torch.div, (9, 3), (9, 3), kind=kind)
""",
    "convolutions": """
for n, c, out, size, more in (
    (1, 1, 1, 5, {}), (1, 3, 4, 8, {"padding": 1}), (1, 2, 3, 6, {"stride": 2}), (2, 3, 8, 8, {"padding": 1}),
):
    call = lambda x, w, b: F.conv2d(x, w, b, **more)
    with torch.no_grad():
        numbers = np.random.RandomState(n)
        arrays = [numbers.standard_normal(s).astype(np.float32) for s in ((n, c, size, size), (out, c, 3, 3), (out,))]
        show(call(*map(torch.from_numpy, arrays)))
    if n == 1:
        try_(call, (n, c, size, size), (out, c, 3, 3), (out,))
try_(lambda x, w: F.conv2d(x, w.detach()), (2, 20, 5, 5), (18, 20, 3, 3))
try_(lambda x, w, b: F.conv2d(x, w, b), (1, 3, 8, 8), (6, 3, 5, 5), (6,))
try_(lambda x, w, b: F.conv1d(x, w, b, padding=1), (1, 2, 9), (3, 2, 3), (3,))
try_(lambda x: x.sum((0, 2)), (5, 3, 7))
""",
    "square roots": """
numbers = np.random.RandomState(0)
show(torch.sqrt(torch.from_numpy((10 ** numbers.uniform(-40, 38, 300)).astype(np.float32))))
show(torch.arange(200.0).sqrt())
show(torch.arange(200.0) ** 0.5)
show(torch.tensor([0.0, -0.0, np.inf, 1e-45]).sqrt())
for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
    w = torch.from_numpy(numbers.standard_normal(30).astype(np.float32)).requires_grad_()
    own = kind([w], lr=0.01)
    for _ in range(20):
        own.zero_grad()
        (w**4).sum().backward()
        own.step()
    show(w)
""",
    "powers of e, sines and cosines": """
numbers = np.random.RandomState(0)
for f, furthest in ((torch.exp, 110), (torch.sin, 9999), (torch.cos, 9999)):
    for far in (0.1, 4, furthest):
        x = torch.from_numpy(numbers.uniform(-far, far, 3000).astype(np.float32)).requires_grad_()
        f(x).sum().backward()
        show(f(x))
        show(x.grad)
    show(f(torch.tensor([0.0, -0.0, np.inf, 1e-45])))
    show(f(torch.tensor([0.5, 100.0, 1e9], dtype=torch.float64)))
""",
    "stacks and one matrix": "".join(
        f"try_(F.linear, (*{s}, {k}), ({n}, {k}))\ntry_(torch.matmul, (*{s}, {k}), ({k}, {n}))\n"
        for s, k, n in (((2, 3), 10, 5), ((4, 7), 20, 1), ((2, 2, 3), 16, 8), ((3, 5), 100, 40))
    ),
    "powers": """
numbers = np.random.RandomState(0)
for n in (1, 5, 16, 31, 32, 33, 1000):
    for exponent in (4, 5.0, 1.5, 2.5, -3, 0.3, -2, -1, 3, 0.5, -0.5, 0, 1, 2, 7, 0.1, -2.5):
        x = numbers.standard_normal(n).astype(np.float32) * 3
        x = torch.from_numpy(x if float(exponent).is_integer() else abs(x)).requires_grad_()
        y = x**exponent
        y.sum().backward()
        show(y)
        show(x.grad)
    x = abs(x.detach())
    for y in (1.7**x, x**x, torch.cat([x, x])[::2] ** 2.7, x ** torch.tensor(2.7), 2**x):
        show(y)
special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 1e-40, -1e-40, 1e38, -1e38, 3e-5, 0.5, -0.5]
for exponent in (4, 5, -3, 2.5, -2.5, 7, 1e3, -1e3, np.inf, -np.inf, np.nan, 0.3, 0.0):
    show(torch.nan_to_num(torch.tensor(special * 2) ** exponent, nan=7.0))
""",
    "what is between, and products and quotients that are added": """
for kind in (np.float32, np.float64):
    for n in (1, 5, 100):
        for weight in (0.5, 0.1, 0.9, -0.3, 1.7):
            try_(lambda a, b: torch.lerp(a, b, weight), (n,), (n,), kind=kind)
            try_(lambda a, b, c: torch.addcmul(a, b, c, value=weight), (n,), (n,), (n,), kind=kind)
            try_(lambda a, b, c: torch.addcdiv(a, b, c, value=weight), (n,), (n,), (n,), kind=kind)
        try_(torch.lerp, (n,), (n,), (n,), kind=kind)
w = torch.linspace(-1, 1, 50).requires_grad_()
own = torch.optim.Adam([w], lr=0.1, betas=(0.5, 0.999))
for _ in range(20):
    own.zero_grad()
    (w.sin() ** 2).sum().backward()
    own.step()
show(w)
""",
    "gradients of gradients": """
functions = [torch.tanh, torch.sigmoid, torch.sqrt, torch.rsqrt, torch.log1p, torch.expm1, torch.reciprocal, F.silu]
functions += [F.softplus, lambda x: F.softmax(x, -1), lambda x: F.log_softmax(x, -1), lambda x: 1 / x, lambda x: x / 3]
functions += [lambda x: F.cross_entropy(x, torch.arange(len(x))), lambda x: x / x.sum(0), lambda x: F.softplus(x, 2, 3)]
for function in functions:
    for shape in ((2, 3), (5, 7)):
        numbers = np.random.RandomState(sum(shape))
        x = torch.from_numpy(abs(numbers.standard_normal(shape)).astype(np.float32)).requires_grad_()
        v = torch.from_numpy(numbers.standard_normal(shape).astype(np.float32))
        (g,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        show(g)
        if g.requires_grad:
            show(torch.autograd.grad((g * v).sum(), x)[0])
for function in (torch.tanh, torch.sigmoid, lambda x: (1 + x * x).sqrt()):
    x = torch.linspace(-2, 2, 20).requires_grad_()
    y = function(x)
    for _ in range(2):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        show(y)
""",
    "rows that are taken several times": """
ids = torch.from_numpy(np.random.RandomState(0).randint(0, 4, 50))
try_(lambda w: F.embedding(ids, w), (4, 3))
try_(lambda x: torch.zeros(4, 3).index_add(0, ids, x), (50, 3))
""",
    "two threads": """
torch.set_num_threads(2)
try_(F.linear, (10, 30), (16, 30), (16,))
try_(F.linear, (5, 20), (12, 20), (12,))
try_(lambda x, w, b: F.conv2d(x, w, b), (4, 3, 6, 6), (8, 3, 3, 3), (8,))
try_(lambda x, w, b: F.conv2d(x, w, b), (4, 8, 6, 6), (16, 8, 3, 3), (16,))
torch.set_num_threads(1)
""",
}
_LAYERS = (
    (11, 1, 1),
    (4, 2, 2),
    (4, 2, 8),
    (64, 10, 1),
    (5, 40, 1),
    (7, 100, 3),
    (33, 17, 16),
    (3, 784, 12),
    (20, 500, 33),
)
ON_INTEL = {
    "layers on Intel's processors": "".join(f"try_(F.linear, ({m}, {k}), ({n}, {k}), ({n},))\n" for m, k, n in _LAYERS),
    "products on Intel's processors": "".join(
        f"try_(torch.dot, ({k},), ({k},))\ntry_(torch.mv, (5, {k}), ({k},))\n" for k in (3, 17, 40, 66, 127, 200)
    )
    + "".join(
        f"try_(torch.mm, ({m}, {k}), ({k}, {n}), kind=np.float64)\n" for m, k, n in ((4, 2, 1), (8, 4, 2), (5, 32, 20))
    ),
}
ON_INTEL["stacks and one matrix on Intel's processors"] = CASES["stacks and one matrix"]
