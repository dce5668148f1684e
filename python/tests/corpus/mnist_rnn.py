"""Rows of a digit as a sequence through an LSTM."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torchvision import datasets, transforms


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(input_size=28, hidden_size=64, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(64)
        self.dropout1, self.dropout2 = nn.Dropout2d(0.25), nn.Dropout2d(0.5)
        self.fc1, self.fc2 = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, source):
        output, _ = self.rnn(source.reshape(-1, 28, 28))
        output = self.dropout1(self.batchnorm(output[:, -1, :]))
        return F.log_softmax(self.fc2(self.dropout2(F.relu(self.fc1(output)))), dim=1)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
loader = torch.utils.data.DataLoader(
    datasets.MNIST("../data", train=True, download=True, transform=transform), batch_size=64, shuffle=True
)
model = Net().to(device)
optimizer = optim.Adadelta(model.parameters(), lr=0.1)
for epoch in range(14):
    model.train()
    for index, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if index % 10 == 0:
            print(epoch, index, loss.item())
