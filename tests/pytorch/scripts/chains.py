# --- functions of a linear map
def walk(step):
    if step is None:
        return "None"
    if type(step).__name__ == "AccumulateGrad":
        return str(tuple(step.variable.shape))
    return f"{type(step).__name__}({', '.join(walk(edge) for edge, _ in step.next_functions)})"
def made(*shape): return torch.ones(shape, requires_grad=True)
W, b = made(4, 3), made(4)
for shape in ((3,), (2, 3), (2, 5, 3), (2, 2, 5, 3)):
    for recorded in (True, False):
        for bias in (b, None):
            y = F.linear(torch.ones(shape, requires_grad=recorded), W, bias)
            print(shape, recorded, bias is not None, walk(y.grad_fn), y._is_view())
turned = made(5, 2, 3).transpose(0, 1)
for y in (F.linear(turned, W, b), F.linear(turned, W), F.linear(made(2, 3), made(3)), F.linear(made(2, 3), W.detach(), b)):
    print(walk(y.grad_fn))
y = F.linear(made(2, 5, 3), W, b)
y.relu_()
print(y.grad_fn, F.linear(made(2, 3), W, b).relu_().grad_fn)
# --- functions of losses of classes
def walk(step):
    if step is None or type(step).__name__ == "AccumulateGrad":
        return type(step).__name__
    return f"{type(step).__name__}({', '.join(walk(edge) for edge, _ in step.next_functions)})"
classes, w = torch.tensor([0, 2]), torch.tensor([1.0, 2.0, 0.5])
for more in ({}, {"weight": w}, {"label_smoothing": 0.1}, {"label_smoothing": 0.1, "weight": w}):
    for how in ("mean", "sum", "none"):
        x = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]], requires_grad=True)
        p = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], requires_grad=True)
        for target in (classes, p):
            loss = F.cross_entropy(x, target, reduction=how, **more)
            print(sorted(more), how, loss.detach(), walk(loss.grad_fn))
            inputs = [x] if target is classes else [x, p]
            grads = torch.autograd.grad(loss.sum(), inputs, create_graph=True)
            print([g.detach() for g in grads], torch.autograd.grad(sum((g**2).sum() for g in grads), inputs))
for shape in ((3,), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)):
    x, t = torch.zeros(shape, requires_grad=True), torch.zeros(shape[:1] + shape[2:] if len(shape) > 1 else ()).long()
    for how in ("mean", "none"):
        print(walk(F.cross_entropy(x, t, reduction=how).grad_fn), walk(F.nll_loss(x, t, reduction=how).grad_fn))
# --- functions of layers that are one step
def walk(step):
    if step is None or type(step).__name__ == "AccumulateGrad":
        return "leaf" if step else "None"
    return f"{type(step).__name__}({', '.join(walk(edge) for edge, _ in step.next_functions)})"
def made(*shape): return torch.arange(float(torch.Size(shape).numel())).view(shape).sin().requires_grad_()
for y in (
    F.bilinear(made(2, 3), made(2, 4), made(5, 3, 4)), F.bilinear(made(2, 3), made(2, 4), made(5, 3, 4), made(5)),
    F.group_norm(made(2, 4, 3), 2, made(4), made(4)), F.group_norm(made(2, 4, 3), 2), F.instance_norm(made(2, 4, 3)),
    F.instance_norm(made(2, 4, 3), None, None, made(4), made(4)), F.rms_norm(made(2, 4), (4,), made(4)),
    F.rms_norm(made(2, 4), (4,)), F.adaptive_avg_pool1d(made(2, 3, 6), 2), F.adaptive_max_pool1d(made(2, 3, 6), 2),
    F.adaptive_avg_pool2d(made(2, 3, 6, 5), 2), F.adaptive_max_pool2d(made(2, 3, 6, 5), 2),
    F.adaptive_avg_pool2d(made(2, 3, 6, 4), 1), F.conv1d(made(3, 8), made(4, 3, 2), made(4)),
    F.conv2d(made(3, 8, 8), made(4, 3, 2, 2)), F.interpolate(made(1, 1, 3, 4), scale_factor=2, mode="bicubic"),
    F.interpolate(made(1, 1, 3, 4), size=(5, 3), mode="nearest-exact"), F.interpolate(made(1, 1, 4), size=6, mode="linear"),
    F.scaled_dot_product_attention(made(2, 5, 4), made(2, 5, 4), made(2, 5, 4), is_causal=True),
    F.scaled_dot_product_attention(made(3, 4), made(5, 4), made(5, 2)),
):  # fmt: skip
    print(walk(y.grad_fn), y.shape, y._is_view())
    print(y.detach().flatten()[:6])
# --- hooks, saved tensors and steps of a linear map by hand
x, W, b = torch.ones(2, 3, requires_grad=True), torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True), torch.ones(1, requires_grad=True)
y = F.linear(x, W, b)
print(y.grad_fn._saved_mat1 is x, y.grad_fn._saved_mat2)
y.grad_fn.register_hook(lambda passed, given: print([p.shape for p in passed], given))
y.grad_fn.register_hook(lambda passed, given: (passed[0], passed[1] * 2, passed[2] * 3))
y.sum().backward()
print(x.grad, W.grad, b.grad)
y = F.linear(x, W, b)
bias, rows, weight = y.grad_fn(torch.ones(2, 1))
print(rows, weight)
print(y.grad_fn.next_functions[2][0](weight))
# --- what a linear map has saved is changed in place
W = torch.ones(4, 3, requires_grad=True)
for frozen in (False, True):
    for shape in ((2, 3), (2, 5, 3)):
        V = W.detach().clone() if frozen else W * 1
        x = torch.ones(shape, requires_grad=True) * 1
        for changed in (V, x):
            y = F.linear(x, V, torch.ones(4))
            changed.add_(1)
            try:
                y.sum().backward()
                print("fine")
            except RuntimeError as error:
                print(error)
s, t = torch.zeros(2, 3, requires_grad=True), torch.tensor([0, 1])
scores = s * 1
loss = F.cross_entropy(scores, t)
scores.add_(1)
loss.backward()
print(s.grad)
loss = F.cross_entropy(s * 1, t)
t[0] = 2
told(lambda: loss.backward())
# --- anomalies within a call
with torch.autograd.detect_anomaly():
    x, W = torch.ones(2, 3, requires_grad=True), torch.full((1, 3), float("nan"), requires_grad=True)
    for loss in (F.linear(x * 1, W * 1, torch.ones(1)).sum(), F.cross_entropy(x * float("nan"), torch.tensor([0, 1]))):
        told(lambda: loss.backward())
# --- functions of cells
def walk(step):
    if step is None or type(step).__name__ == "AccumulateGrad":
        return type(step).__name__
    return f"{type(step).__name__}({', '.join(walk(edge) for edge, _ in step.next_functions)})"
torch.manual_seed(0)
x, state = torch.randn(1, 2, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
    cell = kind(2, 3, dtype=torch.float64)
    results = cell(x, (state, state * 2) if kind is nn.LSTMCell else state)
    for y in results if isinstance(results, tuple) else (results,):
        print(kind.__name__, y, walk(y.grad_fn))
