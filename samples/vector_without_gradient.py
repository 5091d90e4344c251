# A backward of a vector without a gradient argument.
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
(x * 2).backward()
