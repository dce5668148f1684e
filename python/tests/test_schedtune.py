"""schedtune's answers in C are those of the same table in Python, on every measured row, with and without folds.
Usage: test_schedtune.py CARMA BENCH_FEATURES; the measured runs are in ../shared."""

import csv
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "gpumemnet"
sys.path.insert(0, str(ROOT / "python"))
try:
    import numpy
except ImportError:
    print("skipped: numpy is not there")
    sys.exit(77)
from carma_train import blob, features, trees  # noqa: E402

KINDS = ("mlp", "cnn", "transformer")


def text_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


class Schedtune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "features.csv")
            path.write_text(text_of(FEATURES, *(f"{kind}:{DATA}/{kind}.csv" for kind in KINDS)), encoding="ascii")
            cls.rows = features.Rows(path)
        cls.table = blob.read(ROOT / "data/models/schedtune.bin")

    def expected(self, folds):
        """MiB by row's key."""
        rows, said = self.rows, numpy.zeros(len(self.rows.key))
        for fold in range(5):
            part = rows.fold == fold
            said[part] = trees.total(self.table, f"fold{fold}" if folds else "all", rows.utilisation[part])
        context = rows.context_bytes + rows.cudnn_bytes * (rows.convolutions > 0)
        return dict(zip(rows.key.tolist(), (numpy.exp(said) - features.CONTEXT_BYTES + context) / features.MIB))

    def check(self, *options):
        expected, count = self.expected(bool(options)), 0
        for kind in KINDS:
            text = text_of(CARMA, "evaluate", "--dataset", f"{kind}:{DATA}/{kind}.csv", "--estimator", "schedtune",
                           "--rows", *options)
            for row in csv.DictReader(io.StringIO(text)):
                self.assertAlmostEqual(float(row["median_mib"]), expected[int(row["key"], 16)], 2, row["name"])
                count += 1
        self.assertEqual(count, len(self.rows.key))

    def test_the_table_is_of_these_features(self):
        self.assertEqual(int(self.table["features"][0]), features.hash_of(self.rows.utilisation_names))

    def test_answers_of_all_rows(self):
        self.check()

    def test_answers_of_models_that_have_not_seen_the_row(self):
        self.check("--folds")


if __name__ == "__main__":
    CARMA, FEATURES = sys.argv[1:3]
    if not DATA.is_dir():
        print(f"skipped: there is no {DATA}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
