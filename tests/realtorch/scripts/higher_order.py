import torch

x = torch.tensor([0.5, 1.5], requires_grad=True)
y = (x.sin() * x).sum()
(g,) = torch.autograd.grad(y, x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x, retain_graph=True)
print(g, h)
(g * g).sum().backward()
print(x.grad)
print(torch.autograd.functional.hessian(lambda t: (t**3).sum(), torch.tensor([1.0, 2.0])))
