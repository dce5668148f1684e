"""Measured training runs (docs/formats/datasets.md): the rows of a data set, each with its question to the estimators
(src/evaluation/question.h)."""

import json
import os
import re

import networks
import rows
from show import Failure

MIB = 1 << 20
FOLDS = 5
MAX_LAYERS = 4000000  # together, so that a file cannot ask for any amount of memory
MAX_BATCH, MAX_MIB = 1 << 24, 1 << 24
PUBLISHED = ("horus", "faketensor", "gpumemnet")
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "adafactor", "adamw_fused", "adamw_8bit")
PRECISIONS = ("fp32", "tf32", "amp", "bf16")
SAMPLES = 4096  # of an epoch, where no column says (python/carma_collect/train.py)
SUMMARY_BATCH = 2  # torchsummary's own. Of several passes before the training only this one makes runs of one convolution
# come out as measured.
COLLECTED = ("optimizer", "precision", "checkpointing", "projection", "run", "allocator_reserved_mib",
             "allocator_allocated_mib", "steps", "gpu", "gpu_memory_mib", "driver", "cuda", "cudnn", "torch",
             "tf32_convolutions", "tf32_matmul", "seed")  # fmt: skip


class Run:
    """A row: its measurement, and the question as a line of JSON. Bytes; None: not recorded."""

    def __init__(self, kind, row):
        self.kind, self.key = kind, row.key
        self.name, self.group = f"{kind} row {row.number}", ""
        self.measured, self.out_of_memory = None, False
        self.activity = self.occupancy = None  # permille
        self.published = dict.fromkeys(PUBLISHED)
        self.training, self.network, self.capture = {}, None, None

    @property
    def fold(self):
        return self.key % FOLDS

    def question(self, folds=False):
        said = {"ask": "run", "kind": self.kind, "name": self.name, "key": f"{self.key:016x}", "folds": folds,
                "group": self.group, "out_of_memory": self.out_of_memory, "measured_bytes": self.measured,
                "sm_activity_permille": self.activity, "sm_occupancy_permille": self.occupancy, **self.training,
                "faketensor_bytes": self.published["faketensor"]}  # fmt: skip
        if self.capture:
            said["capture"] = self.capture
        return json.dumps({**said, **(self.network or {})}, separators=(",", ":")) + "\n"


def missing_as_none(value):
    return None if value < 0 else value


def mib_of(row, column, low=0):
    return missing_as_none(row.number_of(column, low, MAX_MIB, MIB))


def measure(run, row, column="max_gpu_memory_mib"):
    run.measured = mib_of(row, column, 1)


def status_of(row):
    if row["status"] not in ("SUCCESSFUL", "OOM_CRASH"):
        raise row.error(f"status '{row['status'][:40]}' is neither SUCCESSFUL nor OOM_CRASH")
    return row["status"] == "OOM_CRASH"


def generated(run, row):
    """What the three generators' rows have in common; and how carma_collect trained: without an earlier pass for the
    summary. Recomputed activations and Conv1D blocks have no layer list here: such a row keeps its measurement alone."""
    measure(run, row)
    run.activity = missing_as_none(row.number_of("avg_smact", 0, 1, 1000))
    run.occupancy = missing_as_none(row.number_of("avg_smocc", 0, 1, 1000))
    run.training["batch_size"] = row.whole("batch_size", 1, MAX_BATCH)
    if row["status"] or run.kind != "mlp":
        run.out_of_memory = status_of(row)
    run.group = row.get("arch", "")
    if not row["run"]:
        return
    for name, known in (("optimizer", OPTIMIZERS), ("precision", PRECISIONS)):
        if row[name] not in known:
            raise row.error(f"{name} '{row[name][:40]}' is not known: {', '.join(known)}")
        run.training[name] = row[name]
    run.training["samples"] = run.training.get("samples") or SAMPLES
    run.training["summary_batch"] = 0
    if row["checkpointing"] == "1" or row["projection"] == "conv1d":
        run.network = None


def read_mlp(run, row):
    run.training.update(samples=SAMPLES, summary_batch=SUMMARY_BATCH)
    run.network = networks.mlp(row)
    generated(run, row)


def read_cnn(run, row):
    run.training["summary_batch"] = SUMMARY_BATCH
    run.network = networks.cnn(row)
    generated(run, row)


def read_transformer(run, row):
    """The script tried the model on a whole batch first."""
    run.training.update(samples=row.whole("num_samples", 1, (1 << 31) - 1),
                        summary_batch=row.whole("batch_size", 1, MAX_BATCH))
    run.network = networks.transformer(row)
    generated(run, row)


GENERATED = {
    "mlp": (read_mlp,
            ("arch", "input_size", "output_size", "hidden_depth", "batch_size", "activation", "use_dropout",
             "use_batchnorm", "total_params", "layers", "max_gpu_memory_mib"),
            ("dropout_rate", "linear_layers", "batchnorm_layers", "dropout_layers", "total_activations", "avg_gputl",
             "avg_gract", "avg_smact", "avg_smocc", "avg_fp32a", "status")),
    "cnn": (read_cnn,
            ("arch", "input_channels", "num_classes", "depth_arg", "base_filters", "batch_size", "input_size",
             "activation", "use_dropout", "use_batchnorm", "total_params", "layers", "status", "max_gpu_memory_mib"),
            ("dropout_rate", "dense_pool_interval", "kernel_size", "conv_layers", "batchnorm_layers", "dropout_layers",
             "total_activations", "avg_gputl", "avg_gract", "avg_smact", "avg_smocc", "avg_fp32a")),
    "transformer": (read_transformer,
                    ("num_classes", "embedding_size", "num_layers", "num_heads", "ff_hidden_size", "seq_length",
                     "vocab_size", "num_samples", "batch_size", "max_gpu_memory_mib", "status"),
                    ("dropout_rate", "avg_gract", "avg_smact", "avg_smocc", "avg_fp32a")),
}  # fmt: skip


def read_generated(kind, path):
    read, required, optional = GENERATED[kind]
    for row in rows.read(path, required, (*optional, *COLLECTED)):
        run = Run(kind, row)
        read(run, row)
        yield row, run


# ---- Published models (thesis, Table 6.2): for some CNNs, the lines of their torchsummary ----

IMAGES = {"cifar100": (32,), "imagenet": (224, 299)}  # the usual sides
MAX_RANK, MAX_DIMENSION, MAX_LIST, MAX_SUMMARIES = 5, 1 << 31, 100000, 1000


def read_summaries(path):
    """The layers by model and data set; what each reads is worked out where the question is asked."""
    found = {}
    for row in rows.read(path, ("model", "dataset", "idx", "layer_type", "output_shape_no_batch", "params")):
        index = row.whole("idx", 0, MAX_LIST)
        layers = found.setdefault((row["model"], row["dataset"]), [])
        if len(found) > MAX_SUMMARIES:
            raise row.error(f"more than {MAX_SUMMARIES} models: split the file")
        if index != len(layers):
            raise row.error(f"idx {index} of {row['model']}, but its next line is {len(layers)}")
        text, parameters = row["output_shape_no_batch"], row.whole("params", 0, 1 << 40)
        shape = [int(side) for side in text.split("x")] if re.fullmatch(r"[0-9]{1,12}(x[0-9]{1,12})*", text) else []
        if not 0 < len(shape) <= MAX_RANK or not all(1 <= side <= MAX_DIMENSION for side in shape):
            raise row.error(f"output_shape_no_batch '{text[:40]}' is not a shape such as 64x56x56")
        layers.append({"type": row["layer_type"], "shape": shape, "parameters": parameters})
    return found


def summary_of(dataset, layers):
    """The side of the images: the data set's usual one, or that of the first layer's output."""
    shape = layers[0]["shape"]
    out = shape[2] if len(shape) == 3 else 0
    side = next((side for side in IMAGES.get(dataset, ()) if side == out or abs(side - 2 * out) <= 2), 0)
    return {"input": [3, side, side] if side else [], "layers": layers}


def read_real(files):
    models, comma, layers = files.partition(",")
    if not models or not layers:
        raise Failure(f"real:{files[:200]}: name two files, real:MODELS.csv,LAYERS.csv")
    summaries = read_summaries(layers)
    for row in rows.read(models, ("model", "domain", "dataset", "batch_size", "gpus"),
                         ("actual_mb_thesis", "actual_mib_carma_rad", "actual_gb_carma_readme", "horus_mb",
                          "faketensor_mb", "gpumemnet_mb", "num_layers", "hidden", "ff", "heads", "vocab", "seq_len")):  # fmt: skip
        run = Run("real", row)
        batch, gpus = row.whole("batch_size", 1, MAX_BATCH), row.whole("gpus", 1, 64)
        measure(run, row, "actual_mb_thesis")
        run.published = {name: mib_of(row, f"{name}_mb") for name in PUBLISHED}
        if batch % gpus:
            raise row.error(f"batch_size {row['batch_size']} does not divide among {row['gpus']} GPUs")
        run.name, run.group = f"{row['model'][:40]} {row['dataset'][:30]} {batch}", row["model"][:31]
        run.training["batch_size"] = batch // gpus  # DataParallel splits it
        lines = summaries.get((row["model"], row["dataset"]))
        if lines:
            run.network = summary_of(row["dataset"], lines)
        else:
            run.network = networks.language(row, gpus)
            run.training["optimizer"] = "adamw"
        yield row, run if run.measured else None  # not on this machine


# ---- timm's models (package timm): layers come from captures of the same models, a file each ----


def read_timm(path, captures, machine):
    """How the models were trained is not recorded. It was worked out from a quarter of the models (bench/timm has the split,
    and the figures of every candidate): as by timm's own training script. Nor is it recorded how a run ended; many show the
    same few GiB for every batch. A run may have less memory than an empty context and the tensors of the step's forward and
    backward pass (counted as fake tensors are). Such a run has not gone through a step. It ran out of memory where that is
    more than the GPU has, else it was broken off."""
    for row in rows.read(path, ("model", "batch_size", "max_gpu_memory_mib"),
                         ("ft_forward_mb", "ft_backward_mb", "ft_last_mb")):
        run, model = Run("timm", row), row["model"]
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,89}", model):
            raise row.error(f"model '{model[:40]}' is not a name of letters, digits, '_', '-' and '.'")
        batch = row.whole("batch_size", 1, MAX_BATCH)
        measure(run, row)
        run.published["faketensor"] = mib_of(row, "ft_last_mb")
        run.name, run.group = f"{model} {batch}", model.partition("_")[0]
        run.training.update(batch_size=batch, optimizer="momentum", weight_decay=True)
        run.capture = f"{captures}/{model}.capture" if captures else None
        tensors = run.published["faketensor"]
        if tensors is not None and run.measured < tensors + machine["context_bytes"]:
            run.out_of_memory = tensors + machine["context_bytes"] > machine["memory_bytes"]
            yield row, run if run.out_of_memory and (not captures or os.path.exists(run.capture)) else None
        else:
            yield row, run if not captures or os.path.exists(run.capture) else None


def read(which, captures, machine):
    """The kind, its runs, and the number of rows that are left out. `machine`: that of the published runs."""
    kind, colon, path = which.partition(":")
    if kind not in (*GENERATED, "real", "timm") or not path:
        raise Failure(f"'{which[:80]}' is not a KIND:FILE; KIND is mlp, cnn, transformer, real or timm")
    if kind in GENERATED:
        found = read_generated(kind, path)
    else:
        found = read_real(path) if kind == "real" else read_timm(path, captures, machine)
    runs, left_out, layers = [], 0, 0
    for row, run in found:
        if run is None:
            left_out += 1
            continue
        layers += len(run.network["layers"]) if run.network else 0
        if layers > MAX_LAYERS:
            raise row.error(f"the networks so far have more than {MAX_LAYERS} layers: split the file")
        runs.append(run)
    if not runs:
        raise Failure(f"{which[:200]}: no rows")
    return kind, runs, left_out
