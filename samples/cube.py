# Why is the gradient of y and z None?  They are computed: they are not leaves.
import torch as T
import torch.autograd

T.manual_seed(1)
x = T.randn(1, 1, requires_grad=True)  # x is a leaf created by user, thus grad_fn is none
print("x", x)
y = 2 * x
print("y", y)
z = y**3
print("z", z)
z.backward()
print("z gradient:", z.grad)
print("y gradient:", y.grad)
print("x gradient:", x.grad, "Requires gradient?", x.grad.requires_grad)
