"""Two networks with an optimizer each: the discriminator learns from real and from made images, then the generator."""

import torch
from torch import nn, optim
from torchvision import datasets, transforms

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
NZ, NGF, NDF, BATCH, SIZE = 100, 64, 64, 64, 64
torch.backends.cudnn.benchmark = True
dataset = datasets.FakeData(
    size=1000,
    image_size=(3, SIZE, SIZE),
    transform=transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)]),
)
loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=2)


def init(module):
    name = module.__class__.__name__
    if name.find("Conv") != -1:
        torch.nn.init.normal_(module.weight, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        torch.nn.init.normal_(module.weight, 1.0, 0.02)
        torch.nn.init.zeros_(module.bias)


def up(i, o, stride=2, padding=1):
    return [nn.ConvTranspose2d(i, o, 4, stride, padding, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]


def down(i, o):
    return [nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, inplace=True)]


generator = nn.Sequential(
    *up(NZ, NGF * 8, 1, 0), *up(NGF * 8, NGF * 4), *up(NGF * 4, NGF * 2), *up(NGF * 2, NGF),
    nn.ConvTranspose2d(NGF, 3, 4, 2, 1, bias=False), nn.Tanh(),
).to(device)  # fmt: skip
discriminator = nn.Sequential(
    nn.Conv2d(3, NDF, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    *down(NDF, NDF * 2), *down(NDF * 2, NDF * 4), *down(NDF * 4, NDF * 8),
    nn.Conv2d(NDF * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
).to(device)  # fmt: skip
generator.apply(init)
discriminator.apply(init)
criterion = nn.BCELoss()
fixed_noise = torch.randn(BATCH, NZ, 1, 1, device=device)
optimizer_d = optim.Adam(discriminator.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizer_g = optim.Adam(generator.parameters(), lr=0.0002, betas=(0.5, 0.999))
for epoch in range(25):
    for i, data in enumerate(loader):
        discriminator.zero_grad()
        real = data[0].to(device)
        size = real.size(0)
        label = torch.full((size,), 1, dtype=real.dtype, device=device)
        output = discriminator(real).view(-1)
        error_real = criterion(output, label)
        error_real.backward()
        d_x = output.mean().item()
        fake = generator(torch.randn(size, NZ, 1, 1, device=device))
        label.fill_(0)
        error_fake = criterion(discriminator(fake.detach()).view(-1), label)
        error_fake.backward()
        optimizer_d.step()
        generator.zero_grad()
        label.fill_(1)
        error_g = criterion(discriminator(fake).view(-1), label)
        error_g.backward()
        optimizer_g.step()
        print(f"[{epoch}][{i}] D {(error_real + error_fake).item():.4f} G {error_g.item():.4f} D(x) {d_x:.4f}")
    torch.save(generator.state_dict(), f"generator_{epoch}.pth")
