# An operation whose backward the script says itself.
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        print("needs", ctx.needs_input_grad, "g", g)
        return 2 * x * g
x = torch.tensor([1., 2.], requires_grad=True)
y = Square.apply(x)
print(y, y.grad_fn.name())
y.sum().backward()
print(x.grad)
