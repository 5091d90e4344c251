# A recurrent network that carries its state, and with it the graph, from one step of training into the next.
import torch

torch.manual_seed(0)
cell = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 2)
for t in range(3):
    h = torch.tanh(cell(h) + t)
    loss = (h ** 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
