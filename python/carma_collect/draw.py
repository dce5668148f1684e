"""Random training configurations over the ranges of the thesis's Tables 5.2 (MLP), 5.4 (CNN) and 5.6 (transformer).

A configuration is a dict of plain values with columns of the data set as keys (docs/formats/datasets.md). The n-th one
of a seed is always the same, so that an interrupted collection goes on where it stopped."""

import random

MLP_SHAPES = ("pyramid", "uniform", "bottleneck", "gradual")
CNN_SHAPES = ("pyramid", "uniform", "bottleneck", "gradual", "hourglass", "residual", "dense")
LEAST_DEPTH = {"residual": 2, "dense": 4}  # for one convolution: other shapes have one at depth 1
ACTIVATIONS = ("relu", "leaky_relu", "prelu", "elu", "selu", "gelu", "swish", "mish", "softplus", "tanh")

# The published sets' contents; `beyond` draws from the wider lists.
AS_PUBLISHED = {"optimizer": ("adam",), "precision": ("fp32",), "checkpointing": (0,), "projection": ("linear",)}
BEYOND = {
    "optimizer": ("sgd", "momentum", "adam", "adamw"),
    "precision": ("fp32", "amp"),
    "checkpointing": (0, 1),
    "projection": ("linear", "conv1d"),
}


def _log_integer(rng, low, high):
    """Uniform in the logarithm: small values matter as much as large ones."""
    return min(high, int(low * (high / low) ** rng.random() + 0.5))


def _regularisation(rng):
    return {
        "activation": rng.choice(ACTIVATIONS),
        "dropout_rate": round(rng.uniform(0.1, 0.5), 4),
        "use_dropout": rng.randint(0, 1),
        "use_batchnorm": rng.randint(0, 1),
    }


def mlp(rng):
    inputs = rng.randint(4, 4096)
    return {
        "arch": rng.choice(MLP_SHAPES),
        "input_size": inputs,
        "output_size": rng.randint(1, max(1, inputs // 4)),
        "hidden_depth": rng.randint(1, 10),
        "batch_size": rng.randint(4, 1024),
        **_regularisation(rng),
    }


def cnn(rng):
    shape = rng.choice(CNN_SHAPES)
    return {
        "arch": shape,
        "input_channels": rng.choice((1, 3)),
        "num_classes": _log_integer(rng, 2, 22000),
        "depth_arg": rng.randint(LEAST_DEPTH.get(shape, 1), 29),
        "base_filters": rng.randint(16, 512),
        "kernel_size": rng.choice((3, 5, 7)),
        "batch_size": 2 * rng.randint(1, 31),
        "input_size": 2 * rng.randint(4, 112),
        "dense_pool_interval": rng.randint(1, 5),
        **_regularisation(rng),
    }


def transformer(rng):
    embedding = rng.choice((128, 256, 512, 768, 1024, 1536, 2048))
    return {
        "num_classes": rng.randint(2, 1000),
        "embedding_size": embedding,
        "num_layers": rng.randint(2, 39),
        "num_heads": rng.choice([heads for heads in (2, 4, 8, 12, 16) if embedding % heads == 0]),
        "ff_hidden_size": rng.randint(2 * embedding, 4 * embedding),
        "dropout_rate": round(rng.uniform(0.1, 0.5), 4),
        "seq_length": rng.choice((128, 256, 512, 1024)),
        "vocab_size": _log_integer(rng, 50000, 1000000),
        "num_samples": rng.randint(1000, 5000),
        "batch_size": 2 ** rng.randint(0, 7),
    }


FAMILIES = {"mlp": mlp, "cnn": cnn, "transformer": transformer}


def configuration(family, seed, index, beyond=False):
    """The index-th configuration of this seed."""
    rng = random.Random(f"carma {family} {seed} {index}")
    drawn = FAMILIES[family](rng)
    for key, choices in (BEYOND if beyond else AS_PUBLISHED).items():
        drawn[key] = rng.choice(choices)
    if family != "transformer":
        drawn["projection"] = "linear"
    return drawn
