# Gradients of a vector add up, too.
import torch
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
y = sum(x)
for v in [1.0, 10.0, 100.0, 1000.0]:
    y.backward(tensor(v), retain_graph=True)
    print("x.grad:", x.grad)
