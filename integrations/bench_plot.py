#!/usr/bin/env python3
"""Usage: bench_plot.py RESULTS.json|TIMELINE.csv|- PICTURE.svg|.png|.pdf: draws the results of carma bench (collocate.json
or monitor.json of its --output, or the output of its --json), the output of `carma simulate --compare --json`, the file of
`carma simulate --timeline` or the output of `carma trace show --json`. Needs matplotlib."""

import csv
import json
import os
import sys
import tempfile

SYSTEM_PYTHON = "/usr/bin/python3"  # has what apt has installed, also where another one is first on the PATH
try:
    import matplotlib
    from matplotlib import pyplot
except ImportError:
    if os.access(SYSTEM_PYTHON, os.X_OK) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    sys.exit("bench_plot.py needs matplotlib: apt install python3-matplotlib")

matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"  # texts stay texts
matplotlib.rcParams["svg.hashsalt"] = "carma"  # the same results make the same picture

SMOOTH_S = 1.0  # of the wall clock: the kernel counts processor time in hundredths of a second
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000"]  # Okabe and Ito's, for colour-blind readers


def bars(axes, title, unit, groups, series):
    """groups: labels on the x axis. series: {name: a value or None for each group}."""
    width = 0.8 / max(len(series), 1)
    for i, (name, values) in enumerate(series.items()):
        shown = [(x, value) for x, value in enumerate(values) if value is not None]
        if not shown:
            continue  # it would be in the legend, in a colour of its own
        axes.bar([x + (i - (len(series) - 1) / 2) * width for x, _ in shown], [value for _, value in shown], width,
                 label=name, color=COLOURS[i % len(COLOURS)])
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(groups)), groups, rotation=30 if max(map(len, groups)) > 8 else 0)


def scaled(value, factor=1.0):
    return None if value is None else value * factor


def collocate(report):
    """The thesis's figures 4.1 to 4.12: bars by degree or mix, one colour for each mode."""
    def metric(name, factor):
        return lambda run: scaled(run["metrics"].get(name, {}).get("mean"), factor)

    quantities = [
        ("time per epoch, mean of the jobs", "s", lambda run: sum(job["epoch_s"] for job in run["each"]) / run["degree"]),
        ("throughput, alone = 1", None, lambda run: run["throughput"]),
        ("total time, of one after another", "%", lambda run: run["serial_s"] and 100 * run["total_s"] / run["serial_s"]),
        ("SM activity", "%", metric("sm_activity", 100)),
        ("GPU memory, highest", "GiB", lambda run: scaled(run["memory_peak_bytes"], 1 / 2**30)),
        ("traffic from the host", "GB/s", metric("pcie_rx", 1e-9)),
        ("power", "W", lambda run: run["power_w"]),
        ("energy per job", "kJ", lambda run: scaled(run["energy_per_job_j"], 1e-3)),
    ]
    runs = [run for run in report["runs"] if run["result"] == "ok"]
    if not runs:
        sys.exit("bench_plot.py: no run of these results succeeded: there is nothing to draw")
    groups = list(dict.fromkeys(run["jobs"] for run in runs))
    modes = list(dict.fromkeys(run["mode"] for run in runs))
    figure, panels = pyplot.subplots(4, 2, figsize=(max(10, 1.5 * len(groups) + 4), 14))
    for axes, (title, unit, value) in zip(panels.flat, quantities):
        found = {(run["mode"], run["jobs"]): value(run) for run in runs}
        bars(axes, title, unit, groups, {mode: [found.get((mode, group)) for group in groups] for mode in modes})
    return figure, panels.flat[0], "Training jobs that share a GPU, " + report["gpu"]["name"]


def processor_time(samples, column, scale):
    """Percent of a core, over about SMOOTH_S before each sample."""
    percent = []
    for i, sample in enumerate(samples):
        first = i
        while first > 0 and (sample[0] - samples[first][0]) / scale < SMOOTH_S:
            first -= 1
        wall_s = (sample[0] - samples[first][0]) / scale
        percent.append(100 * (sample[column] - samples[first][column]) / wall_s if wall_s > 0 else 0)
    return percent


def monitor(report):
    """Table 3.2 and Figures 3.2 to 3.4 of the thesis."""
    loads = report["loads"]
    sources = [source["source"] for source in loads[0]["sources"]]
    figure, grid = pyplot.subplots(4, 4, figsize=(17, 14))
    summaries = [("epoch time, relative to no tool", None, "ratio", 1), ("logged", "KiB", "logged_bytes", 1 / 1024),
                 ("SM activity, as the source has it", "%", "sm_activity", 100),
                 ("SM occupancy", "%", "sm_occupancy", 100), ("DRAM activity", "%", "dram_activity", 100)]
    panels = [grid[0][0], grid[0][1], *grid[3][:3]]
    for axes, (title, unit, key, factor) in zip(panels, summaries):
        series = {name: [scaled(load["sources"][i].get(key), factor) for load in loads] for i, name in enumerate(sources)}
        bars(axes, title, unit, [load["load"] for load in loads], series)
    for axes in (grid[0][2], grid[0][3], grid[3][3]):
        axes.axis("off")
    for column, (load, who) in enumerate((load, who) for load in loads for who in ("job", "tool")):
        for i, source in enumerate(load["sources"]):
            samples = source.get("samples", [])  # [at_s, job's CPU s, tool's CPU s, job's bytes, tool's bytes]
            times = [sample[0] for sample in samples]
            at = ("job", "tool").index(who)
            grid[1][column].plot(times, processor_time(samples, 1 + at, report["time_scale"]), color=COLOURS[i])
            grid[2][column].plot(times, [sample[3 + at] / 2**20 for sample in samples], color=COLOURS[i])
        for axes, what, unit in ((grid[1][column], "CPU", "% of a core"), (grid[2][column], "memory", "MiB")):
            axes.set_title(f"{what} of the {who}, {load['load']}", fontsize=10)
            axes.set_ylabel(unit)
            axes.set_xlabel("time (s)")
    return figure, panels[0], f"The cost of watching {report['gpu_name']}, by source"


def kernel(report):
    """Figure 3.1: a panel for each number of blocks, over the threads of a block."""
    shown = {"GRACT (any engine)": "graphics_activity", "SMACT (SM activity)": "sm_activity",
             "SMOCC (SM occupancy)": "sm_occupancy"}
    points = report["points"]
    blocks = list(dict.fromkeys(point["blocks"] for point in points))
    figure, panels = pyplot.subplots(1, len(blocks), figsize=(3.4 * len(blocks), 4.5), squeeze=False)
    for axes, count in zip(panels[0], blocks):
        these = [point for point in points if point["blocks"] == count]
        series = {name: [scaled((point[key] or {}).get("value"), 100) for point in these] for name, key in shown.items()}
        bars(axes, f"{count} block{'s' if count > 1 else ''}", "%", [str(point["threads"]) for point in these], series)
        axes.set_ylim(0, 100)
        axes.set_xlabel("threads of a block")
    return figure, panels[0][0], "The metrics as a kernel grows, " + report["gpu_name"]


def time_unit(seconds):
    """A name, and its length in seconds."""
    return next((name, length) for name, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
                if seconds >= 2 * length or length == 1)


def compare(outcomes):
    """The thesis's figures 6.5 to 6.15: bars per policy, with their standard deviation."""
    quantities = [("makespan", "makespan_s"), ("wait time, mean of the jobs", "wait_s"), ("JCT, mean of the jobs", "jct_s"),
                  ("energy", "energy_j")]
    names = [outcome["policy"] for outcome in outcomes]
    figure, panels = pyplot.subplots(2, 2, figsize=(max(10, 2 * len(names)), 9))
    for axes, (title, key) in zip(panels.flat, quantities):
        values = [outcome[key]["mean"] for outcome in outcomes]
        longest = max((value for value in values if value is not None), default=0)
        unit, length = ("MJ", 1e6) if key == "energy_j" else time_unit(longest)
        bars(axes, title, unit, names, {"mean": [scaled(value, 1 / length) for value in values]})
        spread = [(outcome[key]["sd"] or 0) / length for outcome in outcomes]
        axes.errorbar(range(len(names)), [(value or 0) / length for value in values], spread, fmt="none", ecolor="black")
    return figure, None, "Policies compared (simulated)"


def timeline(rows):
    """Memory, SM activity and power of each GPU over time; of many GPUs their mean."""
    count = max((int(row["gpu"]) for row in rows), default=-1) + 1
    idle_w = min((float(row["power_w"]) for row in rows), default=0)
    begin_s = float(rows[0]["time_s"]) if rows else 0
    end_s = max((float(row["time_s"]) for row in rows), default=0)
    unit, length = time_unit(end_s - begin_s)
    figure, panels = pyplot.subplots(3, 1, figsize=(12, 9), sharex=True)
    quantities = [("memory in use", "GiB", "memory_bytes", 2**30, 0), ("SM activity", "%", "sm_activity", 0.01, 0),
                  ("power", "W", "power_w", 1, idle_w)]
    for axes, (title, name, key, divisor, idle) in zip(panels, quantities):
        now = [idle / divisor] * count
        lines = [([0], [idle / divisor]) for _ in range(count if count <= len(COLOURS) else 1)]
        for row in rows:
            gpu = int(row["gpu"])
            now[gpu] = float(row[key]) / divisor
            times, values = lines[gpu if count <= len(COLOURS) else 0]
            times.append((float(row["time_s"]) - begin_s) / length)
            values.append(now[gpu] if count <= len(COLOURS) else sum(now) / count)
        for gpu, (times, values) in enumerate(lines):
            label = f"GPU {gpu}" if count <= len(COLOURS) else "mean of the GPUs"
            axes.step(times, values, where="post", color=COLOURS[gpu], label=label)
        axes.set_title(title, fontsize=10)
        axes.set_ylabel(name)
        axes.set_ylim(bottom=0)
    panels[-1].set_xlabel(f"time ({unit})")
    return figure, panels[0], "The GPUs over time (simulated)"


def trace(report):
    """When a trace's jobs arrive, how long they run, and what they are."""
    bins = report.get("bins", [])
    rows = 3 if bins else 1
    figure = pyplot.figure(figsize=(12, 4 * rows))
    if bins:
        unit, length = time_unit(report["bin_s"] * len(bins))
        of_bin, bin_length = time_unit(report["bin_s"])
        times = [each["from_s"] / length for each in bins]
        for row, (title, key) in enumerate(((f"arrivals per {report['bin_s'] / bin_length:g} {of_bin}", "arrivals"),
                                            ("GPUs wanted, if no job waited", "gpus_wanted_mean"))):
            axes = figure.add_subplot(rows, 1, row + 1)
            axes.bar(times, [each[key] for each in bins], report["bin_s"] / length, align="edge", color=COLOURS[row],
                     edgecolor="white")
            axes.set_title(title, fontsize=10)
            axes.set_xlabel(f"time ({unit})")
    shares = [("run times", {name: value for name, value in report["run_time_s"].items() if name != "mean"}, "s")]
    if bins:
        shares.append(("GPUs of a job", {str(each["gpus"]): each["jobs"] for each in report["gpus"]}, "jobs"))
    if "classes" in report:
        shares.append(("workloads", report["classes"], "jobs"))
    for column, (title, values, unit) in enumerate(shares):
        axes = figure.add_subplot(rows, 3, 3 * rows - 2 + column)
        bars(axes, title, unit, list(values), {"": list(values.values())})
    return figure, None, report["trace"] + (f", virtual cluster {report['vc']}" if "vc" in report else "")


def kind_of(report):
    if isinstance(report, list):
        return timeline if sys.argv[1].endswith(".csv") else compare
    kinds = {"runs": collocate, "loads": monitor, "points": kernel, "run_time_s": trace}
    return next((kinds[key] for key in kinds if key in report), None)


def save(figure, path):
    """A new file takes the name: a link there is replaced and not followed."""
    folder, suffix = os.path.dirname(path) or ".", os.path.splitext(path)[1]
    with tempfile.NamedTemporaryFile(dir=folder, suffix=suffix, delete=False) as file:
        try:
            figure.savefig(file, format=suffix[1:], metadata={"Date": None} if suffix == ".svg" else None)
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        with sys.stdin if sys.argv[1] == "-" else open(sys.argv[1], encoding="utf-8") as file:
            report = list(csv.DictReader(file)) if sys.argv[1].endswith(".csv") else json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"bench_plot.py: cannot read {sys.argv[1]}: {error}")
    kind = kind_of(report)
    if not kind:
        sys.exit(f"bench_plot.py: {sys.argv[1]} does not hold results that it knows: name those of carma bench, say")
    figure, first, title = kind(report)
    simulated = isinstance(report, dict) and report.get("simulated", report.get("time_scale", 1) != 1)
    figure.suptitle(title + (" (simulated)" if simulated else ""))
    if first:
        figure.legend(*first.get_legend_handles_labels(), loc="lower center", ncols=6)
    figure.tight_layout(rect=(0, 0.08 if figure.get_figheight() < 8 else 0.03, 1, 1))
    try:
        save(figure, sys.argv[2])
    except (OSError, ValueError) as error:
        sys.exit(f"bench_plot.py: cannot write {sys.argv[2]}: {error}")


if __name__ == "__main__":
    main()
