import torch
from torch import nn

torch.manual_seed(2)
layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, 3)
x = torch.randn(2, 5, 8)
y = model(x)
loss = (y - x).square().mean()
loss.backward()
print(loss.item() > 0, sorted(n for n, p in model.named_parameters() if p.grad is None))
