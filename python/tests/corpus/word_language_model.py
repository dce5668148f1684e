"""An LSTM over words with truncated backpropagation; the update is written out, without an optimizer."""

import math

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
VOCABULARY, EMBEDDING, HIDDEN, BPTT, BATCH, CLIP = 5000, 200, 200, 35, 20, 0.25


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(VOCABULARY, EMBEDDING)
        self.rnn = nn.LSTM(EMBEDDING, HIDDEN, 2, dropout=0.2)
        self.decoder = nn.Linear(HIDDEN, VOCABULARY)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, source, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(source)), hidden)
        return nn.functional.log_softmax(self.decoder(self.drop(output)).view(-1, VOCABULARY), dim=1), hidden

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(2, batch, HIDDEN), weight.new_zeros(2, batch, HIDDEN)


def batchify(data, batch):
    length = data.size(0) // batch
    return data.narrow(0, 0, length * batch).view(batch, -1).t().contiguous().to(device)


def detached(hidden):
    return hidden.detach() if isinstance(hidden, torch.Tensor) else tuple(detached(value) for value in hidden)


torch.manual_seed(1111)
train_data = batchify(torch.randint(VOCABULARY, (100000,)), BATCH)
model = RNNModel().to(device)
criterion = nn.NLLLoss()
lr, best = 20, None
for epoch in range(1, 3):
    model.train()
    total, hidden = 0.0, model.init_hidden(BATCH)
    for index, start in enumerate(range(0, train_data.size(0) - 1, BPTT)):
        length = min(BPTT, len(train_data) - 1 - start)
        data, targets = train_data[start : start + length], train_data[start + 1 : start + 1 + length].view(-1)
        model.zero_grad()
        hidden = detached(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-lr)
        total += loss.item()
        if index % 20 == 0 and index > 0:
            print(f"{epoch} {index} loss {total / 20:.2f} perplexity {math.exp(total / 20):.2f}")
            total = 0
    if best is None or total < best:
        best = total
    else:
        lr /= 4.0
