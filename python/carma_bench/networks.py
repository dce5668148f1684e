"""Networks as the generators of the data sets made them, put together layer by layer and held against the row's list of
layers. A layer is what the question says of it (src/evaluation/question.c)."""

import math
import re

INPUT = -1
# The generators' names of activations, and PyTorch's.
ACTIVATIONS = {"relu": "ReLU", "leaky_relu": "LeakyReLU", "prelu": "PReLU", "elu": "ELU", "selu": "SELU", "tanh": "Tanh",
               "softplus": "Softplus", "swish": "SiLU", "mish": "Mish", "gelu": "GELU", "sigmoid": "Sigmoid",
               "identity": "Identity"}  # fmt: skip
# The rows' lists, and torchsummary's names for the same.
LISTED = {"linear": "Linear", "batch_normalization": "BatchNorm1d", "conv2d": "Conv2d", "dropout": "Dropout",
          "batchnorm2d": "BatchNorm2d", "softmax": "Softmax", "adaptive_avg_pool2d": "AdaptiveAvgPool2d"}  # fmt: skip


def activation_of(row):
    try:
        return ACTIVATIONS[row["activation"]]
    except KeyError:
        raise row.error(f"activation '{row['activation'][:40]}' is not known: relu, gelu, ... "
                        "(docs/formats/datasets.md)") from None


class Network:
    """All functions that add a layer return its index. `listed`: the row's list, "type:activations:parameters|..."."""

    def __init__(self, row, shape, listed=None, index=False):
        self.row, self.input, self.index = row, shape, index
        self.layers, self.left, self.checked = [], listed, 0
        self.parameters = 0  # as the row counts them: without those of PReLU, which its list shows as 0

    def shape(self, at):
        return self.input if at == INPUT else self.layers[at]["shape"]

    def add(self, kind, inputs, shape=None, parameters=0, **more):
        """Any layer, with the shape of its first input; it is in no row's list."""
        shape = list(self.shape(inputs[0]) if shape is None else shape)
        self.layers.append({"type": kind, "shape": shape, "parameters": parameters, "inputs": list(inputs), **more})
        return len(self.layers) - 1

    def next_type(self):
        return re.match("[^:|]*", self.left or "")[0]

    def check(self, at, counted=0):
        """Holds the layer just added against the next of the row's list. `counted`: its parameters there."""
        layer = self.layers[at]
        self.parameters += counted
        if self.left is None:
            return at
        elements = min(math.prod(layer["shape"]), (1 << 63) - 1)
        made = f"{layer['type']}:{elements}:{counted}"
        self.checked += 1
        if not self.left:
            raise self.row.error(f"layers: the list ends before layer {self.checked}, {made}")
        found = re.match(r"([^:|]*):([0-9]{1,18}):([0-9]{1,18})(?:\||$)", self.left)
        if not found:
            raise self.row.error(f"layers: layer {self.checked}, '{self.left[:40]}', is not type:activations:parameters")
        said = f"{LISTED.get(found[1], found[1])}:{int(found[2])}:{int(found[3])}"
        if said != made:
            raise self.row.error(f"layers: layer {self.checked} is {said}, but the row's columns make it {made}")
        self.left = self.left[found.end() :]
        return at

    def linear(self, at, out, bias=True):
        shape = self.shape(at)
        parameters = (shape[-1] + bias) * out
        return self.check(self.add("Linear", [at], [*shape[:-1], out], parameters, bias=bool(bias), **{"in": shape[-1]}),
                          parameters)

    def conv(self, at, out, kernel, stride):
        """Padded by kernel / 2, with bias."""
        channels, *sides = self.shape(at)
        sides = [(side + 2 * (kernel // 2) - kernel) // stride + 1 for side in sides]
        parameters = (channels * kernel * kernel + 1) * out
        return self.check(self.add("Conv2d", [at], [out, *sides], parameters, kernel=kernel, stride=stride, groups=1,
                                   bias=True, **{"in": channels}), parameters)  # fmt: skip

    def batch_norm(self, at):
        shape = self.shape(at)
        return self.check(self.add("BatchNorm2d" if len(shape) > 1 else "BatchNorm1d", [at], None, 2 * shape[0]),
                          2 * shape[0])

    def layer_norm(self, at):
        return self.check(self.add("LayerNorm", [at], None, 2 * self.shape(at)[-1]), 2 * self.shape(at)[-1])

    def activation(self, at, kind):
        return self.check(self.add(kind, [at], None, int(kind == "PReLU")))

    def dropout(self, at):
        return self.check(self.add("Dropout", [at]))

    def softmax(self, at):
        return self.check(self.add("Softmax", [at]))

    def global_pool(self, at):
        """N,C,H,W -> N,C"""
        return self.check(self.add("AdaptiveAvgPool2d", [at], self.shape(at)[:1]))

    def halve(self, at):
        """Average pooling by 2x2."""
        channels, *sides = self.shape(at)
        return self.add("AvgPool2d", [at], [channels, *(side // 2 for side in sides)], kernel=2, stride=2)

    def sum(self, a, b):
        return self.add("Add", [a, b])

    def concat(self, inputs):
        """Of channels."""
        return self.add("Concat", inputs, [sum(self.shape(at)[0] for at in inputs), *self.shape(inputs[0])[1:]])

    def finish(self, total=None):
        """The list must be used up, and the parameters be `total`."""
        if self.left:
            raise self.row.error(f"layers: the list has more than the {self.checked} that the row's columns make: "
                                 f"'{self.left[:40]}'")
        if total is not None and self.parameters != total:
            raise self.row.error(f"total_params {total}, but the row's columns make {self.parameters}")
        return {"input": self.input, "index": self.index, "connected": True, "layers": self.layers}


# ---- Multi-layer perceptrons (thesis 5.4.2) ----

def mlp(row):
    """Hidden layers of an activation each, with batch norm and dropout as the row has them, and a softmax. "pyramid" halves
    from layer to layer but not below the output; "bottleneck" is the same with one layer more. "uniform" keeps the input's
    width; "gradual" goes down to the output in equal steps: the thesis's table 5.2, as its published rows show it."""
    width, out = row.whole("input_size", 1, 1 << 20), row.whole("output_size", 1, 1 << 20)
    depth, arch = row.whole("hidden_depth", 1, 256), row["arch"]
    dropout, norm = row.whole("use_dropout", 0, 1), row.whole("use_batchnorm", 0, 1)
    kind = activation_of(row)
    if arch not in ("pyramid", "bottleneck", "uniform", "gradual"):
        raise row.error(f"arch '{arch[:40]}' is not known: pyramid, bottleneck, uniform, gradual")
    total = row.whole("total_params", 1, 1 << 40)
    network, at = Network(row, [width], row["layers"]), INPUT
    step = (width - out) // depth
    for _ in range(depth + (arch == "bottleneck")):
        if arch != "uniform":
            width = max(width - step if arch == "gradual" else width // 2, out)
        at = network.linear(at, width)
        at = network.batch_norm(at) if norm else at
        at = network.activation(at, kind)
        at = network.dropout(at) if dropout else at
    at = network.linear(at, out)
    if out > 1:
        network.softmax(at)
    else:  # no softmax: a sigmoid or nothing, which no column but the list says
        network.activation(at, "Sigmoid" if network.next_type() == "Sigmoid" else "Identity")
    return network.finish(total)


# ---- Convolutional networks (thesis 5.4.2): with bias, then a global average pool, a linear layer and a softmax ----

MAX_CHANNELS = 2048  # to which the generator lets them grow
SMALLEST = 7  # pixels: a residual network ends at this size
GROWTH, DENSE_CONVS = 32, 4  # channels that a convolution of a dense block adds, and how many it has


class Cnn(Network):
    def __init__(self, row):
        self.depth, self.base = row.whole("depth_arg", 1, 1000), row.whole("base_filters", 1, MAX_CHANNELS)
        size = row.whole("input_size", 1, 8192)
        self.interval = row.whole("dense_pool_interval", 0, 1000)
        self.kernel = row.whole("kernel_size", 1, 15, 3)
        self.with_dropout, self.with_norm = row.whole("use_dropout", 0, 1), row.whole("use_batchnorm", 0, 1)
        self.kind = activation_of(row)
        super().__init__(row, [row.whole("input_channels", 1, MAX_CHANNELS), size, size], row["layers"])

    def grown(self, steps, step):
        """Channels after `step` of `steps` steps that lead from the first ones to the most, each by the same factor."""
        factor = (MAX_CHANNELS / self.base) ** (1 / steps)
        return int(min(self.base * factor**step, MAX_CHANNELS))

    def normed(self, at, out, kernel, stride):
        at = self.conv(at, out, kernel, stride)
        return self.batch_norm(at) if self.with_norm else at

    def block(self, at, out, stride=1):
        at = self.activation(self.normed(at, out, self.kernel, stride), self.kind)
        return self.dropout(at) if self.with_dropout else at


def hourglass(cnn, i):
    first = cnn.depth // 2
    if i < first:
        return cnn.grown(first, i)
    return max(cnn.grown(cnn.depth - first, cnn.depth - 1 - i), cnn.base)


def bottleneck(cnn, i):
    if i == 0:
        return 2 * cnn.base
    return cnn.base if cnn.depth <= 2 else cnn.grown(cnn.depth - 1, i - 1)


CHAINS = {"pyramid": lambda cnn, i: cnn.grown(cnn.depth, i), "gradual": lambda cnn, i: cnn.grown(2 * cnn.depth, i),
          "bottleneck": bottleneck, "uniform": lambda cnn, i: cnn.base, "hourglass": hourglass}  # fmt: skip


def residual(cnn):
    """Blocks of two convolutions, every second of stride 2, with a shortcut: a 1x1 convolution where the shape changes."""
    at, size = INPUT, cnn.input[1]
    for i in range(cnn.depth // 2):
        out, stride = cnn.grown(cnn.depth, i), 2 if i % 2 == 1 and size > SMALLEST else 1
        shortcut = at
        if stride != 1 or cnn.shape(at)[0] != out:
            shortcut = cnn.normed(at, out, 1, stride)
        at = cnn.sum(cnn.block(cnn.block(at, out, stride), out), shortcut)
        size //= stride
        if size <= SMALLEST:
            break
    return at


def dense(cnn):
    """Blocks with convolutions that read all earlier outputs of the block. After some blocks come a 1x1 convolution to half
    as many channels and a pooling to half the size."""
    at, blocks = INPUT, cnn.depth // 4
    for i in range(blocks):
        features = [at]
        for _ in range(DENSE_CONVS):
            features.append(cnn.block(cnn.concat(features), GROWTH))
        at = cnn.concat(features)
        if i % cnn.interval == 0 and i != blocks - 1:
            at = cnn.activation(cnn.normed(at, cnn.shape(at)[0] // 2, 1, 1), "ReLU")
            at = cnn.halve(at) if cnn.shape(at)[1] > 1 else at
    return at


def cnn(row):
    network, arch = Cnn(row), row["arch"]
    classes = row.whole("num_classes", 1, 1 << 20)
    if arch not in CHAINS and arch not in ("residual", "dense"):
        raise row.error(f"arch '{arch[:40]}' is not known: pyramid, residual, dense, ...")
    if arch == "dense" and network.interval < 1:
        raise row.error("no dense_pool_interval: a dense network needs it")
    total = row.whole("total_params", 1, 1 << 40)
    if arch in CHAINS:
        at = INPUT
        for i in range(network.depth):
            at = network.block(at, CHAINS[arch](network, i))
    else:
        at = residual(network) if arch == "residual" else dense(network)
    at = network.linear(network.global_pool(at), classes)
    if classes > 1:
        network.softmax(at)
    return network.finish(total)


# ---- Transformer encoders (thesis 5.4.2) ----

def transformer(row):
    """nn.TransformerEncoder (post-norm, ReLU, batch first) over an embedding plus a learned position, the mean over the
    sequence, one linear layer."""
    classes, width = row.whole("num_classes", 1, 1 << 20), row.whole("embedding_size", 1, 1 << 18)
    layers, heads = row.whole("num_layers", 1, 1000), row.whole("num_heads", 1, 1024)
    inner, length = row.whole("ff_hidden_size", 1, 1 << 18), row.whole("seq_length", 1, 1 << 20)
    words = row.whole("vocab_size", 1, 1 << 22)
    if width % heads:
        raise row.error(f"embedding_size {row['embedding_size']} does not divide among {row['num_heads']} heads")
    network = Network(row, [length], None, True)
    at = network.add("Embedding", [INPUT], [length, width], words * width)
    position = network.add("Parameter", [at], None, length * width)
    network.layers[position]["inputs"] = []  # it comes from nowhere
    at = network.sum(at, position)
    for _ in range(layers):
        side = network.add("MultiheadAttention", [at], None, 4 * (width + 1) * width, heads=heads, bias=True,
                           **{"in": width})  # query, key and value in one; output
        at = network.layer_norm(network.sum(at, network.dropout(side)))
        side = network.activation(network.linear(at, inner), "ReLU")
        side = network.linear(network.dropout(side), width)
        at = network.layer_norm(network.sum(at, network.dropout(side)))
    at = network.add("Mean", [at], [width], like="AvgPool2d")
    network.linear(at, classes)
    return network.finish()


# ---- Language models as Hugging Face's transformers (about 4.44, the time of PyTorch 2.4) builds and trains them: from the
# published configurations and the library's documented behaviour ----

TIED = 0  # words: the output layer's weight is the word embedding's, and is counted there


class Language(Network):
    """Of `gpus` with torch.nn.DataParallel; the list is the first one's."""

    def __init__(self, row, layers, width, inner, heads, words, length, gpus):
        super().__init__(row, [length], None, True)
        self.count, self.width, self.inner, self.heads = layers, width, inner, heads
        self.words, self.length, self.gpus = words, length, gpus

    def embedding(self, words):
        return self.add("Embedding", [INPUT], [self.length, self.width], words * self.width)

    def conv1d(self, at, out):
        """transformers.Conv1D"""
        at = self.linear(at, out)
        self.layers[at]["type"] = "Conv1D"
        return at

    def one(self, kind, at):
        """An operator with a number or something as small, which keeps nothing."""
        return self.add(kind, [at], like="Add")

    def product(self, kind, factors, shape=None):
        """Keeps all its factors."""
        return self.add(kind, factors, shape or [self.length, self.width], like="Multiply")

    def plain(self, kind, at, shape):
        """An operator that makes a tensor of this shape and keeps nothing."""
        return self.add(kind, [at], shape, like="Pad")

    def gathered(self, at, width):
        """The outputs of all replicas that DataParallel gathers on the first GPU, `width` numbers for each word. They are
        kept until the next step's are there, so for a whole step."""
        if self.gpus > 1:
            self.add("gather", [at], [self.gpus * self.length, width])


def bert(m):
    """Post-norm; query, key and value apart; a fused attention that keeps them and its output."""
    at, segments = m.embedding(TIED), m.embedding(2)
    at = m.sum(at, segments)
    at = m.dropout(m.layer_norm(m.sum(at, m.embedding(512))))
    for _ in range(m.count):
        parts = [m.linear(at, m.width) for _ in range(3)]
        side = m.linear(m.product("scaled_dot_product_attention", parts), m.width)
        at = m.layer_norm(m.sum(m.dropout(side), at))
        side = m.linear(m.activation(m.linear(at, m.inner), "GELU"), m.width)
        at = m.layer_norm(m.sum(m.dropout(side), at))
    at = m.layer_norm(m.activation(m.linear(at, m.width), "GELU"))
    m.linear(at, m.words)


def tanh_gelu(m, x):
    """0.5 x (1 + tanh(c (x + 0.044715 x^3))), an operator each; x^3 keeps x as GELU would."""
    at = m.add("pow", [x], like="GELU")
    at = m.one("mul", m.sum(m.one("mul", at), x))
    other = m.one("add", m.activation(at, "Tanh"))
    half = m.one("mul", x)
    return m.product("mul", [half, other], m.shape(half))


def gpt2(m):
    """Pre-norm; query, key and value in one; GELU's tanh form spelt out."""
    at = m.embedding(TIED)
    at = m.dropout(m.sum(at, m.embedding(1024)))
    # besides the logits the keys and values of all layers, for generating text
    m.gathered(at, m.words + 2 * m.count * m.width)
    for _ in range(m.count):
        side = m.product("scaled_dot_product_attention", [m.conv1d(m.layer_norm(at), 3 * m.width)])
        side = m.conv1d(side, m.width)
        at = m.sum(m.dropout(side), at)
        side = m.conv1d(m.layer_norm(at), m.inner)
        side = m.conv1d(tanh_gelu(m, side), m.width)
        at = m.sum(at, m.dropout(side))
    at = m.linear(m.layer_norm(at), m.words, False)
    m.one("contiguous", at)  # without the last word: its target is not known


class XlnetLayer:
    """For both streams: the second, which predicts, has the first one's weights."""

    def __init__(self, m, content, positions):
        self.m, self.shared = m, False
        self.key, self.value = m.linear(content, m.width, False), m.linear(content, m.width, False)
        self.positions = m.linear(positions, m.width, False)

    def own(self, at):
        if self.shared:
            self.m.layers[at]["parameters"] = 0
        return at

    def linear(self, at, out, bias):
        return self.own(self.m.linear(at, out, bias))

    def norm(self, at, around):
        return self.own(self.m.layer_norm(self.m.sum(self.m.dropout(at), around)))

    def scores(self, query, keys, length):
        """Queries times keys: for each head, as many scores as the keys are long. A bias of its own, the same for all
        queries."""
        return self.m.product("einsum", [self.m.one("add", query), keys], [self.m.heads, self.m.length, length])

    def attention(self, at):
        m = self.m
        query = self.linear(at, m.width, False)
        content = self.scores(query, self.key, m.length)
        place = self.scores(query, self.positions, 2 * m.length)
        side = m.sum(content, m.plain("index_select", place, [m.heads, m.length, m.length]))
        side = m.one("sub", m.one("mul", side))  # scaled, masked
        side = m.dropout(m.softmax(side))
        return self.norm(self.linear(m.product("einsum", [side, self.value]), m.width, False), at)

    def feed(self, at):
        side = self.m.activation(self.linear(at, self.m.inner, True), "GELU")
        return self.norm(self.linear(self.m.dropout(side), self.m.width, True), at)


def xlnet(m):
    """Two streams; relative positions; attention with its matrix of scores."""
    words = m.embedding(TIED)
    content, query = m.dropout(words), m.dropout(words)  # the query: of the one mask embedding for every place
    positions = m.dropout(m.plain("positions", words, [2 * m.length, m.width]))
    # besides the logits the first stream of all layers, for texts in pieces
    m.gathered(words, m.words + m.count * m.width)
    for _ in range(m.count):
        layer = XlnetLayer(m, content, positions)
        content = layer.attention(content)
        layer.shared = True
        query = layer.attention(query)
        layer.shared = False
        content = layer.feed(content)
        layer.shared = True
        query = layer.feed(query)
    m.linear(query, m.words)


def language(row, gpus):
    """None: the row's name begins like no known architecture's, or it lacks a size."""
    sizes = [row.number_of(column, 1, most, 1, 0) for column, most in (
        ("num_layers", 1000), ("hidden", 1 << 18), ("ff", 1 << 18), ("heads", 1024), ("vocab", 1 << 22),
        ("seq_len", 1 << 20))]  # fmt: skip
    for prefix, build in (("BERT", bert), ("gpt2", gpt2), ("xlnet", xlnet)):
        if row["model"].startswith(prefix) and all(sizes):
            model = Language(row, *sizes, gpus)
            build(model)
            return model.finish()
    return None
