# Two losses that share a graph: retain_graph=True for all backwards but the last.
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Linear(2, 2)
x = torch.randn(3, 2)
out = net(x)
l1, l2 = out[:, 0].sum(), (out[:, 1] ** 2).sum()
l1.backward(retain_graph=True)
g1 = net.weight.grad.clone()
l2.backward()
print(g1, net.weight.grad)
