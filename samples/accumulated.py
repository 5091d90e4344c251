# Gradients add up from call to call, until they are cleared.
import torch
from torch import tensor

x = tensor(1.0, requires_grad=True)
y = x**2
for v in [1.0, 10.0, 100.0, 1000.0]:
    y.backward(tensor(v), retain_graph=True)
    print("x.grad:", x.grad)
