"""Prints the figures of data/models/gpumemnet.md: python3 -m carma_train.gpumemnet_report --data DIR --model FILE

With --classes FILE (the output of bench-gpumemnet) it compares carma's class of every row with PyTorch's instead. It
fails where one differs by more than the rounding of its logits."""

import argparse
import pathlib
import sys

import numpy
import torch

from carma_train import gpumemnet_data as data
from carma_train import gpumemnet_models as models

TOLERANCE = 1e-3  # of a logit
QUANTILES = (0.5, 0.9, 0.95, 0.98, 0.99)


def print_scores(label, predicted, actual):
    found = models.scores(predicted, actual)
    print(f"| {label} | {found.rows} | {found.accuracy:.3f} | {found.precision:.3f} | {found.recall:.3f} | "
          f"{found.f1:.3f} | {found.below:.3f} |")


def print_family(family, rows, tables):
    print(f"\n{family.name}, classes of {family.width_mib} MiB\n")
    print("| kind, fold | rows | accuracy | precision | recall | F1 | too low |\n|---|---|---|---|---|---|---|")
    for kind in models.KINDS:
        logits = tables.logits_of_folds(family, kind, rows)
        predicted = logits.argmax(1)
        for fold in range(data.FOLDS):
            mine = rows.folds == fold
            print_scores(f"{kind}, {fold}", predicted[mine], rows.classes[mine])
        print_scores(f"**{kind}, all**", predicted, rows.classes)
        if family.oom:
            print_scores(f"{kind}, without out-of-memory rows", predicted[~rows.oom], rows.classes[~rows.oom])
        else:  # class pairs: the thesis's 2 GB
            pairs = numpy.arange(family.count) + family.first
            votes = tables.probabilities(logits)
            wide = numpy.stack([votes[:, pairs // 2 == pair].sum(1) for pair in numpy.unique(pairs // 2)], 1)
            print_scores(f"{kind}, as classes of {2 * family.width_mib} MiB", wide.argmax(1),
                         (rows.classes + family.first) // 2 - family.first // 2)
    print_coverage(family, rows, tables)


def print_coverage(family, rows, tables):
    """How often the class at a quantile, which is never below the likeliest one, was enough."""
    print(f"\n| {family.name}, class at quantile | " + " | ".join(str(wanted) for wanted in QUANTILES) + " |")
    print("|---" * (len(QUANTILES) + 1) + "|")
    for kind in models.KINDS:
        probabilities = tables.probabilities(tables.logits_of_folds(family, kind, rows))
        sums, best = probabilities.cumsum(1), probabilities.argmax(1)
        found = [numpy.maximum(numpy.minimum((sums < wanted).sum(1), family.count - 1), best) for wanted in QUANTILES]
        rates = (f"{numpy.mean(enough >= rows.classes):.3f}" for enough in found)
        print(f"| {kind}: enough for | " + " | ".join(rates) + " |")


def read_classes(path):
    """(family, kind, key, fold) -> class, logits"""
    found = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            key, family, kind, fold, best, *logits = line.split()
            found[family, kind, int(key, 16), int(fold)] = int(best), numpy.array(logits, dtype=float)
    return found


def compare(family, rows, tables, found):
    """The rows with different classes though the logits lie further apart than rounding explains."""
    bad = 0
    for kind in models.KINDS:
        for name, logits in (("clean folds", tables.logits_of_folds(family, kind, rows)),
                             ("all rows", tables.logits(family, kind, models.ALL, rows.features, rows.tuples))):
            worst, differ, margins = 0.0, 0, []
            for key, fold, mine in zip(rows.keys, rows.folds, logits):
                best, theirs = found[family.name, kind, int(key), int(fold) if name == "clean folds" else -1]
                worst = max(worst, float(numpy.abs(theirs - mine).max()))
                if best != mine.argmax():
                    differ += 1
                    margins.append(float(mine.max() - mine[best]))
            unexplained = sum(margin > TOLERANCE for margin in margins)
            bad += unexplained + (worst > TOLERANCE)
            ties = f"; margins of those: {', '.join(f'{margin:.2g}' for margin in margins)}" if margins else ""
            print(f"{family.name} {kind}, {name}: {len(rows)} rows, {differ} classes differ, logits by at most "
                  f"{worst:.2g}{ties}")
    return bad


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True,
                        help="directory with mlp.csv, cnn.csv and transformer.csv")
    parser.add_argument("--model", type=pathlib.Path, required=True, help="data/models/gpumemnet.bin")
    parser.add_argument("--classes", type=pathlib.Path)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tables, bad = models.Models(options.model), 0
    found = read_classes(options.classes) if options.classes else None
    for family in data.FAMILIES.values():
        rows = data.read(options.data / f"{family.name}.csv", family)
        if found is None:
            print_family(family, rows, tables)
        else:
            bad += compare(family, rows, tables, found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
