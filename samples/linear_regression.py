# A straight line, fitted by gradient descent.
import torch
import torch.nn as nn

torch.manual_seed(0)
X = torch.linspace(0, 1, 10).unsqueeze(1)
y = 3 * X + 1 + 0.1 * torch.randn(10, 1)
model = nn.Linear(1, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(50):
    optimizer.zero_grad()
    loss = criterion(model(X), y)
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print("epoch {}, loss {:.4f}".format(epoch, loss.item()))
print(model.weight, model.bias)
