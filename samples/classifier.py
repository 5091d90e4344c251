# Two layers and two classes: what does loss.backward() pass back through a network?
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
x = torch.tensor([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.0]])
labels = torch.tensor([0, 1, 1])

loss = nn.CrossEntropyLoss()(model(x), labels)
print(loss)
loss.backward()
print(model[2].weight.grad)
