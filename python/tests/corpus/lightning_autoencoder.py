"""Lightning's first steps: an autoencoder, a random split, a logger and a checkpoint."""

import lightning as L
import torch
from torch import nn, utils
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor


class LitAutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 28 * 28))

    def training_step(self, batch, batch_idx):
        x, _ = batch
        x = x.view(x.size(0), -1)
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x = batch[0].view(batch[0].size(0), -1)
        self.log("val_loss", nn.functional.mse_loss(self.decoder(self.encoder(x)), x))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


dataset = MNIST("data", download=True, transform=ToTensor())
size = int(len(dataset) * 0.8)
train, valid = utils.data.random_split(dataset, [size, len(dataset) - size])
trainer = L.Trainer(max_epochs=2, limit_train_batches=100)
trainer.fit(LitAutoEncoder(), utils.data.DataLoader(train, batch_size=256), utils.data.DataLoader(valid, batch_size=256))
