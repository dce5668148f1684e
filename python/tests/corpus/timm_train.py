"""In the manner of timm's trainer: model, optimizer and schedule by name, mixup, EMA, AMP, channels last."""

import argparse
from contextlib import suppress

import timm
import timm.data
import timm.optim
import timm.scheduler
import timm.utils
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.utils import ModelEmaV3, NativeScaler

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet50")
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--opt", default="lamb")
parser.add_argument("--pretrained", action="store_true")
parser.add_argument("--no-amp", action="store_true")
args = parser.parse_args()
device = torch.device("cuda")
torch.backends.cudnn.benchmark = True
model = timm.create_model(args.model, pretrained=args.pretrained, num_classes=100, drop_path_rate=0.05)
config = timm.data.resolve_data_config({}, model=model)
model.to(device=device, memory_format=torch.channels_last)
optimizer = timm.optim.create_optimizer_v2(model, opt=args.opt, lr=5e-3, weight_decay=0.02)
ema = ModelEmaV3(model, decay=0.9998)
scaler = None if args.no_amp else NativeScaler()
autocast = suppress if args.no_amp else (lambda: torch.autocast("cuda", dtype=torch.float16))
schedule, epochs = timm.scheduler.create_scheduler_v2(optimizer, sched="cosine", num_epochs=10)
dataset = timm.data.create_dataset("torch/cifar100", root="data", download=True)
loader = timm.data.create_loader(
    dataset, input_size=config["input_size"], batch_size=args.batch_size, is_training=True, use_prefetcher=False,
    auto_augment="rand-m6-mstd0.5-inc1", num_workers=4, mean=config["mean"], std=config["std"],
)  # fmt: skip
mixup = Mixup(mixup_alpha=0.1, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=100)
criterion = SoftTargetCrossEntropy().to(device)
losses = timm.utils.AverageMeter()
for epoch in range(epochs):
    model.train()
    for index, (source, target) in enumerate(loader):
        source = source.to(device).contiguous(memory_format=torch.channels_last)
        source, target = mixup(source, target.to(device))
        with autocast():
            loss = criterion(model(source), target)
        optimizer.zero_grad()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
        torch.cuda.synchronize()
        ema.update(model, step=index)
        losses.update(loss.item(), source.size(0))
        print(f"{epoch} {index} {losses.val:.3g} ({losses.avg:.3g})")
    schedule.step(epoch + 1, losses.avg)
