"""carma bench collocate: the GPU while jobs run on it, from carma-monitor's readings; what the runs show; the report as
JSON (docs/formats/cli.md) and as a table."""

import json
import subprocess
import tempfile
import threading
import time
from types import SimpleNamespace

import node
import show
from show import Failure

PERIOD_NS, PERIOD_WALL_NS = 5e8, 2e7  # node time, but no shorter than the latter
FIRST_S, FRESH_S, AGAIN_S = 60, 5, 1


class Watch(threading.Thread):
    """Reads carma-monitor; starts it again where it ends. A sample of the run in progress is (time, reading of its GPU,
    its metrics)."""

    def __init__(self, options, period_ns=PERIOD_NS):
        super().__init__(daemon=True)
        self.words = node.monitor_words(options, max(period_ns, PERIOD_WALL_NS * node.SCALE))
        self.process = self.latest = self.gpu = self.samples = None
        self.problem, self.count, self.closed = "", 0, False
        self.changed = threading.Condition()

    def __enter__(self):
        self.start()
        with self.changed:
            self.changed.wait_for(lambda: self.count > 1 or self.problem, FIRST_S)
            problem = self.problem or ("" if self.count else "no reading comes")
        if problem:
            self.__exit__()
            raise Failure(f"no GPU can be read: {problem}")
        return self

    def __exit__(self, *_):
        self.closed = True
        if self.process:
            self.process.kill()
        self.join()

    def run(self):
        while not self.closed:
            with tempfile.NamedTemporaryFile() as errors:
                try:
                    self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                    stderr=errors, env=node.MONITOR_ENVIRONMENT)
                    if self.closed:
                        self.process.kill()
                    for reading in node.readings(self.process.stdout):
                        self._take(reading)
                    problem = node.last_words(errors.name)
                except (OSError, Failure) as error:
                    problem = str(error)
            with self.changed:
                self.problem = problem
                self.changed.notify_all()
            if self.process:
                self.process.kill()
                self.process.wait()
            if not self.closed:
                time.sleep(AGAIN_S)

    def _take(self, reading):
        with self.changed:
            self.latest, self.problem = reading, ""
            self.count += 1
            gpu = self.find(self.gpu)
            if self.samples is not None and gpu and reading.at_ns > self.begun_ns:
                metrics = {name: self._metric(gpu, name) for name in node.METRICS}
                self.samples.append((reading.at_ns, gpu, metrics))
                gpu.metrics = None
            self.changed.notify_all()

    def _metric(self, gpu, name):
        """The GPU's own, or the mean of the instances in use where it has none; None: neither."""
        if name in gpu.metrics:
            return gpu.metrics[name]
        found = [instance.metrics[name] for instance in map(self.find, self.instances)
                 if instance and name in instance.metrics]
        return SimpleNamespace(value=mean([m.value for m in found]), source=found[-1].source) if found else None

    def find(self, uuid):
        return next((gpu for gpu in self.latest.gpus if gpu.uuid == uuid), None)

    def shown(self, uuid):
        """The GPU now, for the line of progress."""
        with self.changed:
            gpu = self.find(uuid)
        text = f"  {show.of_bytes(gpu.used_bytes)}" if gpu and gpu.used_bytes is not None else ""
        return text + (f"  {gpu.power_w:.0f} W" if gpu and gpu.power_w is not None else "")

    def fresh(self):
        """Waits for a reading that was taken after this call: the next one may have been taken before."""
        with self.changed:
            wanted = self.count + 2
            return self.changed.wait_for(lambda: self.count >= wanted, FRESH_S)

    def begin(self, gpu, instances):
        """From now on, readings count for a run on this GPU, whose memory in use is returned."""
        with self.changed:
            self.gpu, self.instances, self.samples, self.begun_ns = gpu, instances, [], node.now_ns()
            now = self.find(gpu)
            self.before_bytes = now.used_bytes if now else None
        return self.before_bytes

    def end(self, begun_ns, end_ns, training):
        """Metrics and power are means of the training, or of the run where no reading lies in that."""
        with self.changed:
            samples, self.samples = self.samples, None
        whole = weighted(samples, begun_ns, end_ns)
        trained = weighted(samples, *training) or whole
        used = [gpu.used_bytes for _, gpu, _, _ in whole if gpu.used_bytes is not None]
        power_w = mean_power_w(whole)
        return SimpleNamespace(
            metrics={name: found for name in node.METRICS if (found := mean_metric(trained, name))},
            peak_bytes=max(used, default=None), before_bytes=self.before_bytes, power_w=mean_power_w(trained),
            energy_j=None if power_w is None else power_w * (end_ns - begun_ns) / 1e9,
            mps_observed=any(gpu.mps for _, gpu, _, _ in whole))


def mean(values):
    return sum(values) / len(values) if values and None not in values else None


def weighted(samples, from_ns, to_ns):
    """Those in between, each with the time that it stands for."""
    found = []
    for at_ns, gpu, metrics in samples:
        if from_ns < at_ns <= to_ns:
            found.append((at_ns, gpu, metrics, at_ns - (found[-1][0] if found else from_ns)))
    return found


def mean_metric(samples, name):
    known = [(metrics[name], weight) for _, _, metrics, weight in samples if metrics[name]]
    if not known:
        return None
    value = sum(each.value * weight for each, weight in known) / sum(weight for _, weight in known)
    return {"mean": value, "source": known[-1][0].source}


def mean_power_w(samples):
    """By the energy counter between the first and the last sample. Where it began anew with the driver, or is not
    there, by the mean of the power readings."""
    if len(samples) > 1:
        (first_ns, first, *_), (last_ns, last, *_) = samples[0], samples[-1]
        if first.energy_j is not None and last.energy_j is not None and last.energy_j >= first.energy_j:
            return (last.energy_j - first.energy_j) / ((last_ns - first_ns) / 1e9)
    known = [(gpu.power_w, weight) for _, gpu, _, weight in samples if gpu.power_w is not None]
    return sum(power * weight for power, weight in known) / sum(weight for _, weight in known) if known else None


# ---- Several runs ----


def alone(bench, name):
    return next((run for run in bench.runs if run.alone and run.names == [name] and run.result == "ok"), None)


def slowdowns(bench, run):
    """Of each job: its time per epoch, divided by that of its command alone; None: not known."""
    base = [alone(bench, job.command) for job in run.jobs]
    return [job.epoch_s / own.jobs[0].epoch_s if own and job.epoch_s and own.jobs[0].epoch_s else None
            for job, own in zip(run.jobs, base)]


def throughput(bench, run):
    """How much more is trained in the same time than by one job after another."""
    found = slowdowns(bench, run)
    return None if None in found else sum(1 / slowdown for slowdown in found)


def serial_s(bench, run):
    base = [alone(bench, name) for name in run.names]
    return None if None in base else sum(own.total_s for own in base)


# ---- The report ----


def report(bench):
    uuid = bench.parent if bench.partitioned else bench.gpu
    gpu = bench.watch.find(uuid)
    return {
        "gpu": {"uuid": uuid, "name": gpu.name if gpu else "", "total_bytes": gpu.total_bytes if gpu else None},
        "time_scale": node.SCALE, "epochs": "matched lines" if bench.pattern else "equal parts",
        "limits": bench.watch.latest.limits,
        "commands": [{"name": name, "command": words} for name, words in bench.commands.items()],
        "runs": [run_report(bench, run) for run in bench.runs],
    }


def run_report(bench, run):
    out = {"mode": run.mode, "alone": run.alone, "jobs": run.label, "degree": len(run.names), "result": run.result,
           "reason": run.reason}
    if run.result == "skipped":
        return out
    out["each"] = [{**vars(job), "slowdown": slowdown} for job, slowdown in zip(run.jobs, slowdowns(bench, run))]
    out["total_s"] = run.total_s
    if run.result == "failed":
        return out
    found = run.figures
    out.update(serial_s=serial_s(bench, run), throughput=throughput(bench, run), metrics=found.metrics,
               memory_peak_bytes=found.peak_bytes, memory_before_bytes=found.before_bytes, power_w=found.power_w,
               energy_j=found.energy_j,
               energy_per_job_j=None if found.energy_j is None else found.energy_j / len(run.names))
    if run.mode == "mps":
        out["mps_observed"] = found.mps_observed
    return out


COLUMNS = [("JOBS", False, 20, 0), ("MODE", False, 0, 0), ("EPOCH", True, 0, 0), ("SLOWDOWN", True, 0, 4),
           ("THROUGHPUT", True, 0, 0), ("TOTAL", True, 0, 3), ("SERIAL", True, 0, 2), ("SM ACT", True, 0, 0),
           ("MEMORY", True, 0, 1), ("PCIE RX", True, 0, 5), ("POWER", True, 0, 6), ("ENERGY/JOB", True, 0, 0)]


def cell(value, text):
    return None if value is None else text(value)


def time_of(seconds):
    return None if not seconds else f"{seconds:.3g} s" if seconds < 100 else show.of_seconds(seconds)


def row(bench, run):
    found, serial = run.figures, serial_s(bench, run)
    activity, traffic = found.metrics.get("sm_activity"), found.metrics.get("pcie_rx")
    coarse = "~" if activity and activity["source"] == "utilization" else ""
    return [
        run.label, run.how, time_of(mean([job.epoch_s for job in run.jobs])),
        cell(mean(slowdowns(bench, run)), "{:.2f}".format), cell(throughput(bench, run), "{:.2f}".format),
        time_of(run.total_s),
        f"{(run.total_s / serial - 1) * 100:+.0f}%" if serial and len(run.names) > 1 else None,
        cell(activity, lambda a: f"{coarse}{a['mean'] * 100:.0f}%"), cell(found.peak_bytes, show.of_bytes),
        cell(traffic, lambda t: show.of_bytes(t["mean"]) + "/s"), cell(found.power_w, "{:.0f} W".format),
        cell(found.energy_j, lambda joules: f"{joules / len(run.names) / 1000:.3g} kJ"),
    ]


def deliver(bench, result, as_json):
    if as_json:
        print(json.dumps(result, indent=2))
        return
    good = [run for run in bench.runs if run.result == "ok"]
    show.table(COLUMNS, [row(bench, run) for run in good])
    if any(run.figures.metrics.get("sm_activity", {}).get("source") == "utilization" for run in good):
        print("\n~ NVML's utilisation: the share of time with a kernel running, an upper bound")
    lines = [f"{run.mode}: skipped: {run.reason}" if run.result == "skipped" else
             f"{run.label}, {run.how}: failed: {run.reason}" for run in bench.runs if run.result != "ok"]
    lines += [f"{run.label}, mps: no MPS client was observed on the GPU: were these jobs under MPS?"
              for run in good if run.mode == "mps" and not run.figures.mps_observed]
    for line in dict.fromkeys(lines):  # a mode that is not to be had is told once
        print(show.safe(line))
