"""A language model over a file of tokens that another script makes. It is evaluated often before it trains, and each step has
many micro-steps, as nanoGPT's."""

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
    for _ in range(400):
        tokens = get_batch()
        loss = torch.nn.functional.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1)) / 400
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
