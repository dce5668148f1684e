"""Trains the replay's correction: python3 -m carma_train.replay FEATURES.csv data/models/replay.bin

FEATURES.csv is the output of bench-features (README.md here). Trees learn ln(need / base) of CNN runs, for all rows and
for each fold without its rows. A run out of memory needs more than the GPU has, and is taken to need OVER times as
much. Second trees learn how large the error is. The quantiles are those of the errors on rows that the trees had not
seen."""

import argparse
import sys

import lightgbm
import numpy

from . import blob, features, trees

FOLDS = 5
KIB = 1024
SEEDS = 2
SPREAD_SEEDS = 4
OVER = 1.025
OUT_OF_MEMORY_WEIGHT = 0.3
LEAST_SPREAD = 0.005
SPREAD_POWER = 0.85  # with 1 the margins of rows of other folds are larger at the same rate
LEVELS = numpy.array([10, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 975, 980, 985, 990, 995, 999],
                     numpy.int32)
MIDDLE = list(LEVELS).index(500)


def ratio_model(seed):
    return lightgbm.LGBMRegressor(objective="l1", n_estimators=200, num_leaves=14, learning_rate=0.08, subsample=0.8,
                                  subsample_freq=1, colsample_bytree=0.5, min_child_samples=5, random_state=seed,
                                  n_jobs=1, deterministic=True, force_row_wise=True, verbose=-1)


def spread_model(seed):
    return lightgbm.LGBMRegressor(n_estimators=80, num_leaves=8, learning_rate=0.13, subsample=0.7, subsample_freq=1,
                                  colsample_bytree=0.4, min_child_samples=8, random_state=seed, n_jobs=1,
                                  deterministic=True, force_row_wise=True, verbose=-1)


def target(rows):
    """ln(need / base)."""
    over = numpy.maximum(numpy.log(OVER * rows.most_bytes / rows.base_bytes), 0)
    return numpy.where(rows.out_of_memory, over, numpy.log(numpy.maximum(rows.need_bytes, 1) / rows.base_bytes))


def weights(rows):
    return numpy.where(rows.out_of_memory, OUT_OF_MEMORY_WEIGHT, 1.0)


def fit_ratio(rows, seeds=SEEDS):
    return [ratio_model(seed).fit(rows.features, target(rows), sample_weight=weights(rows)) for seed in range(seeds)]


def predict(models, rows):
    return numpy.mean([model.predict(rows.features) for model in models], axis=0)


def error(rows, ratio):
    """ln(measured / estimate); an estimate is at most the GPU's memory."""
    estimate = numpy.minimum(rows.base_bytes * numpy.exp(ratio), rows.most_bytes)
    return numpy.log(rows.need_bytes / estimate)


def fit_spread(rows, errors):
    """For runs that fitted: ln of their error's size."""
    fitted = ~rows.out_of_memory
    size = SPREAD_POWER * numpy.log(numpy.abs(errors[fitted]) + LEAST_SPREAD)
    return [spread_model(seed).fit(rows.features[fitted], size) for seed in range(SPREAD_SEEDS)]


def quantiles(scaled):
    """Of errors: the k-th of n is enough for a new one with probability k / (n + 1)."""
    ordered = numpy.sort(scaled)
    places = numpy.clip(numpy.ceil(LEVELS / 1000 * (len(ordered) + 1)).astype(int), 1, len(ordered)) - 1
    row = ordered[places] - ordered[places[MIDDLE]]
    return row.astype(numpy.float32)


def quantile_table(scaled, fold):
    """For all, then for each fold without its own."""
    return numpy.array([quantiles(scaled)] + [quantiles(scaled[fold != k]) for k in range(FOLDS)], numpy.float32)


def out_of_fold(rows, fold):
    """The answer of models without the row's fold: ln ratio, and the models by fold."""
    ratio, models = numpy.zeros(len(rows.key)), {}
    for k in numpy.unique(fold):
        models[k] = fit_ratio(rows.select(fold != k))
        ratio[fold == k] = predict(models[k], rows.select(fold == k))
    return ratio, models


def offset_table(rows):
    """KiB that the median run needs more than replay and context; for all, then for each fold without its own."""
    more = (rows.measured_bytes - rows.reserved_bytes - rows.context_bytes) / KIB
    medians = [numpy.median(more)] + [numpy.median(more[rows.fold != k]) for k in range(FOLDS)]
    return numpy.array(medians).astype(numpy.int32)


def train_cnn(rows, table):
    ratio, models = out_of_fold(rows, rows.fold)
    errors = error(rows, ratio)
    spread = numpy.zeros(len(rows.key))
    for k in range(FOLDS):
        spread_models = fit_spread(rows.select(rows.fold != k), errors[rows.fold != k])
        spread[rows.fold == k] = predict(spread_models, rows.select(rows.fold == k))
        table.update(trees.arrays(f"fold{k}/ratio", models[k]))
        table.update(trees.arrays(f"fold{k}/spread", spread_models))
    all_ratio, all_spread = fit_ratio(rows), fit_spread(rows, errors)
    table.update(trees.arrays("all/ratio", all_ratio))
    table.update(trees.arrays("all/spread", all_spread))
    check(table, "all/ratio", rows, predict(all_ratio, rows))
    check(table, "all/spread", rows, predict(all_spread, rows))
    bounds = numpy.concatenate([numpy.quantile(target(rows), [0.001, 0.999]), numpy.quantile(spread, [0.001, 0.999]),
                                [spread.mean()]])
    table["bounds"] = bounds.astype(numpy.float32)
    table["range"] = numpy.array([rows.features.min(axis=0), rows.features.max(axis=0)], numpy.float32)
    limited = numpy.clip(spread, *table["bounds"][2:4])
    fitted = ~rows.out_of_memory
    table["quantile/cnn"] = quantile_table((errors / numpy.exp(limited))[fitted], rows.fold[fitted])
    return ratio, limited


def check(table, prefix, rows, expected):
    worst = numpy.abs(trees.total(table, prefix, rows.features) - expected).max()
    if worst > 1e-4:
        raise ValueError(f"{prefix}: the arrays give other sums than the models, by {worst}")


def report(name, rows, ratio):
    estimate = rows.base_bytes * numpy.exp(ratio)
    fitted = ~rows.out_of_memory

    def bins(size, over):
        return numpy.where(over, 99, size // (8000 * features.MIB))

    shift = rows.need_bytes - rows.measured_bytes
    said = bins(numpy.minimum(estimate - shift, rows.memory_bytes), estimate > rows.most_bytes)
    true = bins(rows.measured_bytes, rows.out_of_memory)
    off = numpy.abs(numpy.exp(-error(rows, ratio)) - 1)[fitted]
    print(f"{name}: {len(rows.key)} rows, bins right {numpy.mean(said == true):.4f} "
          f"too low {numpy.mean(said < true):.4f}; "
          f"that fitted: mape {off.mean():.4f} median {numpy.median(off):.4f}")


def main(arguments):
    parser = argparse.ArgumentParser(prog="carma_train.replay", description=__doc__.splitlines()[0])
    parser.add_argument("features")
    parser.add_argument("model")
    parser.add_argument("--leave-one-out", action="store_true", help="also report architectures that were left out")
    options = parser.parse_args(arguments)
    rows = features.Rows(options.features)
    table = {"features": numpy.array([features.hash_of(rows.names)], numpy.uint64), "quantile/levels": LEVELS}
    cnn = rows.select(rows.kind == "cnn")
    ratio, _ = train_cnn(cnn, table)
    report("cnn, rows of other folds", cnn, ratio)
    if options.leave_one_out:
        _, group = numpy.unique(cnn.group, return_inverse=True)
        report("cnn, architectures left out", cnn, out_of_fold(cnn, group)[0])
    for kind in ("mlp", "transformer"):
        plain = rows.select((rows.kind == kind) & ~rows.out_of_memory)
        offsets = offset_table(plain)
        table[f"offset/{kind}"] = offsets
        offset = offsets[1 + plain.fold] * float(KIB)
        errors = numpy.log(plain.measured_bytes / (plain.reserved_bytes + plain.context_bytes + offset))
        off = numpy.abs(numpy.exp(-errors) - 1)
        print(f"{kind}, with the offset of other folds: {len(errors)} rows that fitted, mape {off.mean():.4f} "
              f"median {numpy.median(off):.4f}")
        table[f"quantile/{kind}"] = quantile_table(errors, plain.fold)
    for kind in ("mlp", "cnn", "transformer"):
        table[f"rows/{kind}"] = numpy.sort(rows.key[rows.kind == kind])
    blob.write(options.model, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
