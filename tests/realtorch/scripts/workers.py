import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def main():
    torch.manual_seed(6)
    data = TensorDataset(torch.randn(12, 3), torch.randn(12, 1))
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(2):
        for x, t in DataLoader(data, batch_size=4, num_workers=2):
            optimizer.zero_grad()
            loss = (model(x) - t).square().mean()
            loss.backward()
            optimizer.step()
        print(epoch, round(loss.item(), 4))

if __name__ == "__main__":
    main()
