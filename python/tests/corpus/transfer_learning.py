"""The tutorial of transfer learning: a pretrained ResNet, two phases in an epoch, the best weights are kept."""

import os
import tempfile
import time

import torch
from torch import nn, optim
from torchvision import datasets, models, transforms

transform = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
folders = {x: datasets.ImageFolder(os.path.join("data/hymenoptera_data", x), transform) for x in ("train", "val")}
loaders = {x: torch.utils.data.DataLoader(folders[x], batch_size=4, shuffle=True, num_workers=4) for x in folders}
sizes = {x: len(folders[x]) for x in folders}
class_names = folders["train"].classes
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def train_model(model, criterion, optimizer, scheduler, epochs=25):
    since = time.time()
    with tempfile.TemporaryDirectory() as folder:
        best_path, best = os.path.join(folder, "best.pt"), 0.0
        torch.save(model.state_dict(), best_path)
        for _ in range(epochs):
            for phase in ("train", "val"):
                model.train(phase == "train")
                running, corrects = 0.0, 0
                for inputs, labels in loaders[phase]:
                    inputs, labels = inputs.to(device), labels.to(device)
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        outputs = model(inputs)
                        _, predictions = torch.max(outputs, 1)
                        loss = criterion(outputs, labels)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    running += loss.item() * inputs.size(0)
                    corrects += torch.sum(predictions == labels.data)
                if phase == "train":
                    scheduler.step()
                accuracy = corrects.double() / sizes[phase]
                print(f"{phase} loss {running / sizes[phase]:.4f} accuracy {accuracy:.4f}")
                if phase == "val" and accuracy > best:
                    best = accuracy
                    torch.save(model.state_dict(), best_path)
        print(f"{time.time() - since:.0f} s, best {best:4f}")
        model.load_state_dict(torch.load(best_path, weights_only=True))
    return model


model = models.resnet18(weights="IMAGENET1K_V1")
model.fc = nn.Linear(model.fc.in_features, len(class_names))
model = model.to(device)
optimizer = optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
train_model(model, nn.CrossEntropyLoss(), optimizer, optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1))
