"""The networks of a configuration (draw.py), as PyTorch modules.

The shapes are those of the measured data sets, worked out from their rows. A configuration read from a row gives that
row's layers and parameters again (python/tests/test_collect.py)."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

MOST_CHANNELS = 2048
PUBLISHED_KERNEL = 3  # of all published rows; the thesis's table 5.4 has three sizes
SMALLEST_IMAGE = 7  # a residual network stops to shrink here
DENSE_GROWTH = 32
DENSE_LAYERS = 4

ACTIVATIONS = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "swish": nn.SiLU,
    "mish": nn.Mish,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
    "identity": nn.Identity,
}


def mlp_widths(config):
    width, outputs, depth = config["input_size"], config["output_size"], config["hidden_depth"]
    if config["arch"] == "uniform":
        return [width] * depth
    widths = []
    step = (width - outputs) // depth
    for _ in range(depth + (config["arch"] == "bottleneck")):
        width = max(width - step if config["arch"] == "gradual" else width // 2, outputs)
        widths.append(width)
    return widths


def cnn_widths(config):
    """Channels of the plain (not residual, not dense) shapes."""
    base, depth = config["base_filters"], config["depth_arg"]
    room = MOST_CHANNELS / base
    narrowing = depth // 2

    def width(i):
        if config["arch"] == "pyramid":
            return base * room ** (i / depth)
        if config["arch"] == "gradual":
            return base * room ** (i / (2 * depth))
        if config["arch"] == "bottleneck":
            if i == 0:
                return 2 * base
            return base * (2 if depth <= 2 else room ** (1 / (depth - 1))) ** (i - 1)
        if config["arch"] == "hourglass":
            if i < narrowing:
                return base * room ** (i / narrowing)
            return max(base * room ** ((depth - i - 1) / (depth - narrowing)), base)
        return base  # uniform

    return [min(int(width(i)), MOST_CHANNELS) for i in range(depth)]


def _dressed(config, layer, width, norm):
    """A layer with its normalisation, activation, dropout."""
    layers = [layer]
    if config["use_batchnorm"]:
        layers.append(norm(width))
    layers.append(ACTIVATIONS[config["activation"]]())
    if config["use_dropout"]:
        layers.append(nn.Dropout(config["dropout_rate"]))
    return nn.Sequential(*layers)


def _convolution(config, inputs, outputs, stride=1):
    size = config.get("kernel_size", PUBLISHED_KERNEL)
    return _dressed(config, nn.Conv2d(inputs, outputs, size, stride, padding=size // 2), outputs, nn.BatchNorm2d)


class Residual(nn.Module):
    def __init__(self, config, inputs, outputs, stride):
        super().__init__()
        self.shortcut = nn.Identity()
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride))
            if config["use_batchnorm"]:
                self.shortcut.append(nn.BatchNorm2d(outputs))
        self.body = nn.Sequential(_convolution(config, inputs, outputs, stride), _convolution(config, outputs, outputs))

    def forward(self, x):
        kept = self.shortcut(x)
        return self.body(x) + kept


class Dense(nn.Module):
    def __init__(self, config, inputs):
        super().__init__()
        self.layers = nn.ModuleList(
            _convolution(config, inputs + i * DENSE_GROWTH, DENSE_GROWTH) for i in range(DENSE_LAYERS)
        )

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


class Transition(nn.Module):
    def __init__(self, config, inputs, outputs):
        super().__init__()
        layers = [nn.Conv2d(inputs, outputs, 1)]
        if config["use_batchnorm"]:
            layers.append(nn.BatchNorm2d(outputs))
        layers.append(nn.ReLU())
        self.body = nn.Sequential(*layers)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x):
        x = self.body(x)
        return self.pool(x) if x.shape[-1] > 1 else x


def _residual_blocks(config):
    blocks, inputs, image = [], config["input_channels"], config["input_size"]
    room = MOST_CHANNELS / config["base_filters"]
    for i in range(config["depth_arg"] // 2):
        outputs = min(int(config["base_filters"] * room ** (i / config["depth_arg"])), MOST_CHANNELS)
        stride = 2 if i % 2 == 1 and image > SMALLEST_IMAGE else 1
        blocks.append(Residual(config, inputs, outputs, stride))
        inputs = outputs
        image //= stride
        if image <= SMALLEST_IMAGE:
            break
    return blocks, inputs


def _dense_blocks(config):
    blocks, inputs, count = [], config["input_channels"], config["depth_arg"] // DENSE_LAYERS
    for i in range(count):
        blocks.append(Dense(config, inputs))
        inputs += DENSE_LAYERS * DENSE_GROWTH
        if config["dense_pool_interval"] and i % config["dense_pool_interval"] == 0 and i != count - 1:
            blocks.append(Transition(config, inputs, inputs // 2))
            inputs //= 2
    return blocks, inputs


def _plain_blocks(config):
    blocks, inputs = [], config["input_channels"]
    for outputs in cnn_widths(config):
        blocks.append(_convolution(config, inputs, outputs))
        inputs = outputs
    return blocks, inputs


class Blocks(nn.Module):
    """Blocks one after the other; each is computed again in the backward pass where the run asks for checkpointing."""

    def __init__(self, blocks, checkpointing):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.checkpointing = checkpointing

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return x


def build_mlp(config):
    blocks, width = [], config["input_size"]
    for outputs in mlp_widths(config):
        blocks.append(_dressed(config, nn.Linear(width, outputs), outputs, nn.BatchNorm1d))
        width = outputs
    head = [nn.Linear(width, config["output_size"])]
    head.append(nn.Softmax(1) if config["output_size"] > 1 else nn.Sigmoid())
    return nn.Sequential(Blocks(blocks, config.get("checkpointing")), *head)


def build_cnn(config):
    make = {"residual": _residual_blocks, "dense": _dense_blocks}.get(config["arch"], _plain_blocks)
    blocks, channels = make(config)
    return nn.Sequential(
        Blocks(blocks, config.get("checkpointing")),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, config["num_classes"]),
        nn.Softmax(1),
    )


class Conv1D(nn.Module):
    """A linear layer with a transposed weight, as GPT-2's implementations have it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.02)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.view(*x.shape[:-1], -1)


class Conv1DBlock(nn.Module):
    """Pre-norm attention and feed-forward with Conv1D projections and written-out attention."""

    def __init__(self, config):
        super().__init__()
        width = config["embedding_size"]
        self.heads = config["num_heads"]
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.project, self.merge = Conv1D(width, 3 * width), Conv1D(width, width)
        self.widen, self.narrow = Conv1D(width, config["ff_hidden_size"]), Conv1D(config["ff_hidden_size"], width)
        self.activation, self.dropout = nn.GELU(), nn.Dropout(config["dropout_rate"])

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(self.norms[0](x)).split(width, dim=2)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        scores = (query @ key.transpose(2, 3)) / query.shape[-1] ** 0.5
        mixed = self.dropout(torch.softmax(scores, -1)) @ value
        x = x + self.dropout(self.merge(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.narrow(self.activation(self.widen(self.norms[1](x)))))


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["embedding_size"]
        self.embedding = nn.Embedding(config["vocab_size"], width)
        self.position = nn.Parameter(torch.zeros(config["seq_length"], width))
        if config.get("projection") == "conv1d":
            blocks = [Conv1DBlock(config) for _ in range(config["num_layers"])]
        else:
            blocks = [
                nn.TransformerEncoderLayer(
                    width, config["num_heads"], config["ff_hidden_size"], config["dropout_rate"], batch_first=True
                )
                for _ in range(config["num_layers"])
            ]
        self.blocks = Blocks(blocks, config.get("checkpointing"))
        self.head = nn.Linear(width, config["num_classes"])

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens) + self.position).mean(1))


BUILDERS = {"mlp": build_mlp, "cnn": build_cnn, "transformer": Transformer}


def build(family, config):
    return BUILDERS[family](config)


def example(family, config, batch, device="cpu"):
    """A batch of inputs and of class numbers."""
    if family == "mlp":
        inputs = torch.randn(batch, config["input_size"], device=device)
    elif family == "cnn":
        size = config["input_size"]
        inputs = torch.randn(batch, config["input_channels"], size, size, device=device)
    else:
        inputs = torch.randint(config["vocab_size"], (batch, config["seq_length"]), device=device)
    classes = config["output_size"] if family == "mlp" else config["num_classes"]
    return inputs, torch.randint(classes, (batch,), device=device)
