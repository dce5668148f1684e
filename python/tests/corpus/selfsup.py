"""Learning without labels on two views of each image: SimCLR's loss, or a teacher that is the mean of its pupil's past."""

import argparse
import copy

import torch
import torch.nn.functional as F
import torchvision
from torchvision import transforms

parser = argparse.ArgumentParser()
parser.add_argument("-data", default="./datasets")
parser.add_argument("--dataset-name", default="stl10", choices=("stl10", "cifar10"))
parser.add_argument("--arch", default="resnet18")
parser.add_argument("--method", default="simclr")
parser.add_argument("--fp16-precision", action="store_true")
parser.add_argument("-b", "--batch-size", type=int, default=256)
parser.add_argument("--epochs", type=int, default=100)
args = parser.parse_args()
size = {"stl10": 96, "cifar10": 32}[args.dataset_name]
view = transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToTensor()])


def two_views(image):
    return [view(image), view(image)]


if args.dataset_name == "stl10":
    data = torchvision.datasets.STL10(args.data, split="unlabeled", transform=two_views, download=True)
else:
    data = torchvision.datasets.CIFAR10(args.data, train=True, transform=two_views, download=True)
loader = torch.utils.data.DataLoader(data, args.batch_size, shuffle=True, num_workers=12, pin_memory=True, drop_last=True)
model = torchvision.models.get_model(args.arch, num_classes=128).cuda()
teacher = copy.deepcopy(model).requires_grad_(False) if args.method == "dino" else None
optimizer = torch.optim.Adam(model.parameters(), 3e-4, weight_decay=1e-4)
scaler = torch.cuda.amp.GradScaler(enabled=args.fp16_precision)
for epoch in range(args.epochs):
    for views, _ in loader:
        with torch.autocast("cuda", enabled=args.fp16_precision):
            features = F.normalize(model(torch.cat(views).cuda()), dim=1)
            if teacher is None:
                likeness = features @ features.T / 0.07
                labels = torch.arange(len(features), device="cuda").roll(len(features) // 2)
                likeness.fill_diagonal_(-1e4)
                loss = F.cross_entropy(likeness, labels)
            else:
                with torch.no_grad():
                    said = F.softmax(teacher(torch.cat(views[::-1]).cuda()) / 0.04, dim=1)
                loss = -(said * F.log_softmax(features / 0.1, dim=1)).sum(1).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if teacher is not None:
            for old, new in zip(teacher.parameters(), model.parameters()):
                old.data.mul_(0.996).add_(new.detach().data, alpha=0.004)
