import torch


class Block(torch.nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.w = torch.nn.Parameter(torch.full((2,), 0.5))

    def forward(self, x):
        h = torch.tanh(self.w * x)
        return x + h.sum() * self.k if self.k.bit_count() % 2 else h.exp()


blocks = torch.nn.ModuleList([Block(k) for k in range(60)])
x = torch.tensor([0.25, 0.5])
for block in blocks:
    x = block(x) / (1 + x.abs().sum())
loss = x.sum()
loss.backward()
