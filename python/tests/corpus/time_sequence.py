"""Two LSTM cells learn sine waves by LBFGS, in double precision: the closure runs many times in a step."""

import numpy as np
import torch
from torch import nn, optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1, self.lstm2, self.linear = nn.LSTMCell(1, 51), nn.LSTMCell(51, 51), nn.Linear(51, 1)

    def forward(self, source, future=0):
        outputs = []
        h1, c1, h2, c2 = (torch.zeros(source.size(0), 51, dtype=torch.double, device=device) for _ in range(4))
        for value in source.split(1, dim=1):
            h1, c1 = self.lstm1(value, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        for _ in range(future):
            h1, c1 = self.lstm1(output, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


np.random.seed(0)
torch.manual_seed(0)
waves = np.sin((np.arange(40) + np.random.randint(-80, 80, 100).reshape(100, 1)) / 20.0).astype("float64")
source, target = torch.from_numpy(waves[3:, :-1]).to(device), torch.from_numpy(waves[3:, 1:]).to(device)
model = Sequence().double().to(device)
criterion = nn.MSELoss()
optimizer = optim.LBFGS(model.parameters(), lr=0.8)
for step in range(15):
    print("step:", step)

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(source), target)
        print("loss:", loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        prediction = model(source[:3], future=20)
        print("end:", prediction.detach().cpu().numpy()[0, -1])
