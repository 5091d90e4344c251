# --- tangents that go along
import torch.autograd.forward_ad as fwAD
x, t = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 0.5])
with fwAD.dual_level():
    dual = fwAD.make_dual(x, t)
    print(dual, fwAD.unpack_dual(dual), fwAD.unpack_dual(x), dual.detach())
    y = (dual * dual).exp().sum() * 0.25
    print(fwAD.unpack_dual(y).tangent)
    primal, tangent = fwAD.unpack_dual(dual.exp())
    print(primal, tangent, fwAD.unpack_dual(torch.stack([dual, dual * x])).tangent, fwAD.unpack_dual(dual[1:].prod()))
    linear = nn.Linear(3, 2)
    nn.init.ones_(linear.weight), nn.init.zeros_(linear.bias)
    print(fwAD.unpack_dual(linear(dual)).tangent, fwAD.unpack_dual(F.softmax(dual, 0)).tangent, fwAD.unpack_dual(dual.norm()).tangent)
    leaf = x.clone().requires_grad_()
    tangent = fwAD.unpack_dual((fwAD.make_dual(leaf, t) ** 3).sum()).tangent
    print(tangent, torch.autograd.grad(tangent, leaf))
    told(lambda: fwAD.make_dual(x, t[:2]), lambda: fwAD.make_dual(x.long(), t), lambda: fwAD.make_dual(dual, t), fwAD.enter_dual_level)
print(dual, y)
told(lambda: fwAD.make_dual(x, t))
