# --- an input that is changed in place and saved
class Exp_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x
    @staticmethod
    def backward(ctx, g): return g * ctx.saved_tensors[0]
a = torch.tensor([0.0, 1.0], requires_grad=True)
b = a * 1
c = Exp_.apply(b)
print(c is b, b.grad_fn.name(), b._version, c.grad_fn.saved_tensors[0].grad_fn.name(), c.grad_fn.saved_tensors[0] is c)
b.sum().backward()
print(a.grad)
b = a * 1
b.retain_grad()
Exp_.apply(b).sum().backward()
print(b.grad, a.grad)
b = a * 1
Exp_.apply(b).mul_(2)
told(lambda: b.sum().backward())
b = a * 1
v = b[:1]
print(Exp_.apply(v) is v, v.grad_fn, b.grad_fn)
a.grad = None
b.sum().backward()
print(a.grad)
(g,) = torch.autograd.grad(Exp_.apply(a * 1).sum(), a, create_graph=True)
print(g, torch.autograd.grad(g.sum(), a))
with torch.no_grad():
    print(Exp_.apply(a), a)
Exp_.apply(a)
# --- one of two outputs is an input that is changed in place
class Times_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        x.mul_(y)
        ctx.save_for_backward(y, x)
        return x, x.clone()
    @staticmethod
    def backward(ctx, g, h):
        y, out = ctx.saved_tensors
        return (g + h) * y, (g + h) * out / y
a, w = torch.tensor([3.0, 1.0], requires_grad=True), torch.tensor([2.0, 5.0], requires_grad=True)
b = a * 1
c, d = Times_.apply(b, w)
print(c is b, b.grad_fn, d.grad_fn, c.output_nr, d.output_nr)
(b * 2 + d).sum().backward()
print(a.grad, w.grad)
# --- an activation in place, and setup_context
class Rectify(torch.autograd.Function):
    @staticmethod
    def forward(x): return x.clamp_(min=0)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.save_for_backward(output)
    @staticmethod
    def backward(ctx, g): return g * (ctx.saved_tensors[0] > 0)
x = torch.tensor([[0.2, 0.3], [1.0, -2.0]], requires_grad=True)
h = x * 2
print(Rectify.apply(h) is h, h)
(h**2).sum().backward()
print(x.grad)
# --- a changed input that is not returned
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2).clone()
    @staticmethod
    def backward(ctx, g): return 2 * g
Double.apply(torch.ones(1, requires_grad=True) * 1)
# --- an input that is saved and returned as it is
class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        print(x.requires_grad, x.is_leaf, x.grad_fn)
        return g * x
a = torch.tensor([3.0, 1.0], requires_grad=True)
y = Same.apply(a)
print(y is a, y, y._is_view(), y._base is a)
y.sum().backward()
print(a.grad)
b = a * 1
y = Same.apply(b)
print(y.grad_fn, b.grad_fn, y._base is b)
(g,) = torch.autograd.grad(y.sum(), a, create_graph=True)
print(g, torch.autograd.grad(g.sum(), a))
Same.apply(a).mul_(2)
