"""One run of a trace by sbatch on one of bench/slurm's clusters: what came of its jobs."""

import dataclasses
import math
import statistics
import time

import common

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}
PATIENCE_S = 900  # of wall time, after the last submission
SURE_S = 6  # an agent may still put a job back that Slurm calls FAILED: it looks for so long
JITTER = 0.03


@dataclasses.dataclass
class Job:
    workload: dict
    slurm: str
    submitted_ns: int
    scale: float  # of the cluster's clock
    state: str = ""
    restarts: int = 0
    ended_ns: int = 0
    oom: int = 0
    comment: str = ""

    def turnaround_s(self):
        return (self.ended_ns - self.submitted_ns) / 1e9 * self.scale


@dataclasses.dataclass
class Result:
    jobs: list
    left_out: int  # that the cluster cannot express
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

    def recovered(self):
        """Jobs that ran out of memory, and completed in the end."""
        return sum(job.oom > 0 for job in self.completed())


def script(cluster, workload, seed):
    """Each end overwrites the one before: a job that was put back ends when it has succeeded."""
    train = f"{cluster.prefix}/bin/carma-train --workload {workload['id']} --jitter {JITTER} --seed {seed}"
    return f"{train}; code=$?; {cluster.stamp} {cluster.dir}/out/$SLURM_JOB_ID.ended; exit $code"


def submit_all(cluster, trace, faster, seed):
    """faster: of the arrivals, beside the cluster's clock."""
    workloads = {row["id"]: row for row in common.rows_of(common.ROOT / "data" / "workloads.csv")}
    jobs, left_out, began = [], 0, time.monotonic()
    for number, row in enumerate(common.rows_of(trace)):
        workload = workloads[row["workload"]]
        request = cluster.request(workload, number)
        if request is None:
            left_out += 1
            continue
        time.sleep(max(0, began + float(row["arrival_s"]) / faster / cluster.scale - time.monotonic()))
        submitted_ns = time.monotonic_ns()
        slurm = cluster.sbatch(*request, "-J", workload["id"], wrap=script(cluster, workload, seed * 1000 + number),
                               user=cluster.user)
        jobs.append(Job(workload, slurm, submitted_ns, cluster.scale))
    return jobs, left_out


def await_all(cluster, jobs):
    """The energy when the last one had ended."""
    energy_j, since, end = None, None, time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        lines = cluster.run(["squeue", "-h", "-t", "all", "-o", "%A %T"], check=False).splitlines()
        states = dict(line.split() for line in lines)
        if len(states) < len(jobs) or not set(states.values()) <= ENDED:
            energy_j = None
        elif energy_j is None:
            energy_j, since = cluster.energy_j(), time.monotonic()
        elif set(states.values()) == {"COMPLETED"} or time.monotonic() - since > SURE_S:
            break
        time.sleep(0.25)
    return energy_j if energy_j is not None else cluster.energy_j()


def look_at(cluster, job):
    said = cluster.job(job.slurm)
    job.state, job.restarts = said.get("JobState", "unknown"), int(said.get("Restarts", 0))
    job.comment = said.get("Comment", "")
    stamp = cluster.dir / "out" / f"{job.slurm}.ended"
    job.ended_ns = int(stamp.read_text() or 0) if stamp.exists() else 0
    job.oom = cluster.output(job.slurm).count("OutOfMemoryError")


def play(cluster, trace, faster, seed):
    before_j = cluster.energy_j()
    jobs, left_out = submit_all(cluster, trace, faster, seed)
    after_j = await_all(cluster, jobs)
    for job in jobs:
        look_at(cluster, job)
    scale = cluster.scale
    makespan_s = (max(job.ended_ns for job in jobs) - jobs[0].submitted_ns) / 1e9 * scale
    drained = cluster.run(["sinfo", "-h", "-N", "-t", "drain,down", "-o", "%N %E"]).splitlines()
    return Result(jobs, left_out, makespan_s, after_j - before_j, cluster.refusals(), cluster.hand_shakes_ms(), drained)
