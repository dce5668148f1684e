"""GPUMemNet's two kinds of network (thesis 5.4.4, figure 5.7), and how their weights lie in data/models/gpumemnet.bin.

Weights are half-precision numbers in the order of weights_of(); a dense layer's matrix is [input][output], then its
bias. src/estimate/learned/gpumemnet_classify.c reads them in the same order.
"""

import collections
import math

import numpy
import torch
from torch import nn

from carma_train import gpumemnet_data as data

# (depth, width) of the ensemble's members: hidden layers and neurons in each.
MEMBERS = tuple((depth, 24) for depth in range(1, 8)) + tuple((depth, 40) for depth in range(1, 7))
WIDTH, HEADS, FORWARD, LAYERS, HEAD = 16, 2, 32, 2, 64  # of the encoder
LIMIT = 10.0  # a standardised feature's largest absolute value


def member(depth, width, inputs, outputs):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


class Ensemble(nn.Module):
    """Soft vote: the logarithm of the members' mean probability."""

    def __init__(self, inputs, outputs, members=MEMBERS):
        super().__init__()
        self.members = nn.ModuleList(member(depth, width, inputs, outputs) for depth, width in members)

    def forward(self, batch):
        votes = torch.stack([torch.softmax(net(batch.features), 1) for net in self.members])
        return votes.mean(0).clamp_min(1e-30).log()


class Encoder(nn.Module):
    """A transformer encoder over the layer tuples, which it takes as a set: no position is added, since summaries list
    branches in different orders. Every tuple also carries the summary features. A tuple that counts n times is n equal
    ones. Attention to it is n times as much: the logarithm of n is added to its score."""

    def __init__(self, types, inputs, outputs, width=WIDTH, heads=HEADS, forward=FORWARD, layers=LAYERS, head=HEAD):
        super().__init__()
        self.kinds = nn.Embedding(types, width)
        self.sizes = nn.Linear(2, width)
        self.summary = nn.Linear(inputs, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, forward, 0.0, batch_first=True)
                                    for _ in range(layers))
        self.hidden = nn.Linear(2 * width + inputs, head)
        self.out = nn.Linear(head, outputs)

    def forward(self, batch):
        mask = batch.counts.log()  # -inf beyond a row's end
        x = self.kinds(batch.types) + self.sizes(batch.sizes) + self.summary(batch.features)[:, None]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=mask)
        missing = (batch.counts == 0)[..., None]
        mean = (x.masked_fill(missing, 0) * batch.counts[..., None]).sum(1) / batch.counts.sum(1)[:, None]
        most = x.masked_fill(missing, -torch.inf).max(1)[0]
        return self.out(torch.relu(self.hidden(torch.cat([mean, most, batch.features], 1))))


def build(kind, family):
    if kind == "ensemble":
        return Ensemble(len(family.ensemble), family.count)
    return Encoder(family.types, len(family.encoder), family.count)


def _dense(layer):
    return [layer.weight.T, layer.bias]


def weights_of(net):
    """Tensors that share the net's memory, in the order of the file."""
    if isinstance(net, Ensemble):
        layers = [layer for one in net.members for layer in one if isinstance(layer, nn.Linear)]
        return [tensor for layer in layers for tensor in _dense(layer)]
    tensors = [net.kinds.weight, *_dense(net.sizes), *_dense(net.summary)]
    for layer in net.layers:
        tensors += [layer.self_attn.in_proj_weight.T, layer.self_attn.in_proj_bias, *_dense(layer.self_attn.out_proj),
                    layer.norm1.weight, layer.norm1.bias, *_dense(layer.linear1), *_dense(layer.linear2),
                    layer.norm2.weight, layer.norm2.bias]
    return tensors + [*_dense(net.hidden), *_dense(net.out)]


def pack(net):
    flat = [tensor.detach().contiguous().numpy().ravel() for tensor in weights_of(net)]
    return numpy.concatenate(flat).astype(numpy.float16).view(numpy.uint16)


def unpack(net, packed):
    values = torch.from_numpy(packed.view(numpy.float16).astype(numpy.float32))
    tensors = weights_of(net)
    if sum(tensor.numel() for tensor in tensors) != len(values):
        raise ValueError(f"{len(values)} weights for a net of {sum(tensor.numel() for tensor in tensors)}")
    with torch.no_grad():
        at = 0
        for tensor in tensors:
            tensor.copy_(values[at:at + tensor.numel()].view(tensor.shape))
            at += tensor.numel()
    return net.eval()


class Scale:
    """Means and inverse deviations: of a kind's features, then of log(1 + activations) and log(1 + parameters)."""

    def __init__(self, array):
        self.array = numpy.asarray(array, dtype=numpy.float32)

    @classmethod
    def fitted(cls, features, tuples):
        sizes = numpy.log1p(numpy.array([layer[1:] for row in tuples for layer in row], dtype=numpy.float64))
        mean = numpy.concatenate([features.mean(0), sizes.mean(0)])
        deviation = numpy.concatenate([features.std(0), sizes.std(0)])
        return cls([mean, 1 / numpy.maximum(deviation, 1e-6)])

    def _apply(self, values, columns):
        mean, inverse = self.array[:, columns].astype(numpy.float64)
        return numpy.clip((values - mean) * inverse, -LIMIT, LIMIT).astype(numpy.float32)

    def features(self, values):
        return self._apply(values, slice(0, -2))

    def sizes(self, tuples):
        sizes = numpy.array([layer[1:] for layer in tuples], dtype=numpy.float64)
        return self._apply(numpy.log1p(sizes), slice(-2, None))


class Batch:
    """Rows as a net takes them; pick() makes smaller ones, no longer than their longest row."""

    def __init__(self, features, types, sizes, counts, lengths):
        self.features, self.types, self.sizes, self.counts, self.lengths = features, types, sizes, counts, lengths

    @classmethod
    def of(cls, family, kind, scale, features, tuples):
        """Where networks repeat their blocks, equal tuples of a row are taken once, with their count. That is fast, and
        changes the encoder's result by rounding alone."""
        if family.repeats:
            rows = [list(collections.Counter(row).items()) for row in tuples]
        else:
            rows = [[(layer, 1) for layer in row] for row in tuples]
        lengths = [len(row) for row in rows]
        types = numpy.zeros((len(rows), max(lengths)), dtype=numpy.int64)
        sizes = numpy.zeros((len(rows), max(lengths), 2), dtype=numpy.float32)
        counts = numpy.zeros((len(rows), max(lengths)), dtype=numpy.float32)
        for index, row in enumerate(rows):
            types[index, :len(row)] = [layer[0] for layer, _count in row]
            sizes[index, :len(row)] = scale.sizes([layer for layer, _count in row])
            counts[index, :len(row)] = [count for _layer, count in row]
        columns = [data.FEATURES.index(name) for name in getattr(family, kind)]
        return cls(torch.from_numpy(scale.features(features[:, columns])), torch.from_numpy(types),
                   torch.from_numpy(sizes), torch.from_numpy(counts), torch.tensor(lengths))

    def pick(self, rows):
        lengths = self.lengths[rows]
        longest = int(lengths.max())
        return Batch(self.features[rows], self.types[rows, :longest], self.sizes[rows, :longest],
                     self.counts[rows, :longest], lengths)


def logits_of(net, batch, rows):
    """[row][class]; rows of like length together. Gradients stay on: without them PyTorch takes a fused path, which
    takes counts in the mask for absences."""
    net.eval()
    order = rows[numpy.argsort(batch.lengths[rows].numpy(), kind="stable")]
    found = {}
    for part in numpy.array_split(order, max(1, math.ceil(len(order) / 64))):
        for row, logits in zip(part, net(batch.pick(part)).detach().numpy()):
            found[row] = logits
    return numpy.stack([found[row] for row in rows])
