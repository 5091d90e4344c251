# --- a function called again in the backward
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(3, 1))
x = torch.randn(4, 2, requires_grad=True)
for how in (True, False):
    net.zero_grad()
    x.grad = None
    y = checkpoint(net, x, use_reentrant=how)
    print(y, y.grad_fn.name(), torch.rand(1))
    y.sum().backward()
    print(x.grad, net[0].weight.grad, torch.rand(1))
    print(checkpoint_sequential(net, 2, x, use_reentrant=how))
# --- what is printed when a function is called again
from torch.utils.checkpoint import checkpoint
def run(a, b, scale=2.0):
    print("begun")
    c = (a * b * scale).exp()
    print("computed")
    return c, a + b
a, b = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0)
for how, settings in ((False, {"scale": 0.5}), (True, {})):
    a.grad = None
    u, v = checkpoint(run, a, b, use_reentrant=how, **settings)
    print(u, v)
    (u + v).backward()
    print(a.grad)
y = checkpoint(torch.sin, a, use_reentrant=False)
print(torch.autograd.grad(y, a, retain_graph=True), checkpoint(torch.sin, a), checkpoint(torch.sin, b, use_reentrant=True))
y.backward()
for wrong in (
    y.backward, lambda: checkpoint(run, a, b, use_reentrant=True, scale=3.0), lambda: torch.autograd.grad(checkpoint(torch.sin, a, use_reentrant=True), a),
):
    try: print(wrong())
    except Exception as error: print(type(error).__name__, str(error).partition("(")[0])
with torch.no_grad():
    print(checkpoint(torch.sin, a, use_reentrant=False))
