"""Usage: generate.py FOLDER: writes torchvision's models as torchsummary shows them, with the facts that it does not
show.

A file for each model. First line: "MODEL CHANNELS HEIGHT WIDTH", its input. Then a line for each module when its forward
ends, children before parents, but for Sequential and the model itself. It has the type, the output shape without the
batch, and the parameters. Then come the attributes to be worked out: input channels (of a convolution or linear layer;
else 0), kernel, stride, groups, bias.

Made with torch 1.13 and torchvision 0.14 (Debian 12's python3-torch and python3-torchvision)."""

import pathlib
import sys

import torch
import torchvision

MODELS = {
    "resnet18": 224, "resnet50": 224, "densenet121": 224, "efficientnet_b0": 224, "mobilenet_v2": 224,
    "mobilenet_v3_small": 224, "vgg16": 224, "inception_v3": 299, "googlenet": 224, "convnext_tiny": 224,
    "vit_b_16": 224, "squeezenet1_1": 224, "resnext50_32x4d": 224, "regnet_y_400mf": 224,
    "alexnet": 224, "mnasnet1_0": 224, "swin_t": 224,
}  # fmt: skip
SKIPPED = (torch.nn.Sequential, torch.nn.ModuleList)


def parameters(module):
    if isinstance(module, torch.nn.MultiheadAttention):  # its projections are not modules that are called
        return sum(p.numel() for p in module.parameters())
    return sum(
        getattr(module, name).numel()
        for name in ("weight", "bias")
        if isinstance(getattr(module, name, None), torch.nn.Parameter)
    )


def geometry(module):
    if isinstance(module, torch.nn.modules.conv._ConvNd):
        pairs = ["x".join(map(str, pair)) for pair in (module.kernel_size, module.stride)]
        return [module.in_channels, *pairs, module.groups, int(module.bias is not None)]
    if isinstance(module, torch.nn.Linear):
        return [module.in_features, "0", "0", 0, int(module.bias is not None)]
    return [0, "0", "0", 0, 0]


def lines(name, size):
    # training mode alone has the auxiliary classifiers, which torchsummary's batch of 2 does not reach in evaluation
    options = {"aux_logits": False, "init_weights": False} if name in ("inception_v3", "googlenet") else {}
    model = getattr(torchvision.models, name)(weights=None, **options).eval()
    rows = []

    def hook(module, _inputs, output):
        output = output[0] if isinstance(output, (tuple, list)) else output
        shape = "x".join(map(str, output.shape[1:]))
        rows.append([type(module).__name__, shape, parameters(module), *geometry(module)])

    for module in model.modules():
        if module is not model and not isinstance(module, SKIPPED):
            module.register_forward_hook(hook)
    with torch.no_grad():
        model(torch.zeros(1, 3, size, size))
    return [[name, 3, size, size], *rows]


def main(folder):
    for name, size in MODELS.items():
        text = "".join(" ".join(map(str, line)) + "\n" for line in lines(name, size))
        pathlib.Path(folder, name + ".txt").write_text(text, encoding="utf-8")


main(sys.argv[1])
