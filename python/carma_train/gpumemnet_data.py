"""The measured runs as GPUMemNet sees them: layer tuples, summary features, memory classes, folds (thesis 5.4.4).

Everything comes from a row's layers and `batch_size`, the measured memory apart, because carma knows only these of a
job. src/estimate/learned/gpumemnet_input.c computes the same from a model's summary. A pooling, addition,
concatenation or bare parameter is not a tuple.
"""

import collections
import csv
import dataclasses
import math

import numpy

# A tuple's layer type. A sigmoid, which the data hold in the last layer of ten rows only, stands with tanh. Encoders of
# MLPs and CNNs were trained without the last.
TYPES = ("linear", "conv", "norm", "dropout", "softmax", "identity", "relu", "leakyrelu", "prelu", "elu", "selu",
         "gelu", "silu", "mish", "softplus", "tanh", "embedding")
FIRST_ACTIVATION = TYPES.index("identity")
ACTIVATIONS = TYPES.index("embedding") - FIRST_ACTIVATION
ALIASES = {"conv2d": "conv", "batchnorm2d": "norm", "batch_normalization": "norm", "sigmoid": "tanh"}
POOLS = {"adaptive_avg_pool2d"}

FEATURES = ("depth", "linear", "conv", "norm", "dropout", "batch", "parameters", "activations", "cos", "sin",
            "activations*batch")


@dataclasses.dataclass(frozen=True)
class Family:
    """first: the class that has index 0; memory is in class memory_mib // width_mib. oom: a last class of its own."""

    name: str
    width_mib: int
    first: int
    count: int
    oom: bool
    ensemble: tuple  # features, as the thesis lists them for the ensemble
    encoder: tuple   # ... and for the transformer, beside the tuples
    answers: str     # the kind that gives carma's answer: data/models/gpumemnet.md says why
    types: int       # how many of TYPES its networks can have
    passes: int = 1  # over the rows, in those of a recipe: fewer rows need more for as many steps
    repeats: bool = False  # its networks consist of equal blocks


FAMILIES = {
    "mlp": Family("mlp", 1000, 1, 4, False,
                  ("linear", "norm", "dropout", "batch", "parameters", "activations", "cos", "sin"),
                  ("linear", "parameters", "activations", "batch", "activations*batch"), "ensemble",
                  TYPES.index("embedding")),
    "cnn": Family("cnn", 8000, 0, 7, True,
                  ("depth", "conv", "norm", "dropout", "batch", "parameters", "activations", "cos", "sin",
                   "activations*batch"),
                  ("depth", "conv", "norm", "dropout", "batch", "parameters", "activations", "cos", "sin",
                   "activations*batch"), "ensemble", TYPES.index("embedding")),
    "transformer": Family("transformer", 8000, 0, 7, True,
                          ("depth", "linear", "norm", "dropout", "batch", "parameters", "activations",
                           "activations*batch"),
                          ("depth", "linear", "norm", "dropout", "batch", "parameters", "activations",
                           "activations*batch"), "ensemble", len(TYPES), 3, True),
}
FOLDS = 5


def key_of(line):
    """FNV-1a, 64 bits, of a row's bytes without the line end."""
    value = 0xCBF29CE484222325
    for byte in line:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def tuples_of(layers):
    """'type:activations:parameters|...' -> [(type's index, activations, parameters)]"""
    tuples = []
    for layer in layers.split("|"):
        name, activations, parameters = layer.split(":")
        name = name.lower()
        if name not in POOLS:
            tuples.append((TYPES.index(ALIASES.get(name, name)), int(activations), int(parameters)))
    return tuples


def tuples_of_encoder(row):
    """The tuples of a row of transformer.csv, which has no `layers`. They are as python/carma_bench/networks.py
    builds the network. Attention is two linear layers: query, key and value in one, and the output's."""
    classes, width, inner, length = (int(row[name]) for name in (
        "num_classes", "embedding_size", "ff_hidden_size", "seq_length"))
    linear, norm, dropout, relu = (TYPES.index(name) for name in ("linear", "norm", "dropout", "relu"))
    block = [(linear, 3 * length * width, 3 * width * (width + 1)), (linear, length * width, width * (width + 1)),
             (dropout, length * width, 0), (norm, length * width, 2 * width),
             (linear, length * inner, inner * (width + 1)), (relu, length * inner, 0), (dropout, length * inner, 0),
             (linear, length * width, width * (inner + 1)), (dropout, length * width, 0),
             (norm, length * width, 2 * width)]
    return [(TYPES.index("embedding"), length * width, int(row["vocab_size"]) * width),
            *block * int(row["num_layers"]), (linear, classes, classes * (width + 1))]


def activation_of(tuples):
    """The index of the activation there is most of; the first in TYPES where several are; identity where none is."""
    counts = collections.Counter(kind for kind, _, _ in tuples)
    return max(range(ACTIVATIONS), key=lambda index: (counts[FIRST_ACTIVATION + index], -index))


def angles():
    """[activation] -> cos, sin of its place on a circle."""
    turn = 2 * numpy.pi * numpy.arange(ACTIVATIONS) / ACTIVATIONS
    return numpy.stack([numpy.cos(turn), numpy.sin(turn)], axis=1).astype(numpy.float32)


def features_of(tuples, batch):
    """All FEATURES, in their order: counts as they are, sizes as natural logarithms."""
    kinds = collections.Counter(kind for kind, _, _ in tuples)
    activations = max(sum(layer[1] for layer in tuples), 1)
    parameters = max(sum(layer[2] for layer in tuples), 1)
    cos, sin = angles()[activation_of(tuples)]
    return [len(tuples), kinds[TYPES.index("linear")], kinds[TYPES.index("conv")], kinds[TYPES.index("norm")],
            kinds[TYPES.index("dropout")], math.log(batch), math.log(parameters), math.log(activations), float(cos),
            float(sin), math.log(float(activations) * batch)]


@dataclasses.dataclass
class Rows:
    keys: numpy.ndarray      # u64
    folds: numpy.ndarray     # 0 .. FOLDS - 1
    features: numpy.ndarray  # float64 [row][feature of FEATURES]
    tuples: list             # of a row: [(type's index, activations, parameters)]
    memory_mib: numpy.ndarray
    oom: numpy.ndarray
    classes: numpy.ndarray   # index: 0 .. count - 1
    shapes: list             # "pyramid", "residual", "width 512", ...

    def __len__(self):
        return len(self.keys)


def class_of(family, memory_mib, oom):
    if oom:
        return family.count - 1
    last = family.count - (2 if family.oom else 1)
    return min(max(memory_mib // family.width_mib - family.first, 0), last)


def read(path, family):
    with open(path, "rb") as file:
        lines = [line for line in file.read().split(b"\n") if line]
    header = next(csv.reader([lines[0].decode("ascii")]))
    keys, features, tuples, memory, ooms, shapes = [], [], [], [], [], []
    for line in lines[1:]:
        row = dict(zip(header, next(csv.reader([line.decode("ascii")]))))
        keys.append(key_of(line))
        tuples.append(tuples_of(row["layers"]) if "layers" in row else tuples_of_encoder(row))
        features.append(features_of(tuples[-1], int(row["batch_size"])))
        memory.append(int(row["max_gpu_memory_mib"]))
        ooms.append(row.get("status", "SUCCESSFUL") != "SUCCESSFUL")
        shapes.append(row.get("arch") or f"width {row['embedding_size']}")
    keys = numpy.array(keys, dtype=numpy.uint64)
    return Rows(keys, (keys % numpy.uint64(FOLDS)).astype(int), numpy.array(features), tuples, numpy.array(memory),
                numpy.array(ooms), numpy.array([class_of(family, m, o) for m, o in zip(memory, ooms)]), shapes)
