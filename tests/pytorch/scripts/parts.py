# --- windows of a tensor
x = torch.arange(24.0).reshape(4, 6).requires_grad_()
for windows in (x.unfold(0, 2, 1), x.unfold(1, 3, 2), x.unfold(-1, 2, 2).unfold(0, 2, 2), x.unfold(dimension=0, size=3, step=2), torch.tensor(1.0).unfold(0, 1, 1)):
    print(windows, windows.stride(), windows._is_view(), windows.is_contiguous())
(x.unfold(1, 3, 2) * torch.arange(3.0)).pow(2).sum().backward()
print(x.grad)
z = torch.zeros(5)
windows = z.unfold(0, 2, 2)
z[0] = 7
windows[0, 1] = 3
windows.mul_(2)
print(z, windows)
y = x * 1
windows = y.unfold(0, 2, 1)
y[1] = 5.0
windows.sin().sum().backward()
print(windows, x.grad)
told(lambda: x.unfold(0, 5, 1), lambda: x.unfold(0, 2, 0), lambda: x.unfold(2, 2, 1), lambda: x.unfold(0, -1, 1))
# --- parts of unequal sizes
x = torch.arange(8.0).reshape(4, 2).requires_grad_()
for parts in (x.tensor_split(3), torch.tensor_split(x, (1, 3)), x.tensor_split([1, 9], 1), x.tensor_split(torch.tensor([3, 1])), x.tensor_split(5), torch.hsplit(x, 2), x.vsplit([1]), torch.dsplit(torch.ones(1, 2, 4), 2)):
    print(parts)
x.tensor_split(3)[1].pow(2).sum().backward()
print(x.grad, x.tensor_split(2)[1]._is_view())
told(
    lambda: x.tensor_split(0), lambda: torch.tensor(1.0).tensor_split(2), lambda: x.tensor_split(2, 5),
    lambda: x.tensor_split(torch.tensor([1.0])), lambda: x.vsplit(3), lambda: torch.vsplit(torch.ones(2), 2),
)
