"""The collector without a GPU: its drawing, building, listing and writing. A real run needs a GPU."""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

try:
    import torch
except ImportError as error:
    print(f"SKIP: {error}: install python3-torch")
    sys.exit(77)

from carma_collect import collect, draw, networks, summary, train

torch.set_num_threads(1)  # the networks are tiny: more threads only wait for one another

FAKES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fakes" / "datasets"
PUBLISHED = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "gpumemnet"
SMALL = {
    "mlp": {"arch": "bottleneck", "input_size": 64, "output_size": 3, "hidden_depth": 3, "batch_size": 8,
            "activation": "gelu", "dropout_rate": 0.2, "use_dropout": 1, "use_batchnorm": 1},
    "cnn": {"arch": "residual", "input_channels": 3, "num_classes": 5, "depth_arg": 6, "base_filters": 16,
            "batch_size": 4, "input_size": 16, "dense_pool_interval": 2, "activation": "relu", "dropout_rate": 0.2,
            "use_dropout": 1, "use_batchnorm": 1},
    "transformer": {"num_classes": 5, "embedding_size": 32, "num_layers": 2, "num_heads": 2, "ff_hidden_size": 64,
                    "dropout_rate": 0.1, "seq_length": 16, "vocab_size": 100, "num_samples": 10, "batch_size": 4},
}  # fmt: skip
PLAIN = {"optimizer": "adam", "precision": "fp32", "checkpointing": 0, "projection": "linear"}


def numbers(row):
    """A row's figures as numbers."""
    def number(text):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    return {key: number(text) for key, text in row.items()}


class Draw(unittest.TestCase):
    def test_a_seed_gives_the_same_runs_and_another_seed_others(self):
        for family in draw.FAMILIES:
            first = [draw.configuration(family, 1, i) for i in range(20)]
            self.assertEqual(first, [draw.configuration(family, 1, i) for i in range(20)])
            self.assertNotEqual(first, [draw.configuration(family, 2, i) for i in range(20)])
            self.assertGreater(len({str(config) for config in first}), 15)

    def test_ranges_are_those_of_the_tables(self):
        for i in range(300):
            mlp, cnn, transformer = (draw.configuration(family, 7, i) for family in ("mlp", "cnn", "transformer"))
            self.assertTrue(4 <= mlp["input_size"] <= 4096 and 1 <= mlp["hidden_depth"] <= 10)
            self.assertTrue(1 <= mlp["output_size"] <= max(1, mlp["input_size"] // 4) and 4 <= mlp["batch_size"] <= 1024)
            self.assertTrue(1 <= cnn["depth_arg"] <= 29 and 2 <= cnn["batch_size"] <= 62 and cnn["batch_size"] % 2 == 0)
            self.assertTrue(16 <= cnn["base_filters"] <= 512 and 2 <= cnn["num_classes"] <= 22000)
            self.assertEqual(transformer["embedding_size"] % transformer["num_heads"], 0)
            self.assertTrue(2 <= transformer["ff_hidden_size"] / transformer["embedding_size"] <= 4)
            self.assertTrue(50000 <= transformer["vocab_size"] <= 1000000 and 1 <= transformer["batch_size"] <= 128)
            self.assertEqual([mlp[key] for key in PLAIN], list(PLAIN.values()))

    def test_the_tables_ranges_are_drawn_to_their_ends(self):
        drawn = {family: [draw.configuration(family, 7, i) for i in range(600)] for family in draw.FAMILIES}

        def values(family, key):
            return {config[key] for config in drawn[family]}

        self.assertEqual(values("mlp", "hidden_depth"), set(range(1, 11)))
        self.assertEqual(values("cnn", "depth_arg"), set(range(1, 30)))
        self.assertEqual(values("cnn", "kernel_size"), {3, 5, 7})
        self.assertEqual(values("cnn", "input_channels"), {1, 3})
        self.assertEqual(values("cnn", "batch_size"), set(range(2, 63, 2)))
        self.assertEqual(values("transformer", "num_layers"), set(range(2, 40)))
        self.assertEqual(values("transformer", "num_heads"), {2, 4, 8, 12, 16})
        self.assertEqual(values("transformer", "seq_length"), {128, 256, 512, 1024})
        for family, key, low, high in (
            ("mlp", "input_size", 4, 4096), ("mlp", "output_size", 1, 1024), ("mlp", "batch_size", 4, 1024),
            ("cnn", "base_filters", 16, 512), ("cnn", "num_classes", 2, 22000), ("transformer", "num_classes", 2, 1000),
            ("transformer", "embedding_size", 128, 2048), ("transformer", "vocab_size", 50000, 1000000),
            ("transformer", "batch_size", 1, 128), ("transformer", "dropout_rate", 0.1, 0.5),
        ):  # fmt: skip
            found = values(family, key)
            self.assertTrue(low <= min(found) < low + 0.05 * (high - low), f"{family} {key} from {min(found)}")
            self.assertTrue(high - 0.1 * (high - low) < max(found) <= high, f"{family} {key} to {max(found)}")

    def test_every_cnn_has_a_convolution(self):
        for shape in draw.CNN_SHAPES:
            least = draw.LEAST_DEPTH.get(shape, 1)
            drawn = [draw.configuration("cnn", 7, i) for i in range(900)]
            self.assertEqual(min(config["depth_arg"] for config in drawn if config["arch"] == shape), least)
            config = {**SMALL["cnn"], "arch": shape, "depth_arg": least, "kernel_size": 5}
            sizes = [module.kernel_size for module in networks.build("cnn", config).modules()
                     if isinstance(module, torch.nn.Conv2d)]
            self.assertIn((5, 5), sizes)
            self.assertLessEqual(set(sizes), {(5, 5), (1, 1)})

    def test_beyond_draws_each_of_the_new_kinds(self):
        drawn = [draw.configuration("transformer", 3, i, beyond=True) for i in range(200)]
        for key, choices in draw.BEYOND.items():
            self.assertEqual({config[key] for config in drawn}, set(choices))


class Networks(unittest.TestCase):
    def test_every_shape_builds_and_trains(self):
        torch.manual_seed(1)
        for family, config in SMALL.items():
            shapes = {"mlp": draw.MLP_SHAPES, "cnn": draw.CNN_SHAPES}.get(family, ("",))
            for shape in shapes:
                for optimizer in train.OPTIMIZERS:
                    run = {**config, **PLAIN, "arch": shape, "optimizer": optimizer}
                    self.assertEqual(train.train(family, run, 0, device="cpu"), train.LEAST_STEPS)

    def test_checkpointing_keeps_fewer_activations_and_the_same_gradients(self):
        for family, config in SMALL.items():
            kept, gradients = [], []
            for checkpointing in (0, 1):
                torch.manual_seed(1)
                run = {**config, **PLAIN, "checkpointing": checkpointing, "dropout_rate": 0.0}
                model = networks.build(family, run)
                inputs, targets = networks.example(family, run, 4)
                inputs = inputs.requires_grad_() if inputs.is_floating_point() else inputs
                bytes_kept = 0

                def keep(tensor):
                    nonlocal bytes_kept
                    bytes_kept += tensor.numel()
                    return tensor

                with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                    output = model(inputs)
                kept.append(bytes_kept)
                torch.nn.functional.cross_entropy(output, targets).backward()
                gradients.append([parameter.grad for parameter in model.parameters()])
            # Hooks inside checkpointing replace ours: only tensors between the blocks are left.
            self.assertLess(kept[1], kept[0] / 2, family)
            for plain, again in zip(*gradients):
                torch.testing.assert_close(plain, again)

    def test_the_conv1d_transformer_has_a_linear_ones_parameters(self):
        sizes = []
        for projection in ("linear", "conv1d"):
            model = networks.build("transformer", {**SMALL["transformer"], **PLAIN, "projection": projection})
            sizes.append(sum(parameter.numel() for parameter in model.parameters()))
        self.assertEqual(*sizes)

    def test_the_last_batch_is_the_rest(self):
        self.assertEqual(train.batches("transformer", SMALL["transformer"]), [4, 4, 2])
        self.assertEqual(sum(train.batches("mlp", {"batch_size": 1000})), 4096)


class Published(unittest.TestCase):
    def test_rows_give_their_layers_again(self):
        if not PUBLISHED.is_dir():
            self.skipTest("no ../shared/data/gpumemnet here")
        for family in ("mlp", "cnn"):
            with open(PUBLISHED / f"{family}.csv", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))[::97]
            for row in rows:
                for key, value in summary.columns(family, numbers(row)).items():
                    self.assertEqual(str(value), row[key], f"{family} {key}")


class Collect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "rows.csv")

    def tearDown(self):
        self.folder.cleanup()

    def collect(self, runs, seed=5, family="mlp", run_one=None):
        self.measured = []

        def measure(config):
            self.measured.append(config)
            return {"status": "SUCCESSFUL", "max_gpu_memory_mib": 1500 + len(self.measured), "gpu": "a GPU"}

        return collect.collect(self.path, family, runs, seed, False, run_one or measure)

    def rows(self):
        with open(self.path, encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_one_row_a_run_with_the_published_columns_first(self):
        self.assertEqual(self.collect(4), 4)
        rows = self.rows()
        self.assertEqual([row["run"] for row in rows], list("0123"))
        self.assertEqual(list(rows[0])[:5], ["arch", "input_size", "output_size", "hidden_depth", "batch_size"])
        self.assertEqual(rows[3]["max_gpu_memory_mib"], "1504")
        self.assertEqual(int(rows[0]["input_size"]), draw.configuration("mlp", 5, 0)["input_size"])
        self.assertIn("linear:", rows[0]["layers"])

    def test_columns_are_those_that_carma_evaluate_is_tested_with(self):
        for family in draw.FAMILIES:
            with open(FAKES / f"collected_{family}.csv", encoding="utf-8") as file:
                self.assertEqual(file.readlines()[1].strip().split(","), collect.columns(family))

    def test_goes_on_where_it_stopped(self):
        calls = 0

        def stops(config):
            nonlocal calls
            calls += 1
            if calls == 3:
                raise KeyboardInterrupt
            return {"status": "SUCCESSFUL", "max_gpu_memory_mib": 1}

        with self.assertRaises(KeyboardInterrupt):
            self.collect(5, run_one=stops)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("gradual,12,3")  # a crash in the middle of a line
        self.assertEqual(self.collect(5), 3)
        self.assertEqual([row["run"] for row in self.rows()], list("01234"))
        self.assertEqual(self.collect(5), 0)

    def test_refuses_a_file_of_another_kind_or_seed(self):
        self.collect(1)
        with self.assertRaisesRegex(collect.Refused, "--seed 5"):
            self.collect(2, seed=6)
        with self.assertRaisesRegex(collect.Refused, "not those of a cnn collection"):
            self.collect(2, family="cnn")

    def test_a_failed_child_is_named(self):
        class Watch:
            def __init__(self, gpu):
                pass

            def __enter__(self):
                return self

            def __exit__(self, *error):
                pass

        gpu = mock.Mock(index=0)
        environment = mock.patch.dict(os.environ, {"PYTHONPATH": str(pathlib.Path(__file__).parents[1])})
        with environment, self.assertRaisesRegex(collect.Refused, "status 3: .*no CUDA GPU"):
            collect.measure(gpu, Watch, "mlp", {**SMALL["mlp"], **PLAIN}, 0)


class Program(unittest.TestCase):
    def test_without_a_gpu_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "carma_collect", "mlp", "--output", os.path.join(folder, "rows.csv")],
                cwd=pathlib.Path(__file__).resolve().parents[1], capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            self.assertIn(done.returncode, (1, 3))
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertRegex(done.stderr, "no GPU 0 by NVML|nvidia-ml-py is missing")
            self.assertFalse(os.listdir(folder))


class Activity(unittest.TestCase):
    def test_dcgm_lines_become_samples(self):
        sys.modules.setdefault("pynvml", mock.Mock())
        from carma_collect import gpu

        source = gpu.DcgmActivity.__new__(gpu.DcgmActivity)
        source.lines = ["#Entity  GRACT SMACT SMOCC FP32A\n", "ID\n", "GPU 0   0.981  0.512  0.250  N/A\n"]
        self.assertEqual(source.read(), [[0.981, 0.512, 0.25, None]])
        self.assertEqual(source.read(), [])

    def test_means_leave_out_idle_samples(self):
        sys.modules.setdefault("pynvml", mock.Mock())
        from carma_collect import gpu

        watch = gpu.Watch(mock.Mock())
        watch.most_used_mib, watch.samples = 1700, [[0, 0, 0, None], [0.5, 0.2, 0.1, None], [1.0, 0.4, 0.3, None]]
        self.assertEqual(
            watch.columns(),
            {"max_gpu_memory_mib": 1700, "avg_gract": 0.75, "avg_smact": 0.3, "avg_smocc": 0.2, "avg_fp32a": ""},
        )


if __name__ == "__main__":
    unittest.main()
