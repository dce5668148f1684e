"""Trees as carma_train writes them: thresholds that keep a float32's side, sums from the arrays alone."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

try:
    import numpy
except ImportError:
    numpy = None


@unittest.skipUnless(numpy, "numpy is not installed")
class Trees(unittest.TestCase):
    def setUp(self):
        from carma_train import blob, trees
        self.trees = trees
        self.table = blob.read(ROOT / "tests/golden/trees.bin")

    def test_thresholds_round_down(self):
        for number in (0.1, -0.1, 1 / 3, 1e-40, 7.0, 16777217.0, -16777217.0):
            rounded = self.trees.float32_at_most(number)
            self.assertIsInstance(rounded, numpy.float32)
            self.assertLessEqual(float(rounded), number)
            self.assertGreater(float(numpy.nextafter(rounded, numpy.float32(numpy.inf))), number)

    def test_sums_are_those_of_the_models(self):
        sums = self.trees.total(self.table, "all/test", self.table["rows"])
        self.assertGreater(len(sums), 100)
        self.assertLess(numpy.abs(sums - self.table["expected"]).max(), 1e-5)

    def test_unknown_decisions_are_refused(self):
        leaf = {"leaf_value": 1.0}
        node = {"decision_type": "==", "split_feature": 0, "threshold": 1.0, "left_child": leaf, "right_child": leaf}
        with self.assertRaises(ValueError):
            self.trees._append(node, [], 1)


if __name__ == "__main__":
    unittest.main()
