import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
u = y.detach()
with torch.no_grad():
    c = 2 * x
f = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)
f.requires_grad_(False)
loss = (u * x * c * f).sum()
loss.backward(retain_graph=True)
loss.backward()
