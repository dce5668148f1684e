"""The study's command on a small made data set: its page, its plots, and its refusals. Usage: test_study.py CARMA"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
from xml.dom import minidom

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
try:
    import sklearn  # noqa: F401
except ImportError as error:
    print(f"SKIP: {error}: install python3-sklearn")
    sys.exit(77)
from carma_train import study  # noqa: E402

CARMA = """#!/bin/sh
# 20 MiB for every 400 of the batch size
echo "{\\"median_bytes\\": $(( (1500 + $5 / 400 * 20) * 1048576 ))}"
"""


def make_runs(path, number):
    """MLPs of one layer: memory is that of the parameters, which differ most, and of the batch."""
    draw = random.Random(1)
    lines = ["arch,batch_size,layers,max_gpu_memory_mib"]
    for _ in range(number):
        width, batch = draw.randint(100, 8000), draw.randint(4, 1024)
        memory = 1400 + width * 1000 * 16 // 2**20 * 20 + batch // 64
        lines.append(f"uniform,{batch},linear:{width}:{width * 1000}|ReLU:{width}:0,{memory}")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


class Study(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.carma = self.path / "carma"
        self.carma.write_text(CARMA, encoding="ascii")
        self.carma.chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def run_study(self, carma):
        return subprocess.run(
            [sys.executable, "-B", "-m", "carma_train", "study", "--data", self.path, "--output",
             self.path / "docs" / "page.md", "--carma", carma],
            cwd=HERE.parent, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def test_page_and_plots(self):
        make_runs(self.path / "mlp.csv", 150)
        done = self.run_study(self.carma)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = (self.path / "docs" / "page.md").read_text(encoding="utf-8")
        self.assertIn("150 MLPs.", page)
        right = re.findall(r"^\| MLPs \| ([a-z]+ [a-z]+) \|.*\| ([\d.]+)% \|$", page, re.M)
        self.assertEqual([name for name, _rate in right], list(study.LEARNERS))
        self.assertGreater(max(float(rate) for _name, rate in right), 90)
        shuffled = {name: int(more.replace(",", "")) for name, more in
                    re.findall(r"^\| (\w+) \| 0\.\d+, \+([\d,]+) \|", page, re.M)}
        self.assertEqual(set(shuffled), set(study.FOUR))
        self.assertGreater(shuffled["parameters"], 10 * shuffled["batch"])
        self.assertEqual(shuffled["depth"], 0)
        for name in re.findall(r"\]\((images/[^)]*)\)", page):
            minidom.parse(str(self.path / "docs" / name))
        self.assertIn("| 128 | 1,500, 1,700 | 11 | 13 |", page)  # 13: the multiples of 32 from 800 to 1199, say

    def test_refusals_are_one_line(self):
        done = self.run_study(self.carma)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("mlp.csv, cnn.csv, transformer.csv", done.stderr)
        make_runs(self.path / "mlp.csv", 1)
        self.assertIn("give more", self.run_study(self.carma).stderr)
        make_runs(self.path / "mlp.csv", 30)
        done = self.run_study(self.path / "nothing")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("nothing", done.stderr)

    def test_components_are_uncorrelated_and_hold_all_variance(self):
        import numpy

        draw = numpy.random.default_rng(1).normal(size=(200, 3))
        one, two, three = draw.T
        found, variance = study.components(numpy.stack([one, 5 * one + two, three, three * 0], 1))
        self.assertAlmostEqual(variance.sum(), 1)
        self.assertTrue((numpy.diff(variance) <= 1e-12).all())
        self.assertLess(abs(numpy.corrcoef(found[:, 0], found[:, 1])[0, 1]), 1e-9)

    def test_carma_reads_the_staircase_s_networks(self):
        for name, widths in study.WIDTHS.items():
            (self.path / "summary.txt").write_text(study.summary_of(widths), encoding="ascii")
            done = subprocess.run([PROGRAM, "estimate", "--summary", self.path / "summary.txt", "--batch-size", "64",
                                   "--estimator", "replay", "--json"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            said = json.loads(done.stdout)
            self.assertEqual((said["format"], said["warnings"]), ("torchsummary", []))
            weights = sum(4 * inputs * outputs for inputs, outputs in zip([study.INPUTS, *widths], widths))
            self.assertGreater(said["allocated_bytes"], 4 * weights)  # with gradients and Adam's two states

    def test_treads(self):
        self.assertEqual(study.treads([(1, 5), (2, 5), (3, 7), (4, 7), (5, 7), (6, 9)]), (3, 3))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
