"""Shared by the benchmarks: running `carma simulate`, ratios, tables."""

import collections
import csv
import json
import math
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACES = ROOT / "data" / "traces"
INCOMPLETE = 3  # status of carma simulate when some job of a run did not complete
SEEDS, JITTER = 20, 0.03  # of every simulated figure, unless a table says otherwise

# The truth that the simulator is run under: its own, and variants that agree with published data as well.
VARIANTS = {
    "calibrated": (),
    "capacity 1.25": ("--capacity", "1.25"),
    "U exponent 0.8": ("--u-exponent", "0.8"),
    "U exponent 1.2": ("--u-exponent", "1.2"),
    "crowding 0.5": ("--crowding", "0.5"),
    "crowding 1.5": ("--crowding", "1.5"),
    "no spread": ("--spread", "0"),
}


def build_dir():
    """The build named by the first argument (default: build/ of the repository), or an end with a message."""
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        sys.exit(f"usage: {os.path.relpath(sys.argv[0])} [BUILD]    BUILD: what script/build made (default: build)")
    build = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else ROOT / "build").resolve()
    if not os.access(build / "bin" / "carma", os.X_OK):
        sys.exit(f"{sys.argv[0]}: {build}/bin/carma is not there: run script/build {build} first")
    return build


def machine():
    name = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    return f"{os.cpu_count()} CPUs, {name}"


def simulate(build, trace, policies, *options, seeds=SEEDS, jitter=JITTER):
    """{policy: {figure: mean}} of one run of carma simulate; `policies` without repetition."""
    policies = list(dict.fromkeys(policies))
    chosen = ["--policy", policies[0]] if len(policies) == 1 else ["--compare", ",".join(policies)]
    command = [build / "bin" / "carma", "simulate", "--json", "--trace", trace, "--seeds", seeds, "--jitter", jitter]
    command = [str(word) for word in (*command, *chosen, *options)]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if run.returncode not in (0, INCOMPLETE):
        sys.exit(f"{sys.argv[0]}: this failed: {' '.join(command)}")
    return {result["policy"]: {name: mean_of(value) for name, value in result.items()}
            for result in json.loads(run.stdout)}


def mean_of(value):
    """A figure's mean, not a number where a run has none; anything else as it is."""
    if not isinstance(value, dict) or "mean" not in value:
        return value
    return math.nan if value["mean"] is None else value["mean"]


def change(result, baseline, figure):
    """In percent; not a number where one of the two is incomplete: no target is met by that."""
    if result["incomplete"] or baseline["incomplete"]:
        return math.nan
    return (result[figure] / baseline[figure] - 1) * 100


def rows_of(path):
    """Rows of one of data's CSV files as dictionaries."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


Job = collections.namedtuple("Job", "arrival_s workload gpus duration_s uid")  # a row of a trace that is made


def write_trace(path, jobs):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([Job._fields, *jobs])


def workloads_of_one_gpu():
    """Those of lab_90, by its rows: a workload that comes often there is drawn often."""
    gpus = {row["id"]: row["gpus"] for row in rows_of(ROOT / "data" / "workloads.csv")}
    return [row["workload"] for row in rows_of(TRACES / "lab_90.csv") if gpus[row["workload"]] == "1"]


def three_by_twenty(seed, first_uid=0):
    """Three users submit twenty jobs each at once, one user's after the other's."""
    draw, singles = random.Random(seed), workloads_of_one_gpu()
    return [Job(0, draw.choice(singles), 1, draw.uniform(3000, 30000), first_uid + user)
            for user in range(3) for _ in range(20)]


class Table:
    """Prints aligned columns; the first ones to the left, numbers (anything after `left`) to the right."""

    def __init__(self, title, columns, left=1):
        self.title, self.columns, self.left, self.rows = title, columns, left, []

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def show(self):
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        print(f"\n{self.title}")
        for line in lines:
            cells = [cell.ljust(width) if i < self.left else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(line, widths))]
            print("  " + "  ".join(cells).rstrip())


class Verdicts:
    """Counts the figures that meet their targets; a benchmark reports misses, it does not fail on them."""

    def __init__(self):
        self.met = self.missed = 0

    def __call__(self, ok):
        self.met, self.missed = self.met + bool(ok), self.missed + (not ok)
        return "pass" if ok else "MISS"

    def show(self):
        print(f"\n{self.met} of {self.met + self.missed} targets met")
