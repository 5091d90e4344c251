import torch

i = torch.tensor([[0, 1, 1], [2, 0, 2]])
a = torch.sparse_coo_tensor(i, torch.tensor([3.0, 4.0, 5.0]), (2, 3))
x = torch.ones(3, 2, requires_grad=True)
y = torch.sparse.mm(a, x)
y.sum().backward()
print(y, x.grad)
