# A backward after the optimizer's step, through the graph of before.
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(3, 2)
loss1 = net(x).sum()
loss2 = (net(x) ** 2).sum()
loss1 = (net[1](net[0](x))).sum()
loss1.backward(retain_graph=True)
opt.step()
loss1.backward()
