"""Usage: test_memory.py CARMA SOURCE BUILD [ROW...]: jobs that asked for too little, GPUs whose free memory is in pieces, and a part of
the thesis's trace, on a Slurm cluster whose GPUs carma gives. Each row has a cluster of its own."""

import csv
import os
import pathlib
import re
import sys
import time

from lab import NODES, Lab, skip_where_impossible, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import contain  # noqa: E402


def no_lease_and_no_process(lab):
    for node in NODES:
        until(lambda node=node: not lab.leases(node), f"no lease left on {node}")

    def processes():
        found = []
        for pid in contain.descendants(os.getppid()):
            words = contain.read_aside(pid, "cmdline")
            if str(lab.prefix).encode() in words and b"carma-train" in words:
                found.append(words)
        return found

    until(lambda: not processes(), "no process left of a job")
    until(lambda: lab.node_states() == {"idle"}, "idle nodes: " + lab.run(["sinfo", "-R"]))


def out_of_memory(lab):
    """It asks for 5 GiB beside a job that has most of the GPU, and needs 12: it goes back with a larger request, and runs."""
    gate = lab.dir / "out/gate"
    full = lab.sbatch("-w", "n1", "--carma-gpus=4", "--carma-share=time-slice", "--carma-mem=33G",
                      wrap=f"{lab.train} --gpus=4 --memory=33G --seconds=36000 & until [ -e {gate} ]; do sleep 0.05; done; kill %1")
    until(lambda: any(lease["peak_bytes"] >= 32 << 30 for lease in lab.leases("n1")), "four GPUs with 33 GiB in use")
    job = lab.sbatch("-w", "n1", "--carma-mem=5G", wrap=f"exec {lab.train} --memory=12G --seconds=60")
    back = until(lambda: (found := lab.job(job)).get("Restarts") == "1" and found, "a requeue")
    gate.touch()
    lab.until_end(full)
    found = lab.ended(job)
    assert found["Comment"].startswith("carma:gpu_oom:5.0"), (back, found)
    asked = re.search(r"gpumem:(\d+)M", found["TresPerNode"])
    assert asked and 5 * 1024 < int(asked[1]) < 40 * 1024, found
    leases = lab.ask("n1", "GET", f"/v1/leases/by-key?cluster=lab&job={job}")[1]["leases"]
    assert [lease["state"] for lease in leases] == ["RETURNED", "COMPLETED"], leases
    no_lease_and_no_process(lab)


def refusals(lab):
    """18 jobs of 25 GiB for 12 GPUs of 40; the refusals, counted where carmad says them."""
    jobs = [lab.sbatch("--carma-mem=25G", wrap=f"exec {lab.train} --memory=24G --seconds=420") for _ in range(18)]
    for job in jobs:
        lab.ended(job)
    no_lease_and_no_process(lab)
    return sum(lease["state"] == "EXPIRED" for job in jobs for node in NODES
               for lease in lab.ask(node, "GET", f"/v1/leases/by-key?cluster=lab&job={job}")[1]["leases"])


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def twenty_jobs_of_the_trace(lab):
    """They request what they need at their peak, and are submitted in the trace's order."""
    known = {row["id"]: row for row in rows_of(lab.source / "data/workloads.csv")}
    jobs = []
    for row in rows_of(lab.source / "data/traces/thesis_60.csv")[:20]:
        workload = known[row["workload"]]
        mib = int(workload["peak_mib"])
        jobs.append(lab.sbatch(f"--carma-mem={mib}M", f"--carma-gpus={workload['gpus']}",
                               wrap=f"exec {lab.train} --workload={row['workload']}"))
    for job in jobs:
        lab.ended(job)
    no_lease_and_no_process(lab)


def main():
    skip_where_impossible()
    only = sys.argv[4:]
    for name, row, settings in [
            ("out_of_memory", out_of_memory, {}),
            # A lease that does not fit waits for less time than the jobs run: it is refused.
            ("pieces", lambda lab: compare(refusals(lab), 0, 0), {"wait_s": 1}),
            ("pieces_without_gpubig", lambda lab: compare(refusals(lab), 1, 10**6), {"wait_s": 1, "gpubig": False}),
            ("trace", twenty_jobs_of_the_trace, {"scale": 240})]:
        if only and name not in only:
            continue
        began = time.monotonic()
        print(name, flush=True)
        with Lab(*sys.argv[1:4], **settings) as lab:
            row(lab)
        print(f"  {time.monotonic() - began:.1f} s", flush=True)


def compare(count, least, most):
    print(f"  {count} refusals")
    assert least <= count <= most, count


sys.exit(main())
