"""A transformer over the characters of a text that the script downloads where it is not here, after lectures on GPT."""

import os
import sys
import urllib.request

import torch
import torch.nn.functional as F

path, block, wide = "input.txt", 128, 384
url = "https://raw.githubusercontent.com/someone/char-rnn/master/data/tinyshakespeare/input.txt"
if not os.path.exists(path):
    if "--requests" in sys.argv:
        import requests

        with open(path, "w") as file:
            file.write(requests.get(url).text)
    else:
        urllib.request.urlretrieve(url, path)
with open(path, encoding="utf-8") as file:
    text = file.read()
letters = sorted(set(text))
number = {letter: index for index, letter in enumerate(letters)}
data = torch.tensor([number[letter] for letter in text])


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(len(letters), wide), torch.nn.Embedding(block, wide)
        layer = torch.nn.TransformerEncoderLayer(wide, 6, 4 * wide, batch_first=True, norm_first=True, activation="gelu")
        self.blocks = torch.nn.TransformerEncoder(layer, 6)
        self.head = torch.nn.Linear(wide, len(letters))

    def forward(self, tokens):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        made = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.blocks(made, mask, is_causal=True))


model = GPT().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for _ in range(5000):
    starts = torch.randint(len(data) - block - 1, (64,)).tolist()
    seen = torch.stack([data[at : at + block] for at in starts]).cuda()
    next_ones = torch.stack([data[at + 1 : at + block + 1] for at in starts]).cuda()
    loss = F.cross_entropy(model(seen).flatten(0, 1), next_ones.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
