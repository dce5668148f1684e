"""A UNet under autocast and a gradient scaler, Dice beside cross entropy, RMSprop, a plateau schedule, memory printed."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def double(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()
        self.first = double(3, widths[0])
        self.downs = nn.ModuleList(double(a, b) for a, b in zip(widths, widths[1:]))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.merges = nn.ModuleList(double(2 * a, a) for a in widths[:-1])
        self.out = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        skips = [self.first(x)]
        for down in self.downs:
            skips.append(down(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for up, merge in zip(reversed(self.ups), reversed(self.merges)):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return self.out(x)


def dice(probabilities, target, epsilon=1e-6):
    inter = 2 * (probabilities * target).sum(dim=(-1, -2))
    sums = probabilities.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    sums = torch.where(sums == 0, inter, sums)
    return 1 - ((inter + epsilon) / (sums + epsilon)).mean()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.rand(48, 3, 128, 128), torch.randint(2, (48, 128, 128)))
train_set, val_set = random_split(data, [40, 8], generator=torch.Generator().manual_seed(0))
loader = DataLoader(train_set, shuffle=True, batch_size=4, num_workers=2, pin_memory=True)
model = UNet().to(device=device, memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.999, foreach=True)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
scaler = torch.cuda.amp.GradScaler(enabled=True)
try:
    for epoch in range(1, 6):
        model.train()
        for images, masks in loader:
            images = images.to(device=device, dtype=torch.float32, memory_format=torch.channels_last)
            masks = masks.to(device=device, dtype=torch.long)
            with torch.autocast(device.type, enabled=True):
                predicted = model(images)
                loss = F.cross_entropy(predicted, masks)
                loss += dice(F.softmax(predicted, dim=1).float(), F.one_hot(masks, 2).permute(0, 3, 1, 2).float())
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            print(epoch, loss.item())
        scheduler.step(1 - loss.item())
except torch.cuda.OutOfMemoryError:
    torch.cuda.empty_cache()
    raise
