# One input, one output, and a gradient argument of 100.
import torch
from torch import tensor

x = tensor(1.0, requires_grad=True)
y = x**2
gradient_value = 100.0
y.backward(tensor(gradient_value))
print("x.grad:", x.grad)
