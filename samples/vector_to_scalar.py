# A vector and its sum.
import torch
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
print("x:", x)
y = sum(x)
print("y:", y)
y.backward()
print("x.grad:", x.grad)
