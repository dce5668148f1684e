"""Semantic segmentation with an auxiliary head, AMP and a polynomial schedule."""

import torch
import torchvision
from torch import nn


class Scenes(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.rand(3, 160, 160), torch.randint(0, 21, (160, 160))


def criterion(outputs, target):
    losses = {name: nn.functional.cross_entropy(x, target, ignore_index=255) for name, x in outputs.items()}
    return losses["out"] + 0.5 * losses["aux"]


device = torch.device("cuda")
model = torchvision.models.get_model(
    "deeplabv3_resnet50", weights=None, weights_backbone="IMAGENET1K_V1", num_classes=21, aux_loss=True
).to(device)
groups = [
    {"params": [p for p in model.backbone.parameters() if p.requires_grad]},
    {"params": [p for p in model.classifier.parameters() if p.requires_grad]},
    {"params": [p for p in model.aux_classifier.parameters() if p.requires_grad], "lr": 0.1},
]
optimizer = torch.optim.SGD(groups, lr=0.01, momentum=0.9, weight_decay=1e-4)
scaler = torch.cuda.amp.GradScaler()
loader = torch.utils.data.DataLoader(Scenes(), batch_size=4, shuffle=True, num_workers=4, drop_last=True)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=len(loader) * 30, power=0.9)
for epoch in range(30):
    model.train()
    for image, target in loader:
        image, target = image.to(device), target.to(device)
        with torch.cuda.amp.autocast():
            loss = criterion(model(image), target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        print(epoch, loss.item(), optimizer.param_groups[0]["lr"], torch.cuda.max_memory_allocated() / 2**20)
