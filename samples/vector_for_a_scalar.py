# A gradient argument that is longer than its scalar: an error in PyTorch today.
import torch
from torch import tensor

x = tensor(1.0, requires_grad=True)
y = x**2
y.backward(tensor([1.0, 10.0, 100.0, 1000.0]))
print("x.grad:", x.grad)
