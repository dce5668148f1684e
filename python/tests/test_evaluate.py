"""carma evaluate (python/carma_bench): the data sets' rows become networks that agree with them, hostile files are refused by
line, and the figures of estimates are those worked out by hand.
Usage: test_evaluate.py CARMA; the measured runs of ../shared are looked at where they are there."""

import contextlib
import gzip
import json
import os
import pathlib
import random
import sys
import tempfile
import unittest
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/carma_bench"))

import datasets  # noqa: E402
import evaluate  # noqa: E402
import rows  # noqa: E402
from show import Failure  # noqa: E402

FAKES = ROOT / "tests/fakes/datasets"
PUBLISHED = ROOT.parent / "shared/data/gpumemnet"
REAL = "{0}/real_models.csv,{0}/real_model_layers.csv"
MIB = 1 << 20
MACHINE = {"memory_bytes": 40400 * MIB, "context_bytes": 1429 * MIB}
CARMA = None


def runs_of(kind, text=None, captures=None):
    """Of the fake of this kind, or of such a file with this text."""
    path = REAL.format(FAKES) if kind == "real" else f"{FAKES}/{kind}.csv"
    if text is None:
        return datasets.read(f"{kind}:{path}", captures, MACHINE)[1]
    with tempfile.NamedTemporaryFile() as file:
        file.write(text if isinstance(text, bytes) else text.encode())
        file.flush()
        path = f"{file.name},{FAKES}/real_model_layers.csv" if kind == "real" else file.name
        return datasets.read(f"{kind}:{path}", captures, MACHINE)[1]


def layers_of(run, kind):
    return [layer for layer in run.network["layers"] if kind in (layer["type"], layer.get("like"))]


def parameters_of(run):
    return sum(layer["parameters"] for layer in run.network["layers"])


class Rows(unittest.TestCase):
    def test_perceptrons(self):
        first, second, third, _ = runs_of("mlp")
        self.assertEqual((first.name, first.group, first.measured, first.activity, first.occupancy),
                         ("mlp row 1", "pyramid", 1451 * MIB, 125, 50))
        self.assertEqual(first.training, {"samples": 4096, "summary_batch": 2, "batch_size": 32})
        # 100 -> 50 -> 25 -> 12 -> 10, each hidden one with norm, activation and dropout
        self.assertEqual([layer["shape"] for layer in layers_of(first, "Linear")], [[50], [25], [12], [10]])
        self.assertEqual(len(layers_of(first, "Dropout")), 3)
        self.assertEqual((first.network["layers"][8]["in"], first.network["layers"][8]["inputs"]), (25, [7]))
        self.assertEqual(first.network["layers"][-1]["type"], "Softmax")
        self.assertIsNone(second.activity)
        self.assertEqual(layers_of(second, "PReLU")[0]["parameters"], 1)  # which the file does not count
        self.assertEqual(third.network["layers"][-1]["type"], "Sigmoid")

    def test_convolutions(self):
        runs = runs_of("cnn")
        conv = layers_of(runs[0], "Conv2d")[0]
        self.assertEqual((conv["kernel"], conv["shape"][1], conv["bias"], runs[0].training.get("samples")),
                         (3, 32, True, None))
        # Four blocks; the second and the fourth halve 30 and 15; a sum takes the main branch and the shortcut.
        residual = runs[5].network["layers"]
        self.assertEqual([layer["inputs"][1] for layer in layers_of(runs[5], "Add")][:1], [1])
        self.assertEqual((len(layers_of(runs[5], "Add")), residual[-4]["shape"][1]), (4, 8))
        # Three blocks; a transition behind the first alone: every second, and not behind the last.
        self.assertTrue(runs[6].out_of_memory)
        self.assertEqual(len(layers_of(runs[6], "Concat")), 3 * 5)
        self.assertEqual([layer["shape"] for layer in layers_of(runs[6], "AvgPool2d")], [[(3 + 128) // 2, 112, 112]])

    def test_encoders(self):
        first, *_, last = runs_of("transformer")
        # torch.nn.TransformerEncoder(TransformerEncoderLayer(64, 4, 96), 2), and the layers around it
        self.assertEqual(parameters_of(first),
                         5000 * 64 + 32 * 64 + 2 * (4 * 64 * 65 + 65 * 96 + 97 * 64 + 4 * 64) + 65 * 10)
        self.assertEqual(len(layers_of(first, "Dropout")), 2 * 3)
        self.assertEqual(len(layers_of(first, "Add")), 1 + 2 * 2)
        self.assertEqual((first.training["samples"], first.network["index"], last.out_of_memory), (1000, True, True))

    def test_real_models(self):
        tiny, other, bare, bert, gpt2, xlnet = runs_of("real")
        self.assertEqual((tiny.name, tiny.group, tiny.measured), ("tinynet cifar100 32", "tinynet", 1801 * MIB))
        self.assertEqual((tiny.published["faketensor"], tiny.published["gpumemnet"]), (round(64.1 * MIB), 8000 * MIB))
        self.assertEqual((tiny.network["input"], other.published["horus"], bare.network), ([3, 32, 32], None, None))
        self.assertEqual(bert.training["optimizer"], "adamw")
        # The output layer's weight is the embedding's. Then GPT-2, half of the batch on each GPU; XLNet, the second stream
        # with the first one's weights.
        self.assertEqual(parameters_of(bert), 32 * 1000 + 1000 + 512 * 32 + 2 * 32 + 64
                         + 2 * (4 * 32 * 33 + 33 * 64 + 65 * 32 + 2 * 64) + 32 * 33 + 64)
        self.assertEqual(gpt2.training["batch_size"], 4)
        self.assertEqual(parameters_of(gpt2),
                         32 * 1000 + 1024 * 32 + 64 + 2 * (33 * 96 + 32 * 33 + 33 * 128 + 129 * 32 + 2 * 64))
        self.assertEqual(parameters_of(xlnet), 32 * 1000 + 1000 + 2 * (5 * 32 * 32 + 33 * 64 + 65 * 32 + 2 * 64))

    def test_published_sizes(self):
        """110 million (bert-base-cased with its head 108.3), 1558, 117 million parameters."""
        head = (FAKES / "real_models.csv").read_text().splitlines()
        head = next(line for line in head if line.startswith("model,"))
        for name, sizes, millions in (("BERT_base", "12,768,3072,12,28996,512", 108.3),
                                      ("gpt2_xl", "48,1600,6400,25,50257,512", 1557.6),
                                      ("xlnet_base", "12,768,3072,12,32000,512", 116.7)):
            row = dict.fromkeys(head.split(","), "")
            row.update(model=name, domain="transformer", dataset="wiki", batch_size="1", gpus="1", actual_mb_thesis="1")
            row.update(zip(("num_layers", "hidden", "ff", "heads", "vocab", "seq_len"), sizes.split(",")))
            run, = runs_of("real", f"{head}\n{','.join(row.values())}\n")
            self.assertLess(abs(parameters_of(run) / 1e6 - millions), 0.3)

    def test_ends_of_timm(self):
        """Less than a context and the tensors that fake tensors counted: out of memory, or broken off and left out."""
        runs = runs_of("timm", "model,batch_size,max_gpu_memory_mib,ft_last_mb\n"
                       "a,8,2429,1000\nb,8,2428,1000\nc,8,40399,38971\nd,8,40399,38972\ne,8,2000,\n")
        self.assertEqual([(run.name[0], run.out_of_memory) for run in runs], [("a", False), ("d", True), ("e", False)])
        self.assertEqual(runs[0].training, {"batch_size": 8, "optimizer": "momentum", "weight_decay": True})

    def test_contradictions(self):
        """Each is the file of its kind with one row changed: the error names line and both figures."""
        for kind, before, after, line, says in (
            ("mlp", "linear:25:1275", "linear:26:1275", 2,
             "layer 5 is Linear:26:1275, but the row's columns make it Linear:25:1275"),
            ("mlp", "linear:25:1275", "linear:25", 2, "layer 5, 'linear:25|"),
            ("mlp", "linear:25:1275", "linear:25:99999999999999999999", 2, "is not type:activations:parameters"),
            ("mlp", "|Softmax:10:0", "", 2, "the list ends before layer 14, Softmax:10:0"),
            ("mlp", "|Softmax:10:0", "|Softmax:10:0|Softmax:10:0", 2, "more than the 14"),
            ("mlp", ",6941,", ",6942,", 2, "total_params 6942, but the row's columns make 6941"),
            ("mlp", ",6941,", ",6940,", 2, "total_params 6940, but the row's columns make 6941"),
            ("mlp", "pyramid,100", "octagon,100", 2, "arch 'octagon'"),
            ("mlp", "pyramid,100,10,3", "pyramid,100,10,100000000", 2, "out of range"),
            ("mlp", "pyramid,100", "pyramid,-5", 2, "out of range"),
            ("mlp", "32,relu", "32,sine", 2, "activation 'sine'"),
            ("mlp", ",1451,", ",0,", 2, "max_gpu_memory_mib 0 is out of range"),
            ("mlp", ",1451,", ",nan,", 2, "not a number"),
            ("mlp", ",0.125,", ",1.5,", 2, "avg_smact 1.5 is out of range"),
            ("mlp", "arch,", "shape,", 1, "unknown column 'shape'"),
            ("mlp", "arch,", "batch_size,", 1, "column 'batch_size' occurs twice"),
            ("cnn", "SUCCESSFUL", "DONE", 2, "status 'DONE'"),
            ("cnn", "gelu,0.1,0,0,2", "gelu,0.1,0,0,0", 8, "no dense_pool_interval"),
            ("cnn", "gelu,0.1,0,0,2", "gelu,0.1,0,0,1", 8,
             "layer 19 is Conv2d:401408:55616, but the row's columns make it Conv2d:1204224:18624"),
            ("transformer", "10,64,2,4", "10,64,2,5", 2, "does not divide among 5 heads"),
            ("timm", "mlp,32", "../mlp,32", 2, "is not a name"),
            ("timm", "mlp,32", "mlp,many", 2, "not a whole number"),
            ("timm", "mlp,32", "mlp", 2, "fields where the header names"),
            ("timm", "mlp,32", '"mlp,32', 2, "opens a quote"),
            ("timm", "mlp,32", "m\x1blp,32", 2, "byte 0x1b at column"),
        ):  # fmt: skip
            text = (FAKES / f"{kind}.csv").read_text()
            self.assertIn(before, text)
            with self.assertRaises(Failure) as caught:
                runs_of(kind, text.replace(before, after, 1))
            self.assertRegex(str(caught.exception), rf"^[^:\n]*:{line}: .*")
            self.assertIn(says, str(caught.exception))
        for which in "mlp", "mlp:", "tree:x.csv", ":x", "", f"real:{FAKES}/real_models.csv", "real:,x", "mlp:/nonexistent", \
                f"mlp:{FAKES}/cnn.csv", f"cnn:{FAKES}/mlp.csv", f"mlp:{FAKES}":  # fmt: skip
            with self.assertRaises(Failure):
                datasets.read(which, None, MACHINE)

    def test_damage(self):
        """A byte changed, a piece left out or doubled: read or refused, never anything else."""
        chance = random.Random(1)
        for at in range(400):
            kind = ("mlp", "cnn", "transformer", "timm")[at % 4]
            text = bytearray((FAKES / f"{kind}.csv").read_bytes())
            place, count = chance.randrange(len(text)), chance.randrange(9)
            text[place : place + (count if at % 3 == 1 else 1)] = (
                b"" if at % 3 == 1 else bytes([chance.randrange(256) if at % 3 else 48 + chance.randrange(10)]))
            with contextlib.suppress(Failure):
                runs_of(kind, bytes(text))

    def test_packed_and_bounded(self):
        with tempfile.TemporaryDirectory() as folder:
            packed = pathlib.Path(folder, "mlp.csv.gz")
            packed.write_bytes(gzip.compress((FAKES / "mlp.csv").read_bytes()))
            self.assertEqual(len(datasets.read(f"mlp:{packed}", None, MACHINE)[1]), 4)
            for text in b"\x1f\x8bnot packed", b"a" * (rows.MAX_LINE + 1), b"# nothing\n\n":
                packed.write_bytes(text)
                with self.assertRaises(Failure):
                    list(rows.read(str(packed), ("a",)))

    @unittest.skipUnless(PUBLISHED.exists(), "the measured runs lie beside the repository")
    def test_published_files(self):
        """Each row agrees with its layers. Rows are added."""
        for kind, least, layers, out_of_memory in (("mlp", 2400, 2400, 0), ("cnn", 1581, 1581, 303),
                                                   ("transformer", 45, 45, 2), ("real", 28, 26, 0)):
            path = REAL.format(PUBLISHED) if kind == "real" else f"{PUBLISHED}/{kind}.csv"
            runs = datasets.read(f"{kind}:{path}", None, MACHINE)[1]
            self.assertGreaterEqual(len(runs), least)
            self.assertGreaterEqual(sum(bool(run.network) for run in runs), layers)
            self.assertGreaterEqual(sum(run.out_of_memory for run in runs), out_of_memory)
        runs = datasets.read(f"timm:{PUBLISHED}/timm_faketensor.csv", None, MACHINE)[1]
        self.assertGreaterEqual((len(runs), sum(run.out_of_memory for run in runs)), (3955, 476))


def known(*cases):
    return [(SimpleNamespace(measured=measured * MIB, out_of_memory=lost),
             {"median_bytes": median * MIB, "bytes": size * MIB}) for measured, lost, median, size in cases]  # fmt: skip


class Figures(unittest.TestCase):
    """Bins of 10 MiB below 35 MiB: 0, 1, 2, 3, and out of memory."""

    cases = known((10, False, 11, 12),  # right; +10%, answer +20%
                  (20, False, 19, 19),  # below; -5%, answer too low
                  (25, False, 30, 50),  # above; +20%, answer +100%
                  (8, False, 7, 8),  # right; -12.5%, answer just enough
                  (30, True, 36, 40),  # right: out of memory
                  (30, True, 35, 40))  # below: it just fits  # fmt: skip

    def test_figures(self):
        found = {**evaluate.of_classes(self.cases, 10 * MIB, 35 * MIB), **evaluate.of_errors(self.cases)}
        # By class: 0: 1 of 1 guessed right, 1 of 1 found; 1: 1 of 2, 1 of 1; 2: never guessed; memory: 1 of 1, 1 of 2
        for name, wanted in {
            "bin_accuracy": 3 / 6, "bin_below": 2 / 6, "mae_mib": (1 + 1 + 5 + 1) / 4,
            "mape": (0.1 + 0.05 + 0.2 + 0.125) / 4, "median_ape": (0.1 + 0.125) / 2, "worst_ape": 0.2,
            "underestimate_rate": 1 / 4, "mean_overestimate": (0.2 + 0 + 1 + 0) / 4,
            "precision": (1 + 1 * 0.5 + 2 * 0 + 2) / 6, "recall": 3 / 6, "f1": (1 + 2 * 0.5 / 1.5 + 2 * (2 * 0.5 / 1.5)) / 6,
        }.items():  # fmt: skip
            self.assertAlmostEqual(found[name], wanted, msg=name)
        self.assertEqual(evaluate.of_errors(self.cases[4:]), {})  # no success: nothing to measure
        self.assertEqual(evaluate.of_classes(self.cases[4:], 10 * MIB, 35 * MIB)["bin_accuracy"], 0.5)


def said(*words):
    """What carma evaluate prints as JSON."""
    with os.popen(" ".join(f"'{word}'" for word in (CARMA, "evaluate", *words))) as out:
        return json.loads(out.read())


@unittest.skipUnless(PUBLISHED.exists(), "the measured runs lie beside the repository")
class Published(unittest.TestCase):
    def test_seen_rows(self):
        """Rows that the tables in data/models have seen: told, or asked of the fold's models. A formula has seen none."""
        with tempfile.NamedTemporaryFile("w") as file, open(PUBLISHED / "mlp.csv") as source:
            file.writelines(source.readline() for _ in range(12))
            file.flush()
            for estimator in "gpumemnet", "auto", "horus":
                for folds in [], ["--folds"]:
                    found = said("--dataset", f"mlp:{file.name}", "--estimator", estimator, "--json", *folds)
                    self.assertEqual(found["in_sample"], not folds and estimator != "horus")

    def test_estimators_as_published(self):
        """Horus's and FakeTensor's columns for the CNNs of the thesis; the layers of Inception are listed for images of 299 x
        299, FakeTensor's published figure is for 224 x 224."""
        for estimator, count, most, nearly_all, exceptions in (("horus", 21, 0.02, 0.001, 1),
                                                               ("faketensor", 18, 0.11, 0.02, 3)):
            with os.popen(f"'{CARMA}' evaluate --dataset 'real:{REAL.format(PUBLISHED)}' --estimator {estimator} --rows") as out:
                found = [line.split(",") for line in out.read().splitlines()]
            at = found[0].index(f"{estimator}_mib")
            errors = [abs(float(row[7]) / float(row[at]) - 1) for row in found[1:]
                      if row[at] and row[7] and not row[0].startswith(("BERT", "gpt2", "xlnet"))
                      and not (estimator == "faketensor" and row[1] == "inception")]  # fmt: skip
            self.assertEqual(len(errors), count)
            self.assertLess(max(errors), most)
            self.assertLessEqual(sum(error > nearly_all for error in errors), exceptions)


if __name__ == "__main__":
    CARMA = sys.argv.pop(1)
    unittest.main()
