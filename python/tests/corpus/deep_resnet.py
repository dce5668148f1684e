"""A ResNet of more than 300 layers: the capture's own speed."""

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, padding=1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return torch.relu(x + self.body(x))


model = nn.Sequential(
    nn.Conv2d(3, 256, 7, 4, 3), *(Bottleneck(256, 64) for _ in range(36)), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(256, 1000),
).cuda()  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
for step in range(10):
    loss = nn.functional.cross_entropy(model(torch.randn(32, 3, 224, 224).cuda()), torch.randint(1000, (32,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
