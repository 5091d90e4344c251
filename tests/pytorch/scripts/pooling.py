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
told(lambda: unpool(y, i, output_size=(9, 9)), lambda: unpool(y, i.float()), lambda: unpool(y, i[..., :1]), lambda: unpool(y, i + 10))
# --- windows over three axes
torch.manual_seed(0)
v = torch.randn(1, 2, 4, 4, 4, requires_grad=True)
print(nn.MaxPool3d(2), nn.AvgPool3d(2), nn.Conv3d(1, 2, 3), nn.Conv3d(1, 2, 3, padding=1))
largest, means = F.max_pool3d(v, 2), F.avg_pool3d(v, 2, 1, 1)
print(largest, means.grad_fn.name(), means.shape, F.max_pool3d(v, 2, return_indices=True)[1])
print(F.max_pool3d(v[0], 2).grad_fn.name(), F.conv3d(v, torch.ones(1, 2, 2, 2, 2), torch.ones(1), 2))
(largest.sum() * means.sum()).backward()
print(v.grad[0, 0, 0])
for f in (F.max_pool3d, F.avg_pool3d):
    told(
        lambda: f(torch.ones(2, 2, 2), 2), lambda: f(v, (2, 2)), lambda: f(v, 2, padding=2), lambda: f(v, 5), lambda: f(v, 0),
        lambda: f(v, 2, 0), lambda: f(v.long(), 2).dtype, lambda: f(v.bool(), 2), lambda: f(v, -1),
    )
# --- blocks of pictures as columns
x = torch.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
print(nn.Unfold(3, padding=1), nn.Fold((4, 5), (2, 2), stride=2), F.unfold(x, 2, stride=2), F.unfold(x, (2, 3), padding=1, dilation=1, stride=2))
picture = F.fold(F.unfold(x, 3), (4, 4), 3)
print(picture, F.unfold(x[0], 2).shape, F.fold(F.unfold(x[0], 2), (4, 4), 2).grad_fn.name())
(picture**2).sum().backward()
print(x.grad, nn.Fold(3, 2)(nn.Unfold(2)(x[..., :3, :3])))
told(
    lambda: F.unfold(torch.ones(3, 3), 2), lambda: F.unfold(torch.ones(1, 1, 3, 3), 5), lambda: F.unfold(torch.ones(1, 1, 3, 3, 3), 2),
    lambda: F.fold(torch.ones(1, 3, 4), (3, 3), 2), lambda: F.fold(torch.ones(1, 4, 5), (3, 3), 2),
    lambda: F.fold(torch.ones(4), (3, 3), 2), lambda: F.unfold(torch.ones(1, 1, 3, 3).long(), 2),
    lambda: F.unfold(torch.ones(1, 1, 3, 3), 2, padding=-1), lambda: F.unfold(torch.ones(1, 1, 3, 3), 0),
    lambda: F.unfold(torch.ones(1, 1, 3, 3), (1, 2, 3)), lambda: F.unfold(torch.ones(1, 1, 3, 3), 2, stride=0),
    lambda: F.unfold(torch.ones(1, 1, 3, 3), 2, dilation=0),
)
# --- pictures at the points of a grid
maps = torch.tensor([[[1.0, 0.2, 0.1], [0.0, 0.8, -0.1]], [[0.5, 0.0, 0.0], [0.3, 0.5, 0.0]]], requires_grad=True)
x = torch.arange(32.0).reshape(2, 1, 4, 4).requires_grad_()
grid = F.affine_grid(maps, (2, 1, 3, 3))
print(grid, F.affine_grid(maps, torch.Size((2, 1, 3, 3)), align_corners=True), F.affine_grid(maps, (2, 1, 1, 2), align_corners=False).detach())
for mode in ("bilinear", "nearest"):
    for padding in ("zeros", "border"):
        for corners in (True, False):
            print(mode, padding, corners, F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners))
for mode in ("nearest", "bilinear", "bicubic"):
    for padding in ("border", "reflection", "zeros")[: 3 if mode == "bicubic" else 2]:
        for corners in (True, False):
            picture = x.detach().double().sqrt().requires_grad_()
            points = torch.tensor([-1.7, -1.0, -0.3, 0.4, 1.0, 2.9], dtype=torch.float64).reshape(1, 1, 3, 2).repeat(2, 1, 1, 1).requires_grad_()
            y = F.grid_sample(picture, points, mode=mode, padding_mode=padding, align_corners=corners)
            of_picture, of_points = torch.autograd.grad(y.pow(2).sum(), (picture, points))
            print(y, of_picture.sum(), of_picture[0], (of_points * 1e6).round() / 1e6 + 0)
(F.grid_sample(x, grid) ** 2).sum().backward()
print(x.grad, maps.grad)
told(
    lambda: F.grid_sample(x, grid[0]), lambda: F.grid_sample(x, grid[:1]), lambda: F.grid_sample(x, grid, mode="x"),
    lambda: F.grid_sample(x, grid, padding_mode="x"), lambda: F.affine_grid(maps, (2, 1, 3)), lambda: F.affine_grid(maps[0], (2, 1, 3, 3)),
    lambda: F.affine_grid(maps, (2, 1, 0, 3)), lambda: F.affine_grid(maps, (1, 1, 3, 3)),
)
# --- maxima of windows of unequal sizes
torch.manual_seed(0)
x = torch.randn(2, 3, 7, 5, requires_grad=True)
for size in ((3, 2), 4, (None, 3), (7, 5)):
    r, indices = F.adaptive_max_pool2d(x, size, return_indices=True)
    g, = torch.autograd.grad((r * torch.arange(r.numel()).view(r.shape)).sum(), x)
    print(r.shape, r.flatten()[:4], indices.flatten()[:9], g.sum(), g.flatten()[:9], type(r.grad_fn).__name__)
z = torch.randn(2, 7, requires_grad=True)
print(*F.adaptive_max_pool1d(z, 3, return_indices=True), nn.AdaptiveMaxPool1d(4)(z))
print(F.adaptive_max_pool1d(torch.tensor([[1., float("nan"), 3., float("nan"), 2.]]), 2))
