"""Stops when the validation loss has not become better; the best weights are deep-copied."""

import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = np.random.default_rng(0).normal(size=(2000, 30)).astype(np.float32)
y = (x[:, :3].sum(axis=1) > 0).astype(np.int64)
train_set, valid_set = random_split(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), [0.8, 0.2])
model = nn.Sequential(nn.Linear(30, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.3), nn.Linear(512, 2)).to(device)
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
best, wait, weights = np.inf, 0, None
for epoch in range(100):
    model.train()
    for source, target in DataLoader(train_set, batch_size=100, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(source.to(device)), target.to(device))
        loss.backward()
        optimizer.step()
    model.eval()
    scores = []
    with torch.no_grad():
        for source, target in DataLoader(valid_set, batch_size=100):
            output = model(source.to(device))
            scores.append((output.argmax(1).cpu().numpy() == target.numpy()).mean())
            loss = nn.functional.cross_entropy(output, target.to(device)).cpu().numpy()
    if loss.item() < best:
        best, wait, weights = loss.item(), 0, copy.deepcopy(model.state_dict())
    else:
        wait += 1
        if wait >= 5:
            print(f"stopped early in epoch {epoch}: {np.mean(scores):.3f}")
            break
model.load_state_dict(weights)
