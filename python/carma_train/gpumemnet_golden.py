"""Writes tests/golden/estimate-gpumemnet.txt: python3 -m carma_train.gpumemnet_golden --model FILE --out FILE

Networks of carma's own making, drawn at random, with PyTorch's results for the tables: C must come to the same
results."""

import argparse
import pathlib
import random
import sys

import numpy
import torch

from carma_train import gpumemnet_data as data
from carma_train import gpumemnet_models as models

NETWORKS = 18  # of each family
HEADER = """\
# Networks drawn at random, as `network FAMILY BATCH` and `layer KIND[:ACTIVATION] ACTIVATIONS PARAMETERS` (per sample,
# as in struct layer), and PyTorch's `logits CLASSIFIER MODEL LOGIT...` for them by data/models/gpumemnet.bin; MODEL is
# a fold, or -1 for the model of all rows. Written by python/carma_train/gpumemnet_golden.py; test_estimate_gpumemnet.c
# reads it.
"""
# carma's kinds and activations -> the tuple's type
LAYERS = {"linear": "linear", "conv": "conv", "batch_norm": "norm", "dropout": "dropout", "softmax": "softmax",
          "identity": "identity", "activation:relu": "relu", "activation:relu6": "relu",
          "activation:leaky_relu": "leakyrelu", "activation:prelu": "prelu", "activation:elu": "elu",
          "activation:selu": "selu", "activation:gelu": "gelu", "activation:silu": "silu", "activation:mish": "mish",
          "activation:softplus": "softplus", "activation:tanh": "tanh", "activation:sigmoid": "tanh",
          "activation:hardswish": "silu", "activation:hardsigmoid": "tanh"}
ACTIVATIONS = [name for name in LAYERS if name.startswith("activation") or name == "identity"]
# ... in a transformer, beside attention: its activations are all taken for ReLUs
OF_TRANSFORMERS = {"linear": "linear", "conv1d_linear": "linear", "layer_norm": "norm", "dropout": "dropout",
                   "embedding": "embedding", "softmax": None, **dict.fromkeys(ACTIVATIONS, "relu")}


def draw_mlp(draw):
    inputs, layers, width = draw.randint(8, 4000), [], draw.randint(16, 4000)
    activation, norm, dropout = draw.choice(ACTIVATIONS), draw.random() < 0.5, draw.random() < 0.5
    for _ in range(draw.randint(1, 9)):
        layers.append(("linear", width, (inputs + 1) * width))
        layers += [("batch_norm", width, 2 * width)] * norm + [(activation, width, 0)]
        layers += [("dropout", width, 0)] * dropout
        inputs, width = width, max(8, int(width * draw.uniform(0.4, 1.1)))
    return layers + [("linear", 10, (inputs + 1) * 10), ("softmax", 10, 0)]


def draw_cnn(draw):
    size, inputs, layers, channels = draw.randint(20, 220), 3, [], draw.randint(8, 96)
    activation, norm, dropout = draw.choice(ACTIVATIONS), draw.random() < 0.5, draw.random() < 0.5
    for _ in range(draw.randint(1, 25)):
        outputs = channels * size * size
        layers.append(("conv", outputs, (9 * inputs + 1) * channels))
        layers += [("batch_norm", outputs, 2 * channels)] * norm + [(activation, outputs, 0)]
        layers += [("dropout", outputs, 0)] * dropout
        if draw.random() < 0.3 and size > 13:
            size //= 2
        inputs, channels = channels, min(1024, int(channels * draw.uniform(0.8, 1.6)) + 1)
    return layers + [("linear", 1000, (inputs + 1) * 1000), ("softmax", 1000, 0)]


def draw_transformer(draw):
    width, length, inner = 64 * draw.randint(1, 16), draw.randint(8, 1024), draw.randint(128, 4096)
    activation, linear, apart = draw.choice(ACTIVATIONS), draw.choice(["linear", "conv1d_linear"]), draw.random() < 0.3
    layers = [("embedding", length * width, draw.randint(1000, 900000) * width)]
    for _ in range(draw.randint(1, 12)):
        if apart:
            layers += [(linear, length * width, width * (width + 1))] * 4 + [("softmax", length * length, 0)]
        else:
            layers.append(("attention", length * width, 4 * width * (width + 1)))
        layers += [("dropout", length * width, 0), ("layer_norm", length * width, 2 * width),
                   (linear, length * inner, inner * (width + 1)), (activation, length * inner, 0),
                   (linear, length * width, width * (inner + 1)), ("layer_norm", length * width, 2 * width)]
    return layers + [("linear", 10, 10 * (width + 1))]


def tuples_of(family, layers):
    if family.name != "transformer":
        return [(data.TYPES.index(LAYERS[kind]), *sizes) for kind, *sizes in layers]
    tuples = []
    for kind, activations, parameters in layers:
        if kind == "attention":  # as its two linear layers
            tuples += [(0, 3 * activations, parameters * 3 // 4), (0, activations, parameters // 4)]
        elif OF_TRANSFORMERS[kind]:
            tuples.append((data.TYPES.index(OF_TRANSFORMERS[kind]), activations, parameters))
    return tuples


DRAWN = {"mlp": draw_mlp, "cnn": draw_cnn, "transformer": draw_transformer}


def write(file, tables):
    draw = random.Random(1)
    file.write(HEADER)
    for name, family in data.FAMILIES.items():
        for number in range(NETWORKS):
            layers = DRAWN[name](draw)
            batch = draw.choice([1, 2, 7, 16, 32, 64, 128, 500]) if name == "mlp" else draw.randint(1, 64)
            tuples = tuples_of(family, layers)
            file.write(f"network {name} {batch}\n")
            for kind, activations, parameters in layers:
                file.write(f"layer {kind} {activations} {parameters}\n")
            features = numpy.array([data.features_of(tuples, batch)])
            for classifier in models.KINDS:
                for index in (number % data.FOLDS, models.ALL):
                    logits = tables.logits(family, classifier, index, features, [tuples])[0]
                    text = " ".join(f"{logit:.6f}" for logit in logits)
                    file.write(f"logits {classifier} {-1 if index == models.ALL else index} {text}\n")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="data/models/gpumemnet.bin")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tables = models.Models(options.model)
    with open(options.out, "w", encoding="ascii") as file:
        write(file, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
