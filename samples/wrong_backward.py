# A function whose backward forgets the derivative of the inner function: --check finds it.
import torch

class SinOf3x(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(3 * x)
    @staticmethod
    def backward(ctx, v):
        x, = ctx.saved_tensors
        return v * torch.cos(3 * x)
x = torch.tensor([0.5, 2.], requires_grad=True)
y = SinOf3x.apply(x)
y.sum().backward()
print(x.grad)
