import torch
from torch import nn

torch.manual_seed(13)
model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
seen = []
model[0].register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))
model[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
model[2].weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
x = torch.randn(4, 2, requires_grad=True)
y = model(x)
y.retain_grad()
y.sum().backward()
print(seen, model[0].weight.grad, model[2].weight.grad, y.grad.shape)
