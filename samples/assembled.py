# An output whose elements are assigned one by one.
import torch
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
print("x:", x)
y = torch.empty(3)
y[0] = 3 * x[0] ** 2
y[1] = x[0] ** 2 + 2 * x[1] ** 3
y[2] = 10 * x[1]
print("y:", y)
gradient_value = [1.0, 10.0, 100.0]
y.backward(tensor(gradient_value))
print("x.grad:", x.grad)
