import torch
from torch import nn

torch.manual_seed(9)
model = nn.Linear(4, 1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    loss = model(torch.randn(3, 4)).square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(loss, scaler.get_scale())
