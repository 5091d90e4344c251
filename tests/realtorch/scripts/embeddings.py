import torch
from torch import nn

torch.manual_seed(11)
table, bag = nn.Embedding(10, 4, padding_idx=0), nn.EmbeddingBag(10, 4, mode="mean")
ids = torch.tensor([[1, 2, 0], [3, 1, 1]])
out = table(ids).sum(1) + bag(ids)
loss = torch.cosine_similarity(out[0], out[1], dim=0)
loss.backward()
print(loss, table.weight.grad.norm(), bag.weight.grad.norm())
