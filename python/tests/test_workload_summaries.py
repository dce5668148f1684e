"""The summaries of data/workloads.csv's workloads are there, are the workloads', and, where the published ones lie beside
the repository, have their rows."""

import collections
import csv
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PUBLISHED = ROOT.parent / "shared" / "data" / "gpumemnet" / "real_model_layers.csv"
ROW = re.compile(r"\s*(\w+)-\d+\s+\[(.*)\]\s+([\d,]+)$")
NAMES = {"Xception": "xception"}  # of the published file: of the workloads


def workloads():
    lines = (ROOT / "data" / "workloads.csv").read_text("utf-8").splitlines()
    return [row for row in csv.DictReader(line for line in lines if not line.startswith("#")) if row["summary"]]


def rows_of(path):
    """(type, shape without the batch, parameters) of each line of a torchsummary text."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        match = ROW.match(line)
        if match:
            shape = match[2].replace("[", "").replace("]", "").split(", ")[1:]
            found.append((match[1], "x".join(shape), int(match[3].replace(",", ""))))
    return found


class Summaries(unittest.TestCase):
    def test_each_is_there_and_of_its_input_size(self):
        files = {(row["summary"], row["dataset"]) for row in workloads()}
        self.assertEqual(len(files), 10)
        for file, dataset in files:
            with self.subTest(file):
                rows = rows_of(ROOT / "data" / file)
                self.assertGreater(len(rows), 30)
                self.assertEqual(rows[-1][:2], ("Linear", "100" if dataset == "cifar100" else "1000"))
                side = int(rows[0][1].split("x")[1])
                self.assertTrue(side == 16 if dataset == "cifar100" else side in (111, 112, 149, 224), side)

    @unittest.skipUnless(PUBLISHED.exists(), f"{PUBLISHED} is not there")
    def test_rows_are_the_published_ones(self):
        published = collections.defaultdict(list)
        for row in csv.DictReader(PUBLISHED.read_text("utf-8").splitlines()):
            key = (NAMES.get(row["model"], row["model"]), row["dataset"])
            published[key].append((row["layer_type"], row["output_shape_no_batch"], int(row["params"] or 0)))
        compared = set()
        for row in workloads():
            key = (row["model"], row["dataset"])
            if key not in published or key in compared:
                continue
            compared.add(key)
            with self.subTest(key):
                ours = rows_of(ROOT / "data" / row["summary"])
                if key == ("efficientnet_b0", "cifar100"):  # a later timm shows sixteen more that do nothing
                    self.assertEqual(len(ours), len(published[key]) + 16)
                    ours = [one for one in ours if one[0] != "Identity"]
                    published[key] = [one for one in published[key] if one[0] != "Identity"]
                self.assertEqual(ours, published[key])
        self.assertEqual(len(compared), 9)


if __name__ == "__main__":
    unittest.main()
