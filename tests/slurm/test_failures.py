"""Usage: test_failures.py CARMA SOURCE BUILD [PART|ROW...]: what dies under Slurm's jobs, and what becomes of them: the table
"When something dies" of docs/slurm.md. One cluster for all its rows that are asked for, each of which leaves it idle."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from lab import GPU_GIB, GPU_SLOTS, GPU_SM, GPUS, PATIENCE_S, Lab, skip_where_impossible, until

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.80 GiB."


def lease_of(lab, node, job):
    """carmad's newest lease of a job, ended or not; None while there is no carmad."""
    try:
        found = lab.ask(node, "GET", f"/v1/leases/by-key?cluster=lab&job={job}")[1]["leases"]
    except OSError:
        return None
    return max(found, key=lambda lease: lease["id"], default=None)


def until_lease(lab, node, job, *states):
    return until(lambda: (lease := lease_of(lab, node, job)) and lease["state"] in states and lease, f"lease of {job} {states}")


def gate(lab, name):
    """A script that runs until open_gate(); so a row's end does not depend on the machine's speed."""
    path = lab.dir / "out" / ("gate-" + name)
    path.unlink(missing_ok=True)
    return f"until [ -e {path} ]; do sleep 0.05; done"


def open_gate(lab, name):
    (lab.dir / "out" / ("gate-" + name)).touch()


def running(lab, name, *options, node="n1", then="echo ended"):
    job = lab.sbatch("-w", node, "--carma-mem=12G", *options, wrap=f"echo began; {gate(lab, name)}; {then}")
    lab.until_state(job, "RUNNING")
    until_lease(lab, node, job, "RUNNING")
    until(lambda: "began" in lab.output(job), f"the output of {job}")
    return job


def train(lab, gib, seconds):
    return f"exec {lab.prefix}/bin/carma-train --memory={gib}G --seconds={seconds}"


def ends(lab, job, state, restarts=0):
    found = lab.until_end(job)
    assert found["JobState"] == state, f"job {job}: {found}"
    assert int(found["Restarts"]) == restarts, f"job {job}: {found}"
    return found


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def processes(lab, job):
    """The pids of a job's own processes, and those of its slurmstepds: of this lab's alone, since another Slurm of this machine
    may have the same numbers."""
    tasks, stepds = [], []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        if not lab.owns(entry):
            continue
        if read(entry / "cmdline").startswith(f"slurmstepd: [{job}.".encode()):
            stepds.append(int(entry.name))
        elif f"SLURM_JOB_ID={job}\0".encode() in read(entry / "environ"):
            tasks.append(int(entry.name))
    return tasks, stepds


def kill_all(pids):
    assert pids, "nothing to kill"
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # a shepherd that waits for a job ends with its carmad
            os.kill(pid, signal.SIGKILL)


def shepherds(lab, node):
    """Those that have a lease."""
    found = [re.search(rb"^shepherd (\d+)", read(path), re.M) for path in (lab.dir / node / "state").glob("**/status")]
    return [int(match[1]) for match in found if match and pathlib.Path(f"/proc/{match[1].decode()}").exists()]


def a_carmad_with_a_step_running(lab):
    job = running(lab, "carmad")
    first = lease_of(lab, "n1", job)["id"]
    lab.kill("carmad-n1")
    lab.start_carmad("n1")
    until_lease(lab, "n1", job, "RUNNING")
    open_gate(lab, "carmad")
    ends(lab, job, "COMPLETED")
    lease = until_lease(lab, "n1", job, "COMPLETED")
    assert lease["id"] == first, lease


def a_carmad_with_a_job_starting(lab):
    lab.kill("carmad-n1")
    job = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap="echo done")
    lab.until_state(job, "RUNNING")
    began = time.monotonic()
    lab.start_carmad("n1")
    lab.until_carmad("n1")
    late = time.monotonic() > began + lab.wait_s / 2  # a busy machine: the job may be back in the queue
    ends(lab, job, "COMPLETED", restarts=int(lab.until_end(job)["Restarts"]) if late else 0)
    assert "done" in lab.output(job)
    # Away for longer than the plugin waits: the job goes back to the queue.
    lab.kill("carmad-n1")
    job = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap="echo done")
    back = until(lambda: (found := lab.job(job)).get("Restarts") == "1" and found, "a requeue")
    lab.start_carmad("n1")
    found = ends(lab, job, "COMPLETED", restarts=1)
    assert found["Comment"].startswith("carma:refused:n1:"), (back, found)
    assert lab.output(job).count("done") == 1


def a_carmad_with_a_job_ending(lab):
    again = f"[ $(grep -c began {lab.dir}/out/$SLURM_JOB_ID) = 2 ]"
    job = running(lab, "ending", then=f"{again} || {{ echo '{OOM}' >&2; exit 1; }}")
    lab.kill("carmad-n1")
    open_gate(lab, "ending")
    until(lambda: OOM in lab.output(job), "the job's end")
    seen = time.monotonic()
    until(lambda: time.monotonic() > seen + 13, "longer than a lease waits that nobody will tell the end of")
    lab.start_carmad("n1")
    ends(lab, job, "COMPLETED", restarts=1)


def a_carmad_away_at_the_end(lab):
    """For longer than the end waits: the agent tells carmad, and the job goes back after all. One of an array."""
    again = f"[ $(grep -c began {lab.dir}/out/%s) = 2 ] || {{ echo '{OOM}' >&2; exit 1; }}"
    job = lab.sbatch("-w", "n1", "--carma-mem=12G", "--array=7", "-o", f"{lab.dir}/out/%A_%a",
                     wrap=f"echo began; {gate(lab, 'away')}; " + again % "${SLURM_ARRAY_JOB_ID}_7")
    until_lease(lab, "n1", job, "RUNNING")
    until(lambda: "began" in lab.output(f"{job}_7"), "its output")
    lab.kill("carmad-n1")
    open_gate(lab, "away")
    lab.until_state(f"{job}_7", "FAILED")
    lab.start_carmad("n1")
    found = until(lambda: (found := lab.job(f"{job}_7")).get("JobState") == "COMPLETED" and found, "its second run")
    assert found["Restarts"] == "1" and found["Comment"].startswith("carma:gpu_oom:12.0"), found


def a_slurmd(lab):
    job = running(lab, "slurmd")
    lab.kill("slurmd-n1")
    lab.start_slurmd("n1")
    open_gate(lab, "slurmd")
    ends(lab, job, "COMPLETED")
    until_lease(lab, "n1", job, "COMPLETED")


def a_slurmd_at_the_end(lab):
    """One that begins while a job ends takes it for running: Slurm would drain the node if it began there again."""
    again = f"[ $(grep -c began {lab.dir}/out/$SLURM_JOB_ID) = 2 ]"
    job = lab.sbatch("--carma-mem=12G", wrap=f"echo began on $SLURMD_NODENAME; {gate(lab, 'end')}; "
                     f"{again} || {{ echo '{OOM}' >&2; exit 1; }}")
    node = until(lambda: (match := re.search(r"began on (\S+)", lab.output(job))) and match[1], "its first run")
    until_lease(lab, node, job, "RUNNING")
    lab.kill(f"slurmd-{node}")
    open_gate(lab, "end")
    until(lambda: lab.job(job).get("Restarts") == "1", "a requeue")
    lab.start_slurmd(node)
    ends(lab, job, "COMPLETED", restarts=1)
    assert f"began on {node}" not in lab.output(job).partition("OutOfMemory")[2], lab.output(job)


def a_slurmstepd(lab):
    job = running(lab, "stepd")
    tasks, stepds = processes(lab, job)
    assert tasks
    kill_all(stepds)
    ends(lab, job, "CANCELLED")
    until_lease(lab, "n1", job, "CANCELLED")
    until(lambda: not processes(lab, job)[0], "the end of the job's processes")
    # A pause between the steps of an allocation is nothing of that kind.
    shell = subprocess.Popen(["salloc", "-w", "n1", "--carma-mem=12G", "sh", "-c",
                              f"srun true; {gate(lab, 'salloc')}; srun echo second; srun sleep 36000"],
                             env=lab.env, cwd=lab.dir / "out", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    job = until(lambda: lab.run(["squeue", "-h", "-t", "R", "-o", "%A"]).strip(), "an allocation")
    until_lease(lab, "n1", job, "LOST", "CANCELLED")  # gone are its processes; a step to come has another
    open_gate(lab, "salloc")
    # One whose step has lost its slurmstepd is found as well.
    task = until(lambda: [lease["task"] for lease in lab.leases("n1") if "2" in lease["steps"] and lease["task"]], "the last step")[0]
    kill_all([int(pathlib.Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()[1])])
    ends(lab, job, "CANCELLED")
    said = shell.communicate(timeout=PATIENCE_S)[0]
    assert "second" in said, said


def a_shepherd(lab):
    job = running(lab, "shepherd")
    kill_all(shepherds(lab, "n1"))
    # What it watched is not known any more: it ends, and the job begins anew.
    until(lambda: lab.job(job).get("Restarts") == "1", "a requeue")
    open_gate(lab, "shepherd")
    found = ends(lab, job, "COMPLETED", restarts=1)
    assert found["Comment"].startswith("carma:lost:"), found
    assert lab.output(job).count("began") == 2 and lab.output(job).count("ended") == 1, lab.output(job)


def a_slurmctld(lab):
    job = running(lab, "slurmctld")
    # Slurm writes its state some seconds after each change. A younger job is lost to it.
    changed = time.time()
    lab.run(["scontrol", "update", f"JobId={job}", "Comment=kept"])
    until(lambda: (lab.dir / "state/job_state").stat().st_mtime > changed, "Slurm's saved state")
    lab.kill("slurmctld")
    lab.start_slurmctld()
    until(lambda: lab.job(job).get("JobState") == "RUNNING", "slurmctld")
    waiting = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap="echo done")
    open_gate(lab, "slurmctld")
    assert ends(lab, job, "COMPLETED")["Comment"] == "kept"
    ends(lab, waiting, "COMPLETED")
    until_lease(lab, "n1", job, "COMPLETED")


def a_agent(lab):
    full = lab.sbatch("-w", "n1", "--carma-mem=30G", "--carma-gpus=4", wrap=train(lab, 30, 3000) + " --gpus=4")
    until(lambda: (lease_of(lab, "n1", full) or {}).get("peak_bytes", 0) >= 30 << 30, "full GPUs")
    lab.kill("agent-n1")
    job = lab.sbatch("-w", "n1", "--carma-mem=5G", wrap=train(lab, 14, 60))
    ends(lab, job, "FAILED")  # nobody has ordered it back
    lab.run(["scancel", full])
    lab.start_agent("n1")
    found = until(lambda: (found := lab.job(job)).get("JobState") == "COMPLETED" and found, "its second run")
    assert found["Restarts"] == "1" and found["Comment"].startswith("carma:gpu_oom:5.0"), found
    ends(lab, full, "CANCELLED")


def a_slow_slurmctld(lab):
    """What the agent has ordered is done, but the first answer to each of its words is lost; scontrol has requeued once already
    when it asks again. The job goes back once, with one raise of its request, and its end is noted."""
    folder, scontrol = lab.dir / "out/slow", lab.dir / "out/slow/scontrol"
    folder.mkdir()
    real = shutil.which("scontrol")
    scontrol.write_text(f"""#!/bin/sh
[ "$1" != requeuehold ] || {real} "$@" >/dev/null 2>&1
said=$({real} "$@" 2>&1); code=$?
note=$(echo "$*" | tr -dc '[:alnum:]' | cut -c1-200)
[ "$1" != update -a "$1" != release ] || ! mkdir "{folder}/$note" 2>/dev/null ||
    {{ echo "Unable to contact slurm controller (connect failure)"; exit 1; }}
echo "$said"; exit $code
""")
    scontrol.chmod(0o755)
    lab.kill("agent-n1")
    lab.start_agent("n1", PATH=f"{folder}:{lab.env['PATH']}")
    job = lab.sbatch("-w", "n1", "--carma-mem=4G",
                     wrap=f"[ -e {folder}/done ] || {{ touch {folder}/done; echo '{OOM}' >&2; exit 1; }}")
    found = ends(lab, job, "COMPLETED", restarts=1)
    comment = lab.run(["squeue", "-h", "-t", "all", "-O", "Comment:100", "-j", job])
    raised = re.search(r"^carma:gpu_oom:4.0 GiB->(\S+) GiB", comment)
    counted = re.search(r"gpumem:(\d+)M", found["TresPerNode"])
    assert raised and counted and abs(int(counted[1]) / 1024 - float(raised[1])) < 0.1, (comment, found)
    assert '"cause":"completed"' in found["AdminComment"], found
    lab.kill("agent-n1")
    lab.start_agent("n1")


def a_gpu(lab):
    log = "agent-n1"
    job = lab.sbatch("-w", "n1", "--carma-mem=35G", wrap=train(lab, 30, 300))
    lease = until_lease(lab, "n1", job, "RUNNING")
    until(lambda: (lease_of(lab, "n1", job) or {}).get("peak_bytes"), "its memory")
    lab.run([lab.prefix / "bin/carma-vnode", "inject", lab.vnode("n1"), "gpu-lost", "--gpu", lease["indexes"][0]])
    until(lambda: "now counts" in lab.log(log), "lower counts")
    line = lab.run(["scontrol", "show", "node", "-o", "n1"])
    assert re.search(r"Gres=gpumem:(120G|122880M),gpubig:3,gpusm:4500,gpuslot:128 ", line), line
    # The same request, on another GPU.
    found = until(lambda: (found := lab.job(job)).get("Restarts") == "1" and found["JobState"] == "RUNNING" and found,
                  "a requeue")
    assert re.search(r"gpumem:(35G|35840M),(gres[:/])?gpubig:1,(gres[:/])?gpusm:600,(gres[:/])?gpuslot:2$", found["TresPerNode"]), found
    assert until_lease(lab, "n1", job, "RUNNING")["indexes"] != lease["indexes"]
    ends(lab, job, "COMPLETED", restarts=1)
    # Told once, in all these looks.
    assert lab.log(log).count("now counts") == 1, lab.log(log)
    # The next agent knows what this one did.
    lab.kill("agent-n1")
    lab.run([lab.prefix / "bin/carma-vnode", "clear", lab.vnode("n1")])
    until(lambda: lab.ask("n1", "GET", "/v1/capacity")[1]["lost"] == 0, "the GPU")
    lab.start_agent("n1")
    until(lambda: lab.log(log).count("now counts") == 2, "whole counts")
    line = lab.run(["scontrol", "show", "node", "-o", "n1"])
    assert re.search(rf"Gres=gpumem:(160G|163840M),gpubig:{GPUS},gpusm:{GPU_SM * GPUS},gpuslot:128 ", line), line


def a_node(lab):
    """As far as that can be done on one machine: everything of a node is killed at once, and slurmd says that it booted."""
    job = running(lab, "node")
    young_until = time.monotonic() + 22
    for name in ["slurmd-n1", "agent-n1", "carmad-n1"]:
        lab.kill(name)
    tasks, stepds = processes(lab, job)
    kill_all(shepherds(lab, "n1") + stepds + tasks)
    lab.start_carmad("n1")
    lab.start_agent("n1")
    # slurmctld believes that a job younger than 20 s is there, whatever its node says when it registers.
    time.sleep(max(0.0, young_until - time.monotonic()))
    lab.start_slurmd("n1", "-b")
    until(lambda: lab.job(job).get("Restarts") == "1", "a requeue")
    until(lambda: not lab.run(["scontrol", "update", f"JobId={job}", "StartTime=now+1"], check=False) and not lab.errors,
          "a start soon")
    until(lambda: lab.output(job).count("began") == 2, "its second run")
    open_gate(lab, "node")
    ends(lab, job, "COMPLETED", restarts=1)
    until_lease(lab, "n1", job, "COMPLETED")


def a_second_carmad(lab):
    job = running(lab, "second")
    log = lab.log("carmad-n1")
    first = lab.running.pop("carmad-n1")
    lab.start_carmad("n1")
    second = lab.running["carmad-n1"]
    lab.running["carmad-n1"] = first
    assert second.wait(PATIENCE_S) != 0, lab.log("carmad-n1")[len(log):]
    open_gate(lab, "second")
    ends(lab, job, "COMPLETED")
    until_lease(lab, "n1", job, "COMPLETED")


def a_plugin(lab):
    stack = lab.dir / "etc/plugstack.conf"
    text = stack.read_text()
    stack.write_text(text.replace("libcarma_spank.so", "libcarma_none.so"))
    said = subprocess.run(["sbatch", "--carma-mem=12G", "--wrap", "true"], env=lab.env, cwd=lab.dir / "out", check=False,
                          capture_output=True, text=True)
    assert said.returncode != 0 and "libcarma_none.so" in said.stderr, said
    stack.write_text(text)
    job = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap="echo done")
    ends(lab, job, "COMPLETED")


HELLO = "echo carma-slurm-step 1"
SICK_HELPERS = {  # what is in carma-slurm-step's place: what the job's output says, None: nothing, and it completes
    "missing": (None, "is missing: install carma-slurm again"),
    "anybody's": ("", "is not root's alone"),
    "hangs": ("exec sleep 1000", "does not answer"),
    "is killed": ("kill -9 $$", "ended before it was done"),
    "stops in the middle": (f"{HELLO}; printf 'set CUDA_VI'", "ended before it was done"),
    "prints garbage": (f"{HELLO}; echo '{{}}'", "says what this plugin does not know"),
    "never ends a line": (f"{HELLO}; yes | tr -d '\\n'", "says too long a line"),
    "of another version": ("echo carma-slurm-step 0; exec sleep 1000", "is of another version"),
    "killed once": ("while read -r line; do case $line in SigBlk*|SigIgn*) echo \"$line\";; esac; done </proc/$$/status >$0.signals; "
                    "mkdir $0.once.$2 2>/dev/null && kill -9 $$; env >$0.env; exec {helper} \"$@\"", None),  # a child unblocks dash's
}


def with_helper(lab, node, name, text):
    """The node's slurmd has a plugin beside which another helper is."""
    folder = lab.dir / "sick" / name.replace(" ", "-").replace("'", "")
    helper, plugin = folder / "carma-slurm-step", folder / "slurm" / lab.plugin.name
    plugin.parent.mkdir(parents=True)
    folder.parent.chmod(0o755)
    shutil.copy(lab.plugin, plugin)
    if text is not None:
        helper.write_text("#!/bin/sh\n" + text.replace("{helper}", str(lab.plugin.parent.parent / helper.name)) + "\n")
        helper.chmod(0o777 if text == "" else 0o755)
    stack = lab.dir / "etc" / f"plugstack-{node}.conf"
    stack.write_text(re.sub(r"^required \S+", f"required {plugin}", stack.read_text()))
    return helper


def a_helper(lab):
    """carma-slurm-step, each sick one on a node: no task starts that may have a GPU, or needs to be kept from one."""
    stacks = {node: (lab.dir / "etc" / f"plugstack-{node}.conf").read_text() for node in ["n1", "n3"]}
    jobs = {}
    for name, (text, line) in SICK_HELPERS.items():
        node = "n3" if name == "hangs" else "n1"  # its waits pass beside the others
        helper = with_helper(lab, node, name, text)
        env = {"SECRET": "1", "LC_ALL": "de_DE", "CUDA_VISIBLE_DEVICES": "0"}
        jobs[name] = [lab.sbatch("-w", node, *options, wrap="echo ran with $CUDA_VISIBLE_DEVICES", env=env)
                      for options in [("--carma-mem=12G",), ()]]
        if name != "hangs":
            check_helper(lab, name, jobs[name], line)
        if line is None:
            env = dict(row.split("=", 1) for row in helper.with_name(helper.name + ".env").read_text().splitlines())
            assert env.keys() <= {"PATH", "PWD", "OLDPWD", "SHLVL", "_"} and env["PWD"] == "/", env
            signals = helper.with_name(helper.name + ".signals").read_text()
            assert re.fullmatch(r"SigBlk:\s+fffffffe7ffbfeff\nSigIgn:\s+0+(18)?0{7}\n", signals), signals  # the two are glibc's own
    check_helper(lab, "hangs", jobs["hangs"], SICK_HELPERS["hangs"][1])
    for node, stack in stacks.items():
        (lab.dir / "etc" / f"plugstack-{node}.conf").write_text(stack)


def a_helper_of_a_job_that_is_ended(lab):
    """Slurm's SIGTERM, while carmad does not answer. When it does, no other helper must ask it: the job might be in the queue again."""
    def helpers():
        return {int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*") if read(entry / "cmdline") == b"carma-slurm-step\x001\0start\0"
                for parent in re.findall(rb"PPid:\t(\d+)", read(entry / "status")) if lab.owns(pathlib.Path("/proc", parent.decode()))}

    lab.running["carmad-n1"].send_signal(signal.SIGSTOP)
    job = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap="echo began")
    first = until(helpers, "its helper")
    for pid in first:
        os.kill(pid, signal.SIGTERM)
    until(lambda: not first & helpers(), "its end")
    lab.running["carmad-n1"].send_signal(signal.SIGCONT)
    ends(lab, job, "FAILED")
    assert "began" not in lab.output(job), lab.output(job)


def check_helper(lab, name, jobs, line):
    for job in jobs:
        ends(lab, job, "FAILED" if line else "COMPLETED")
        said = until(lambda job=job: [row for row in lab.output(job).splitlines() if "carma: " in row or "ran with" in row], "its output")
        assert (line in said[0] and "cannot start here" in said[0]) if line else said[0].startswith("ran with"), (name, said)


def a_shepherd_and_slurms_own_group(lab):
    """The last row: n1's slurmd stays in that group. carmad ends the lease's processes alone, and not slurmd there."""
    if lab.enter_own_group("n1") is None:
        print("  skipped: there is no unified hierarchy of control groups to write to")
        return
    a_shepherd(lab)
    assert lab.running["slurmd-n1"].poll() is None, "slurmd was ended"


def a_doctor(lab):
    """carma doctor --slurm beside this Slurm: its answers, its plugin, its files; what somebody else has set is found."""
    settings = lab.dir / "carma.conf"
    settings.write_text("engine = slurm\n")

    def marks():
        answer = json.loads(lab.carma("n2", "doctor", "--json", "--slurm=n2", "--config", settings))
        return {one["check"]: (one["mark"], one["found"]) for one in answer["checks"]}

    found = marks()
    assert {found[check][0] for check in DOCTORS} == {"ok"}, found
    assert str(lab.plugin) in found["Slurm plugin"][1], found
    assert "gpumem:40960M" in found["Slurm counts"][1] and not lab.run(["squeue", "-h"]), found
    submit, counts = lab.dir / "etc/job_submit.lua", f"Gres=gpumem:{GPU_GIB * GPUS}G,gpubig:{GPUS},gpusm:{GPU_SM * GPUS},gpuslot:{GPU_SLOTS * GPUS}"
    ours = submit.read_text()
    for age, (old, new, mark) in enumerate([("job.gres = list", "job.gres = nil", "fail"), ("default = 40", "default = 80", "warn"), ("", "", "ok")]):
        submit.write_text(ours.replace(old, new))
        os.utime(submit, (0, time.time() + 10 * age))  # slurmctld reads a younger file again, by whole seconds
        found = marks()["Slurm counts"]
        assert found[0] == mark, found
    lab.run(["scontrol", "update", "NodeName=n2", "Gres=gpumem:80G,gpubig:2"])
    found = marks()
    assert found["gpumem"][0] == found["gpubig"][0] == "warn", found
    lab.run(["scontrol", "update", "NodeName=n2", counts])
    lab.kill("slurmctld")
    assert marks()["Slurm"][0] == "fail", found
    lab.start_slurmctld()
    until(lambda: "n2" in lab.run(["sinfo", "-h", "-N"], check=False), "slurmctld")


DOCTORS = ["Slurm engine", "Slurm gate", "Slurm agent", "plugstack", "Slurm plugin", "job_submit", "cli_filter", "Slurm requeue", "Slurm devices",
           "gpumem", "gpubig", "Slurm counts"]

# In one test each (meson.build).
PARTS = {"agent": [a_slow_slurmctld, a_agent],
         "carmad": [a_doctor, a_carmad_with_a_step_running, a_carmad_with_a_job_starting, a_second_carmad, a_shepherd,
                    a_shepherd_and_slurms_own_group],
         "end": [a_carmad_with_a_job_ending, a_carmad_away_at_the_end, a_slurmd_at_the_end],
         "gpu": [a_gpu, a_helper, a_helper_of_a_job_that_is_ended],
         "node": [a_node],
         "slurm": [a_slurmstepd, a_slurmd, a_slurmctld, a_plugin]}


def main():
    skip_where_impossible()
    words = sys.argv[4:] or PARTS
    rows = [row for part, rows in PARTS.items() for row in rows if part in words or row.__name__ in words]
    with Lab(*sys.argv[1:4]) as lab:
        lab.walk(rows)


if __name__ == "__main__":
    sys.exit(main())
