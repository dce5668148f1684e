"""Usage: test_preempt.py CARMA SOURCE BUILD: memory that is free in pieces is room to Slurm, and not to carmad. A job of a higher
partition that carmad refuses for that gets its GPU all the same: Slurm preempts for it. Not by suspension, which frees no
GPU memory: then the job's counts stay."""

import sys

from lab import GPUS, Lab, skip_where_impossible, until


class Preempting(Lab):
    def write_slurm(self):
        super().write_slurm()
        for conf in (self.dir / "etc").glob("*.conf"):
            text = conf.read_text()
            if "PartitionName=" in text:
                conf.write_text(text + "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n"
                                       "PartitionName=high Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP\n")


skip_where_impossible()
with Preempting(*sys.argv[1:4], wait_s=1) as lab:
    gate = lab.dir / "out/gate"
    low = [lab.sbatch("-w", "n1", "--carma-mem=15G", wrap=f"until [ -e {gate} ]; do sleep 0.05; done") for _ in range(2 * GPUS)]
    until(lambda: [len(lease["steps"]) for lease in lab.leases("n1")] == [1] * 2 * GPUS, "two jobs on each GPU")
    high = lab.sbatch("-w", "n1", "-p", "high", "--carma-mem=14G", wrap="true")
    until(lambda: lab.job(high)["Restarts"] != "0" and "carma:refused" in lab.job(high).get("Comment", ""), "a refusal")
    assert "gpusm:600," in lab.job(high)["TresPerNode"], lab.job(high)
    for conf in (lab.dir / "etc").glob("*.conf"):
        conf.write_text(conf.read_text().replace("SUSPEND,GANG", "REQUEUE"))
    lab.run(["scontrol", "reconfigure"])
    found = lab.until_end(high)
    assert found["JobState"] == "COMPLETED" and found["Restarts"] != "0", found
    again = [job for job in low if lab.job(job)["Restarts"] != "0"]
    assert 1 <= len(again) <= 3, again
    gate.touch()
    for job in low:
        if job not in again: # Slurm lets the others wait for two minutes
            assert lab.until_end(job)["JobState"] == "COMPLETED", job
