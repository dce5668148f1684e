"""Small models of our own for the summaries in this directory: one of each kind of layer that matters to a reader."""

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels_in, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, groups=4, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride), nn.BatchNorm2d(channels))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + self.shortcut(x))


class Convolutions(nn.Module):
    def __init__(self, classes=10, frozen=False):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 7, 2, 3)
        self.act = nn.GELU()
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.stage1 = nn.Sequential(Block(16, 16), Block(16, 32, 2))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(32, classes)
        if frozen:
            for part in (self.stem, self.stage1):
                for parameter in part.parameters():
                    parameter.requires_grad = False

    def forward(self, x):
        x = self.stage1(self.pool(self.act(self.stem(x))))
        return self.fc(self.drop(torch.flatten(self.avgpool(x), 1)))


class Attentive(nn.Module):
    """Bare parameters, torch's attention, a layer used twice."""

    def __init__(self, width=32, classes=5):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, 17, width))
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.0))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        y = self.norm(x)
        x = x + self.attention(y, y, y)[0]
        x = x + self.mlp(self.norm(x))
        return self.head(x[:, 0])


class Swish2(nn.Module):
    """A type no reader knows, with a parameter."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * torch.sigmoid(self.weight * x)


class Series(nn.Module):
    """A recurrent layer: several outputs, parameters by other names."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 12, batch_first=True)
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])


def perceptron():
    return nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 24),
                         Swish2(), nn.Linear(24, 10), nn.Softmax(dim=1))


def words():
    return nn.Sequential(nn.Embedding(100, 24), nn.Linear(24, 48), nn.Tanh())
