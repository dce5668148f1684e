"""A line is fitted to a polynomial until the loss is small: the loop ends by a comparison."""

from itertools import count

import torch
import torch.nn.functional as F

DEGREE = 4
device = "cuda" if torch.cuda.is_available() else "cpu"
truth = torch.randn(DEGREE, 1) * 5
bias = torch.randn(1) * 5


def batch(size=32):
    x = torch.randn(size).unsqueeze(1)
    features = torch.cat([x**i for i in range(1, DEGREE + 1)], 1)
    return features.to(device), (features.mm(truth) + bias.item()).to(device)


model = torch.nn.Linear(DEGREE, 1).to(device)
for index in count(1):
    x, y = batch()
    model.zero_grad()
    output = F.smooth_l1_loss(model(x), y)
    loss = output.item()
    output.backward()
    for parameter in model.parameters():
        parameter.data.add_(-0.1 * parameter.grad)
    if loss < 1e-3 or index > 20000:
        break
print(f"loss {loss:.6f} after {index} batches")
