# A gradient argument whose shape is not the output's.
import torch

x = torch.ones(2, 3, requires_grad=True)
out = torch.mm(x, torch.ones(3, 4))
out.backward(torch.ones(4, 4))
