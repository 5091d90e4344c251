# --- where the largest numbers are
torch.manual_seed(0)
x = torch.randn(2, 2, 4, 4, requires_grad=True)
for largest, indices in (
    F.max_pool2d(x, 2, return_indices=True), F.max_pool2d(x, 3, 1, 1, return_indices=True), F.max_pool2d(x[0], 2, 1, dilation=2, return_indices=True),
    F.max_pool2d(x, 3, 2, ceil_mode=True, return_indices=True), F.max_pool1d(x[0], 3, 2, 1, return_indices=True), nn.MaxPool1d(2, return_indices=True)(x[0, 0]),
    F.adaptive_max_pool2d(x, 2, return_indices=True), nn.AdaptiveMaxPool1d(2, return_indices=True)(x[0, 0]),
    F.max_pool2d(torch.tensor([[[1.0, float("nan")], [2.0, float("nan")]]]), 2, return_indices=True), F.max_pool1d(torch.ones(1, 4), 2, return_indices=True),
):
    print(largest.detach(), largest.grad_fn and largest.grad_fn.name(), indices)
# --- numbers put back where they were
torch.manual_seed(0)
x = torch.randn(2, 1, 4, 4, requires_grad=True)
pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
y, i = pool(x)
print(pool, unpool, nn.MaxUnpool1d(2, 3, 1), unpool(y, i), unpool(y, i, output_size=(5, 5)).shape, F.max_unpool2d(y[0], i[0], 2, 2, 0, None))
print(nn.MaxUnpool1d(2)(*F.max_pool1d(x[0], 2, return_indices=True)))
(unpool(y, i) * torch.arange(32.0).reshape(2, 1, 4, 4)).sum().backward()
print(x.grad)
for wrong in (lambda: unpool(y, i, output_size=(9, 9)), lambda: unpool(y, i.float()), lambda: unpool(y, i[..., :1]), lambda: unpool(y, i + 10)):
    try:
        print(wrong())
    except Exception as error:
        print(type(error).__name__, error)
