import torch
import torch.nn as nn

torch.manual_seed(0)
words = torch.tensor([2, 5, 2])
emb = nn.Embedding(30, 3)
norm = nn.BatchNorm1d(3)
h = emb(words)
y = norm(h + torch.eye(3))
loss = (y * torch.tensor([[1.0, 0.0, 2.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0]])).sum()
loss.backward()
