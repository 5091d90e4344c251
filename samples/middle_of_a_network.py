# The gradient in the middle of a network, by a hook.
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
grads = {}
def save(name):
    def hook(g):
        grads[name] = g
    return hook
x = torch.ones(1, 2)
h = net[0](x)
h.register_hook(save("h"))
y = net[2](net[1](h))
y.backward()
print(grads)
