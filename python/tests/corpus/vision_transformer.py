"""A small vision transformer written out, on CIFAR-10's images; weight decay by groups, gradients clipped."""

import torch
from torch import nn
from torchvision import datasets
from torchvision.transforms import v2


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, width * 4), nn.GELU(), nn.Linear(width * 4, width), nn.Dropout(0.1))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, width=192, depth=6, heads=3, patch=4, size=32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)
        nn.init.trunc_normal_(self.token, std=0.02)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), x), dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


transform = v2.Compose(
    [
        v2.ToImage(), v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.49, 0.48, 0.45], [0.25, 0.24, 0.26]),
    ]
)  # fmt: skip
loader = torch.utils.data.DataLoader(
    datasets.CIFAR10("data", train=True, download=True, transform=transform),
    batch_size=128, shuffle=True, num_workers=2, drop_last=True,
)  # fmt: skip
device = "cuda" if torch.cuda.is_available() else "cpu"
model = ViT().to(device)
decayed = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0}], lr=3e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-4, epochs=5, steps_per_epoch=len(loader))
for epoch in range(5):
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print(epoch, float(loss), norm.item(), schedule.get_last_lr()[0])
