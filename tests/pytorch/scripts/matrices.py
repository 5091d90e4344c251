# --- orthogonal and triangular factors
torch.manual_seed(0)
for A in (torch.randn(3, 2), torch.randn(2, 2, 2), torch.randn(2, 3)):
    A = A.double().requires_grad_()
    Q, R = torch.linalg.qr(A)
    (Q.sin().sum() + R.pow(2).sum() + R.sum()).backward()
    print(torch.linalg.qr(A), A.grad)
A = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
print(torch.linalg.qr(A, mode="r"))
R = torch.linalg.qr(A).R
(g,) = torch.autograd.grad(R[0, 0] * R[1, 1] ** 2, A, create_graph=True)
print(g.detach(), torch.autograd.grad(g[0, 0] + g[1, 0] ** 2, A))
for wrong in (lambda: torch.linalg.qr(torch.ones(3)), lambda: torch.linalg.qr(A, "other"), lambda: torch.linalg.qr(torch.ones(2, 2).long())):
    try:
        print(wrong())
    except RuntimeError as error:
        print(error)
