# A branch that is not taken makes the gradient nan all the same.
import torch

x = torch.tensor([0., 1.], requires_grad=True)
torch.where(x > 0, x.sqrt(), torch.zeros(2)).sum().backward()
print(x.grad)
