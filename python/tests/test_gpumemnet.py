"""GPUMemNet's training side: keys, tuples, features, scores; with PyTorch also packing and the encoder as a set."""

import math
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
try:
    import numpy
except ImportError:
    print("skipped: numpy is not there")
    sys.exit(77)
from carma_train import blob  # noqa: E402
from carma_train import gpumemnet_data as data  # noqa: E402

try:
    import torch
    from carma_train import gpumemnet_models as models
    from carma_train import gpumemnet_nets as nets
except ImportError:
    torch = None

CSV = """arch,batch_size,layers,max_gpu_memory_mib,status
uniform,4,conv2d:200:50|PReLU:200:0|batchnorm2d:200:20|adaptive_avg_pool2d:10:0|linear:10:110|softmax:10:0,15999,SUCCESSFUL
dense,8,conv2d:100:50|ReLU:100:0|linear:10:110,16000,SUCCESSFUL
dense,8,conv2d:100:50|ReLU:100:0|linear:10:110,3,OOM_CRASH
"""


class Data(unittest.TestCase):
    def test_keys_are_fnv_1a(self):
        self.assertEqual(data.key_of(b""), 0xCBF29CE484222325)
        self.assertEqual(data.key_of(b"a"), 0xAF63DC4C8601EC8C)
        self.assertEqual(data.key_of(b"foobar"), 0x85944171F73967E8)

    def test_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "cnn.csv")
            path.write_text(CSV, encoding="ascii")
            rows = data.read(path, data.FAMILIES["cnn"])
        lines = CSV.splitlines()[1:]
        self.assertEqual([int(key) for key in rows.keys], [data.key_of(line.encode()) for line in lines])
        self.assertEqual(list(rows.folds), [data.key_of(line.encode()) % 5 for line in lines])
        self.assertEqual(list(rows.classes), [1, 2, 6])
        features = dict(zip(data.FEATURES, rows.features[0]))
        self.assertEqual([features[name] for name in ("depth", "linear", "conv", "norm", "dropout")], [5, 1, 1, 1, 0])
        self.assertEqual(features["activations"], math.log(620))
        self.assertEqual(features["activations*batch"], math.log(620 * 4))
        self.assertEqual(features["parameters"], math.log(180))
        self.assertAlmostEqual(features["cos"], math.cos(2 * math.pi * 3 / 11), 6)

    def test_the_commonest_activation_counts_and_of_equals_the_first(self):
        def of(text):
            return data.TYPES[data.activation_of(data.tuples_of(text)) + data.FIRST_ACTIVATION]

        self.assertEqual(of("ReLU:1:0|SiLU:1:0|SiLU:1:0"), "silu")
        self.assertEqual(of("SiLU:1:0|ReLU:1:0"), "relu")
        self.assertEqual(of("linear:1:2"), "identity")

    def test_classes(self):
        mlp, cnn = data.FAMILIES["mlp"], data.FAMILIES["cnn"]
        self.assertEqual([data.class_of(mlp, mib, False) for mib in (900, 1999, 2000, 9000)], [0, 0, 1, 3])
        self.assertEqual([data.class_of(cnn, mib, False) for mib in (7999, 8000, 40100, 90000)], [0, 1, 5, 5])
        self.assertEqual(data.class_of(cnn, 100, True), 6)

    def test_tables_are_read_as_written(self):
        arrays = {"a": numpy.arange(6, dtype=numpy.float32).reshape(2, 3), "b/c": numpy.array([7], dtype=numpy.int32),
                  "d": numpy.array([1, 2**63], dtype=numpy.uint64), "e": numpy.array([[1], [2]], dtype=numpy.uint16)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "table.bin")
            blob.write(path, arrays)
            found = blob.read(path)
        self.assertEqual(list(found), list(arrays))
        for name, array in arrays.items():
            self.assertEqual(found[name].dtype, array.dtype)
            self.assertTrue(numpy.array_equal(found[name], array))


@unittest.skipIf(torch is None, "torch is not there")
class Networks(unittest.TestCase):
    def nets(self):
        torch.manual_seed(3)
        for family in data.FAMILIES.values():
            for kind in models.KINDS:
                yield family, kind, nets.build(kind, family).eval()

    def batch(self, family, kind, tuples):
        names = getattr(family, kind)
        scale = nets.Scale([[0.1] * (len(names) + 2), [0.2] * (len(names) + 2)])
        return nets.Batch.of(family, kind, scale, numpy.array([data.features_of(row, 4) for row in tuples]), tuples)

    def test_packing_keeps_what_half_precision_holds(self):
        for family, kind, net in self.nets():
            packed = nets.pack(net)
            self.assertEqual(packed.dtype, numpy.uint16)
            self.assertEqual(len(packed), sum(weight.numel() for weight in net.parameters()))
            again = nets.unpack(nets.build(kind, family), packed)
            self.assertTrue(numpy.array_equal(nets.pack(again), packed))
            tuples = [[(1, 100, 50), (6, 100, 0), (0, 10, 110)]]
            before = nets.logits_of(net, self.batch(family, kind, tuples), numpy.array([0]))
            after = nets.logits_of(again, self.batch(family, kind, tuples), numpy.array([0]))
            self.assertLess(numpy.abs(before - after).max(), 0.01)

    def test_a_row_s_logits_depend_on_neither_order_nor_neighbours(self):
        short = [(1, 1000, 50), (6, 1000, 0), (0, 10, 110)]
        long = [(1, 5000 * step, 70 * step) for step in range(1, 30)]
        for family, kind, net in self.nets():
            alone = nets.logits_of(net, self.batch(family, kind, [short]), numpy.array([0]))[0]
            both = nets.logits_of(net, self.batch(family, kind, [short[::-1], long]), numpy.array([1, 0]))
            self.assertLess(numpy.abs(both[1] - alone).max(), 1e-5)
            self.assertGreater(numpy.abs(both[0] - alone).max(), 1e-4)

    def test_smoothing_is_taken_off(self):
        truth = numpy.array([[0.7, 0.3, 0.0, 0.0]])
        self.assertLess(numpy.abs(models.sharpen(truth * 0.98 + 0.02 / 4, 0.02) - truth).max(), 1e-9)

    def test_scores(self):
        found = models.scores(numpy.array([0, 0, 1, 1]), numpy.array([0, 1, 1, 1]))
        self.assertEqual((found.rows, found.accuracy, found.below), (4, 0.75, 0.25))
        self.assertAlmostEqual(found.recall, 0.75)
        self.assertAlmostEqual(found.precision, 0.25 * 0.5 + 0.75)
        self.assertAlmostEqual(found.f1, 0.25 * 2 / 3 + 0.75 * 0.8)


if __name__ == "__main__":
    unittest.main()
