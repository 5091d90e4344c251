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
told(lambda: torch.linalg.qr(torch.ones(3)), lambda: torch.linalg.qr(A, "other"), lambda: torch.linalg.qr(torch.ones(2, 2).long()))
# --- eigenvalues and eigenvectors
A = torch.tensor([[2.0, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 1]], dtype=torch.float64, requires_grad=True)
L, V = torch.linalg.eigh(A)
print(L, V.abs(), torch.linalg.eigh(A[:1, :1]))
((V**2 * torch.arange(9.0).reshape(3, 3) ** 2).sum() + (L**2).sum()).backward()
print(A.grad)
v = torch.linalg.eigh(A).eigenvectors[:, -1]
print(torch.autograd.grad(torch.outer(v, v)[0, 2], A), torch.linalg.eigvalsh(torch.stack([A, A @ A])))
C = torch.tensor([[2.0, 9.0], [1.0, 3.0]], requires_grad=True)
torch.linalg.eigvalsh(C)[0].backward()
print(C.grad, torch.linalg.eigvalsh(C, "U"))
(g,) = torch.autograd.grad(torch.linalg.eigvalsh(A)[1], A, create_graph=True)
print(g.detach(), torch.autograd.grad((g**2)[0, 0], A))
equal = torch.eye(2, requires_grad=True)
torch.linalg.eigh(equal).eigenvectors.sum().backward()
print(equal.grad, torch.linalg.cond(A), torch.linalg.cond(A, 1))
for wrong in (torch.ones(2, 3), torch.ones(2), torch.ones(2, 2).long()):
    told(lambda: torch.linalg.eigh(wrong))
told(lambda: torch.linalg.eigh(A, UPLO="Q"))
# --- singular values and singular vectors
for B in ([[1, 2, 0.5], [3, -1, 2], [1, 0, 2], [4, 1, 1]], [[1, 2, 0.5, 1], [3, -1, 2, 0]], [[1, 2], [3, 5]]):
    for full in (False, True):
        B = torch.tensor(B, dtype=torch.float64, requires_grad=True) if isinstance(B, list) else B.detach().requires_grad_()
        U, S, Vh = torch.linalg.svd(B, full_matrices=full)
        k = len(S)
        print(U.shape, S, Vh.shape, torch.allclose(U[:, :k] * S @ Vh[:k], B))
        ((U[:, :k] ** 2)[0].dot(S) + S.prod() + ((U[:, :k] @ Vh[:k]) ** 3).sum() + (Vh[:k] ** 2)[:, 1].dot(S**2)).backward()
        print(B.grad)
    for order in (2, -2, "nuc"):
        print(torch.linalg.matrix_norm(B, order), torch.linalg.norm(B, order, keepdim=True))
    print(torch.linalg.matrix_rank(B), torch.linalg.cond(B))
print(torch.linalg.matrix_rank(torch.ones(2, 3, 3)), torch.linalg.svdvals(torch.ones(2, 3, 2)).shape)
U, S, V = torch.svd(torch.tensor([[2.0, 0.0, 0.0], [0.0, -1.0, 0.0]]))
print(S, (U * S) @ V.T)
for wrong in (torch.ones(2), torch.ones(2, 2).long(), torch.tensor([[float("nan"), 1.0], [1.0, 1.0]])):
    told(lambda: torch.linalg.svd(wrong))
told(lambda: torch.linalg.matrix_rank(torch.ones(2)))
try: from torch.linalg import eye
except ImportError as error: print(str(error).partition(" (")[0])
# --- factors of positive-definite matrices
A = torch.tensor([[4.0, 2.0], [2.0, 3.0]], requires_grad=True)
L = torch.linalg.cholesky(A)
print(L, torch.linalg.cholesky(A, upper=True), torch.cholesky_solve(torch.ones(2, 1), L))
L.sum().backward()
print(A.grad)
stack = torch.stack([torch.eye(2) * 4, A.detach()]).requires_grad_()
factors = torch.linalg.cholesky(stack)
factors.pow(3).sum().backward()
print(factors, stack.grad)
print(torch.autograd.functional.hessian(lambda a: torch.linalg.cholesky(a).sum(), A.detach()))
told(
    lambda: torch.linalg.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]])), lambda: torch.linalg.cholesky(torch.ones(2, 3)),
    lambda: torch.linalg.cholesky(torch.ones(2)), lambda: torch.linalg.cholesky(torch.ones(2, 2).long()),
    lambda: torch.linalg.cholesky(torch.stack([torch.eye(2), -torch.eye(2)])),
)
# --- pseudoinverses
torch.manual_seed(0)
B = torch.randn(3, 2, requires_grad=True)
P = torch.linalg.pinv(B)
print(P, torch.pinverse(B), B.pinverse(), torch.linalg.pinv(B.mT), torch.linalg.pinv(torch.tensor([[1.0, 2.0], [2.0, 4.0]])))
(G,) = torch.autograd.grad(P.pow(2).sum(), B, create_graph=True)
print(G.detach(), torch.autograd.grad(G.sum(), B)[0])
for wrong in (torch.ones(2), torch.ones(2, 2).long()):
    told(lambda: torch.linalg.pinv(wrong))
# --- pseudoinverses without full rank
torch.manual_seed(0)
for shape, rank in (((3, 3), 0), ((3, 3), 1), ((4, 3), 2), ((2, 3, 5), 2)):
    left, right = torch.randn(*shape[:-1], rank, dtype=torch.float64), torch.randn(*shape[:-2], rank, shape[-1], dtype=torch.float64)
    A = (left @ right).requires_grad_()
    P = torch.linalg.pinv(A)
    print(P, torch.autograd.grad(P, A, torch.randn_like(P))[0])
A = torch.stack([torch.eye(2), torch.ones(2, 2)]).requires_grad_()  # of different ranks
P = torch.pinverse(A)
P.pow(2).sum().backward()
print(P, A.grad)
# --- the inverse of erf
x = torch.tensor([-1.0, -0.5, 0.0, 0.9, 0.99999, 1.0, 2.0], requires_grad=True)
y = torch.erfinv(x)
print(y, torch.special.erfinv(torch.tensor([0, 1])), torch.tensor(0.5).erfinv(), torch.tensor(1 - 1e-12, dtype=torch.float64).erfinv())
x = torch.tensor([-0.5, 0.0, 0.9], requires_grad=True)
(slope,) = torch.autograd.grad(x.erfinv().sum(), x, create_graph=True)
(second,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
print(slope.detach(), second.detach(), torch.autograd.grad(second.sum(), x)[0])
# --- statistics, integrals and rotations
torch.manual_seed(0)
x, m = torch.randn(3, 4, requires_grad=True), torch.randn(3, 3, requires_grad=True)
print(torch.trapz(x), torch.trapezoid(x, dx=0.5, dim=0), torch.trapz(x, torch.tensor([0.0, 1.0, 3.0, 4.0])))
print(torch.cov(x), torch.corrcoef(x), x.cov(correction=0))
print(torch.argwhere(x > 0), torch.var_mean(x), torch.std_mean(x, 1), torch.var_mean(x, dim=0, keepdim=True, correction=0))
print(torch.rot90(x), torch.rot90(x, 2), torch.rot90(x, -1), torch.rot90(x, 1, [1, 0]), torch.rot90(x, 4))
print(torch.slogdet(m), torch.linalg.slogdet(m))
print(torch.take_along_dim(x, torch.tensor([[0], [1], [3]]), 1), torch.take_along_dim(x, torch.tensor([1, 2])))
(torch.trapz(x).sum() + torch.cov(x).sum() + torch.var_mean(x)[0] + torch.slogdet(m)[1]).backward()
print(x.grad, m.grad)
print(nn.PairwiseDistance(), nn.PairwiseDistance(keepdim=True)(x, x + 1))
# --- exponentials of matrices, triangular systems and products of several
A = torch.tensor([[4., 1., 0.], [2., 3., 1.], [0.5, -1., 2.]], requires_grad=True)
B = torch.tensor([[1., 2.], [0., -1.], [3., 1.]], requires_grad=True)
for y in (torch.linalg.multi_dot([A, A, B]), torch.linalg.matrix_exp(A / 4), torch.matrix_exp(A.double()), (A * 0).matrix_exp(), torch.linalg.multi_dot([A[0], A, B]), torch.linalg.solve_triangular(A, B, upper=True), torch.linalg.solve_triangular(A, B, upper=False), torch.linalg.solve_triangular(A, B, upper=True, unitriangular=True), torch.linalg.solve_triangular(A, B.mT, upper=False, left=False)):
    print(y.detach()); print(*torch.autograd.grad(y.sum(), (A, B), allow_unused=True))
print(torch.linalg.matrix_exp(torch.stack([A, -A])).grad_fn.name(), torch.linalg.solve_triangular(A, B, upper=True).grad_fn.name())
# --- a column times a row keeps the signs of zeros
x = torch.tensor([[0., 2.]])
layer = nn.Linear(2, 3)
layer(x).backward(torch.tensor([[-1., 0., 1.]]))
print(layer.weight.grad)
v = torch.tensor([0., 2.])
layer(v).backward(torch.tensor([-1., 0., 1.]))
print(layer.weight.grad)
print(torch.tensor([[-1.], [1.]]) @ x, torch.tensor([[-1.]]) @ x, torch.tensor([[-1.], [1.]]) @ torch.tensor([[0.]]))
print(torch.signbit(torch.tensor([0., -0., -1., 2.])), torch.tensor([-1, 2]).signbit())
