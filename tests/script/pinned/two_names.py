import torch

w = torch.tensor(1.0, requires_grad=True)
loss = (w - 3) ** 2
loss.backward()
w = w - 0.1 * w.grad
loss = (w - 3) ** 2
loss.backward()
