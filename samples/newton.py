# Newton's method for the root of 2.
import torch

x = torch.tensor(1.5, requires_grad=True)
for i in range(5):
    y = x ** 2 - 2
    y.backward()
    with torch.no_grad():
        x -= y / x.grad
        x.grad.zero_()
print(x)
