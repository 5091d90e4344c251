import torch

x = torch.ones(4, requires_grad=True)
y = x * 2
y[1:3] *= 3
y.add_(1).relu_()
y[0] = y[3].detach() ** 2 + y[1]
row = y.view(2, 2)[1]
row.mul_(0.5)
y.sum().backward()
print(y, x.grad)
