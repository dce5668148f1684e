"""Trains SM activity and occupancy: python3 -m carma_train.utilisation FEATURES.csv data/models/utilisation.bin

FEATURES.csv is the output of bench-features (README.md here). Runs out of memory and such without a recorded activity (0)
are left out: those measured nothing of a training."""

import argparse
import sys

import lightgbm
import numpy

from . import blob, features, trees

FOLDS = 5


def model():
    return lightgbm.LGBMRegressor(n_estimators=120, num_leaves=8, learning_rate=0.1,
                                  subsample=0.8, subsample_freq=1, colsample_bytree=0.7, min_child_samples=8,
                                  random_state=0, n_jobs=1, deterministic=True, force_row_wise=True, verbose=-1)


def train(rows, measured, prefix, table):
    """Adds the models' arrays; returns the answers of the models without the row's fold."""
    said = numpy.zeros(len(measured))
    for fold in range(FOLDS):
        other = rows.fold != fold
        fitted = model().fit(rows.utilisation[other], measured[other])
        said[~other] = numpy.clip(fitted.predict(rows.utilisation[~other]), 0, 1)
        table.update(trees.arrays(f"fold{fold}/{prefix}", [fitted]))
    fitted = model().fit(rows.utilisation, measured)
    table.update(trees.arrays(f"all/{prefix}", [fitted]))
    worst = numpy.abs(trees.total(table, f"all/{prefix}", rows.utilisation) - fitted.predict(rows.utilisation)).max()
    if worst > 1e-4:
        raise ValueError(f"{prefix}: the arrays give other sums than the models, by {worst}")
    return said


def main(arguments):
    parser = argparse.ArgumentParser(prog="carma_train.utilisation", description=__doc__.splitlines()[0])
    parser.add_argument("features")
    parser.add_argument("model")
    options = parser.parse_args(arguments)
    rows = features.Rows(options.features)
    table = {"features": numpy.array([features.hash_of(rows.utilisation_names)], numpy.uint64)}
    for kind in ("mlp", "cnn"):
        for name in ("smact", "smocc"):
            used = rows.select((rows.kind == kind) & ~rows.out_of_memory & (getattr(rows, name) > 0))
            measured = getattr(used, name) / 1000
            said = train(used, measured, f"{kind}/{name}", table)
            rest = ((measured - said) ** 2).sum() / ((measured - measured.mean()) ** 2).sum()
            print(f"{kind} {name}, rows of other folds: {len(measured)} rows, R2 {1 - rest:.4f}, "
                  f"mean error {numpy.abs(measured - said).mean():.4f}")
    blob.write(options.model, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
