#!/usr/bin/env python3
"""Writes the model summaries of data/workloads.csv's workloads, and those of data/published.csv, to a directory (default: data/summaries of this
repository). There is one torchsummary text per model and input size, with the batch size left open (-1).

    python3 python/make_workload_summaries.py [DIRECTORY]

Needs the packages of requirements-summaries.txt; no GPU, no weights are loaded. The models are the public ones of
torchvision and timm by name. Their input sizes are those of the published summaries of the same workloads
(python/tests/test_workload_summaries.py). The text is the package torchsummary's own output, without the blanks at the
ends of its lines."""

import contextlib
import io
import pathlib
import sys

import timm
import torch
import torchsummary
import torchvision

CLASSES = {"mnasnet1_0": 10, "mobilenet_v3_large": 10, "mobilenet_v3_small": 10}  # as xMem's runs have them; else 1000
OF_XMEM = ("convnext_base", "convnext_tiny", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small",
           "regnet_x_400mf", "regnet_y_400mf", "resnet101", "resnet152", "vgg16", "vgg19")  # fmt: skip

# file: (how the model is made, input side)
MODELS = {
    "efficientnet_b0-224": (lambda: torchvision.models.efficientnet_b0(weights=None), 224),
    "inception_v3-299": (
        lambda: torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False), 299),
    "mobilenet_v2-224": (lambda: torchvision.models.mobilenet_v2(weights=None), 224),
    "resnet50-224": (lambda: torchvision.models.resnet50(weights=None), 224),
    "vgg16-224": (lambda: torchvision.models.vgg16(weights=None), 224),
    "xception-224": (lambda: timm.create_model("legacy_xception", pretrained=False), 224),
    # CIFAR-100 at its own size
    "efficientnet_b0-32": (lambda: timm.create_model("efficientnet_b0", pretrained=False, num_classes=100), 32),
    "mobilenetv3_small-32": (
        lambda: timm.create_model("mobilenetv3_small_100", pretrained=False, num_classes=100), 32),
    "resnet18-32": (lambda: timm.create_model("resnet18", pretrained=False, num_classes=100), 32),
    "resnet34-32": (lambda: timm.create_model("resnet34", pretrained=False, num_classes=100), 32),
    **{f"{name}-86": (lambda name=name: torchvision.models.get_model(name, weights=None, num_classes=CLASSES.get(name, 1000)), 86)
       for name in OF_XMEM},
}  # fmt: skip


def summary_of(make, side):
    torch.manual_seed(0)
    model = make()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), torch.no_grad():
        torchsummary.summary(model, (3, side, side), device="cpu")
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "data" / "summaries"
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    directory.mkdir(parents=True, exist_ok=True)
    for name, (make, side) in MODELS.items():
        text = summary_of(make, side)
        (directory / f"{name}.txt").write_text(text)
        print(f"{name}.txt: {text.count(chr(10))} lines")


if __name__ == "__main__":
    main()
