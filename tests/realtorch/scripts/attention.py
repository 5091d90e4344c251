import torch
import torch.nn.functional as F

torch.manual_seed(0)
q, k, v = (torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3))
out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
out.pow(2).sum().backward()
print(q.grad.norm(), k.grad.norm(), v.grad.norm())
