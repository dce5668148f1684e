"""Lightning on one GPU in 16-mixed precision: a data module, a metric, clipping, accumulation, early stopping."""

import lightning as L
import torch
import torchmetrics
import torchvision
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from torch.utils.data import DataLoader


class Data(L.LightningDataModule):
    def setup(self, stage):
        transform = torchvision.transforms.ToTensor()
        self.train = torchvision.datasets.FakeData(512, (3, 32, 32), 10, transform)
        self.valid = torchvision.datasets.FakeData(64, (3, 32, 32), 10, transform)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=64, shuffle=True, num_workers=3, persistent_workers=True)

    def val_dataloader(self):
        return DataLoader(self.valid, batch_size=64, num_workers=3)


class LitResnet(L.LightningModule):
    def __init__(self, lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.model = torchvision.models.resnet18(weights=None, num_classes=10)
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10)

    def forward(self, x):
        return torch.nn.functional.log_softmax(self.model(x), dim=1)

    def training_step(self, batch, _):
        x, y = batch
        logits = self(x)
        loss = torch.nn.functional.nll_loss(logits, y)
        self.log_dict({"train_loss": loss, "train_acc": self.accuracy(logits.argmax(1), y)}, on_step=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", torch.nn.functional.nll_loss(self(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=5e-4)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=100)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


L.seed_everything(7)
trainer = L.Trainer(
    max_epochs=10, accelerator="gpu", devices=1, precision="16-mixed", gradient_clip_val=1.0,
    accumulate_grad_batches=2, log_every_n_steps=1,
    callbacks=[EarlyStopping("val_loss"), LearningRateMonitor("step"), ModelCheckpoint(monitor="val_loss")],
)  # fmt: skip
trainer.fit(LitResnet(), datamodule=Data())
