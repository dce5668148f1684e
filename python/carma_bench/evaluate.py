"""carma evaluate: an estimator compared with measured runs, or what is predicted of sharing with measured jobs.

`carma estimate --questions` is asked (src/cli/estimate/questions.c): a line of JSON each, and a line back. Classes are bins
of equal width, and a last one for runs out of memory and for best guesses above the GPU's memory."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time

import datasets
import sharing
import show
from show import Failure
from trace_read import total

MIB = 1 << 20
BIN_GB = 1000 * MIB  # 1 GB of a bin is 1000 MiB, as in the thesis's classes
MAX_CLASSES = 100000
FIGURES = {
    "bin_accuracy": "best guess in the right bin", "bin_below": "in a bin that is too low", "mae_mib": "mean error",
    "mape": "mean error of the measured", "median_ape": "median of these", "worst_ape": "worst of these",
    "precision": "of bins, weighted by their rows", "recall": "of bins, weighted by their rows",
    "f1": "of bins, weighted by their rows", "underestimate_rate": "answer at the quantile too low",
    "mean_overestimate": "answer at the quantile above the measured",
}  # fmt: skip


class Estimators:
    """The program that has them. What it complains of at its start stands on stderr already."""

    def __init__(self, program, options):
        words = [program, "estimate", "--questions", f"--estimator={options.get('estimator', 'auto')}",
                 f"--quantile={options.get('quantile', '0.98')}"]  # fmt: skip
        words += [f"--profile={options['profile']}"] if "profile" in options else []
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def said(self, line):
        handler = signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # it may have ended: its status is ours then
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        signal.signal(signal.SIGPIPE, handler)
        answer = self.process.stdout.readline()
        if not answer:
            show.clear()
            os._exit(self.process.wait() or 1)
        return json.loads(answer)

    def ask(self, question):
        return self.said(json.dumps(question) + "\n")


def ask_all(runs, estimators, folds):
    """What each run's question was answered; those whose capture is of another batch size are left out."""
    begun, answered = time.monotonic(), []
    for at, run in enumerate(runs):
        answer = estimators.said(run.question(folds))
        if "error" in answer:
            raise Failure(answer["error"] if run.capture else f"{run.name}: {answer['error']}")
        if "left_out" not in answer:
            answered.append((run, answer))
        if time.monotonic() - begun > 1:  # faster work needs no bar
            show.progress(f"{at + 1}/{len(runs)} rows")
    show.clear()
    return answered


def percentile(values, percent):
    """By linear interpolation."""
    values, rank = sorted(values), percent / 100 * (len(values) - 1)
    below = int(rank)
    if below + 1 >= len(values):
        return values[-1]
    return values[below] + (rank - below) * (values[below + 1] - values[below])


def of_classes(known, bin_bytes, memory):
    """Means over the classes are weighted by their rows, as in the thesis (5.4.4): recall is then the accuracy; a class that
    is never guessed has precision 0."""
    last = (memory - 1) // bin_bytes + 1

    def bin_of(size):
        return min(max(size, 0) // bin_bytes, last - 1)

    pairs = [(last if run.out_of_memory else bin_of(run.measured),
              last if answer["median_bytes"] > memory else bin_of(answer["median_bytes"])) for run, answer in known]  # fmt: skip
    actual, guessed, right = ({} for _ in range(3))
    for one, other in pairs:
        actual[one] = actual.get(one, 0) + 1
        guessed[other] = guessed.get(other, 0) + 1
        right[one] = right.get(one, 0) + (one == other)
    figures = {"bin_accuracy": sum(right.values()) / len(pairs),
               "bin_below": sum(other < one for one, other in pairs) / len(pairs),
               "precision": 0.0, "recall": 0.0, "f1": 0.0}  # fmt: skip
    for one in sorted(actual):
        weight, recall = actual[one] / len(pairs), right[one] / actual[one]
        precision = right[one] / guessed[one] if one in guessed else 0
        figures["precision"] += weight * precision
        figures["recall"] += weight * recall
        if right[one]:
            figures["f1"] += weight * 2 * precision * recall / (precision + recall)
    return figures


def of_errors(known):
    """Of rows that were not out of memory."""
    fitted = [(run.measured, answer) for run, answer in known if not run.out_of_memory]
    if not fitted:
        return {}
    errors = [abs(answer["median_bytes"] - measured) for measured, answer in fitted]
    shares = [error / measured for error, (measured, _) in zip(errors, fitted)]
    return {"mae_mib": total(error / MIB for error in errors) / len(fitted), "mape": total(shares) / len(fitted),
            "median_ape": percentile(shares, 50), "worst_ape": max(shares),
            "underestimate_rate": sum(answer["bytes"] < measured for measured, answer in fitted) / len(fitted),
            "mean_overestimate": total(max(0, (answer["bytes"] - measured) / measured) for measured, answer in fitted)
            / len(fitted)}  # fmt: skip


def of_published(known, estimator):
    """The data set's own figures of horus or faketensor, where it has them; gpumemnet's are edges of classes."""
    if estimator not in ("horus", "faketensor"):
        return None
    errors = [abs(answer["median_bytes"] - run.published[estimator]) / run.published[estimator] for run, answer in known
              if run.published[estimator]]  # fmt: skip
    return errors and {"rows": len(errors), "mape": total(errors) / len(errors), "worst_ape": max(errors)}


def of_activity(known):
    """Where it was recorded, and estimated; a run out of memory hardly ran."""
    found = [(run.activity, answer["sm_activity_permille"], answer["sm_activity_seen"] and answer["fold"] < 0)
             for run, answer in known
             if run.activity is not None and answer["sm_activity_permille"] >= 0 and not run.out_of_memory]  # fmt: skip
    if not found:
        return None
    squares = total(actual * actual for actual, *_ in found) - total(actual for actual, *_ in found) ** 2 / len(found)
    residuals = total((guess - actual) ** 2 for actual, guess, _ in found)
    return {"rows": len(found), "r2": 1 - residuals / squares if squares > 0 else None,
            "mae": total(abs(guess - actual) for actual, guess, _ in found) / len(found) / 1000,
            "in_sample": any(seen for *_, seen in found)}  # fmt: skip


def report_of(options, answered, left_out, bins, memory):
    known = [(run, answer) for run, answer in answered if "bytes" in answer]
    estimator = options.get("estimator", "auto")
    report = {"dataset": show.safe(options["dataset"]), "estimator": estimator,
              "quantile": int(float(options.get("quantile", "0.98")) * 1000 + 0.5) / 1000, "bins_gb": bins,
              "folds": "folds" in options,
              "in_sample": any(answer["seen"] and answer["fold"] < 0 for _, answer in known), "rows": len(known),
              "out_of_memory": sum(run.out_of_memory for run, _ in known), "unanswered": len(answered) - len(known),
              "left_out": left_out}  # fmt: skip
    figures = {**of_classes(known, int(bins * BIN_GB), memory), **of_errors(known)}
    report.update((name, figures.get(name)) for name in FIGURES)
    for name, part in (("published", of_published(known, estimator)), ("sm_activity", of_activity(known))):
        if part:
            report[name] = part
    return report


def print_report(report, unanswered):
    def value(name):
        if report[name] is None:
            return None
        return f"{report[name]:.1f} MiB" if name == "mae_mib" else f"{100 * report[name]:.2f}%"

    print(f"{report['estimator']} on {report['dataset']}: {report['rows']} rows, {report['out_of_memory']} of them out of "
          f"memory; bins of {report['bins_gb']:g} GB, quantile {report['quantile']:g}\n")
    show.table([("FIGURE", False, 0, 0), ("VALUE", True, 0, 0), ("", False, 0, 1)],
               [[name, value(name), text] for name, text in FIGURES.items()])
    print()
    if report["in_sample"]:
        print("In sample: models were asked about rows that they were trained on; --folds asks others.")
    elif report["folds"]:
        print("Cross-validated: no row was seen by the models that were asked about it.")
    if report["left_out"]:
        print(f"Left out: {report['left_out']} rows without a measurement on this machine or without a capture.")
    if unanswered:
        print(f"Without an answer: {report['unanswered']} rows. The first: {show.safe(unanswered)}")
    if "published" in report:
        print(f"Against the published {report['estimator']} of {report['published']['rows']} rows: mean difference "
              f"{100 * report['published']['mape']:.2f}%, worst {100 * report['published']['worst_ape']:.2f}%.")
    if "sm_activity" in report:
        part = report["sm_activity"]
        r2 = math.nan if part["r2"] is None else part["r2"]
        print(f"SM activity of {part['rows']} rows: R2 {r2:.3f}, mean error {part['mae']:.3f}"
              f"{' (in sample)' if part['in_sample'] else ''}.")


def print_rows(answered):
    def mib(size):
        return "" if size is None else f"{size / MIB:.3f}"

    def share(permille):
        return "" if permille is None or permille < 0 else f"{permille / 1000:g}"

    print("name,group,key,fold,seen,out_of_memory,measured_mib,median_mib,quantile_mib,source,confidence,sm_activity,"
          "sm_activity_estimate,horus_mib,faketensor_mib,gpumemnet_mib")
    for run, answer in answered:
        print(show.safe(run.name), show.safe(run.group), f"{run.key:016x}", run.fold, int(answer["seen"]),
              int(run.out_of_memory), mib(run.measured), mib(answer.get("median_bytes")), mib(answer.get("bytes")),
              answer.get("source", ""), share(answer.get("confidence_permille")), share(run.activity),
              share(answer.get("sm_activity_permille")), *(mib(size) for size in run.published.values()), sep=",")  # fmt: skip


def bins_of(text):
    try:
        value = float(text) if text.strip("0123456789.") == "" else -1
    except ValueError:
        value = -1
    if not 0.01 <= value <= 1000:
        raise show.usage("evaluate", f"--bins: '{text[:40]}' is not a number of GB from 0.01 to 1000")
    return value


def check(options):
    subjects = [name for name in ("dataset", "pairs", "threads", "mig") if name in options]
    if not subjects:
        raise show.usage("evaluate", "on what? name measured runs with --dataset, or jobs that share a GPU with --pairs, "
                         "--threads or --mig")
    if len(subjects) > 1:
        raise show.usage("evaluate", "one of --dataset, --pairs, --threads and --mig, not several")
    if "rows" in options and "dataset" not in options:
        raise show.usage("evaluate", "--rows is for --dataset")
    if "rows" in options and "json" in options:
        raise show.usage("evaluate", "either --json or --rows, not both")
    return subjects[0], bins_of(options["bins"]) if "bins" in options else None


def evaluate(options, bins, estimators, machine):
    kind, runs, left_out = datasets.read(options["dataset"], options.get("captures"), machine["published"])
    if "questions" in options:
        sys.stdout.writelines(run.question() for run in runs)
        return
    bins = bins or (1.0 if kind == "mlp" else 8.0)
    if machine["memory_bytes"] // int(bins * BIN_GB) >= MAX_CLASSES:
        raise Failure(f"bins of {bins:g} GB are too narrow for a GPU of {machine['memory_bytes'] // MIB} MiB: choose wider "
                      "ones")
    answered = ask_all(runs, estimators, "folds" in options)
    left_out += len(runs) - len(answered)
    if not answered:
        raise Failure(f"{options['dataset'][:200]}: no rows")
    unanswered = [f"{run.name}: {answer['unanswered'][:150]}" for run, answer in answered if "unanswered" in answer]
    if len(unanswered) == len(answered):
        raise Failure(f"{options.get('estimator', 'auto')} answers none of the {len(answered)} rows: {unanswered[0]}")
    if "rows" in options:
        print_rows(answered)
        return
    report = report_of(options, answered, left_out, bins, machine["memory_bytes"])
    if "json" in options:
        print(json.dumps(report, indent=2))
    else:
        print_report(report, unanswered[0] if unanswered else None)


def run(options):
    estimators = Estimators(options["carma"], options)
    machine = estimators.ask({"ask": "machine"})  # before all else: it refuses what it does not know
    subject, bins = check(options)
    if subject == "dataset":
        evaluate(options, bins, estimators, machine)
        return
    report, text = getattr(sharing, subject)(options[subject], estimators.ask)
    print(json.dumps(report, indent=2) if "json" in options else text)
