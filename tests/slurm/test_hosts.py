"""Usage: test_hosts.py CARMA SOURCE BUILD: docs/slurm.md's "What goes where": hosts that lack the plugin while plugstack.conf says
`optional`, and the way back to Slurm's own GPUs with jobs queued."""

import os
import re
import signal
import stat
import sys

from lab import GPUS, NODES, Lab, skip_where_impossible, until


class Hosts(Lab):
    """n2 has neither GPUs nor the plugin."""

    def write_slurm(self):
        super().write_slurm()
        (self.dir / "etc/plugstack-n2.conf").write_text("optional libcarma_none.so wait=2\n")
        self.edit(r"(NodeName=n2 .*) Gres=\S+", r"\1")
        for number in range(GPUS):
            os.mknod(self.dir / f"etc/gpu{number}", stat.S_IFCHR | 0o666, os.makedev(195, number))

    def edit(self, pattern, new):
        for name in ["slurm", *NODES]:
            path = self.dir / f"etc/{name}.conf"
            text, count = re.subn(pattern, new, path.read_text())
            assert count, f"{path} has no {pattern}"
            path.write_text(text)


def hosts_without_the_plugin(lab):
    """Jobs that do not ask for GPUs run as before; those that do go to the nodes with counts; nothing is drained."""
    stack = lab.dir / "etc/plugstack.conf"
    text = stack.read_text()
    stack.write_text("optional libcarma_none.so\n")
    job = lab.sbatch("-w", "n2", wrap="srun echo done")
    refused = lab.run(["sbatch", "--carma-mem=12G", "--wrap", "true"], check=False) + lab.errors
    stack.write_text(text)
    assert "unrecognized option '--carma-mem=12G'" in refused, refused
    assert lab.until_end(job)["JobState"] == "COMPLETED" and lab.output(job).endswith("done\n"), lab.output(job)
    jobs = [lab.sbatch("--carma-gpus=1", wrap="true") for _ in range(4)]
    assert {lab.until_end(job)["NodeList"] for job in jobs} <= {"n1", "n3"}, jobs
    until(lambda: lab.node_states() == {"idle"}, "idle nodes: " + lab.run(["sinfo", "-R"]))


def the_way_back(lab):
    """By the words of the page: what waits keeps its place, and runs on Slurm's own GPUs."""
    gate = lab.dir / "out/gate"
    runs = lab.sbatch("--carma-mem=12G", wrap=f"until [ -e {gate} ]; do sleep 0.05; done")
    until(lambda: any("batch" in lease["steps"] for node in NODES for lease in lab.leases(node)), "a job that runs")
    lab.run(["scontrol", "update", "PartitionName=main", "State=DOWN"])
    see = 'echo "$CUDA_VISIBLE_DEVICES"'
    waiting = [lab.sbatch("--carma-mem=12G", wrap=see), lab.sbatch("--carma-gpus=2", "--array=0-1", "-o", "%A_%a", wrap=see)]
    gate.touch()
    assert lab.until_end(runs)["JobState"] == "COMPLETED"
    named = lab.run(["sh", "-c", "squeue -h -t PD -o '%F %b' | grep gpumem | sort -u"])
    assert [line.split()[0] for line in named.splitlines()] == waiting, named
    for job in waiting:
        lab.run(["scontrol", "update", f"JobId={job}", "Gres=gpu:1"])
    for name in ["slurmctld", *(f"slurmd-{node}" for node in NODES)]:
        lab.kill(name, signal.SIGTERM)
    lab.edit(r"Gres=gpumem\S*", f"Gres=gpu:{GPUS}")
    lab.edit("GresTypes=.*", "GresTypes=gpu")
    lab.edit("(PlugStackConfig|CliFilterPlugins|JobSubmitPlugins)=.*\n", "")
    for stack in (lab.dir / "etc").glob("plugstack*.conf"):
        stack.unlink()
    (lab.dir / "etc/gres.conf").write_text(f"AutoDetect=off\nNodeName=n[1,3] Name=gpu File={lab.dir}/etc/gpu[0-{GPUS - 1}]\n")
    lab.start_slurmctld()
    for node in NODES:
        lab.start_slurmd(node)
    until(lambda: not lab.run(["scontrol", "update", "PartitionName=main", "State=UP"], check=False) and not lab.errors, "slurmctld")
    for job in [waiting[0], f"{waiting[1]}_0", f"{waiting[1]}_1"]:
        assert lab.until_end(job)["JobState"] == "COMPLETED" and re.fullmatch(r"\d\n", lab.output(job)), (job, lab.output(job))
    until(lambda: lab.node_states() == {"idle"}, "idle nodes: " + lab.run(["sinfo", "-R"]))


skip_where_impossible()
with Hosts(*sys.argv[1:4]) as lab:
    hosts_without_the_plugin(lab)
    the_way_back(lab)
