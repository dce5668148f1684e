"""Runs configuration after configuration and appends a row for each to a CSV file; goes on where it stopped."""

import csv
import json
import os
import subprocess
import sys

from . import draw, summary

FIRST = {
    "mlp": ["arch", "input_size", "output_size", "hidden_depth", "batch_size"],
    "cnn": ["arch", "input_channels", "num_classes", "depth_arg", "base_filters", "batch_size", "input_size"],
    "transformer": ["num_classes", "embedding_size", "num_layers", "num_heads", "ff_hidden_size", "dropout_rate",
                    "seq_length", "vocab_size", "num_samples", "batch_size"],
}
REGULARISATION = ["activation", "dropout_rate", "use_dropout", "use_batchnorm"]
LISTED = {
    "mlp": REGULARISATION + ["linear_layers", "batchnorm_layers", "dropout_layers", "total_activations", "total_params",
                             "layers"],
    "cnn": REGULARISATION + ["dense_pool_interval", "kernel_size", "conv_layers", "batchnorm_layers", "dropout_layers",
                             "total_activations", "total_params", "layers"],
    "transformer": [],
}
MEASURED = ["status", "max_gpu_memory_mib", "avg_gract", "avg_smact", "avg_smocc", "avg_fp32a"]
OURS = ["optimizer", "precision", "checkpointing", "projection", "allocator_reserved_mib", "allocator_allocated_mib",
        "steps", "gpu", "gpu_memory_mib", "driver", "cuda", "cudnn", "torch", "tf32_convolutions", "tf32_matmul",
        "seed", "run"]  # fmt: skip


class Refused(Exception):
    """An impossible request, in one line."""


def columns(family):
    """A row's columns: those of the published sets first, in their order."""
    return FIRST[family] + LISTED[family] + MEASURED + OURS


def finished(path, family, seed):
    """The numbers of the runs that the file has. A last line cut off by a crash is taken away."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return set()
    with open(path, "r+", encoding="utf-8") as file:
        text = file.read()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            file.seek(len(whole.encode()))
            file.truncate()
    rows = csv.DictReader(whole.splitlines())
    if rows.fieldnames != columns(family):
        raise Refused(f"{path}: its columns are not those of a {family} collection: name another --output")
    done = set()
    for row in rows:
        if row["seed"] != str(seed):
            raise Refused(f"{path}: was begun with --seed {row['seed']}: go on with that, or name another --output")
        done.add(int(row["run"]))
    return done


def measure(gpu, watch_class, family, config, seconds):
    """One run in a child of its own, watched. Returns the measured columns."""
    command = [sys.executable, "-m", "carma_collect.train", family, json.dumps(config), str(seconds)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu.index), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    with watch_class(gpu) as watch:
        child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600 + 10 * seconds,
                               check=False)  # fmt: skip
    if child.returncode != 0 or not child.stdout.strip():
        last = child.stderr.strip().splitlines()
        raise Refused(f"a run failed with status {child.returncode}: {last[-1] if last else 'it said nothing'}")
    return {**json.loads(child.stdout.splitlines()[-1]), **watch.columns(), **gpu.facts()}


def collect(path, family, runs, seed, beyond, run_one, report=lambda done, runs, row: None):
    """Appends the rows that `path` lacks of the first `runs`; run_one(config) measures. Returns how many were added."""
    done = finished(path, family, seed)
    added = 0
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns(family), restval="", extrasaction="ignore", lineterminator="\n")
        if not done and file.tell() == 0:
            writer.writeheader()
        for run in range(runs):
            if run in done:
                continue
            config = draw.configuration(family, seed, run, beyond)
            row = {**config, **summary.columns(family, config), **run_one(config), "seed": seed, "run": run}
            writer.writerow(row)
            file.flush()
            os.fsync(file.fileno())
            added += 1
            report(len(done) + added, runs, row)
    return added
