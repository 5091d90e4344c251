# A penalty on the length of a gradient.
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
x = torch.randn(4, 2, requires_grad=True)
y = net(x).sum()
g, = torch.autograd.grad(y, x, create_graph=True)
penalty = ((g.norm(dim=1) - 1) ** 2).mean()
penalty.backward()
print(penalty)
for p in net.parameters():
    print(p.grad)
