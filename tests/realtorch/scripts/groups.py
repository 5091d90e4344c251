import torch
from torch import nn

torch.manual_seed(7)
body, head = nn.Linear(3, 3), nn.Linear(3, 1)
optimizer = torch.optim.AdamW([{"params": body.parameters(), "lr": 1e-3}, {"params": head.parameters()}], lr=1e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, [1e-3, 1e-2], total_steps=5)
x = torch.randn(6, 3)
for step in range(4):
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    loss = head(torch.relu(body(x))).square().mean()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(body.parameters(), 0.1)
    optimizer.step()
    scheduler.step()
    print(step, loss, norm, scheduler.get_last_lr())
