import torch

x = torch.tensor([0.0, 1.0], requires_grad=True)
y = torch.where(x > 0, torch.sqrt(x), x).sum()
y.backward()
z = torch.sqrt(x).sum() * 0
z.backward()
