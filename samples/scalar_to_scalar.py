# One input, one output: the gradient argument is 1 where nothing is given.
import torch
from numpy import array
from torch import tensor

x = tensor(1.0, requires_grad=True)
print("x:", x)
y = x**2
print("y:", y)
y.backward()  # this is the same as y.backward(tensor(1.))
print("x.grad:", x.grad)
x = x.detach().numpy()
J = array([[2 * x]])
print("J:", J)
vᵀ = array(
    [
        [
            1,
        ]
    ]
)
print("vᵀ:", vᵀ)
print("vᵀ・J:", vᵀ @ J)
