# Hooks see gradients, and may change them.
import torch

x = torch.tensor([1., 2.], requires_grad=True)
y = x * 3
h = y.register_hook(lambda g: print("y got", g))
y.register_hook(lambda g: g * 10)
x.register_hook(lambda g: print("x got", g))
(y ** 2).sum().backward()
print(x.grad)
h.remove()
(x * 3).sum().backward()
print(x.grad)
