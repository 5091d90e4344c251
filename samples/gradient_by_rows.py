# A gradient argument of ones and zeros chooses rows and columns; of a scalar it is one number.
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
