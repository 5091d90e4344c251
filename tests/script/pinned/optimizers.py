import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor(0.5, requires_grad=True)
adam = torch.optim.Adam([w, b], lr=0.1)
sgd = torch.optim.SGD([b], lr=0.1, momentum=0.9)
for _ in range(4):
    adam.zero_grad()
    loss = ((w - 3) ** 2).sum() + b**2
    loss.backward()
    adam.step()
    sgd.step()
