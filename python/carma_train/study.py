"""The study of chapter 5 of the thesis on the measured runs. Is a network's memory better estimated as a number or as a
class? Which features tell it, do the classes lie apart, and in which steps does memory grow? Writes a page with its
plots, in `images` beside it.

    python3 -m carma_train study --data DIR --output docs/gpumemnet.md

Every figure of a learner is of rows of folds that it was not trained on (gpumemnet_data.py). DIR has mlp.csv, cnn.csv
and transformer.csv; a family without a file is left out."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import warnings

import numpy
from sklearn import compose, ensemble, exceptions, inspection, neighbors, neural_network, pipeline, preprocessing

from . import gpumemnet_data as data
from . import plots

NAMES = {"mlp": "MLPs", "cnn": "CNNs", "transformer": "transformers"}
FOUR = ("depth", "batch", "parameters", "activations")  # the features of the thesis's first attempt (5.4.2)
THESIS_IMPORTANCE = {"depth": 0.0152, "batch": 0.0144, "parameters": 0.699, "activations": 0.271}
TREES, ROUNDS, HIDDEN, EPOCHS = 100, 150, (64, 64), 400
SHOWN = 500  # points of a plot
NEIGHBOURS = 5
MIB = 1 << 20
BATCHES = range(32, 4097, 32)
WIDTHS = {"8 layers of 1024": [1024] * 8, "3 layers of 2048": [2048] * 3}  # of the networks of the staircase
INPUTS, OUTPUTS = 1024, 10


def scaled(kind):
    network = kind(hidden_layer_sizes=HIDDEN, max_iter=EPOCHS, random_state=1)
    return pipeline.make_pipeline(preprocessing.StandardScaler(), network)


LEARNERS = {  # name: the learner of a number, and that of a class
    "extra trees": (lambda: ensemble.ExtraTreesRegressor(TREES, random_state=1),
                    lambda: ensemble.ExtraTreesClassifier(TREES, random_state=1)),
    "random forest": (lambda: ensemble.RandomForestRegressor(TREES, random_state=1),
                      lambda: ensemble.RandomForestClassifier(TREES, random_state=1)),
    "boosted trees": (lambda: ensemble.HistGradientBoostingRegressor(max_iter=ROUNDS, random_state=1),
                      lambda: ensemble.HistGradientBoostingClassifier(max_iter=ROUNDS, random_state=1)),
    "neural network": (lambda: compose.TransformedTargetRegressor(scaled(neural_network.MLPRegressor),
                                                                  transformer=preprocessing.StandardScaler()),
                       lambda: scaled(neural_network.MLPClassifier)),
}


class Runs:
    """A family's runs that fitted: a run out of memory has no number to learn."""

    def __init__(self, path, family):
        rows = data.read(path, family)
        fitted = ~rows.oom
        self.family, self.out_of_memory = family, int(rows.oom.sum())
        self.features, self.folds = rows.features[fitted], rows.folds[fitted]
        self.memory, self.classes = rows.memory_mib[fitted].astype(float), rows.classes[fitted]
        if len(set(self.folds)) < 2:
            raise ValueError(f"{path}: {len(self.folds)} runs that fitted, all of one fold: give more")

    def columns(self, names):
        return self.features[:, [data.FEATURES.index(name) for name in names]]

    def answers(self, make, features, target):
        """Of each run, by a learner that has not seen its fold."""
        found = numpy.zeros(len(target))
        for fold in numpy.unique(self.folds):
            held = self.folds == fold
            found[held] = make().fit(features[~held], target[~held]).predict(features[held])
        return found


def table(out, head, lines):
    out += [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(line)} |" for line in lines), ""]


def compare(runs):
    """A line for each learner: name, mean errors as a number, right classes as a number and as a class."""
    features = runs.columns(runs.family.ensemble)
    for name, (number, kind) in LEARNERS.items():
        memory = runs.answers(number, features, runs.memory)
        error = numpy.abs(memory - runs.memory)
        binned = numpy.array([data.class_of(runs.family, mib, False) for mib in numpy.maximum(memory, 0)])
        chosen = runs.answers(kind, features, runs.classes)
        yield [NAMES[runs.family.name], name, f"{error.mean():,.0f}", f"{100 * (error / runs.memory).mean():.1f}%",
               f"{100 * (binned == runs.classes).mean():.1f}%", f"{100 * (chosen == runs.classes).mean():.1f}%"]


def importances(runs):
    """By feature of FOUR: the trees' own importance, and the mean error in MiB that shuffling it adds."""
    features = runs.columns(FOUR)
    own, shuffled = [], []
    for fold in numpy.unique(runs.folds):
        held = runs.folds == fold
        trees = LEARNERS["extra trees"][0]().fit(features[~held], runs.memory[~held])
        own.append(trees.feature_importances_)
        shuffled.append(inspection.permutation_importance(
            trees, features[held], runs.memory[held], scoring="neg_mean_absolute_error", random_state=1,
        ).importances_mean)  # fmt: skip
    return numpy.mean(own, 0), numpy.mean(shuffled, 0)


def components(features):
    """The rows on their principal components, and the part of the variance on each."""
    spread = features.std(0)
    centred = (features - features.mean(0)) / numpy.where(spread > 0, spread, 1)
    left, sizes, _axes = numpy.linalg.svd(centred, full_matrices=False)
    return left * sizes, sizes**2 / (sizes**2).sum()


def class_name(family, index):
    low = (family.first + index) * family.width_mib // 1000
    return f"{low} to {low + family.width_mib // 1000} GB"


def draw_components(runs, folder):
    """Writes the plot. Returns the variance on the first two, and the rate at which the nearest rows' class is right:
    by these two alone, and by all."""
    found, variance = components(runs.columns(runs.family.ensemble))
    shown = numpy.random.default_rng(1).permutation(len(found))[:SHOWN]
    groups = [(class_name(runs.family, index), [(found[i, 0], found[i, 1]) for i in shown if runs.classes[i] == index])
              for index in range(runs.family.count) if (runs.classes == index).any()]
    title = f"{NAMES[runs.family.name]}: two principal components, memory by colour"
    (folder / f"gpumemnet-pca-{runs.family.name}.svg").write_text(
        plots.points(title, ("first component", "second component"), groups), encoding="utf-8")
    chosen = [runs.answers(lambda: neighbors.KNeighborsClassifier(NEIGHBOURS), part, runs.classes)
              for part in (found[:, :2], found)]
    return variance[:2], [(classes == runs.classes).mean() for classes in chosen]


def summary_of(widths):
    """The network as torchsummary prints it."""
    layers, inputs = [], INPUTS
    for width in [*widths, OUTPUTS]:
        layers += [("Linear", width, (inputs + 1) * width), ("ReLU", width, 0)]
        inputs = width
    layers.pop()  # the last has no activation
    lines = [f"{kind}-{i}  [-1, {width}]  {parameters:,}" for i, (kind, width, parameters) in enumerate(layers, 1)]
    parameters = sum(layer[2] for layer in layers)
    sizes = [4 * n / MIB for n in (INPUTS, 2 * sum(layer[1] for layer in layers), parameters)]
    names = ("Input size", "Forward/backward pass size", "Params size", "Estimated Total Size")
    return "\n".join(["Layer (type)  Output Shape  Param #", "=" * 40, *lines, "=" * 40,
                      f"Total params: {parameters:,}", *(
                          f"{name} (MB): {size:.2f}" for name, size in zip(names, [*sizes, sum(sizes)])), ""])


def staircase(carma):
    """name -> [(batch size, MiB)] by carma's replay."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "summary.txt")
        for name, widths in WIDTHS.items():
            path.write_text(summary_of(widths), encoding="ascii")
            found[name] = []
            for batch in BATCHES:
                said = subprocess.run([carma, "estimate", "--summary", path, "--batch-size", str(batch), "--estimator",
                                       "replay", "--json"], capture_output=True, text=True, check=False)
                if said.returncode != 0:
                    raise ValueError(f"{carma} estimate: {said.stderr.strip()}")
                found[name].append((batch, json.loads(said.stdout)["median_bytes"] / MIB))
    return found


def treads(steps):
    """How many heights there are, and the longest run of batch sizes with the same one."""
    longest, begin = 0, 0
    for i in range(1, len(steps) + 1):
        if i == len(steps) or steps[i][1] != steps[begin][1]:
            longest, begin = max(longest, i - begin), i
    return len({mib for _batch, mib in steps}), longest


def say(out, *sentences):
    out += [textwrap.fill(" ".join(sentences), 120), ""]


def write(out, families, steps, folder):
    counts = ", ".join(f"{len(runs.memory):,} {NAMES[runs.family.name]}" for runs in families)
    out += ["# What the measured runs say about estimating memory",
            "<!-- Written by python3 -m carma_train study: change python/carma_train/study.py, not this page. -->"]
    say(out, "This page repeats the study of the thesis's chapter 5 on the published runs that carma was trained with:",
        f"{counts}.", "Runs out of memory are left out: they have no memory to learn. Each answer is by a model that",
        "has not seen the run (five folds). carma's own estimators, and their figures with the runs out of memory, are",
        "in [estimation.md](estimation.md).")
    out += ["```sh not here: needs the published data",
            "python3 -m pip install -r python/requirements-replay.txt",
            "cd python",
            "python3 -m carma_train study --data DIR --output ../docs/gpumemnet.md --carma ../build/bin/carma",
            "```", "",
            "## A number or a class?"]
    say(out, "Each learner was trained on GPUMemNet's features (thesis 5.4.4), once for the memory in MiB and once for",
        "its class: 1,000 MiB wide for MLPs, 8,000 MiB for the others. The number's class is the class it falls into.")
    lines = [line for runs in families for line in compare(runs)]
    table(out, ["runs", "learner", "number: MAE, MiB", "MAPE", "number: right class", "class: right class"], lines)
    ahead = sum(float(number[:-1]) > float(kind[:-1]) for *_line, number, kind in lines)
    say(out, f"The number's class is right more often in {ahead} of these {len(lines)} lines. The thesis found",
        "regression unfit on its first MLPs (5.4.2) and turned to classes.")
    out += ["## Which features tell the memory?"]
    say(out, "Extra trees, trained for the memory in MiB, with the four features of the thesis's first attempt.",
        "A tree's own importance says how much its splits by a feature explain. Of features that go together chance",
        "decides which one gets it. So the second figure counts: the mean error, in MiB, that shuffling the feature",
        "adds on runs not seen.")
    found = {runs.family.name: importances(runs) for runs in families}
    table(out, ["feature", *(f"{NAMES[name]}: own, shuffled" for name in found), "thesis, first MLPs: own"],
          [[name, *(f"{own[i]:.3f}, +{max(shuffled[i], 0):,.0f}" for own, shuffled in found.values()),
            f"{THESIS_IMPORTANCE[name]:.3f}"] for i, name in enumerate(FOUR)])
    out += ["## Do the classes lie apart?"]
    say(out, f"Principal components of GPUMemNet's features, standardised; at most {SHOWN} runs a plot. The table says",
        f"how often a run has the commonest class of its {NEIGHBOURS} nearest runs of other folds: by the two",
        "components of the plot, and by all.")
    lines = []
    for runs in families:
        variance, rates = draw_components(runs, folder)
        lines.append([NAMES[runs.family.name], f"{100 * variance[0]:.0f}%, {100 * variance[1]:.0f}%",
                      *(f"{100 * rate:.1f}%" for rate in rates)])
    table(out, ["runs", "variance on the two", "right by these two", "right by all"], lines)
    out += [*(f"![{NAMES[runs.family.name]}: two principal components](images/gpumemnet-pca-{runs.family.name}.svg)"
              for runs in families), "", "## The staircase"]
    say(out, "PyTorch takes memory from the GPU in segments of 2 MiB, 20 MiB, or a multiple of 2 MiB for larger",
        "tensors. So memory grows in steps with the batch size. It can fall, too: a larger tensor may fit blocks that",
        "were freed. The curves are computed, not measured: two MLPs by carma's replay (`carma estimate`), which is",
        "0.1% off on the measured MLPs.")
    (folder / "gpumemnet-steps.svg").write_text(
        plots.steps("Memory of two MLPs over the batch size", ("batch size", "MiB"), steps), encoding="utf-8")
    table(out, ["MLP", f"batch sizes, {BATCHES[0]} to {BATCHES[-1]}", "least, most MiB", "heights",
                "most neighbouring batch sizes on one"],
          [[name, str(len(line)), f"{min(heights):,.0f}, {max(heights):,.0f}", *map(str, treads(line))]
           for name, line in steps.items() for heights in [[mib for _batch, mib in line]]])
    out += ["![Memory over the batch size](images/gpumemnet-steps.svg)", "",
            "The measured runs have the same grain:", ""]
    table(out, ["runs", "different figures", "a multiple of 2 MiB from the first run's"],
          [[NAMES[runs.family.name], f"{len(set(runs.memory)):,} of {len(runs.memory):,}",
            f"{100 * (runs.memory % 2 == runs.memory[0] % 2).mean():.0f}%"] for runs in families])


def main(arguments):
    parser = argparse.ArgumentParser(prog="carma_train study", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="directory of the files of measured runs")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the page to write")
    parser.add_argument("--carma", default="carma", help="the program, for the staircase (default: carma on the PATH)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
    folder, out = options.output.parent / "images", []
    try:
        families = [Runs(options.data / f"{name}.csv", family) for name, family in data.FAMILIES.items()
                    if (options.data / f"{name}.csv").is_file()]
        if not families:
            names = ", ".join(f"{name}.csv" for name in data.FAMILIES)
            raise ValueError(f"{options.data}: none of {names} is there: name the directory of the measured runs")
        folder.mkdir(parents=True, exist_ok=True)
        write(out, families, staircase(options.carma), folder)
        options.output.write_text("\n".join(out).rstrip() + "\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"carma_train: {error}", file=sys.stderr)
        return 1
    return 0
