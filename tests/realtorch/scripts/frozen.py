import torch
from torch import nn

torch.manual_seed(12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.spare = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 2)
        self.dead = nn.Parameter(torch.full((4,), -9.0))

    def forward(self, x):
        h = torch.relu(self.body(x))
        quiet = torch.relu(h.detach() * 0 + self.dead)
        return self.head(h + quiet)

net = Net()
net.body.bias.requires_grad_(False)
loss = net(torch.randn(5, 3)).logsumexp(1).mean()
loss.backward()
print({n: p.grad is None for n, p in net.named_parameters()})
