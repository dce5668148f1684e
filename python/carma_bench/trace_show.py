"""carma trace show: a trace's demand: when its jobs arrive, how long they run, how many GPUs they would keep busy."""

import json
import os
import subprocess
import sys
from collections import Counter

import show
from show import Failure
from trace_read import class_counts, read, total

NS = 1000000000
BIN_MOST_NS = 10**9 * NS  # as long as a trace may be
BINS_MOST, BINS_WANTED, BAR_WIDTH = 10000, 24, 24
QUANTILES = {"min": 0, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p99": 99, "max": 100}
ROUND_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 259200,
           432000, 604800, 864000, 1209600, 2592000, 7776000, 31536000, 315360000)


def gpus_of(job):
    return job.gpus * (job.permille / 1000)


def round_bin(span_ns):
    """The shortest round length of which at most BINS_WANTED make the span."""
    return NS * next((s for s in ROUND_S if span_ns // (s * NS) < BINS_WANTED), ROUND_S[-1])


def percentile(ascending, percent):
    """Interpolated between the closest ranks."""
    rank = percent / 100 * (len(ascending) - 1)
    below = int(rank)
    if below + 1 >= len(ascending):
        return ascending[-1]
    return ascending[below] + (rank - below) * (ascending[below + 1] - ascending[below])


class Bins:
    """Arrivals, and the GPUs wanted on average; of the last bin until the last arrival."""

    def __init__(self, jobs, bin_ns):
        self.first_ns, self.last_ns = jobs[0].arrival_ns, jobs[-1].arrival_ns
        span_ns = self.last_ns - self.first_ns
        self.ns = bin_ns or round_bin(span_ns)
        if span_ns // self.ns >= BINS_MOST:
            raise Failure(f"arrivals over {span_ns // NS} s make more than {BINS_MOST} bins of {self.ns / 1e9:g} s: "
                          "take longer ones")
        self.arrivals = [0] * (span_ns // self.ns + 1)
        self.gpus = [0.0] * len(self.arrivals)
        for job in jobs:
            self.arrivals[(job.arrival_ns - self.first_ns) // self.ns] += 1

    def add(self, from_ns, to_ns, gpus):
        """So many are wanted from one time to the other: to each bin that they touch."""
        while from_ns < to_ns:
            at = (from_ns - self.first_ns) // self.ns
            end_ns = min(self.first_ns + (at + 1) * self.ns, to_ns)
            self.gpus[at] += gpus * float(end_ns - from_ns) / float(self.ns)
            from_ns = end_ns

    def finish(self, gpus_at_last):
        """The last bin may be the moment of the last arrival: then it is the demand there."""
        covered_ns = (self.last_ns - self.first_ns) % self.ns
        self.gpus[-1] = self.gpus[-1] * (float(self.ns) / float(covered_ns)) if covered_ns else gpus_at_last


def wanted(jobs, bins):
    """GPUs that would be busy if every job ran from its arrival on, alone, for its run time: on average until the last
    arrival, and at most. Fills the bins."""
    changes = [change for job in jobs
               for change in ((job.arrival_ns, gpus_of(job)), (job.arrival_ns + job.run_ns, -gpus_of(job)))]
    changes.sort()  # ends before begins: no peak that never was
    gpus = gpus_at_last = gpu_ns = most = 0.0
    for (from_ns, change), (to_ns, _) in zip(changes, changes[1:]):
        gpus += change
        most = max(most, gpus)
        if from_ns <= bins.last_ns:
            end_ns, gpus_at_last = min(to_ns, bins.last_ns), gpus
            gpu_ns += gpus * float(end_ns - from_ns)
            bins.add(from_ns, end_ns, gpus)
    bins.finish(gpus_at_last)
    span_ns = bins.last_ns - bins.first_ns
    return gpu_ns / float(span_ns) if span_ns else 0.0, most


def report_of(trace, bin_ns):
    """As docs/formats/cli.md has it."""
    jobs, bins = trace.jobs, Bins(trace.jobs, bin_ns)
    mean, most = wanted(jobs, bins)
    run_s, classes = [job.run_ns / 1e9 for job in jobs], class_counts(jobs)
    gpu_s, mean_s = total(each_s * gpus_of(job) for job, each_s in zip(jobs, run_s)), total(run_s) / len(jobs)
    run_s.sort()
    report = {"trace": trace.path, "vc": trace.vc, "format": trace.format, "jobs": len(jobs), "left_out": trace.left_out,
              "run_time_s": {"mean": mean_s, **{name: percentile(run_s, at) for name, at in QUANTILES.items()}}}
    if trace.vc is None:
        del report["vc"]
    if any(classes.values()):
        report["classes"] = classes
    if trace.format == "run-times":
        return report
    widths = Counter(job.gpus for job in jobs)
    report["gpus"] = [{"gpus": width, "jobs": count} for width, count in sorted(widths.items())]
    report["gpu_hours"] = gpu_s / 3600
    report["first_arrival_s"], report["last_arrival_s"] = bins.first_ns / 1e9, bins.last_ns / 1e9
    report["gpus_wanted_mean"], report["gpus_wanted_max"] = mean, most
    report["bin_s"] = bins.ns / 1e9
    report["bins"] = [{"from_s": (bins.first_ns + at * bins.ns) / 1e9, "arrivals": arrivals, "gpus_wanted_mean": gpus}
                      for at, (arrivals, gpus) in enumerate(zip(bins.arrivals, bins.gpus))]
    return report


def draw(report, path):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_plot.py")
    done = subprocess.run([sys.executable, program, "-", path], input=json.dumps(report), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Failure((done.stdout.strip().split("\n")[-1]) or "no picture: bench_plot.py says nothing")


def bar(part, whole, utf8):
    filled = min(max(part / whole * BAR_WIDTH if whole > 0 else 0, 0), BAR_WIDTH)
    text = ("█" if utf8 else "#") * int(filled)
    if utf8 and len(text) < BAR_WIDTH:
        text += ("", *"▏▎▍▌▋▊▉")[int((filled - int(filled)) * 8)]
    return text + ("░" if utf8 else ".") * (BAR_WIDTH - len(text))


def of_time(seconds):
    return show.of_seconds(int(seconds * 1e9) // NS)


def print_tables(trace, report):
    run_times, jobs = report["run_time_s"], report["jobs"]
    never = f"; left out: {trace.left_out} that never ran" if trace.left_out else ""
    print(f"Jobs         {jobs} ({trace.format}){never}")
    if "bins" in report:
        print(f"Arrivals     from {of_time(report['first_arrival_s'])} to {of_time(report['last_arrival_s'])}")
        print(f"GPU time     {report['gpu_hours']:.1f} h")
        print(f"GPUs wanted  {report['gpus_wanted_mean']:.1f} on average until the last arrival, "
              f"{report['gpus_wanted_max']:.1f} at most")
    if "classes" in report:
        print("Workloads   ", ", ".join(f"{kind} {count} ({100 * count / jobs:.0f}%)"
                                        for kind, count in report["classes"].items()))
    print()
    optional = {"min": 2, "p25": 3, "p75": 3, "p90": 1, "p99": 4}
    columns = [("RUN TIME", False, 0, 0), *((name.upper(), True, 0, optional.get(name, 0)) for name in run_times)]
    show.table(columns, [["", *map(of_time, run_times.values())]], trace.columns, trace.colour)
    if "bins" not in report:
        return
    print()
    show.table([("GPUS", True, 0, 0), ("JOBS", True, 0, 0), ("", True, 0, 0)],
               [[each["gpus"], each["jobs"], f"{100 * each['jobs'] / jobs:.1f}%"] for each in report["gpus"]],
               trace.columns, trace.colour)
    print()
    most_jobs, most_gpus = (max(each[key] for each in report["bins"]) for key in ("arrivals", "gpus_wanted_mean"))
    show.table([("FROM", True, 0, 0), ("ARRIVALS", True, 0, 0), ("", False, 0, 2, show.BLUE), ("GPUS WANTED", True, 0, 0),
                ("", False, 0, 1, show.BLUE)],
               [[of_time(each["from_s"]), each["arrivals"], bar(each["arrivals"], most_jobs, trace.utf8),
                 f"{each['gpus_wanted_mean']:.1f}", bar(each["gpus_wanted_mean"], most_gpus, trace.utf8)]
                for each in report["bins"]], trace.columns, trace.colour)


def run(options):
    trace = read(sys.stdin.buffer)
    bin_ns = int(options.get("bin", 0))
    if "bin" in options and not NS <= bin_ns <= BIN_MOST_NS:
        raise show.usage("trace show", f"bin of {bin_ns / 1e9:g} s is out of range: from a second to 1e9 seconds")
    try:
        report = report_of(trace, bin_ns)
    except Failure as failure:
        raise Failure(f"{trace.path}: {failure}") from None
    if "plot" in options:
        draw(report, options["plot"])
    if "json" in options:
        text = json.dumps(report, indent=2, ensure_ascii=False)
        print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))
    else:
        print_tables(trace, report)
