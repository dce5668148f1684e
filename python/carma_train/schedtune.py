"""Trains SchedTune's idea: python3 -m carma_train.schedtune FEATURES.csv data/models/schedtune.bin

FEATURES.csv is the output of bench-features (README.md here). One regression for all families: boosted trees, ln of the
bytes from counts of the model. Runs out of memory count as a tenth more than the GPU has: how much they needed is not
known."""

import argparse
import sys

import lightgbm
import numpy

from . import blob, features, trees

FOLDS = 5
OUT_OF_MEMORY = 1.1
PUBLISHED = ("U_ACTIVATIONS", "U_PARAMETERS", "U_INPUT")  # what the authors' program asks of a model


def fit(counts, target):
    return lightgbm.LGBMRegressor(n_estimators=150, num_leaves=16, learning_rate=0.1, min_child_samples=8, random_state=0,
                                  n_jobs=1, deterministic=True, force_row_wise=True, verbose=-1).fit(counts, target)


def needs(rows):
    """Bytes as if the context were that of the trees: with cuDNN where there are convolutions, as carma adds it."""
    context = rows.context_bytes + rows.cudnn_bytes * (rows.convolutions > 0)
    measured = numpy.where(rows.out_of_memory, OUT_OF_MEMORY * rows.memory_bytes, rows.measured_bytes)
    return measured + features.CONTEXT_BYTES - context


def without(part, counts, target, table=None):
    """The answers of models that were trained without the row's part; these go to the table as folds."""
    said = numpy.zeros(len(target))
    for k in numpy.unique(part):
        model = fit(counts[part != k], target[part != k])
        said[part == k] = model.predict(counts[part == k])
        if table is not None:
            table.update(trees.arrays(f"fold{k}", [model]))
    return said


def report(title, rows, said, target):
    off = numpy.abs(numpy.exp(said - target) - 1)
    for kind in ("mlp", "cnn", "transformer"):
        chosen = off[(rows.kind == kind) & ~rows.out_of_memory]
        print(f"{title}, {kind}: {len(chosen)} rows that fitted, mape {chosen.mean():.4f} "
              f"median {numpy.median(chosen):.4f} worst {chosen.max():.4f}")


def main(arguments):
    parser = argparse.ArgumentParser(prog="carma_train.schedtune", description=__doc__.splitlines()[0])
    parser.add_argument("features")
    parser.add_argument("model")
    options = parser.parse_args(arguments)
    rows = features.Rows(options.features)
    counts, target = rows.utilisation, numpy.log(needs(rows))
    table = {"features": numpy.array([features.hash_of(rows.utilisation_names)], numpy.uint64)}
    report("rows of other folds", rows, without(rows.fold, counts, target, table), target)
    three = counts[:, [rows.utilisation_names.index(name) for name in PUBLISHED]]
    report("the same by the published counts alone", rows, without(rows.fold, three, target), target)
    architecture = numpy.unique(numpy.char.add(rows.kind, rows.group), return_inverse=True)[1]
    report("architectures left out", rows, without(architecture, counts, target), target)
    everything = fit(counts, target)
    table.update(trees.arrays("all", [everything]))
    worst = numpy.abs(trees.total(table, "all", counts) - everything.predict(counts)).max()
    if worst > 1e-4:
        raise ValueError(f"the arrays give other sums than the model, by {worst}")
    for kind in ("mlp", "cnn", "transformer"):
        table[f"rows/{kind}"] = numpy.sort(rows.key[rows.kind == kind])
    blob.write(options.model, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
