# --- doubled
torch.manual_seed(0)
x = torch.randn(3, requires_grad=True)
y = x * 2
while y.data.norm() < 1000:
    y = y * 2
print(y)
gradients = torch.tensor([0.1, 1.0, 0.0001], dtype=torch.float)
y.backward(gradients)
print(x.grad)
# --- rows of J
from torch.autograd import Variable

x = Variable(torch.FloatTensor([[2, 1]]), requires_grad=True)
print(x)
print("\n")
M = Variable(torch.FloatTensor([[1, 2], [3, 4]]))
print(M)
print("\n")
y = torch.mm(x, M)
print(y)
print("\n")
# jacobian = torch.FloatTensor(2, 2).zero_()
# print (jacobian)
y.backward(torch.FloatTensor([[1, 0]]), retain_graph=True)
print(x.grad.data)
print("\n")
x.grad.data.zero_()
y.backward(torch.FloatTensor([[0, 1]]), retain_graph=True)
print(x.grad.data)
print("\n")
x.grad.data.zero_()
y.backward(torch.FloatTensor([[1, 1]]), retain_graph=True)
print(x.grad.data)
print("\n")
# --- mm with a gradient
from torch.autograd import Variable

x = Variable(torch.ones(2, 3), requires_grad=True)
a = Variable(torch.ones(3, 4))
out = torch.mm(x, a)  # shape: (2,4)
gradient = torch.FloatTensor([[1, 2, 3, 4], [5, 6, 7, 8]])  # shape=(2,4)
out.backward(gradient)
print(x.grad)
# --- mm with a gradient that does not fit
x = torch.ones(2, 3, requires_grad=True)
out = torch.mm(x, torch.ones(3, 4))
out.backward(torch.ones(4, 4))
# --- scalar to scalar
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
# --- scalar with a gradient of 100
from torch import tensor

x = tensor(1.0, requires_grad=True)
y = x**2
gradient_value = 100.0
y.backward(tensor(gradient_value))
print("x.grad:", x.grad)
# --- the builtin sum
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
print("x:", x)
y = sum(x)
print("y:", y)
y.backward()
print("x.grad:", x.grad)
# --- vector to vector
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
y = 3 * x**2
print("y:", y)
y.backward(tensor([1.0, 10.0]))
print("x.grad:", x.grad)
# --- assembled
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
print("x:", x)
y = torch.empty(3)
y[0] = 3 * x[0] ** 2
y[1] = x[0] ** 2 + 2 * x[1] ** 3
y[2] = 10 * x[1]
print("y:", y)
gradient_value = [
    1.0,
    10.0,
    100.0,
]
y.backward(tensor(gradient_value))
print("x.grad:", x.grad)
# --- a vector for a scalar
from torch import tensor

x = tensor(1.0, requires_grad=True)
y = x**2
y.backward(tensor([1.0, 10.0, 100.0, 1000.0]))
print("x.grad:", x.grad)
# --- accumulated
from torch import tensor

x = tensor(1.0, requires_grad=True)
y = x**2
for v in [1.0, 10.0, 100.0, 1000.0]:
    y.backward(tensor(v), retain_graph=True)
    print("x.grad:", x.grad)
# --- sum accumulated
from torch import tensor

x = tensor([1.0, 2.0], requires_grad=True)
y = sum(x)
for v in [1.0, 10.0, 100.0, 1000.0]:
    y.backward(tensor(v), retain_graph=True)
    print("x.grad:", x.grad)
# --- T and numpy
import torch as T
import torch.autograd

T.manual_seed(1)
x = T.randn(1, 1, requires_grad=True)  # x is a leaf created by user, thus grad_fn is none
print("x", x)
y = 2 * x
print("y", y)
z = y**3
print("z", z)
z.backward()
print("z gradient:", z.grad)
print("y gradient:", y.grad)
print("x gradient:", x.grad, "Requires gradient?", x.grad.requires_grad)
# --- gradients by rows
import torch as T

T.manual_seed(2)
x = T.randn(2, 2, requires_grad=True)
print("x", x)
y = 2 * x
z = y**3
print("z shape:", z.size())
z.backward(T.FloatTensor([[1, 1], [1, 1]]), retain_graph=True)
print("x gradient for its all elements:\n", x.grad)
print()
x.grad.data.zero_()
z.backward(T.FloatTensor([[0, 1], [0, 1]]), retain_graph=True)
print("x gradient for the second column:\n", x.grad)
print()
x.grad.data.zero_()
z.backward(T.FloatTensor([[1, 1], [0, 0]]), retain_graph=True)
print("x gradient for the first row:\n", x.grad)
out = z.mean()
print("out", out)
out.backward(T.FloatTensor([[1, 1], [1, 1]]), retain_graph=True)
# --- a second backward
import torch as T

T.manual_seed(3)
x = T.randn(2, 2, requires_grad=True)
y = 2 * x
z = y**3
out = z.mean()
print("out", out)
out.backward()
print("x gradient", x.grad)
x.grad.data.zero_()
out.backward()
print("x gradient", x.grad)
