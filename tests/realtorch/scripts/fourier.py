import torch

x = torch.linspace(0, 1, 8, requires_grad=True)
spectrum = torch.fft.rfft(x)
power = spectrum.abs().pow(2)
power[1:].sum().backward()
print(power.detach(), x.grad)
