"""A GRU encoder and a decoder with attention, teacher forcing by chance, packed sentences of different lengths."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WORDS, HIDDEN, LENGTH = 4000, 128, 12


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(WORDS, HIDDEN), nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.dropout = nn.Dropout(0.1)

    def forward(self, source, lengths):
        packed = pack_padded_sequence(
            self.dropout(self.embedding(source)), lengths, batch_first=True, enforce_sorted=False
        )
        output, hidden = self.gru(packed)
        return pad_packed_sequence(output, batch_first=True)[0], hidden


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(WORDS, HIDDEN), nn.Linear(HIDDEN, WORDS)
        self.wa, self.ua, self.va = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 1)
        self.gru = nn.GRU(2 * HIDDEN, HIDDEN, batch_first=True)

    def forward(self, encoded, hidden, target=None):
        word = torch.zeros(encoded.size(0), 1, dtype=torch.long, device=device)
        outputs = []
        for i in range(LENGTH):
            scores = self.va(torch.tanh(self.wa(hidden.permute(1, 0, 2)) + self.ua(encoded))).squeeze(2).unsqueeze(1)
            context = torch.bmm(torch.softmax(scores, dim=-1), encoded)
            output, hidden = self.gru(torch.cat((self.embedding(word), context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            word = target[:, i].unsqueeze(1) if target is not None else output.topk(1)[1].squeeze(-1).detach()
        return torch.log_softmax(torch.cat(outputs, dim=1), dim=-1)


encoder, decoder = Encoder().to(device), Decoder().to(device)
optimizers = [torch.optim.Adam(part.parameters(), lr=1e-3) for part in (encoder, decoder)]
criterion = nn.NLLLoss()
random.seed(0)
for epoch in range(1, 80):
    sentences = [torch.randint(1, WORDS, (random.randint(5, 20),)) for _ in range(32)]
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    source = pad_sequence(sentences, batch_first=True).to(device)
    target = torch.randint(1, WORDS, (32, LENGTH)).to(device)
    for optimizer in optimizers:
        optimizer.zero_grad()
    encoded, hidden = encoder(source, lengths)
    outputs = decoder(encoded, hidden, target if random.random() < 0.5 else None)
    loss = criterion(outputs.view(-1, WORDS), target.view(-1))
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    print(epoch, loss.item())
