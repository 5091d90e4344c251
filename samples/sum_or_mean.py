# backward of a sum, of a mean, and of a vector with ones.
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)
(x ** 2).sum().backward(); print(x.grad); x.grad = None
(x ** 2).mean().backward(); print(x.grad); x.grad = None
(x ** 2).backward(torch.ones(3)); print(x.grad)
