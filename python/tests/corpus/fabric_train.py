"""Lightning's Fabric around a loop of one's own, as `fabric run` starts it."""

import lightning as L
import torch
import torchvision
from torchvision.transforms import ToTensor

fabric = L.Fabric(precision="bf16-mixed")
fabric.seed_everything(1)
data = torchvision.datasets.FashionMNIST("data", train=True, download=fabric.is_global_zero, transform=ToTensor())
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=256, shuffle=True, num_workers=4))
model = torchvision.models.resnet18(num_classes=10)
model.conv1 = torch.nn.Conv2d(1, 64, 7, 2, 3, bias=False)
model, optimizer = fabric.setup(model, torch.optim.Adadelta(model.parameters(), lr=1.0))
for images, labels in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    fabric.backward(loss)
    optimizer.step()
