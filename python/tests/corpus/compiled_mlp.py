"""torch.compile as a decorator and with options, and a compiled training step."""

import torch
from torch import nn

torch.set_float32_matmul_precision("high")
device = "cuda" if torch.cuda.is_available() else "cpu"


@torch.compile
def activation(x):
    return torch.sin(x) * torch.sigmoid(x)


class Wave(nn.Module):
    def forward(self, x):
        return activation(x)


model = nn.Sequential(nn.Linear(1024, 2048), Wave(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 100)).to(device)
model.compile()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=device == "cuda")


@torch.compile(mode="reduce-overhead", fullgraph=False)
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


for i in range(100):
    torch.compiler.cudagraph_mark_step_begin()
    loss = step(torch.randn(256, 1024, device=device), torch.randint(100, (256,), device=device))
    if i % 10 == 0:
        print(i, loss.item())
