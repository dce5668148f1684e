"""The trained tables as PyTorch networks: carma's C must come to the same results."""

import collections

import numpy

from carma_train import blob
from carma_train import gpumemnet_data as data
from carma_train import gpumemnet_nets as nets

KINDS = ("ensemble", "encoder")
ALL = data.FOLDS  # the index of the model of all rows


class Models:
    def __init__(self, path):
        self.arrays = blob.read(path)
        self._built = {}

    def _net(self, family, kind, index):
        if kind == "ensemble":
            members = [tuple(int(number) for number in row) for row in self.arrays[f"{family.name}/ensemble/members"]]
            net = nets.Ensemble(len(family.ensemble), family.count, members)
        else:
            shape = [int(number) for number in self.arrays[f"{family.name}/encoder/shape"]]
            net = nets.Encoder(family.types, len(family.encoder), family.count, *shape)
        return nets.unpack(net, self.arrays[f"{family.name}/{kind}/weights"][index])

    def logits(self, family, kind, index, features, tuples):
        """[row][class] of rows with these features and tuples; index: a fold, or ALL."""
        place = (family.name, kind, index)
        if place not in self._built:
            self._built[place] = self._net(family, kind, index)
        scale = nets.Scale(self.arrays[f"{family.name}/{kind}/scale"][index])
        batch = nets.Batch.of(family, kind, scale, features, tuples)
        return nets.logits_of(self._built[place], batch, numpy.arange(len(tuples)))

    def probabilities(self, logits):
        return sharpen(softmax(logits), float(self.arrays["smoothing"][0]))

    def logits_of_folds(self, family, kind, rows):
        """[row][class], every row by the model that has not seen it."""
        logits = numpy.zeros((len(rows), family.count), dtype=numpy.float32)
        for fold in range(data.FOLDS):
            mine = numpy.flatnonzero(rows.folds == fold)
            logits[mine] = self.logits(family, kind, fold, rows.features[mine], [rows.tuples[row] for row in mine])
        return logits


def softmax(logits):
    powers = numpy.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def sharpen(votes, smoothing):
    """The estimate of a net that was trained on smoothed labels: the part that the smoothing gave every class is taken
    off again."""
    votes = numpy.maximum(votes - smoothing / votes.shape[1], 0)
    return votes / votes.sum(1, keepdims=True)


Scores = collections.namedtuple("Scores", "rows accuracy precision recall f1 below")


def scores(predicted, actual):
    """Precision, recall and F1 as means over the classes weighted by their rows, as the thesis's tables have them.
    below: the part of rows with too low a class."""
    total = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    for one in numpy.unique(actual):
        hit = numpy.sum((predicted == one) & (actual == one))
        guessed, there = numpy.sum(predicted == one), numpy.sum(actual == one)
        precision, recall = hit / guessed if guessed else 0.0, hit / there
        weight = there / len(actual)
        total["precision"] += weight * precision
        total["recall"] += weight * recall
        total["f1"] += weight * (2 * precision * recall / (precision + recall) if hit else 0.0)
    return Scores(len(actual), float(numpy.mean(predicted == actual)), below=float(numpy.mean(predicted < actual)),
                  **total)
