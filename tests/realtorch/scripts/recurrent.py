import torch
from torch import nn

torch.manual_seed(14)
cell, gru = nn.RNNCell(2, 3), nn.GRU(3, 2, bidirectional=True)
h, states = torch.zeros(1, 3), []
for x in torch.randn(4, 1, 2):
    h = cell(x, h)
    states.append(h)
out, last = gru(torch.stack(states))
(out.sum() + last.square().sum()).backward()
print(cell.weight_hh.grad, gru.weight_hh_l0.grad.norm())
