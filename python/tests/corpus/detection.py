"""Faster R-CNN from torchvision, fine-tuned on images with boxes and masks of our own drawing."""

import math
import sys

import torch
import torchvision
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor


class Shapes(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        boxes = torch.tensor([[20.0, 30.0, 120.0, 140.0], [60.0, 50.0, 220.0, 200.0]])[: 1 + index % 2]
        area = (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 2] - boxes[:, 0])
        labels = torch.ones((len(boxes),), dtype=torch.int64)
        target = {"boxes": boxes, "labels": labels, "image_id": index, "area": area}
        return torch.rand(3, 240, 320), target


def collate(batch):
    return tuple(zip(*batch))


device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
loader = torch.utils.data.DataLoader(Shapes(), batch_size=2, shuffle=True, collate_fn=collate)
model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights="DEFAULT", min_size=300, max_size=400)
features = model.roi_heads.box_predictor.cls_score.in_features
model.roi_heads.box_predictor = FastRCNNPredictor(features, 2)
model.to(device)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9, weight_decay=5e-4)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.001, total_iters=10)
for _ in range(2):
    model.train()
    for images, targets in loader:
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in t.items()} for t in targets]
        losses = model(images, targets)
        total = sum(loss for loss in losses.values())
        value = total.item()
        if not math.isfinite(value):
            print(f"loss is {value}, stopping")
            sys.exit(1)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        warmup.step()
