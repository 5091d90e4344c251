import torch
from torch import nn

torch.manual_seed(10)
net = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2),
    nn.Conv2d(4, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.LeakyReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Dropout(0.3), nn.Linear(8, 3),
)
x, t = torch.randn(4, 1, 8, 8), torch.tensor([0, 2, 1, 1])
loss = nn.CrossEntropyLoss(label_smoothing=0.1)(net(x), t)
loss.backward()
print(loss, net[0].weight.grad.norm(), net[1].running_mean)
