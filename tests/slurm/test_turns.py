"""Usage: test_turns.py CARMA SOURCE BUILD: several users on nodes with MPS. A user's job comes beside his own, and is put back where
all GPUs are another's. Each node in turn refuses it: it is never left without one, keeps what it excludes, and starts when
a GPU is free."""

import sys
import time

from lab import GPUS, NODES, Lab, skip_where_impossible, until


class Users(Lab):
    sharing = ("gate=all", "max_slowdown=3", "share=auto", "mps_control={lab.build}/src/vnode/nvidia-cuda-mps-control")


skip_where_impossible()
with Users(*sys.argv[1:4], wait_s=1) as lab:
    busy = f"exec {lab.prefix}/bin/carma-train --gpus 1 --memory 10G --sm-activity 0.7 --seconds 360000"
    first = [lab.sbatch("-w", node, "--carma-mem=12G", wrap=busy, user=7) for node in NODES[:2] for _ in range(GPUS)]
    until(lambda: [len({gpu for lease in lab.leases(node) if lease["steps"] for gpu in lease["gpus"]}) for node in NODES[:2]] ==
          [GPUS] * 2, "a job on each GPU")
    lab.ended(lab.sbatch("-x", NODES[2], "--carma-mem=12G", wrap="true", user=7))
    other = lab.sbatch("-x", NODES[2], "--carma-mem=12G", wrap="true", user=8)

    def refusals():
        assert lab.job(other)["Reason"] != "BadConstraints", lab.job(other)
        return [lab.log(f"agent-{node}").count(f" job {other} is queued again after 'refused'") for node in NODES[:2]]

    until(lambda: min(refusals()) >= 1 and sum(refusals()) >= 3, "refusals by all nodes", 120)
    until(lambda: lab.job(other)["JobState"] == "PENDING" and
          not lab.run(["scontrol", "update", f"JobId={other}", "StartTime=now+3600"], check=False) + lab.errors, "the job waits")
    for node in NODES:
        for excluded in (lab.dir / "agent" / node).glob(f"{other}.excluded"):
            excluded.write_text("1\n") # long ago
    until(lambda: lab.job(other)["ExcNodeList"] == NODES[2], "no other node is excluded for long")
    lab.run(["scancel", first[0]]) # it leaves a GPU
    until(lambda: len(lab.leases("n1")) < GPUS, "the end of a lease")
    time.sleep(3)
    assert lab.job(other)["JobState"] == "PENDING", "it starts before its user says"
    lab.run(["scontrol", "update", f"JobId={other}", "StartTime=now+290"])
    lab.run(["scancel", first[1]])
    lab.ended(other)
