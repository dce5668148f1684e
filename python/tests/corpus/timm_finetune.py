"""A pretrained backbone is frozen except its head; its features are also listed."""

import timm
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData

backbone = timm.create_model("vit_tiny_patch16_224", pretrained=True, num_classes=0)
transform = timm.data.create_transform(**timm.data.resolve_model_data_config(backbone), is_training=True)
model = nn.Sequential(backbone, nn.Linear(backbone.num_features, 5))
device = "cuda" if torch.cuda.is_available() else "cpu"
model.to(device)
for parameter in backbone.parameters():
    parameter.requires_grad_(False)
for block in backbone.blocks[-2:]:
    block.requires_grad_(True)
loader = DataLoader(FakeData(200, (3, 256, 256), 5, transform), batch_size=16, num_workers=2)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)
best, patience = float("inf"), 3
for epoch in range(10):
    total = 0.0
    model.train()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if total < best:
        best, patience = total, 3
    else:
        patience -= 1
        if patience == 0:
            break
