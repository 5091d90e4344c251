import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(1)
lstm, head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)
x = torch.randn(3, 6, 3)
packed = pack_padded_sequence(x, torch.tensor([6, 4, 2]), batch_first=True)
out, (h, c) = lstm(packed)
padded, lengths = pad_packed_sequence(out, batch_first=True)
loss = head(h[-1]).mean() + padded.pow(2).mean()
loss.backward()
print(loss, lengths, lstm.weight_ih_l0.grad.norm())
