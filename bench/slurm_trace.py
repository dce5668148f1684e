"""One run of a trace by sbatch on one of bench/slurm's clusters: what came of its jobs."""

import dataclasses
import math
import re
import statistics
import time

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}
PATIENCE_S = 900  # of wall time, after the last submission
SURE_S = 30  # an agent may still put a job back that Slurm calls FAILED: it looks for so long
REST_S = 5  # between two of squeue, which is work for slurmctld, while jobs have not ended
JITTER = 0.03


@dataclasses.dataclass
class Job:
    workload: dict
    slurm: str  # 12, or 8_3 of an array
    short: bool  # it needs more than it asks for
    submitted_ns: int
    scale: float  # of the cluster's clock
    state: str = ""
    restarts: int = 0
    ended_ns: int = 0
    oom: int = 0
    refusals: int = 0
    done: int = 0  # times that it has succeeded
    comment: str = ""
    errors: list = dataclasses.field(default_factory=list)  # what carma said of it

    def turnaround_s(self):
        return (self.ended_ns - self.submitted_ns) / 1e9 * self.scale


@dataclasses.dataclass
class Result:
    jobs: list
    left_out: int  # that the cluster cannot express
    late_s: float  # by the nodes' clock, the latest submission behind its time: of a machine too busy for this pace
    makespan_s: float
    energy_j: float
    refusals: list
    hand_shakes_ms: list
    drained: list

    def completed(self):
        return [job for job in self.jobs if job.state == "COMPLETED"]

    def turnaround_s(self, one_gpu=False):
        found = [job.turnaround_s() for job in self.completed() if not one_gpu or job.workload["gpus"] == "1"]
        return statistics.fmean(found) if found else math.nan

    def oom(self):
        return sum(job.oom for job in self.jobs)

    def touched(self):
        """Jobs that were put back for no reason of their own, or were done twice."""
        return [job for job in self.jobs if job.restarts > job.oom + job.refusals or job.done > 1]

    def recovered(self):
        """Jobs that ran out of memory, and completed in the end."""
        return sum(job.oom > 0 for job in self.completed())


def script(cluster, entry, seed):
    """Each end overwrites the one before: a job that was put back ends when it has succeeded."""
    trains = []
    for number, steps in enumerate(entry.tasks):
        srun = "srun " if len(steps) > 1 else ""
        words = [f"{srun}{cluster.prefix}/bin/carma-train {step} --jitter {JITTER} --seed {seed + number}" for step in steps]
        trains.append(f"{number}) {' && '.join(words)};;")
    name = f"{cluster.dir}/out/${{SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}${{SLURM_ARRAY_TASK_ID+_$SLURM_ARRAY_TASK_ID}}"
    return (f"case ${{SLURM_ARRAY_TASK_ID:-0}} in {' '.join(trains)} esac; code=$?; [ $code != 0 ] || echo >>{name}.done; "
            f"{cluster.stamp} {name}.ended; exit $code")


def submit_all(cluster, entries, faster, seed):
    """faster: of the arrivals, beside the cluster's clock."""
    jobs, left_out, late_s, began = [], 0, 0, time.monotonic()
    for number, entry in enumerate(entries):
        request = cluster.request(entry.workload, number)
        if request is None:
            left_out += 1
            continue
        count = len(entry.tasks)
        if count > 1:
            request += [f"--array=0-{count - 1}", "-o", f"{cluster.dir}/out/%A_%a"]
        early_s = began + entry.arrival_s / faster / cluster.scale - time.monotonic()
        time.sleep(max(0, early_s))
        late_s = max(late_s, -early_s * cluster.scale)
        submitted_ns = time.monotonic_ns()
        slurm = cluster.sbatch(*request, "-J", entry.workload["id"], wrap=script(cluster, entry, seed * 1000 + number * 10),
                               user=entry.user)
        jobs += [Job(entry.workload, f"{slurm}_{task}" if count > 1 else slurm, task == entry.short, submitted_ns, cluster.scale)
                 for task in range(count)]
    return jobs, left_out, late_s


def await_all(cluster, jobs):
    """The energy when the last one had ended."""
    energy_j, since, end = None, None, time.monotonic() + PATIENCE_S
    stamps = [cluster.dir / "out" / f"{job.slurm}.ended" for job in jobs]
    while time.monotonic() < end:
        rest = time.monotonic() + REST_S
        while time.monotonic() < rest and not all(stamp.exists() for stamp in stamps):
            time.sleep(0.2)
        lines = cluster.run(["squeue", "-h", "-r", "-t", "all", "-o", "%i %T"], check=False).splitlines()
        states = dict(line.split() for line in lines)
        if len(states) < len(jobs) or not set(states.values()) <= ENDED:
            energy_j = None
        elif energy_j is None:
            energy_j, since = cluster.energy_j(), time.monotonic()
        elif set(states.values()) == {"COMPLETED"} or time.monotonic() - since > SURE_S:
            break
        time.sleep(0.5)
    return energy_j if energy_j is not None else cluster.energy_j()


def look_at(cluster, job):
    said = cluster.job(job.slurm)
    job.state, job.restarts = said.get("JobState", "unknown"), int(said.get("Restarts", 0))
    job.comment = said.get("Comment", "")
    stamp = cluster.dir / "out" / f"{job.slurm}.ended"
    job.ended_ns = int(stamp.read_text() or 0) if stamp.exists() else 0
    done, output = cluster.dir / "out" / f"{job.slurm}.done", cluster.output(job.slurm)
    job.done = len(done.read_text().splitlines()) if done.exists() else 0
    job.errors = [*re.findall(r"carma: .*", output), said.get("AdminComment", "")]
    job.oom, job.refusals = output.count("OutOfMemoryError"), len(cluster.refusals(output))


def play(cluster, entries, faster, seed):
    before_j = cluster.energy_j()
    jobs, left_out, late_s = submit_all(cluster, entries, faster, seed)
    after_j = await_all(cluster, jobs)
    for job in jobs:
        look_at(cluster, job)
    scale = cluster.scale
    makespan_s = (max(job.ended_ns for job in jobs) - jobs[0].submitted_ns) / 1e9 * scale
    drained = cluster.run(["sinfo", "-h", "-N", "-t", "drain,down", "-o", "%N %E"]).splitlines()
    refusals = [found for path in (cluster.dir / "out").iterdir() for found in cluster.refusals(path.read_text(errors="replace"))]
    return Result(jobs, left_out, late_s, makespan_s, after_j - before_j, refusals, cluster.hand_shakes_ms(), drained)
