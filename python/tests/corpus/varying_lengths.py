"""A transformer encoder whose batches are as long as their longest sentence: steps differ in shape."""

import random

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Tagger(nn.Module):
    def __init__(self, words=8000, width=256, tags=20):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.positions = nn.Embedding(512, width)
        layer = nn.TransformerEncoderLayer(width, 8, 1024, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(width, tags)

    def forward(self, ids):
        x = self.embedding(ids) * 16 + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.encoder(x, src_key_padding_mask=ids == 0))


model = Tagger().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
random.seed(1)
for step in range(200):
    sentences = [torch.randint(1, 8000, (random.randint(8, min(16 + 8 * step, 512)),)) for _ in range(16)]
    ids = nn.utils.rnn.pad_sequence(sentences, batch_first=True).to(device)
    tags = ids % 20
    tags[ids == 0] = -100
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if torch.isnan(loss):
        raise RuntimeError("the loss is not a number")
