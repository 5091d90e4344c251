import torch

z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
w = z * z.conj() + torch.exp(1j * z)
loss = w.abs().sum()
loss.backward()
print(z.grad, loss)
