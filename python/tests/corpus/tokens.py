"""A language model over a file of tokens that another script makes, evaluated often before it trains, as nanoGPT does."""

import os

import numpy as np
import torch

VOCABULARY, LENGTH, BATCH = 100, 64, 4
data = np.memmap(os.path.join("data", "train.bin"), dtype=np.uint16, mode="r")
model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 64), torch.nn.Linear(64, VOCABULARY)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def get_batch():
    starts = torch.randint(len(data) - LENGTH, (BATCH,))
    return torch.stack([torch.from_numpy(data[at : at + LENGTH].astype(np.int64)) for at in starts]).cuda()


@torch.no_grad()
def estimate_loss(batches):
    losses = torch.zeros(batches)
    for index in range(batches):
        tokens = get_batch()
        losses[index] = torch.nn.functional.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1)).item()
    return losses.mean()


print(estimate_loss(400))
while True:
    tokens = get_batch()
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1)).backward()
    optimizer.step()
