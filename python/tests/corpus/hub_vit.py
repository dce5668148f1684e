"""A vision transformer and its processor by their names, on CIFAR-10 of the hub."""

import torch
from datasets import load_dataset
from transformers import AutoImageProcessor, AutoModelForImageClassification

name = "google/vit-base-patch16-224-in21k"
processor = AutoImageProcessor.from_pretrained(name)
model = AutoModelForImageClassification.from_pretrained(name, num_labels=10).cuda()
data = load_dataset("uoft-cs/cifar10", split="train[:5000]")
optimizer = torch.optim.AdamW(model.parameters())
for at in range(4):
    rows = data[at * 8 : at * 8 + 8]
    batch = processor(rows["img"], return_tensors="pt").to("cuda")
    model(**batch, labels=torch.tensor(rows["label"]).cuda()).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
