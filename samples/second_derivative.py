# Derivatives of derivatives, by create_graph=True.
import torch

x = torch.tensor(2., requires_grad=True)
y = x ** 4
g, = torch.autograd.grad(y, x, create_graph=True)
print(g)
h, = torch.autograd.grad(g, x, create_graph=True)
print(h)
k, = torch.autograd.grad(h, x)
print(k)
