# The gradient argument of a product of matrices: x.grad = gradient @ a.T.
import torch
from torch.autograd import Variable

x = Variable(torch.ones(2, 3), requires_grad=True)
a = Variable(torch.ones(3, 4))
out = torch.mm(x, a)  # shape: (2,4)
gradient = torch.FloatTensor([[1, 2, 3, 4], [5, 6, 7, 8]])  # shape=(2,4)
out.backward(gradient)
print(x.grad)
