"""Usage: test_failures.py CARMA SOURCE BUILD [ROW...]: what dies under Slurm's jobs, and what becomes of them: the table
"When something dies" of docs/slurm.md. One cluster for all rows, each of which leaves it idle."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from lab import GPUS, NODES, Lab, skip_where_impossible, until


def lease_of(lab, node, job):
    """carmad's newest lease of a job, ended or not."""
    found = lab.ask(node, "GET", f"/v1/leases/by-key?cluster=lab&job={job}")[1]["leases"]
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


def running(lab, name, *options, node="n1"):
    job = lab.sbatch("-w", node, "--carma-mem=12G", *options, wrap=f"echo began; {gate(lab, name)}; echo ended")
    lab.until_state(job, "RUNNING")
    until_lease(lab, node, job, "RUNNING")
    until(lambda: "began" in lab.output(job), f"the output of {job}")
    return job


def ends(lab, job, state, restarts=0):
    found = lab.until_end(job)
    assert found["JobState"] == state, f"job {job}: {found}"
    assert int(found["Restarts"]) == restarts, f"job {job}: {found}"
    return found


def all_idle(lab):
    """No node is drained, and no lease is left."""
    until(lambda: lab.node_states() == {"idle"}, "idle nodes: " + lab.run(["sinfo", "-R"]))
    for node in NODES:
        until(lambda node=node: not lab.leases(node), f"no lease left on {node}")


def processes(words):
    """The pids of processes with these words in their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def kill_stepd(job):
    """That of the batch step; of this lab's alone, whose job ids another Slurm of this machine may have, too."""
    for pid in processes(f"slurmstepd: [{job}.batch]"):
        os.kill(pid, signal.SIGKILL)


def kill_stepds_of(lab, job):
    mine = [pid for pid in processes(f"slurmstepd: [{job}.") if str(lab.dir).encode() in environ(pid)]
    assert mine, f"no slurmstepd of job {job}"
    for pid in mine:
        os.kill(pid, signal.SIGKILL)


def environ(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


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
    lab.start_carmad("n1")
    ends(lab, job, "COMPLETED")
    assert "done" in lab.output(job)
    # Away for longer than the plugin waits: the job goes back to the queue.
    lab.kill("carmad-n1")
    job = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap="echo done")
    back = until(lambda: (found := lab.job(job)).get("Restarts") == "1" and found, "a requeue")
    lab.start_carmad("n1")
    found = ends(lab, job, "COMPLETED", restarts=1)
    assert found["Comment"].startswith("carma:refused:n1:"), (back, found)
    assert lab.output(job).count("done") == 1


def a_slurmd(lab):
    job = running(lab, "slurmd")
    lab.kill("slurmd-n1")
    lab.start_slurmd("n1")
    open_gate(lab, "slurmd")
    ends(lab, job, "COMPLETED")
    until_lease(lab, "n1", job, "COMPLETED")


def a_slurmstepd(lab):
    job = running(lab, "stepd")
    tasks = [pid for pid in processes("gate-stepd") if "sbatch" not in str(pid)]
    assert tasks
    kill_stepds_of(lab, job)
    ends(lab, job, "CANCELLED")
    until_lease(lab, "n1", job, "CANCELLED")
    until(lambda: not processes("gate-stepd"), "the end of the job's processes")
    # A pause between the steps of an allocation is nothing of that kind.
    shell = subprocess.Popen(["salloc", "-w", "n1", "--carma-mem=12G", "sh", "-c",
                              f"srun true; {gate(lab, 'salloc')}; srun echo second"],
                             env=lab.env, cwd=lab.dir / "out", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    job = until(lambda: lab.run(["squeue", "-h", "-t", "R", "-o", "%A"]).strip(), "an allocation")
    until_lease(lab, "n1", job, "LOST")  # its processes have gone; a step to come gets another lease
    open_gate(lab, "salloc")
    said = shell.communicate(timeout=60)[0]
    assert shell.returncode == 0 and "second" in said, said


def a_shepherd(lab):
    job = running(lab, "shepherd")
    shepherd = [pid for pid in processes("carma-shepherd") if str(lab.dir).encode() in environ(pid)]
    lease = lease_of(lab, "n1", job)
    mine = [pid for pid in shepherd if f"/runs/{lease['id']}" in " ".join(
        os.readlink(link) for link in readable_links(pid))]
    print(shepherd, mine, lease)
    for pid in shepherd:
        os.kill(pid, signal.SIGKILL)
    until_lease(lab, "n1", job, "LOST", "RETURNED", "FAILED")
    open_gate(lab, "shepherd")
    print(lab.until_end(job), lease_of(lab, "n1", job))


def readable_links(pid):
    for link in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
        yield link


def a_slurmctld(lab):
    job = running(lab, "slurmctld")
    lab.kill("slurmctld")
    lab.start_slurmctld()
    until(lambda: lab.job(job).get("JobState") == "RUNNING", "slurmctld")
    waiting = lab.sbatch("-w", "n1", "--carma-mem=12G", wrap="echo done")
    open_gate(lab, "slurmctld")
    ends(lab, job, "COMPLETED")
    ends(lab, waiting, "COMPLETED")
    until_lease(lab, "n1", job, "COMPLETED")


def a_agent(lab):
    lab.kill("agent-n1")
    job = lab.sbatch("-w", "n1", "--carma-mem=5G", wrap=lab.train("--memory", "8G", "--duration", "60"))
    ends(lab, job, "FAILED")  # nobody has ordered it back
    lab.start_agent("n1")
    found = until(lambda: (found := lab.job(job)).get("JobState") == "COMPLETED" and found, "its second run")
    assert found["Restarts"] == "1" and found["Comment"].startswith("carma:gpu_oom:5.0 GiB->"), found


def a_gpu(lab):
    log = "agent-n1"
    before = lab.log(log).count("now counts")
    job = running(lab, "gpu")
    gpu = lease_of(lab, "n1", job)["indexes"][0]
    lab.run([lab.prefix / "bin/carma-vnode", "inject", lab.vnode("n1"), "gpu-lost", "--gpu", gpu])
    until(lambda: lab.ask("n1", "GET", "/v1/capacity")[1]["lost"] == 1, "a lost GPU")
    until(lambda: lab.log(log).count("now counts") > before, "lower counts")
    line = lab.run(["scontrol", "show", "node", "-o", "n1"])
    assert re.search(r"Gres=gpumem:(120G|122880M),gpubig:3 ", line), line
    open_gate(lab, "gpu")
    ends(lab, job, "COMPLETED")
    # It has been told once, however often the agent looks.
    looked = time.monotonic()
    job = running(lab, "gpu2", "--carma-gpus=3")
    until(lambda: time.monotonic() > looked + 3.5, "three looks")
    assert lab.log(log).count("now counts") == before + 1, lab.log(log)
    open_gate(lab, "gpu2")
    ends(lab, job, "COMPLETED")
    lab.run([lab.prefix / "bin/carma-vnode", "clear", lab.vnode("n1")])
    until(lambda: lab.log(log).count("now counts") == before + 2, "whole counts")
    line = lab.run(["scontrol", "show", "node", "-o", "n1"])
    assert re.search(rf"Gres=gpumem:(160G|163840M),gpubig:{GPUS} ", line), line


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


ROWS = [a_carmad_with_a_step_running, a_carmad_with_a_job_starting, a_slurmd, a_slurmstepd, a_shepherd, a_slurmctld, a_agent,
        a_gpu, a_plugin]


def main():
    skip_where_impossible()
    rows = [row for row in ROWS if not sys.argv[4:] or row.__name__ in sys.argv[4:]]
    with Lab(*sys.argv[1:4]) as lab:
        for row in rows:
            began = time.monotonic()
            print(row.__name__, flush=True)
            row(lab)
            all_idle(lab)
            print(f"  {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
