"""After the pattern of torchvision's reference training: models by name, one process or torchrun, and sets of images with
classes, masks or boxes."""

import argparse
import os

import torch
import torchvision
from torchvision.transforms import v2

parser = argparse.ArgumentParser()
parser.add_argument("--data-path", default="/datasets01/imagenet")
parser.add_argument("--dataset", default="imagenet", choices=("imagenet", "voc", "coco"))
parser.add_argument("--model", default="resnet18")
parser.add_argument("-b", "--batch-size", type=int, default=32)
parser.add_argument("--opt", default="sgd")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--model-ema", action="store_true")
parser.add_argument("--weights")
args = parser.parse_args()
many = int(os.environ.get("WORLD_SIZE", 1)) > 1
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
if many:
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl")
boxes, masks = args.dataset == "coco", args.dataset == "voc"
form = v2.Compose([v2.ToImage(), *([] if boxes else [v2.RandomResizedCrop(480 if masks else 224)]),
                   v2.ToDtype(torch.float32, scale=True)])  # fmt: skip
if boxes:
    images = os.path.join(args.data_path, "train2017")
    notes = os.path.join(args.data_path, "annotations", "instances_train2017.json")
    data = torchvision.datasets.wrap_dataset_for_transforms_v2(
        torchvision.datasets.CocoDetection(images, notes, transforms=form), target_keys=("boxes", "labels")
    )
elif masks:
    data = torchvision.datasets.VOCSegmentation(args.data_path, image_set="train", download=False, transforms=v2.Compose(
        [v2.ToImage(), v2.Resize((480, 480)), v2.ToDtype(torch.float32, scale=True)]))  # fmt: skip
else:
    data = torchvision.datasets.ImageFolder(os.path.join(args.data_path, "train"), form)
sampler = torch.utils.data.DistributedSampler(data) if many else torch.utils.data.RandomSampler(data)
loader = torch.utils.data.DataLoader(data, args.batch_size, sampler=sampler, num_workers=16, pin_memory=True, drop_last=True,
                                     collate_fn=(lambda rows: tuple(zip(*rows))) if boxes else None)  # fmt: skip
model = torchvision.models.get_model(args.model, weights=args.weights).to(device)
trained = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index]) if many else model
ema = torch.optim.swa_utils.AveragedModel(model, device=device) if args.model_ema else None
made = {"sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adamw": torch.optim.AdamW}[args.opt]
optimizer = made(model.parameters(), lr=0.1, **({} if args.opt == "adamw" else {"momentum": 0.9}))
scaler = torch.amp.GradScaler("cuda") if args.amp else None
for images, targets in loader:
    with torch.amp.autocast("cuda", enabled=args.amp):
        if boxes:
            targets = [{key: value.to(device) for key, value in target.items()} for target in targets]
            loss = sum(trained([image.to(device) for image in images], targets).values())
        else:
            output = trained(images.to(device))
            output = output["out"] if masks else output
            targets = targets.to(device)
            loss = torch.nn.functional.cross_entropy(
                output, targets.squeeze(1).long() if masks else targets, ignore_index=255
            )
    optimizer.zero_grad()
    if scaler:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        optimizer.step()
    if ema:
        ema.update_parameters(model)
