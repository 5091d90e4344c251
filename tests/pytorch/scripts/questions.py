# --- why is grad None
x = torch.ones(2, requires_grad=True)
y = x * 2
y.sum().backward()
print(x.grad)
z = torch.ones(2)
print(z.grad)
# --- loop with a list of losses
w = torch.tensor(1., requires_grad=True)
losses = []
for i in range(3):
    losses.append((w * i - 1) ** 2)
total = sum(losses)
total.backward()
print(total, w.grad, [l.item() for l in losses])
# --- gradient through indexing
x = torch.arange(6.).view(2, 3).requires_grad_()
y = x[0] * x[1]
y[1].backward()
print(x.grad)
x = torch.tensor([1., 2., 3.], requires_grad=True)
x[torch.tensor([0, 0, 2])].sum().backward()
print(x.grad)
# --- gradient through gather
s = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
s.gather(1, torch.tensor([[1], [0]])).sum().backward()
print(s.grad)
# --- gradient through cat and split
a = torch.ones(2, requires_grad=True)
b = torch.ones(3, requires_grad=True)
c = torch.cat([a * 2, b * 3])
p, q = c.split([1, 4])
(p.sum() + 10 * q.sum()).backward()
print(a.grad, b.grad)
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
# --- main guard and arguments
import sys
def main():
    print(len(sys.argv) > 0, __name__)
if __name__ == "__main__":
    main()
# --- exit
print("before")
exit()
print("after")
# --- try
x = torch.tensor([1., 2.], requires_grad=True)
try:
    x.backward()
except RuntimeError as e:
    print("caught:", e)
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError as e:
    print("caught:", e)
# --- weights not updated
w = torch.ones(1, requires_grad=True)
v = w * 1
opt = torch.optim.SGD([w], lr=0.1)
loss = (v * 3).sum()
loss.backward()
opt.step()
print(w, v)
# --- comparison of numpy and autograd
import numpy as np
x = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
W = torch.tensor([[0.5], [-0.5]], requires_grad=True)
y = torch.sigmoid(x @ W)
y.backward(torch.ones(2, 1))
s = y.detach().numpy()
print(np.allclose(W.grad.numpy(), x.detach().numpy().T @ (s * (1 - s))), x.grad)
# --- old style
from torch.autograd import Variable
x = Variable(torch.Tensor([1, 2]), requires_grad=True)
y = x.pow(2).sum()
y.backward()
print(x.grad.data, x.data, y.data)
print(x.grad.data.numpy())
# --- size average
print(nn.MSELoss(size_average=False)(torch.ones(2), torch.zeros(2)))
# --- item in the loss
x = torch.tensor(2., requires_grad=True)
y = x.item() * x
y.backward()
print(x.grad)
# --- a tensor made of tensors
x = torch.tensor(2., requires_grad=True)
y = torch.stack([x, x ** 2])
y.sum().backward()
print(x.grad)
# --- maximum of a batch
torch.manual_seed(0)
q = torch.randn(3, 4, requires_grad=True)
best = q.max(1)[0].mean()
best.backward()
print(q.grad)
# --- reinforce
torch.manual_seed(0)
logits = torch.zeros(3, requires_grad=True)
probs = torch.softmax(logits, 0)
loss = -torch.log(probs[1]) * 2.0
loss.backward()
print(logits.grad, loss)
# --- elbo
mu, logvar = torch.tensor([0.5], requires_grad=True), torch.tensor([0.1], requires_grad=True)
torch.manual_seed(0)
eps = torch.randn(1)
z = mu + torch.exp(0.5 * logvar) * eps
kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
loss = (z ** 2).sum() + kl
loss.backward()
print(loss, mu.grad, logvar.grad)
