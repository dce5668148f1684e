"""An ordinary training script: a network of three layers learns handwritten digits' classes from noise. It runs on a GPU, or on
the CPU. `carma submit -- python3 examples/train_mlp.py`"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=1024)
    arguments = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    images, labels = torch.randn(8192, 784), torch.randint(0, 10, (8192,))
    loader = DataLoader(TensorDataset(images, labels), arguments.batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Linear(784, arguments.hidden), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(arguments.hidden, arguments.hidden), nn.ReLU(), nn.Linear(arguments.hidden, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(arguments.epochs):
        total = 0.0
        for batch, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch.to(device)), targets.to(device))
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: mean loss {total / len(loader):.3f} on {device}", flush=True)


main()
