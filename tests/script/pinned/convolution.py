import torch
import torch.nn as nn

torch.manual_seed(0)
img = torch.rand(1, 1, 8, 8, requires_grad=True)
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
scores = net(img)
scores[0, 1].backward()
