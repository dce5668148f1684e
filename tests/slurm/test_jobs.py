"""Usage: test_jobs.py CARMA SOURCE BUILD [ROW...]: the kinds of Slurm's jobs on a cluster whose GPUs carma gives. Each row leaves the
cluster idle."""

import json
import math
import os
import pwd
import re
import shutil
import stat
import sys
import time

from lab import GPUS, NODES, Lab, skip_where_impossible, until

SAY = 'echo "$SLURM_JOB_ID.$SLURM_STEP_ID.$SLURM_PROCID $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"'


class WithEpilog(Lab):
    def write_slurm(self):
        super().write_slurm()
        epilog, agent = self.dir / "etc/epilog", self.build / "src/slurm/agent/carma-slurm-agent"
        epilog.write_text(f'#!/bin/sh\neval "$({agent} --socket={self.dir}/$SLURMD_NODENAME/carma.sock --node=$SLURMD_NODENAME '
                          f'--gpus-of=$SLURM_JOB_ID)"\necho "$SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES" >{self.dir}/out/epilog.$SLURM_JOB_ID\n')
        epilog.chmod(0o755)
        for node in NODES:
            with open(self.dir / f"etc/{node}.conf", "a", encoding="utf-8") as conf:
                conf.write(f"Epilog={epilog}\n")


def said(lab, job):
    """(step and rank, node, GPUs) of each line that SAY wrote; srun says at times that it waits."""
    return [line.split(" ") for line in lab.output(job).splitlines() if not line.startswith("srun: ")]


def all_leases(lab, job):
    return [lease for node in NODES for lease in lab.ask(node, "GET", f"/v1/leases/by-key?cluster=lab&job={job}")[1]["leases"]]


def a_script_and_its_steps(lab):
    """All see the one GPU of one lease, whose processes carma finds. An Epilog is told which it was."""
    numbers = 'echo "=$SLURM_JOB_GPUS $SLURM_STEP_GPUS $SLURM_GPUS_ON_NODE"'
    job = lab.sbatch("--carma-mem=12G", wrap=f"{numbers}; srun sh -c '{numbers}'; {SAY}; srun sh -c '{SAY}'; srun {lab.train} --memory=10G --seconds=120; srun sh -c '{SAY}'")
    until(lambda: any(lease["peak_bytes"] >= 10 << 30 for lease in all_leases(lab, job)), "memory of the step's process")
    found = lab.ended(job)
    lines, (lease,) = said(lab, job), all_leases(lab, job)
    lines = [line for line in lines if line[0].startswith(job + ".")]
    assert len(lines) == 3 and len({gpus for _, _, gpus in lines}) == 1, lines
    assert lines[0][2] == ",".join(lease["gpus"]) and len(lease["gpus"]) == 1, (lines, lease)
    assert lease["state"] == "COMPLETED", lease
    (index,) = lease["indexes"]
    assert [line[1:] for line in lab.output(job).splitlines() if line.startswith("=")] == [f"{index}  1", f"{index} {index} 1"], lab.output(job)
    until(lambda: lab.output(f"epilog.{job}") == f"{index} {index}\n", f"the epilog of {job}: {lab.output(f'epilog.{job}')}")
    noted = json.loads(until(lambda: "{" in (note := admin_comment(lab, job)) and note, f"AdminComment of {job}: {found}"))
    assert noted["peak_bytes"] == lease["peak_bytes"], (noted, lease)
    assert noted["energy_mj"] > 0, noted


def steps_side_by_side(lab):
    """Two at the same time by Slurm's own --exact, without a word about GRES; none is estimated again."""
    summary = lab.dir / "out/summary.txt"
    shutil.copy(lab.source / "data/summaries/resnet50-224.txt", summary)
    meet = f"touch {lab.dir}/out/step.$SLURM_STEP_ID; until [ -e {lab.dir}/out/step.$1 ]; do sleep 0.05; done; {SAY}"
    job = lab.sbatch("-n2", f"--carma-summary={summary}", "--carma-batch-size=32",
                     wrap=f"rm {summary}; srun -n1 --exact sh -c '{meet}' - 1 & srun -n1 --exact sh -c '{meet}' - 0 & wait")
    lab.ended(job)
    assert len({gpus for _, _, gpus in said(lab, job)}) == 1 and len(said(lab, job)) == 2, lab.output(job)


def admin_comment(lab, job):
    line = lab.run(["scontrol", "show", "job", "-o", job], check=False)
    _, found, rest = line.partition("AdminComment=")
    return rest[: rest.rfind("}") + 1] if found else ""


def an_array_of_an_ordinary_user(lab):
    user = pwd.getpwnam("nobody").pw_uid
    job = lab.sbatch("--array=0-5", "--carma-mem=12G", "-o", f"{lab.dir}/out/%A_%a", wrap=SAY + "; id -u", user=user)
    until(lambda: lab.run(["squeue", "-h", "-j", job], check=False).strip() == "", "the end of the array")
    for task in range(6):
        # on a busy machine the agent may be late, which Slurm's step tells in the output as well
        lines = [line for line in lab.output(f"{job}_{task}").splitlines() if not line.startswith("slurmstepd-")]
        assert len(lines) == 2 and lines[0].split(" ")[2].startswith("GPU-") and lines[1] == str(user), (task, lines)
    ids = [line.split()[0].split(".")[0] for line in (lab.output(f"{job}_{task}") for task in range(6))]
    for one in ids:
        (lease,) = all_leases(lab, one)
        assert lease["uid"] == user and lease["state"] == "COMPLETED", lease


def ranks_over_two_nodes(lab):
    """Without a word about sharing, whole GPUs: nobody else is on them."""
    lab.gate = lab.dir / "out/ranks"
    job = lab.sbatch("-N2", "--ntasks-per-node=2", "--carma-mem=12G", "--carma-gpus=2",
                     wrap=f"srun sh -c '{SAY}; until [ -e {lab.gate} ]; do sleep 0.05; done'")
    until(lambda: len(said(lab, job)) == 4, "four ranks")
    leases = all_leases(lab, job)
    assert len(leases) == 2 and len({lease["node"] for lease in leases}) == 2, (leases, said(lab, job))
    for lease in leases:
        assert len(set(lease["gpus"])) == 2, lease
        seen = [gpus for _, node, gpus in said(lab, job) if node == lease["node"]]
        assert seen == [",".join(lease["gpus"])] * 2, (seen, lease)
    # The rest of such a node has two GPUs, and no job comes to the others.
    others = [lab.sbatch("-w", leases[0]["node"], "--carma-mem=2G", wrap=SAY) for _ in range(3)]
    for other in others:
        lab.ended(other)
        assert said(lab, other)[0][2] not in leases[0]["gpus"], (said(lab, other), leases)
    lab.gate.touch()
    lab.ended(job)


def srun_and_salloc(lab):
    word = lab.run(["srun", "--carma-mem=12G", "sh", "-c", SAY])
    assert word.split(" ")[2].startswith("GPU-"), word
    word = lab.run(["srun", "--carma-gpus=1", "--carma-share=mps", "sh", "-c", SAY]) # a whole GPU, which needs no MPS
    assert word.split(" ")[2].startswith("GPU-"), word
    word = lab.run(["salloc", "--carma-mem=12G", "srun", "sh", "-c", SAY])
    assert "GPU-" in word, word


def a_job_that_is_cancelled(lab):
    """Whatever its script makes of that: one that is killed, or ends as if all were well."""
    def cancelled(script, steps):
        job = lab.sbatch("--carma-mem=12G", wrap=script)
        until(lambda: any(steps <= set(lease["steps"]) for lease in all_leases(lab, job)), f"steps of {script}")
        lab.run(["scancel", job])
        lab.ended(job, "CANCELLED")
        live = {"RUNNING", "STOPPING"}
        return until(lambda: {lease["state"] for lease in all_leases(lab, job)} - live, "its lease's end")

    trains = f"srun --overlap {lab.train} --memory=10G --seconds=36000 & srun --overlap sleep 36000; wait"
    assert cancelled(trains, {"0", "1"}) == {"CANCELLED"}
    assert cancelled("trap 'exit 0' TERM; srun sleep 36000 & wait", {"batch", "0"}) == {"CANCELLED"}


def a_job_that_is_suspended(lab):
    """Its memory stays booked: nobody else gets it."""
    gate = lab.dir / "out/suspended"
    job = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap=f"until [ -e {gate} ]; do sleep 0.05; done")
    until(lambda: any("batch" in lease["steps"] for lease in lab.leases("n1")), "its step")
    assert lab.leases("n1")[0]["teller"], lab.leases("n1") # its slurmstepd
    free = lab.ask("n1", "GET", "/v1/capacity")[1]["fits_bytes"]
    lab.run(["scontrol", "suspend", job])
    until(lambda: lab.leases("n1")[0]["suspended"], "a lease that is suspended")
    assert lab.ask("n1", "GET", "/v1/capacity")[1]["fits_bytes"][GPUS - 1] <= free[GPUS - 1], free
    lab.run(["scontrol", "resume", job])
    until(lambda: not lab.leases("n1")[0]["suspended"], "a lease that has resumed")
    gate.touch()
    lab.ended(job)


def a_job_of_unknown_need(lab):
    """Slurm counts what most jobs need, and carmad guesses by itself. A job that starts again has its count. What cannot start
    again has whole GPUs."""
    def started(restart):
        # Slurm lets a job that goes back wait for two minutes. Not in the second of its end: slurmd would refuse to
        # start it.
        eligible = lab.job(job).get("EligibleTime", "Unknown")
        if eligible > time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 10)) and eligible != "Unknown":
            lab.run(["scontrol", "update", f"JobId={job}", "StartTime=now+2"], check=False)
        return [lease for lease in all_leases(lab, job) if lease["state"] == "RUNNING" and lease["restart"] == restart]

    job = lab.sbatch("--carma-gpus=1", wrap=f"{lab.train} --memory=10G --seconds=36000")
    counted = lab.job(job)["TresPerNode"]
    assert re.search(r"gpumem:(22G|22528M),(gres[:/])?gpubig:1,(gres[:/])?gpusm:600,(gres[:/])?gpuslot:3$", counted), counted
    for source, restart in (("prior", 0), ("declared", 1)):
        lease, = until(lambda restart=restart: started(restart), f"start {restart}")
        shown = json.loads(lab.carma(lease["node"], "show", "--json", lease["id"], check=True))
        assert (shown["reservation_source"], shown["exclusive"]) == (source, False), shown
        if restart == 0:
            lab.run(["scontrol", "requeue", job])
    lab.run(["scancel", job])
    lab.ended(job, "CANCELLED")
    assert "GPU-" in lab.run(["srun", "--carma-gpus=1", "sh", "-c", f"{SAY}; sleep 1"])
    job = lab.sbatch("--carma-gpus=1", "--no-requeue", wrap=SAY)
    assert re.search("gpumem:(40G|40960M)", lab.job(job)["TresPerNode"]), lab.job(job)
    lab.ended(job)


def a_job_in_slurms_own_group(lab):
    """It stays there, where Slurm's limits hold, and can open its GPU's device node alone. The processes in the group are the
    lease's. The last row: slurmd stays there, too."""
    group = lab.enter_own_group("n1")
    if group is None:
        print("  skipped: there is no unified hierarchy of control groups to write to")
        return
    job = lab.sbatch("-w", "n1", "--carma-mem=12G",
                     wrap=f"grep ^0:: /proc/self/cgroup; {lab.train} --memory=10G --seconds=120; {opens(lab)}")
    until(lambda: any(lease["peak_bytes"] >= 10 << 30 for lease in all_leases(lab, job)), "memory of the job's process")
    lab.ended(job)
    where, *denied = lab.output(job).splitlines()
    assert where == f"0::{group}", lab.output(job)
    if has_filters(lab):
        assert [denied.count("True"), denied.count("False")] == [GPUS - 1, 1], lab.output(job)
    (lease,) = all_leases(lab, job)
    assert lease["state"] == "COMPLETED", lease


    a_job_that_asks_for_nothing(lab)


def scripts_for_slurms_own_gpus(lab):
    """They run as they are, on whole GPUs: what the script and its steps see."""
    see = f"sh -c '{SAY}'"
    for words, gpus, wrap in [
            ("--gres=gpu:2", 2, f"{see}; srun {see}"), ("--gres=gpu:a100:1", 1, f"{see}; srun --gres=gpu:1 {see}"),
            ("--gpus=2", 2, f"{see}; srun {see}; srun --gpus=1 {see}"), ("-G 1", 1, see), ("--gpus-per-node=2", 2, f"srun {see}"),
            ("--gpus-per-task=1 -n2", 1, f"srun {see}"), ("--gpus-per-node=1 --cpus-per-gpu=2 --mem-per-gpu=100", 1, f"srun {see}"),
            ("--gpus-per-node=2 -N2", 2, f"srun {see}")]:
        job = lab.sbatch(*words.split(), wrap=wrap)
        lab.ended(job)
        leases, lines = all_leases(lab, job), said(lab, job)
        assert lines and all(len(line[2].split(",")) == gpus for line in lines), (words, lines, lab.output(job))
        for lease in leases:
            shown = json.loads(lab.carma(lease["node"], "show", "--json", lease["id"], check=True))
            assert shown["exclusive"] and set(",".join(line[2] for line in lines).split(",")) >= set(lease["gpus"]), (words, shown)
    for words in ("srun --gpus=2", "srun --gres=gpu:2", "srun --gpus-per-node=2", "salloc --gpus=2 srun"):
        assert lab.run([*words.split(), "sh", "-c", SAY]).count("GPU-") == 2, words


def has_filters(lab):
    return "device nodes of all GPUs" not in lab.log("carmad-n1")


def opens(lab):
    """A command that prints for each GPU's device node whether to open it is denied. No driver is behind the nodes: to open one
    says so, where it is allowed."""
    script, nodes = lab.dir / "out/opens.py", [lab.dir / f"out/gpu{number}" for number in range(GPUS)]
    for number, node in enumerate(nodes):
        if not node.exists():
            os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(195, number))
    script.write_text("import errno, sys\n"
                      "for name in sys.argv[1:]:\n"
                      "    try:\n        open(name)\n"
                      "    except OSError as error:\n        print(error.errno == errno.EPERM)\n")
    return f"python3 {script} {' '.join(map(str, nodes))}"


def a_job_that_asks_for_nothing(lab):
    """Without an option of carma's it has no lease, sees no GPU and can open none."""
    job = lab.sbatch("-w", "n1", wrap=f"unset CUDA_VISIBLE_DEVICES; {opens(lab)}; srun sh -c 'echo [$CUDA_VISIBLE_DEVICES]'")
    lab.ended(job)
    assert not all_leases(lab, job), all_leases(lab, job)
    *denied, seen = lab.output(job).splitlines()
    assert seen == "[]", lab.output(job)
    if has_filters(lab):
        assert denied == ["True"] * GPUS, lab.output(job)


def scripts_and_commands_that_are_tried(lab):
    """A stand-in for carma-sandbox records each before it is queued. The request is that of the same capture by hand."""
    sandbox, fake = lab.prefix / "lib/carma/carma-sandbox", lab.dir / "out/sandbox"
    fake.mkdir()
    shutil.copy(lab.source / "tests/golden/model.capture", fake / "capture")
    sandbox.unlink()
    sandbox.write_text(f"#!/bin/sh\nexec python3 {lab.source}/tests/fakes/sandbox.py {fake} \"$@\"\n")
    sandbox.chmod(0o755)
    by_hand = json.loads(lab.carma("n1", "estimate", "--json", "--capture", fake / "capture", check=True))["memory_bytes"]
    script = lab.dir / "out/tried.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH -J tried\n{SAY}\n")
    for words, wrap in (([script, "train.py"], None), ([script], None), ([], f"{SAY} # train.py")):
        job = lab.sbatch("--carma-capture=auto", *words, wrap=wrap)
        assert f"gpumem:{math.ceil(by_hand / 2**20)}M" in lab.job(job)["TresPerNode"], lab.job(job)
        lab.ended(job)
    assert "GPU-" in lab.run(["srun", "--carma-capture=auto", "sh", "-c", SAY])
    commands = [json.loads(file.read_text())["command"] for file in sorted(fake.glob("request-*"), key=lambda f: f.stat().st_mtime)]
    assert len(commands) == 4 and commands[0][-2:] == ["/tmp/carma-capture-0/tried.sh", "train.py"] and commands[3] == ["sh", "-c", SAY], commands
    try:
        lab.run(["srun", "--carma-capture=auto", "network.py"])
        raise SystemExit("a command that cannot be recorded was queued")
    except AssertionError as error:
        assert "network.py needs the network" in str(error) and "--carma-mem" in str(error), error


ROWS = [a_script_and_its_steps, scripts_for_slurms_own_gpus, steps_side_by_side, an_array_of_an_ordinary_user, ranks_over_two_nodes, srun_and_salloc, a_job_that_is_cancelled,
        a_job_that_is_suspended, a_job_of_unknown_need, a_job_that_asks_for_nothing, scripts_and_commands_that_are_tried, a_job_in_slurms_own_group]


def main():
    skip_where_impossible()
    rows = [row for row in ROWS if not sys.argv[4:] or row.__name__ in sys.argv[4:]]
    with WithEpilog(*sys.argv[1:4]) as lab:
        lab.walk(rows)


sys.exit(main())
