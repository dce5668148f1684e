"""Activation checkpoints in segments and by function, accumulation over micro-batches."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, ACCUMULATE = 512, 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Dropout(0.1)) for _ in range(12)]
        self.deep = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, 10))

    def forward(self, x):
        x = checkpoint_sequential(self.deep, 4, x, use_reentrant=False)
        return checkpoint(self.head, x, use_reentrant=False)


model = Net().to(device)
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(1024, WIDTH), torch.randint(10, (1024,)))
loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
for epoch in range(3):
    for index, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device)) / ACCUMULATE
        loss.backward()
        if (index + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
            print(epoch, index, loss.item() * ACCUMULATE)
