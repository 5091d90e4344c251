# The gradient of an intermediate, kept.
import torch

x = torch.tensor(3., requires_grad=True)
y = x ** 2
y.retain_grad()
z = y * 2
z.backward()
print(x.grad, y.grad, y.retains_grad, x.retains_grad, z.retains_grad)
