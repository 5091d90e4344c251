import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

torch.manual_seed(5)
layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
other = parametrizations.weight_norm(nn.Linear(3, 2))
x = torch.randn(4, 3)
other(layer(x)).square().sum().backward()
for name, p in [*layer.named_parameters(), *other.named_parameters()]:
    print(name, p.grad.norm())
