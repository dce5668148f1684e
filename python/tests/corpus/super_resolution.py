"""Sub-pixel convolutions; the data set reads images that the script itself has written."""

import os
from math import log10

import torch
from PIL import Image
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import CenterCrop, Compose, Resize, ToTensor

UPSCALE, CROP = 3, 255


class Folder(Dataset):
    def __init__(self, path):
        self.files = [os.path.join(path, name) for name in sorted(os.listdir(path))]
        self.input = Compose([CenterCrop(CROP), Resize(CROP // UPSCALE), ToTensor()])
        self.target = Compose([CenterCrop(CROP), ToTensor()])

    def __getitem__(self, index):
        luminance, _, _ = Image.open(self.files[index]).convert("YCbCr").split()
        return self.input(luminance), self.target(luminance.copy())

    def __len__(self):
        return len(self.files)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1, self.conv2 = nn.Conv2d(1, 64, 5, 1, 2), nn.Conv2d(64, 64, 3, 1, 1)
        self.conv3, self.conv4 = nn.Conv2d(64, 32, 3, 1, 1), nn.Conv2d(32, UPSCALE**2, 3, 1, 1)
        self.shuffle = nn.PixelShuffle(UPSCALE)
        for conv in (self.conv1, self.conv2, self.conv3):
            nn.init.orthogonal_(conv.weight, nn.init.calculate_gain("relu"))

    def forward(self, x):
        return self.shuffle(self.conv4(self.relu(self.conv3(self.relu(self.conv2(self.relu(self.conv1(x))))))))


os.makedirs("images", exist_ok=True)
for number in range(16):
    Image.new("RGB", (300, 280), (number * 9, 80, 120)).save(f"images/{number}.png")
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
loader = DataLoader(Folder("images"), num_workers=4, batch_size=4, shuffle=True)
model = Net().to(device)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
for epoch in range(1, 3):
    epoch_loss = 0
    for _iteration, batch in enumerate(loader, 1):
        source, target = batch[0].to(device), batch[1].to(device)
        optimizer.zero_grad()
        loss = criterion(model(source), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {epoch_loss / len(loader):.4f}, {10 * log10(1 / (epoch_loss / len(loader))):.2f} dB")
    torch.save(model, f"model_epoch_{epoch}.pth")
