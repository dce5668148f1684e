"""carma trace build: the thesis's trace analyser and mapper (6.3.2). A piece of a published trace becomes one for a server,
with workloads drawn by a mix of light, medium and heavy ones (docs/formats/trace.md). The same trace, options and seed give
the same bytes: times are whole nanoseconds, and the random numbers our own."""

import os
import re
import sys
from types import SimpleNamespace

import files
import show
from show import Failure
from trace_read import CLASSES, class_counts, read, total

THESIS_GPUS, THESIS_MIX = 4, "65/27/8"  # of its server
STRETCH_MOST, LOAD_MOST, SHARE_MOST = 1e6, 100, 1000000
SPAN_MOST_S = 1e9  # as in the format
NS_PER_MS = 1000000


class Random:
    """Splitmix64 (Steele, Lea, Flood 2014): small, and the same on every machine."""

    MOST = 2**64 - 1

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = self.state + 0x9E3779B97F4A7C15 & self.MOST
        z = (self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9 & self.MOST
        z = (z ^ z >> 27) * 0x94D049BB133111EB & self.MOST
        return z ^ z >> 31

    def below(self, bound):
        """From 0 to below `bound`, each as likely as any other."""
        value, excess = self.next(), 2**64 % bound
        while value > self.MOST - excess:
            value = self.next()
        return value % bound


# ---- Options ----


def usage(text):
    return show.usage("trace build", text)


def factor(options, name, most):
    """None: it was not given."""
    text = options.get(name)
    if text is None:
        return None
    try:
        value = float(text if re.fullmatch("[0-9.eE+-]*", text) else "")
    except ValueError:
        value = 0
    if not 0 < value <= most:
        raise usage(f"{name} '{text:.40}' is not a number above 0 and up to {most:g}")
    return value


def shares(text):
    parts = text.split("/")
    if len(parts) == len(CLASSES) and all(re.fullmatch("[0-9]{1,7}", part) for part in parts):
        mix = [int(part) for part in parts]
        if max(mix) <= SHARE_MOST and sum(mix) > 0:
            return mix
    raise usage(f"mix '{text:.40}' is not three shares such as {THESIS_MIX}")


def kept_parts(text):
    parts = text.split(",") if text is not None else []
    for part in parts:
        if part not in ("gpus", "durations"):
            raise usage(f"keep '{part:.40}' is not gpus, durations, or both with a comma")
    return parts


def plan_of(options, trace):
    """What is to be done; options that were not given follow from the trace's needs."""
    times = {name: int(options[name]) if name in options else None
             for name in ("from", "to", "window", "min-duration", "max-duration")}
    keep = kept_parts(options.get("keep"))
    plan = SimpleNamespace(
        from_ns=times["from"], to_ns=times["to"], max_gpus=int(options.get("max-gpus", 0)),
        jobs=int(options.get("jobs", 0)), draw="mix" in options or not trace.jobs[0].workload,
        mix=shares(options.get("mix", THESIS_MIX)), keep_gpus="gpus" in keep, keep_durations="durations" in keep,
        least_ns=times["min-duration"] or 0, most_ns=times["max-duration"] or 0,
        stretch=factor(options, "stretch", STRETCH_MOST), load=factor(options, "load", LOAD_MOST),
        gpus=int(options.get("gpus", THESIS_GPUS)), seed=int(options.get("seed", 1)))
    if times["to"] is not None and times["window"] is not None:
        raise usage("--to or --window, not both")
    if times["to"] is not None and times["to"] <= (-1 if times["from"] is None else times["from"]):
        raise usage("--to is not after --from")
    if plan.stretch and plan.load:
        raise usage("--stretch or --load, not both")
    if (plan.least_ns or plan.most_ns) and not plan.keep_durations:
        raise usage("--min-duration and --max-duration are for --keep durations")
    if plan.most_ns and plan.most_ns < plan.least_ns:
        raise usage("--max-duration is shorter than --min-duration")
    if plan.from_ns is None:
        plan.from_ns = trace.jobs[0].arrival_ns
    if times["window"] is not None:
        plan.to_ns = plan.from_ns + times["window"]
    return plan


# ---- Building ----


def take_window(jobs, plan, report):
    inside = [job for job in jobs
              if job.arrival_ns >= plan.from_ns and (plan.to_ns is None or job.arrival_ns < plan.to_ns)]
    taken = [job for job in inside if not plan.max_gpus or job.gpus <= plan.max_gpus]
    report.in_window, report.too_large = len(inside), len(inside) - len(taken)
    if not inside:
        first_s, last_s = jobs[0].arrival_ns / 1e9, jobs[-1].arrival_ns / 1e9
        raise Failure(f"no job arrives in that window: they arrive from {first_s:.12g} s to {last_s:.12g} s")
    if not taken:
        raise Failure(f"each of the window's {len(inside)} jobs takes more than {plan.max_gpus} GPUs: allow more")
    return taken


def trim(jobs, count, random):
    """Keeps `count` of them in their order, every choice as likely as any other (selection sampling)."""
    if count > len(jobs):
        raise Failure(f"{count} jobs are asked for and the window has {len(jobs)}: widen it or ask for fewer")
    kept = []
    for at, job in enumerate(jobs):
        if len(kept) < count and random.below(len(jobs) - at) < count - len(kept):
            kept.append(job)
    return kept


def apportion(mix, jobs):
    """How many jobs each class gets: the mix by largest remainders."""
    counts = [jobs * share // sum(mix) for share in mix]
    remainders = [jobs * share % sum(mix) for share in mix]
    for _ in range(jobs - sum(counts)):
        best = max(range(len(mix)), key=lambda c: remainders[c])
        counts[best] += 1
        remainders[best] = 0
    return counts


def shuffle(classes, random):
    for at in range(len(classes) - 1, 0, -1):
        other = random.below(at + 1)
        classes[at], classes[other] = classes[other], classes[at]


def map_job(job, kind, pool, plan, random):
    """`pool` has the workloads of the class by rising GPUs."""
    limit = job.gpus if plan.keep_gpus else plan.max_gpus
    fitting = sum(not limit or workload.gpus <= limit for workload in pool)
    if not fitting:
        few = f"no {kind} workload runs on at most {limit} GPUs" if limit else f"there is no {kind} workload"
        raise Failure(f"{few}: give that class no share of the mix")
    kept_ns = max(min(job.run_ns, plan.most_ns or job.run_ns), plan.least_ns) if plan.keep_durations else -1
    workload = pool[random.below(fitting)]
    return job._replace(kept_ns=kept_ns, workload=workload, gpus=job.gpus if plan.keep_gpus else workload.gpus)


def map_jobs(jobs, workloads, plan, random):
    """The mix is met exactly, to the nearest job, in random order; within a class one workload is as likely as another."""
    classes = [kind for kind, count in zip(CLASSES, apportion(plan.mix, len(jobs))) for _ in range(count)]
    pools = {kind: sorted((each for each in workloads if each.kind == kind), key=lambda each: each.gpus)
             for kind in CLASSES}
    shuffle(classes, random)
    return [map_job(job, kind, pools[kind], plan, random) for job, kind in zip(jobs, classes)]


def whole_ms(ns):
    """Rounded, halves up: as C's llround."""
    whole, rest = divmod(float(ns) / NS_PER_MS, 1)
    return (int(whole) + (rest >= 0.5)) * NS_PER_MS


def scale_arrivals(jobs, plan):
    """The jobs with arrivals from 0 on, and by how much the times between these were stretched."""
    begin_ns = jobs[0].arrival_ns
    span_s = (jobs[-1].arrival_ns - begin_ns) / 1e9
    stretch = plan.stretch or 1
    if plan.load:
        if span_s <= 0:
            raise Failure(f"all jobs arrive at once: no times between them make a load of {plan.load:g}")
        stretch = total(job.gpus * float(job.run_ns) / 1e9 for job in jobs) / (plan.load * plan.gpus) / span_s
    if span_s * stretch > SPAN_MOST_S:
        raise Failure(f"stretched {stretch:g} times, the last job arrives after {span_s * stretch:g} s: the most is "
                      f"{SPAN_MOST_S:g} s")
    return [job._replace(arrival_ns=whole_ms((job.arrival_ns - begin_ns) * stretch)) for job in jobs], stretch


def build(trace, plan):
    """The jobs, and the figures about them for people."""
    random, report = Random(plan.seed), SimpleNamespace()
    jobs = take_window(trace.jobs, plan, report)
    if plan.jobs:
        jobs = trim(jobs, plan.jobs, random)
    if plan.draw:
        jobs = map_jobs(jobs, trace.workloads, plan, random)
    jobs, report.stretch = scale_arrivals(jobs, plan)
    jobs = [job if job.kept_ns < 0 else job._replace(kept_ns=max(NS_PER_MS, whole_ms(job.kept_ns))) for job in jobs]
    report.classes = class_counts(jobs)
    return jobs, report


# ---- Writing ----


def describe(trace, plan, jobs, report):
    """How it was made, as comments of the trace."""
    cluster = f", virtual cluster {trace.vc}" if trace.vc is not None else ""
    lines = [f"Made by carma trace build from {os.path.basename(trace.path)} ({trace.format}){cluster}: {len(jobs)} jobs."]
    end = f" to {plan.to_ns / 1e9:.12g} s" if plan.to_ns is not None else ""
    large = f", left out for more than {plan.max_gpus} GPUs: {report.too_large}" if plan.max_gpus else ""
    lines.append(f"Window: from {plan.from_ns / 1e9:.12g} s{end}; jobs that arrive in it: {report.in_window}{large}.")
    if plan.draw:
        lines.append(f"Workloads: drawn from {os.path.basename(trace.workloads_path)}, light/medium/heavy "
                     f"{'/'.join(map(str, plan.mix))}.")
        least = f", at least {plan.least_ns / 1e9:.12g} s" if plan.least_ns else ""
        most = f", at most {plan.most_ns / 1e9:.12g} s" if plan.most_ns else ""
        gpus, times = ("as in that file" if kept else "theirs" for kept in (plan.keep_gpus, plan.keep_durations))
        lines.append(f"GPUs: {gpus}; run times: {times}{least}{most}.")
    else:
        lines.append("Workloads, GPUs and run times: as in that file.")
    lines.append(f"Jobs that are light, medium, heavy: {', '.join(map(str, report.classes.values()))}.")
    load = f", a load of {plan.load:g} on {plan.gpus} GPUs" if plan.load else ""
    lines.append(f"Times between arrivals: x {report.stretch:.6g}{load}. Seed: {plan.seed}.")
    return [f"# {line}" for line in lines]


def seconds(ns):
    """With decimals where they need some."""
    whole, ms = divmod(ns // NS_PER_MS, 1000)
    return f"{whole}.{ms:03}" if ms else str(whole)


def rows(jobs):
    with_gpus = any(job.gpus != job.workload.gpus for job in jobs)
    with_times = any(job.kept_ns >= 0 for job in jobs)
    yield "arrival_s,workload" + (",gpus" if with_gpus else "") + (",duration_s" if with_times else "")
    for job in jobs:
        yield (f"{seconds(job.arrival_ns)},{job.workload.name}" + (f",{job.gpus}" if with_gpus else "") +
               ("," if with_times else "") + (seconds(job.kept_ns) if job.kept_ns >= 0 else ""))


def run(options):
    trace = read(sys.stdin.buffer)
    plan = plan_of(options, trace)
    try:
        jobs, report = build(trace, plan)
    except Failure as failure:
        raise Failure(f"{trace.path}: {failure}") from None
    text = "\n".join([*describe(trace, plan, jobs, report), *rows(jobs), ""])
    if "output" not in options:
        sys.stdout.write(text)
        return
    files.write(options["output"], text.encode())
    counts = ", ".join(f"{kind} {count}" for kind, count in report.classes.items())
    print(f"{show.safe(options['output'])}: {len(jobs)} jobs over {show.of_seconds(jobs[-1].arrival_ns // 10**9)}; {counts}")
