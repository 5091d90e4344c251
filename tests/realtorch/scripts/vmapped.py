import torch

def f(w, x):
    return torch.tanh(x @ w).sum()

w = torch.tensor([0.5, -0.3], requires_grad=True)
xs = torch.arange(6.0).reshape(3, 2)
per_sample = torch.func.vmap(torch.func.grad(f), (None, 0))(w, xs)
print(per_sample.detach())
torch.func.vmap(f, (None, 0))(w, xs).sum().backward()
print(w.grad)
