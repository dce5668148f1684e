"""Speech in the small: convolutions over spectrograms, a bidirectional GRU, CTC loss with lengths."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Utterances(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(80 + index % 40 * 2, 64), torch.randint(1, 29, (10 + index % 5,))


def collate(rows):
    spectra = nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True).unsqueeze(1).transpose(2, 3)
    labels = nn.utils.rnn.pad_sequence([row[1] for row in rows], batch_first=True)
    return spectra, labels, [len(row[0]) // 2 for row in rows], [len(row[1]) for row in rows]


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.GELU(), nn.Dropout(0.1), nn.Conv2d(32, 32, 3, 1, 1))
        self.fc = nn.Linear(32 * 32, 256)
        self.gru = nn.GRU(256, 256, 2, batch_first=True, bidirectional=True, dropout=0.1)
        self.classifier = nn.Linear(512, 29)

    def forward(self, x):
        x = self.cnn(x)
        x = self.fc(x.flatten(1, 2).transpose(1, 2))
        return self.classifier(self.gru(x)[0])


model = Recogniser().to(device)
optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
criterion = nn.CTCLoss(blank=28, zero_infinity=True).to(device)
for epoch in range(3):
    for spectra, labels, input_lengths, label_lengths in DataLoader(Utterances(), 8, collate_fn=collate):
        spectra, labels = spectra.to(device), labels.to(device)
        optimizer.zero_grad()
        output = nn.functional.log_softmax(model(spectra), dim=2).transpose(0, 1)
        loss = criterion(output, labels, input_lengths, label_lengths)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())
