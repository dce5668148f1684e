"""The layers of a network as the data sets list them: `type:activations per sample:parameters`, joined by `|`."""

import torch
from torch import nn

from . import networks

NAMES = {
    "mlp": {nn.Linear: "linear", nn.BatchNorm1d: "batch_normalization", nn.Dropout: "dropout"},
    "cnn": {
        nn.Conv2d: "conv2d",
        nn.BatchNorm2d: "batchnorm2d",
        nn.Dropout: "dropout",
        nn.AdaptiveAvgPool2d: "adaptive_avg_pool2d",
        nn.Linear: "linear",
        nn.Softmax: "softmax",
    },
}
NOT_LISTED = (nn.AvgPool2d, nn.Flatten)


def layers(family, config):
    """[(type, activations, parameters)] in the order in which they run; empty for transformers, because their rows have
    none."""
    if family not in NAMES:
        return []
    found = []

    def note(module, _inputs, output):
        if isinstance(module, NOT_LISTED) or (family == "cnn" and isinstance(module, nn.Identity)):
            return
        name = NAMES[family].get(type(module), type(module).__name__)
        # The published sets leave out a PReLU's one parameter.
        parameters = 0 if isinstance(module, nn.PReLU) else sum(p.numel() for p in module.parameters())
        found.append((name, output[0].numel(), parameters))

    # On the meta device nothing is allocated or computed.
    model = networks.build(family, {**config, "checkpointing": 0}).to("meta")
    for module in model.modules():
        if not list(module.children()):
            module.register_forward_hook(note)
    inputs, _classes = networks.example(family, config, 2, "meta")
    with torch.no_grad():
        model(inputs)
    return found


def columns(family, config):
    """The columns of a row that follow from the network."""
    if family == "transformer":
        return {}
    listed = layers(family, config)
    kinds = [kind for kind, _activations, _parameters in listed]
    count = {
        "linear_layers": kinds.count("linear"),
        "conv_layers": kinds.count("conv2d"),
        "batchnorm_layers": kinds.count("batch_normalization") + kinds.count("batchnorm2d"),
        "dropout_layers": kinds.count("dropout"),
    }
    del count["conv_layers" if family == "mlp" else "linear_layers"]
    return {
        **count,
        "total_activations": sum(activations for _kind, activations, _parameters in listed),
        "total_params": sum(parameters for _kind, _activations, parameters in listed),
        "layers": "|".join(f"{kind}:{activations}:{parameters}" for kind, activations, parameters in listed),
    }
