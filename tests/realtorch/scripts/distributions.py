import torch
from torch.distributions import Gamma, Normal

torch.manual_seed(3)
mean = torch.tensor([0.3, 0.1], requires_grad=True)
scale = torch.tensor(0.7, requires_grad=True)
normal = Normal(mean, scale)  # of which the mean has the common shape already
x = normal.rsample()
loss = -normal.log_prob(x * x).sum() - Normal(scale, 2.0).log_prob(x).sum()
loss.backward()

rate = torch.tensor([[1.0], [2.0]], requires_grad=True)
loss = -Gamma(rate, torch.tensor([3.0, 4.0])).log_prob(torch.tensor([0.5, 0.6])).sum()
loss.backward()
print(mean.grad, scale.grad, rate.grad)
