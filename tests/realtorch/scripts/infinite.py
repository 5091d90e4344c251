import torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
loss = torch.sqrt(x).sum() * 2
loss.backward()
print(x.grad)
w = torch.tensor([1.0, 0.0], requires_grad=True)
(w.log() * w).sum().backward()
print(w.grad)
