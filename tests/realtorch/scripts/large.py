import torch
from torch import nn

torch.manual_seed(8)
model = nn.Sequential(nn.Linear(1000, 2000), nn.GELU(), nn.Linear(2000, 500))
x = torch.randn(4, 1000)
loss = model(x).square().mean()
loss.backward()
print(sum(p.numel() for p in model.parameters()), loss, model[0].weight.grad.norm())
