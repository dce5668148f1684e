"""Writes tests/golden/trees.bin: python3 -m carma_train.trees_golden tests/golden/trees.bin

Small trees on made-up numbers, with LightGBM's answers for some rows: test_estimate_trees.c comes to the same. Among
the rows are thresholds themselves and their neighbours, where a comparison could go the other way."""

import sys

import lightgbm
import numpy

from . import blob, trees

FEATURES = 5


def main(arguments):
    draw = numpy.random.default_rng(4)
    features = draw.normal(size=(400, FEATURES)).astype(numpy.float32)
    target = features[:, 0] * features[:, 1] + numpy.sin(3 * features[:, 2]) + 0.1 * draw.normal(size=400)
    models = [lightgbm.LGBMRegressor(n_estimators=12, num_leaves=7, min_child_samples=5, random_state=seed, n_jobs=1,
                                     verbose=-1).fit(features, target) for seed in range(2)]
    table = trees.arrays("all/test", models)
    inner = table["all/test/feature"] != trees.LEAF
    rows = [features[:40]]
    for feature, threshold in list(zip(table["all/test/feature"][inner], table["all/test/value"][inner]))[:40]:
        near = numpy.repeat(features[:1], 3, axis=0)
        near[:, feature] = [numpy.nextafter(threshold, numpy.float32(9)), threshold,
                            numpy.nextafter(threshold, numpy.float32(-9))]
        rows.append(near)
    rows = numpy.concatenate(rows)
    table["rows"] = rows
    table["expected"] = numpy.mean([model.predict(rows) for model in models], axis=0).astype(numpy.float32)
    blob.write(arguments[0], table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
