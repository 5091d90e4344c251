# --- polynomial
import math
x = torch.linspace(-math.pi, math.pi, 20)
y = torch.sin(x)
torch.manual_seed(0)
a, b = torch.randn((), requires_grad=True), torch.randn((), requires_grad=True)
for t in range(5):
    loss = (a + b * x - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        a -= 1e-3 * a.grad
        b -= 1e-3 * b.grad
        a.grad = None
        b.grad = None
print(f"y = {a.item():.4f} + {b.item():.4f} x")
# --- exit
print("before")
exit()
print("after")
# --- try
x = torch.tensor([1., 2.], requires_grad=True)
try: x.backward()
except RuntimeError as e: print("caught:", e)
try: torch.ones(2) @ torch.ones(3)
except RuntimeError as e: print("caught:", e)
# --- size average
print(nn.MSELoss(size_average=False)(torch.ones(2), torch.zeros(2)))
# --- maximum of a batch
torch.manual_seed(0)
q = torch.randn(3, 4, requires_grad=True)
best = q.max(1)[0].mean()
best.backward()
print(q.grad)
