"""Pairs of digits through one trunk: same or not. Pairs are formed from the data set's own tensors."""

import random

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, models


class Pairs(Dataset):
    def __init__(self, root, train):
        self.dataset = datasets.MNIST(root, train=train, download=True)
        self.images = self.dataset.data.unsqueeze(1).clone()
        self.targets = self.dataset.targets
        self.by_class = {c: [i for i, t in enumerate(self.targets.tolist()) if t == c] for c in range(10)}

    def __len__(self):
        return self.images.shape[0]

    def __getitem__(self, index):
        same = index % 2 == 0
        kind = int(self.targets[index])
        pool = self.by_class[kind if same else (kind + 1) % 10] or [index]
        other = random.choice(pool)
        return self.images[index].float() / 255, self.images[other].float() / 255, torch.tensor(float(same))


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        resnet = models.resnet18(weights=None)
        resnet.conv1 = nn.Conv2d(1, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.features = resnet.fc.in_features
        self.resnet = nn.Sequential(*list(resnet.children())[:-1])
        self.fc = nn.Sequential(nn.Linear(self.features * 2, 256), nn.ReLU(inplace=True), nn.Linear(256, 1))
        self.sigmoid = nn.Sigmoid()

    def once(self, x):
        return self.resnet(x).view(x.size(0), -1)

    def forward(self, first, second):
        return self.sigmoid(self.fc(torch.cat((self.once(first), self.once(second)), 1)))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(Pairs("../data", True), batch_size=64, shuffle=True, num_workers=1, pin_memory=True)
model = Siamese().to(device)
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
criterion = nn.BCELoss()
for epoch in range(14):
    model.train()
    for index, (first, second, targets) in enumerate(loader):
        first, second, targets = first.to(device), second.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(first, second).squeeze()
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        if index % 10 == 0:
            print(epoch, index, loss.item())
