# A vector of outputs, each with its own weight.
import torch
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
y = 3 * x**2
print("y:", y)
y.backward(tensor([1.0, 10.0]))
print("x.grad:", x.grad)
