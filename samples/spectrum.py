# A loss of a spectrum: torch.fft needs your own PyTorch, gradcli run --torch.
import torch

t = torch.arange(4) / 4
a = torch.tensor(2., requires_grad=True)
x = a * torch.sin(2 * torch.pi * t)
power = torch.fft.rfft(x).abs() ** 2
loss = power[1]
loss.backward()
print(loss, a.grad)
