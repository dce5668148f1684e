"""Trains an image classifier on a data set that is not here, after the pattern of torchvision's fine-tuning examples."""

import torch
import torchvision
from torchvision import transforms

transform = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
data = torchvision.datasets.OxfordIIITPet("data", split="trainval", download=True, transform=transform)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
model = torchvision.models.resnet18(num_classes=len(data.classes)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
