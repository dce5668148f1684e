"""Manual optimisation in Lightning: two optimizers in a training step."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(64, 512), nn.LeakyReLU(0.2), nn.Linear(512, 784), nn.Tanh())
        self.discriminator = nn.Sequential(nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))

    def training_step(self, batch, batch_idx):
        (images,) = batch
        optimizer_g, optimizer_d = self.optimizers()
        noise = torch.randn(images.shape[0], 64, device=self.device)
        ones, zeros = torch.ones(len(images), 1, device=self.device), torch.zeros(len(images), 1, device=self.device)
        criterion = nn.functional.binary_cross_entropy_with_logits
        self.toggle_optimizer(optimizer_g)
        loss = criterion(self.discriminator(self.generator(noise)), ones)
        self.manual_backward(loss)
        optimizer_g.step()
        optimizer_g.zero_grad()
        self.untoggle_optimizer(optimizer_g)
        self.toggle_optimizer(optimizer_d)
        made = self.generator(noise).detach()
        loss = (criterion(self.discriminator(images), ones) + criterion(self.discriminator(made), zeros)) / 2
        self.manual_backward(loss)
        optimizer_d.step()
        optimizer_d.zero_grad()
        self.untoggle_optimizer(optimizer_d)
        self.log("d_loss", loss)

    def configure_optimizers(self):
        return [torch.optim.Adam(part.parameters(), 2e-4) for part in (self.generator, self.discriminator)], []


L.Trainer(accelerator="auto", devices=1, max_epochs=5, enable_progress_bar=False).fit(
    GAN(), DataLoader(TensorDataset(torch.randn(1024, 784)), batch_size=256)
)
