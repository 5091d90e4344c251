import torch
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1))
x, t = torch.randn(8, 6), torch.randn(8, 1)
with torch.autocast("cpu", dtype=torch.bfloat16):
    out = model(x)
    loss = nn.functional.mse_loss(out.float(), t)
loss.backward()
print(out.dtype, loss.dtype, model[0].weight.grad.dtype)
