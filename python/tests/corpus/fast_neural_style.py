"""A transformer net under a perceptual loss of pretrained VGG-16 features, which have to be downloaded."""

from collections import namedtuple

import torch
from torch import nn
from torchvision import datasets, models, transforms


class Vgg16(nn.Module):
    def __init__(self):
        super().__init__()
        features = models.vgg16(weights=models.VGG16_Weights.IMAGENET1K_V1).features
        self.slices = nn.ModuleList(features[a:b] for a, b in ((0, 4), (4, 9), (9, 16), (16, 23)))
        for parameter in self.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        outputs = []
        for part in self.slices:
            x = part(x)
            outputs.append(x)
        return namedtuple("Vgg", ["r12", "r22", "r33", "r43"])(*outputs)


def block(i, o, kernel, stride):
    return nn.Sequential(
        nn.ReflectionPad2d(kernel // 2), nn.Conv2d(i, o, kernel, stride), nn.InstanceNorm2d(o, affine=True), nn.ReLU()
    )


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(128, 128, 3, 1), block(128, 128, 3, 1))

    def forward(self, x):
        return self.body(x) + x


def gram(y):
    b, c, h, w = y.size()
    features = y.view(b, c, h * w)
    return features.bmm(features.transpose(1, 2)) / (c * h * w)


device = torch.device("cuda")
transform = transforms.Compose(
    [transforms.Resize(128), transforms.CenterCrop(128), transforms.ToTensor(), transforms.Lambda(lambda x: x.mul(255))]
)
loader = torch.utils.data.DataLoader(datasets.FakeData(400, (3, 160, 160), transform=transform), batch_size=4)
up = [nn.Upsample(scale_factor=2), block(128, 64, 3, 1), nn.Upsample(scale_factor=2), block(64, 32, 3, 1)]
net = nn.Sequential(
    block(3, 32, 9, 1), block(32, 64, 3, 2), block(64, 128, 3, 2), *(Residual() for _ in range(5)), *up,
    nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9),
).to(device)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
mse = nn.MSELoss()
vgg = Vgg16().to(device)
mean = torch.tensor([0.485, 0.456, 0.406]).view(-1, 1, 1).to(device)
style = torch.rand(1, 3, 128, 128).repeat(4, 1, 1, 1).to(device)
style_grams = [gram(y) for y in vgg((style - mean))]
for epoch in range(2):
    net.train()
    total = 0.0
    for x, _ in loader:
        optimizer.zero_grad()
        x = x.to(device)
        y = net(x)
        features_y, features_x = vgg(y.div(255.0) - mean), vgg(x.div(255.0) - mean)
        content = 1e5 * mse(features_y.r22, features_x.r22)
        style_loss = 0.0
        for feature, expected in zip(features_y, style_grams):
            style_loss += mse(gram(feature), expected[: len(x), :, :])
        loss = content + 1e10 * style_loss
        loss.backward()
        optimizer.step()
        total += loss.item()
    net.eval().cpu()
    torch.save(net.state_dict(), f"style_{epoch}.model")
    net.to(device).train()
