import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(3)
block = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
x = torch.randn(2, 4, requires_grad=True)
for reentrant in (False, True):
    block.zero_grad()
    checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    print(reentrant, block[0].weight.grad.norm(), x.grad.norm())
