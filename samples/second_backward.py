# A second backward through a graph that was freed.
import torch as T

T.manual_seed(3)
x = T.randn(2, 2, requires_grad=True)
y = 2 * x
z = y**3
out = z.mean()
print("out", out)
out.backward()
print("x gradient", x.grad)
x.grad.data.zero_()
out.backward()
print("x gradient", x.grad)
